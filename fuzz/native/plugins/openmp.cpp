// OpenMP: rounds of a parallel loop over all closures that are ready; what they
// schedule is the next round. (Not tasks: a runtime may run one inside of the call
// that makes it, and a closure must not run inside of another.)
//
// There are no threads outside of `wait`: runs for which one thread waits, one after
// the other, run one after the other.
//
// Reference: ENGINES, Objective; OpenMP 4.5, 2.7.1 (worksharing loop).
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "engines/places.h"
#include "engines/stint.h"

namespace litmusfuzz::engines {
namespace {

class OpenMp final : public Engine {
 public:
  explicit OpenMp(EngineOptions options) : limit(std::max(1u, options.threads)), places(limit) {}

  std::unique_ptr<RunState> start_run(uint64_t) override;

  const uint32_t limit;
  /// Each thread that waits has a team of its own; together they keep the limit.
  Places places;
};

class OpenMpRun final : public RunState {
 public:
  explicit OpenMpRun(OpenMp& engine) : engine_(engine) {}

  void schedule(Closure closure) override {
    if (Stint* const here = Stint::of(*this)) return here->mine.push_back(closure);
    const std::lock_guard guard(lock_);
    next_.push_back(closure);
  }

  void wait() override {
    const bool nested = Stint::inside(engine_);
    if (!nested) engine_.places.take();
    // Never for a thread that has a place already: it might wait for itself.
    const uint32_t others = nested ? 0 : engine_.places.take_free(engine_.limit - 1);
    work(static_cast<int>(others + 1));
    engine_.places.give_back(others + !nested);
    ending_.rethrow();
  }

  void cancel() override { ending_.cancel(); }

 private:
  void work(int threads) {
    take();
    if (ready_.empty()) return;
#pragma omp parallel num_threads(threads)
    {
      Stint stint(engine_, *this);
      while (!ready_.empty()) {
#pragma omp for schedule(dynamic)
        for (size_t i = 0; i < ready_.size(); ++i) ending_.run(ready_[i]);
        {
          const std::lock_guard guard(lock_);
          next_.insert(next_.end(), stint.mine.begin(), stint.mine.end());
        }
        stint.mine.clear();
#pragma omp barrier
#pragma omp single
        take();
      }
    }
  }

  void take() {
    ready_.clear();
    const std::lock_guard guard(lock_);
    std::swap(ready_, next_);
  }

  OpenMp& engine_;
  Ending ending_;
  std::vector<Closure> ready_;  // of this round; changes while one thread is there
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
