#include "engines/inline.h"

#include <mutex>
#include <utility>
#include <vector>

#include "engines/work_scope.h"

namespace litmusfuzz::engines {
namespace {

class InlineEngine final : public Engine {
 public:
  std::unique_ptr<RunState> start_run(uint64_t) override;

  /// Held by the working thread. Recursive: a closure may wait for another run.
  std::recursive_mutex working;
};

class InlineRun final : public RunState {
 public:
  explicit InlineRun(InlineEngine& engine) : engine_(engine) {}

  void schedule(Closure closure) override {
    if (WorkScope* const here = WorkScope::of(*this)) return here->local.push_back(closure);
    const std::lock_guard guard(lock_);
    ready_.push_back(closure);
  }

  void wait() override {
    const std::lock_guard works(engine_.working);
    for (auto chosen = take(); !chosen.empty(); chosen = take(std::move(chosen))) {
      WorkScope scope(engine_, *this);
      while (!chosen.empty()) {
        for (const Closure& each : chosen) ending_.run(each);
        chosen.clear();
        std::swap(chosen, scope.local);
      }
    }
    ending_.rethrow();
  }

  void cancel() override { ending_.cancel(); }

 private:
  /// Takes all ready closures; reuses the memory of `reused`.
  std::vector<Closure> take(std::vector<Closure> reused = {}) {
    reused.clear();
    const std::lock_guard guard(lock_);
    std::swap(reused, ready_);
    return reused;
  }

  InlineEngine& engine_;
  Ending ending_;
  std::mutex lock_;
  std::vector<Closure> ready_;  // scheduled from outside this run
};

std::unique_ptr<RunState> InlineEngine::start_run(uint64_t) {
  return std::make_unique<InlineRun>(*this);
}

}  // namespace

std::unique_ptr<Engine> make_inline() { return std::make_unique<InlineEngine>(); }

}  // namespace litmusfuzz::engines
