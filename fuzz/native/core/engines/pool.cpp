#include "engines/pool.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "engines/monitor.h"
#include "engines/work_scope.h"

namespace litmusfuzz::engines {
namespace {

class PoolRun;

/// Largest number of closures that a thread takes at once.
constexpr size_t kMost = 16;

/// One lock guards everything; threads take several closures at once to reduce contention.
/// A thread of the pool takes closures of any run, a thread in `wait` those of its own
/// run. Both count as working while they run closures.
class Pool final : public Engine {
 public:
  Pool(EngineOptions options, PopOrder pop_order);
  ~Pool() override;
  std::unique_ptr<RunState> start_run(uint64_t seed) override;

 private:
  friend class PoolRun;
  using Lock = Monitor::Lock;

  void work();
  PoolRun* run_with_work();
  /// Sleeps until a thread stops working, or something else changes.
  void sleep_for_limit(Lock& lock) {
    ++limited_;
    monitor_.sleep(lock);
    --limited_;
  }
  /// A thread that stops working may go on to sleep: then another one may work.
  void stop_working() {
    --working_;
    if (limited_) monitor_.wake_all();
  }
  /// Runs some closures of `run`, with the lock released.
  void run_some(PoolRun& run, Lock& lock);

  const PopOrder order_;
  const uint32_t limit_;
  Monitor monitor_;
  uint32_t working_ = 0;
  uint32_t limited_ = 0;  // threads that sleep because the limit is reached
  bool stopping_ = false;
  size_t turn_ = 0;
  std::vector<PoolRun*> runs_;
  std::vector<std::thread> threads_;
};

class PoolRun final : public RunState {
 public:
  PoolRun(Pool& pool, uint64_t seed) : pool_(pool), random_(seed) {}
  ~PoolRun() override {
    const auto lock = pool_.monitor_.enter();
    std::erase(pool_.runs_, this);
  }

  void schedule(Closure closure) override {
    if (WorkScope* const here = WorkScope::of(*this)) return here->local.push_back(closure);
    const auto lock = pool_.monitor_.enter();
    ready_.push_back(closure);
    ++outstanding_;
    pool_.monitor_.wake_all();
  }

  void wait() override {
    auto lock = pool_.monitor_.enter();
    const bool nested = WorkScope::inside(pool_);
    while (outstanding_) {
      if (!left()) {
        pool_.monitor_.sleep(lock);
      } else if (!nested && pool_.working_ == pool_.limit_) {
        pool_.sleep_for_limit(lock);
      } else {
        pool_.working_ += !nested;
        pool_.run_some(*this, lock);
        if (!nested) pool_.stop_working();
      }
    }
    ending_.rethrow();
  }

  void cancel() override { ending_.cancel(); }

 private:
  friend class Pool;

  size_t left() const { return ready_.size() - first_; }

  Closure pop() {
    if (pool_.order_ == PopOrder::kRandom) {
      // splitmix64; the bias of the remainder is below 2^-40.
      uint64_t hash = random_ += 0x9e3779b97f4a7c15u;
      hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
      hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
      std::swap(ready_[(hash ^ hash >> 31) % ready_.size()], ready_.back());
      const Closure chosen = ready_.back();
      ready_.pop_back();
      return chosen;
    }
    const Closure oldest = ready_[first_++];
    if (first_ == ready_.size()) {
      ready_.clear();
      first_ = 0;
    }
    return oldest;
  }

  Pool& pool_;
  Ending ending_;
  // Guarded by the pool's lock.
  uint64_t random_;
  std::vector<Closure> ready_;
  size_t first_ = 0;        // earlier ones were popped; always 0 with random order
  size_t outstanding_ = 0;  // ready or running
};

Pool::Pool(EngineOptions options, PopOrder pop_order)
    : order_(pop_order), limit_(std::max(1u, options.threads)) {
  // The waiting thread is one of them.
  for (uint32_t i = 1; i < limit_; ++i) threads_.emplace_back([this] { work(); });
}

Pool::~Pool() {
  {
    const auto lock = monitor_.enter();
    stopping_ = true;
    monitor_.wake_all();
  }
  for (std::thread& each : threads_) each.join();
}

std::unique_ptr<RunState> Pool::start_run(uint64_t seed) {
  auto run = std::make_unique<PoolRun>(*this, seed);
  const auto lock = monitor_.enter();
  runs_.push_back(run.get());
  return run;
}

void Pool::work() {
  auto lock = monitor_.enter();
  while (!stopping_) {
    if (working_ == limit_) {
      sleep_for_limit(lock);
    } else if (PoolRun* const run = run_with_work()) {
      ++working_;
      run_some(*run, lock);
      stop_working();
    } else {
      monitor_.sleep(lock);
    }
  }
}

PoolRun* Pool::run_with_work() {
  for (size_t i = 0; i < runs_.size(); ++i) {
    PoolRun* const run = runs_[++turn_ % runs_.size()];
    if (run->left()) return run;
  }
  return nullptr;
}

void Pool::run_some(PoolRun& run, Lock& lock) {
  // A small share of the ready closures, to leave choices and work for other threads.
  std::array<Closure, kMost> chosen;
  const size_t count = std::clamp<size_t>(run.left() / (4 * limit_), 1, kMost);
  for (size_t i = 0; i < count; ++i) chosen[i] = run.pop();
  lock.unlock();
  WorkScope scope(*this, run);
  for (size_t i = 0; i < count; ++i) run.ending_.run(chosen[i]);
  lock.lock();
  // Adds all closures that they scheduled under one lock.
  run.ready_.insert(run.ready_.end(), scope.local.begin(), scope.local.end());
  run.outstanding_ += scope.local.size();
  run.outstanding_ -= count;
  if (run.outstanding_ == 0 || scope.local.size() > 1) monitor_.wake_all();
}

}  // namespace

std::unique_ptr<Engine> make_pool(EngineOptions options, PopOrder order) {
  return std::make_unique<Pool>(options, order);
}

}  // namespace litmusfuzz::engines
