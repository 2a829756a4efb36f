#include "engines/inline.h"

#include <mutex>
#include <utility>
#include <vector>

#include "engines/stint.h"

namespace litmusfuzz::engines {
namespace {

class InlineEngine final : public Engine {
 public:
  std::unique_ptr<RunState> start_run(uint64_t) override;

  /// Held by the one thread that works. Recursive: a closure may wait for a run
  /// of its own.
  std::recursive_mutex working;
};

class InlineRun final : public RunState {
 public:
  explicit InlineRun(InlineEngine& engine) : engine_(engine) {}

  void schedule(Closure closure) override {
    if (Stint* const here = Stint::of(*this)) return here->mine.push_back(closure);
    const std::lock_guard guard(lock_);
    ready_.push_back(closure);
  }

  void wait() override {
    const std::lock_guard works(engine_.working);
    for (auto chosen = take(); !chosen.empty(); chosen = take(std::move(chosen))) {
      Stint stint(engine_, *this);
      while (!chosen.empty()) {
        for (const Closure& each : chosen) ending_.run(each);
        chosen.clear();
        std::swap(chosen, stint.mine);
      }
    }
    ending_.rethrow();
  }

  void cancel() override { ending_.cancel(); }

 private:
  /// All that are ready; `room` is used again.
  std::vector<Closure> take(std::vector<Closure> room = {}) {
    room.clear();
    const std::lock_guard guard(lock_);
    std::swap(room, ready_);
    return room;
  }

  InlineEngine& engine_;
  Ending ending_;
  std::mutex lock_;
  std::vector<Closure> ready_;  // that no closure of this run scheduled
};

std::unique_ptr<RunState> InlineEngine::start_run(uint64_t) {
  return std::make_unique<InlineRun>(*this);
}

}  // namespace

std::unique_ptr<Engine> make_inline() { return std::make_unique<InlineEngine>(); }

}  // namespace litmusfuzz::engines
