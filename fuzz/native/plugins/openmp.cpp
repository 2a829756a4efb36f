// Engine `openmp`: rounds of a parallel loop over the ready closures; closures that they
// schedule form the next round. OpenMP tasks do not fit: a runtime may run a task inside
// the call that creates it, and closures must not nest.
//
// There are no threads outside of `wait`: if one thread waits for several runs, they run
// one after another.
//
// Reference: ENGINES, Objective; OpenMP 4.5, 2.7.1 (worksharing loop).
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "engines/thread_limit.h"
#include "engines/work_scope.h"

namespace litmusfuzz::engines {
namespace {

class OpenMp final : public Engine {
 public:
  explicit OpenMp(EngineOptions options)
      : limit(std::max(1u, options.threads)), thread_limit(limit) {}

  std::unique_ptr<RunState> start_run(uint64_t) override;

  const uint32_t limit;
  /// Each waiting thread has its own team; the limit holds for all teams together.
  ThreadLimit thread_limit;
};

class OpenMpRun final : public RunState {
 public:
  explicit OpenMpRun(OpenMp& engine) : engine_(engine) {}

  void schedule(Closure closure) override {
    if (WorkScope* const here = WorkScope::of(*this)) return here->local.push_back(closure);
    const std::lock_guard guard(lock_);
    next_.push_back(closure);
  }

  void wait() override {
    const bool nested = WorkScope::inside(engine_);
    if (!nested) engine_.thread_limit.acquire();
    // Not for a thread that holds a slot already: it might wait for itself.
    const uint32_t others = nested ? 0 : engine_.thread_limit.try_acquire(engine_.limit - 1);
    work(static_cast<int>(others + 1));
    engine_.thread_limit.release(others + !nested);
    ending_.rethrow();
  }

  void cancel() override { ending_.cancel(); }

 private:
  void work(int threads) {
    acquire();
    if (ready_.empty()) return;
#pragma omp parallel num_threads(threads)
    {
      WorkScope scope(engine_, *this);
      while (!ready_.empty()) {
#pragma omp for schedule(dynamic)
        for (size_t i = 0; i < ready_.size(); ++i) ending_.run(ready_[i]);
        {
          const std::lock_guard guard(lock_);
          next_.insert(next_.end(), scope.local.begin(), scope.local.end());
        }
        scope.local.clear();
#pragma omp barrier
#pragma omp single
        acquire();
      }
    }
  }

  void acquire() {
    ready_.clear();
    const std::lock_guard guard(lock_);
    std::swap(ready_, next_);
  }

  OpenMp& engine_;
  Ending ending_;
  std::vector<Closure> ready_;  // of this round; only one thread changes it
  std::mutex lock_;
  std::vector<Closure> next_;
};

std::unique_ptr<RunState> OpenMp::start_run(uint64_t) { return std::make_unique<OpenMpRun>(*this); }

std::unique_ptr<Engine> make_openmp(EngineOptions options) {
  return std::make_unique<OpenMp>(options);
}

}  // namespace
}  // namespace litmusfuzz::engines

LITMUSFUZZ_ENGINE(litmusfuzz::engines::make_openmp)
