#include "engines/inline.h"

#include <mutex>
#include <vector>

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
    const std::lock_guard guard(lock_);
    ready_.push_back(closure);
  }

  void wait() override {
    const std::lock_guard works(engine_.working);
    Closure next;
    while (pop(next)) next();
  }

 private:
  bool pop(Closure& next) {
    const std::lock_guard guard(lock_);
    if (first_ == ready_.size()) {
      ready_.clear();
      first_ = 0;
      return false;
    }
    next = ready_[first_++];
    return true;
  }

  InlineEngine& engine_;
  std::mutex lock_;  // another run's closures may schedule here
  std::vector<Closure> ready_;
  size_t first_ = 0;
};

std::unique_ptr<RunState> InlineEngine::start_run(uint64_t) {
  return std::make_unique<InlineRun>(*this);
}

}  // namespace

std::unique_ptr<Engine> make_inline() { return std::make_unique<InlineEngine>(); }

}  // namespace litmusfuzz::engines
