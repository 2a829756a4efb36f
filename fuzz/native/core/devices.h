// Engines of the devices of a test: each device has an engine with threads of its own.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "frame.h"
#include "litmusfuzz/engine.h"

namespace litmusfuzz::executor {

/// One engine for each device of a program; the caller owns them.
using Engines = std::vector<Engine*>;

/// The runs of a test, each with a run state on every device.
class DeviceRuns {
 public:
  DeviceRuns(const Program& program, Engines engines)
      : program_(program),
        engines_(std::move(engines)),
        devices_(engines_.size()),
        several_(program.runs.size() * devices_ > 1) {}

  /// Starts all runs; `seed` returns a seed for each.
  template <typename Seed>
  void start(Seed&& seed) {
    for (size_t r = 0; r < program_.runs.size(); ++r) {
      for (Engine* const engine : engines_) states_.push_back(engine->start_run(seed()));
    }
  }
  /// Waits until all closures scheduled so far have run. A run state may get new closures
  /// from another one after its own wait.
  void wait() {
    for (const auto& each : states_) each->wait();
  }
  /// The same for cancelled runs; ignores exceptions, since the first one is already
  /// propagating.
  void wait_quietly() {
    for (const auto& each : states_) {
      try {
        each->wait();
      } catch (...) {
      }
    }
  }
  void cancel() {
    for (const auto& each : states_) each->cancel();
  }
  void end() { states_.clear(); }

  /// True with several run states, of which none alone knows that all is done.
  bool several() const { return several_; }

  void schedule(const Event& event) {
    size_t place = event.frame->run;
    // With one device there is no need to look up the node.
    if (devices_ != 1) place = place * devices_ + event.frame->node(event.node).device;
    states_[place]->schedule(event.frame->closure(event.node, event.step));
  }

 private:
  const Program& program_;
  const Engines engines_;
  const size_t devices_;
  const bool several_;
  std::vector<std::unique_ptr<RunState>> states_;  // by run, then by device
};

}  // namespace litmusfuzz::executor
