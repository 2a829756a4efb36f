// Where closures of a test go: each device has an engine, with threads of its own.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "frame.h"
#include "litmusfuzz/engine.h"

namespace litmusfuzz::executor {

/// One engine for each device that a program is on; whoever made them keeps them.
using Engines = std::vector<Engine*>;

/// The runs of a test, each with a state on every device.
class DeviceRuns {
 public:
  DeviceRuns(const Program& program, Engines engines)
      : program_(program),
        engines_(std::move(engines)),
        devices_(engines_.size()),
        several_(program.runs.size() * devices_ > 1) {}

  /// Random choices come from what `seed` returns.
  template <typename Seed>
  void start(Seed&& seed) {
    for (size_t r = 0; r < program_.runs.size(); ++r) {
      for (Engine* const engine : engines_) states_.push_back(engine->start_run(seed()));
    }
  }
  /// Until all closures scheduled so far have run. One state may get new ones from
  /// another after it was waited for.
  void wait() {
    for (const auto& each : states_) each->wait();
  }
  /// The same of runs that were cancelled, whatever they throw: one exception is told,
  /// and it is on its way.
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

  /// Whether one state's word that all is done is not enough.
  bool several() const { return several_; }

  void schedule(const Event& event) {
    size_t place = event.frame->run;
    // Where there is no choice, the node need not be looked at.
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
