// Where closures of a test go: each device has an engine, with threads of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frame.h"
#include "litmusfuzz/engine.h"

namespace litmusfuzz::executor {

/// One engine for each device that a program is on.
using Engines = std::vector<std::unique_ptr<Engine>>;

Engines make_engines(const Program& program, const std::string& name, EngineOptions options);

/// The runs of a test, each with a state on every device.
class DeviceRuns {
 public:
  DeviceRuns(const Program& program, Engines& engines)
      : program_(program), engines_(engines), devices_(engines.size()) {}

  /// Random choices come from what `seed` returns.
  template <typename Seed>
  void start(Seed&& seed) {
    for (size_t r = 0; r < program_.runs.size(); ++r) {
      for (const auto& engine : engines_) states_.push_back(engine->start_run(seed()));
    }
  }
  /// Until all closures scheduled so far have run. One state may get new ones from
  /// another after it was waited for.
  void wait() {
    for (const auto& each : states_) each->wait();
  }
  void end() { states_.clear(); }

  /// Whether one state's word that all is done is not enough.
  bool several() const { return states_.size() > 1; }

  /// `perform` is given the event's frame, and the rest packed (`unpacked`).
  void schedule(const Event& event, void (*perform)(void* frame, uint64_t packed)) {
    size_t place = event.frame->run;
    // Where there is no choice, the node need not be looked at.
    if (devices_ != 1) place = place * devices_ + event.frame->node(event.node).device;
    states_[place]->schedule({perform, event.frame, uint64_t{event.node} << 32 | event.step});
  }
  static Event unpacked(void* frame, uint64_t packed) {
    return {static_cast<Frame*>(frame), static_cast<uint32_t>(packed >> 32),
            static_cast<uint32_t>(packed)};
  }

 private:
  const Program& program_;
  Engines& engines_;
  const size_t devices_;
  std::vector<std::unique_ptr<RunState>> states_;  // by run, then by device
};

}  // namespace litmusfuzz::executor
