#include "engines/stealing.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "engines/monitor.h"
#include "engines/work_scope.h"

namespace litmusfuzz::engines {
namespace {

class StealingRun;

class Stealing final : public Engine {
 public:
  explicit Stealing(EngineOptions options);
  ~Stealing() override;
  std::unique_ptr<RunState> start_run(uint64_t) override;

 private:
  friend class StealingRun;
  using Lock = Monitor::Lock;

  void work();
  StealingRun* run_with_work();
  /// Runs closures of `run`, with the lock released, until none is shared.
  void work_on(StealingRun& run, Lock& lock);

  const uint32_t limit_;
  Monitor monitor_;
  uint32_t working_ = 0;  // threads in `work_on`, nested ones counted once
  size_t turn_ = 0;
  std::vector<StealingRun*> runs_;
  bool stopping_ = false;
  /// Idle threads of the engine. Written under the lock; relaxed, since a reader without
  /// the lock takes it before acting on the value.
  std::atomic<uint32_t> idle_threads_{0};
  std::vector<std::thread> threads_;
};

class StealingRun final : public RunState {
 public:
  explicit StealingRun(Stealing& engine) : engine_(engine) {}
  ~StealingRun() override {
    const auto lock = engine_.monitor_.enter();
    std::erase(engine_.runs_, this);
  }

  void schedule(Closure closure) override {
    if (WorkScope* const here = WorkScope::of(*this)) return here->local.push_back(closure);
    const auto lock = engine_.monitor_.enter();
    shared_.push_back(closure);
    engine_.monitor_.wake_all();
  }

  void wait() override {
    auto lock = engine_.monitor_.enter();
    const bool nested = WorkScope::inside(engine_);
    while (!shared_.empty() || workers_) {
      if (!nested && engine_.working_ == engine_.limit_) {
        engine_.monitor_.sleep(lock);
      } else if (shared_.empty()) {
        idle_threads_.fetch_add(1, std::memory_order_relaxed);
        engine_.monitor_.sleep(lock);
        idle_threads_.fetch_sub(1, std::memory_order_relaxed);
      } else {
        engine_.working_ += !nested;
        engine_.work_on(*this, lock);
        engine_.working_ -= !nested;
        engine_.monitor_.wake_all();
      }
    }
    ending_.rethrow();
  }

  void cancel() override { ending_.cancel(); }

 private:
  friend class Stealing;

  /// Takes the oldest half of the shared closures, at least one.
  void take(std::vector<Closure>& mine) {
    const auto half = static_cast<ptrdiff_t>((shared_.size() + 1) / 2);
    mine.assign(shared_.begin(), shared_.begin() + half);
    shared_.erase(shared_.begin(), shared_.begin() + half);
    given_.store(false, std::memory_order_relaxed);
  }

  bool wanted() const {
    if (given_.load(std::memory_order_relaxed)) return false;  // the last half was not taken yet
    return idle_threads_.load(std::memory_order_relaxed) ||
           engine_.idle_threads_.load(std::memory_order_relaxed);
  }

  /// Shares the oldest half of `mine`.
  void give(std::vector<Closure>& mine) {
    const auto half = static_cast<ptrdiff_t>(mine.size() / 2);
    const auto lock = engine_.monitor_.enter();
    shared_.insert(shared_.end(), mine.begin(), mine.begin() + half);
    mine.erase(mine.begin(), mine.begin() + half);
    given_.store(true, std::memory_order_relaxed);
    engine_.monitor_.wake_all();
  }

  Stealing& engine_;
  Ending ending_;
  // Guarded by the engine's lock; the atomics are hints for readers without it.
  std::deque<Closure> shared_;
  size_t workers_ = 0;               // threads in `work_on` for this run
  std::atomic<uint32_t> idle_threads_{0};  // threads in `wait`, which take from this run alone
  std::atomic<bool> given_{false};   // `give` shared closures that no thread took yet
};

Stealing::Stealing(EngineOptions options) : limit_(std::max(1u, options.threads)) {
  // The waiting thread is one of them.
  for (uint32_t i = 1; i < limit_; ++i) threads_.emplace_back([this] { work(); });
}

Stealing::~Stealing() {
  {
    const auto lock = monitor_.enter();
    stopping_ = true;
    monitor_.wake_all();
  }
  for (std::thread& each : threads_) each.join();
}

std::unique_ptr<RunState> Stealing::start_run(uint64_t) {
  auto run = std::make_unique<StealingRun>(*this);
  const auto lock = monitor_.enter();
  runs_.push_back(run.get());
  return run;
}

void Stealing::work() {
  auto lock = monitor_.enter();
  while (!stopping_) {
    if (working_ == limit_) {
      monitor_.sleep(lock);
    } else if (StealingRun* const run = run_with_work()) {
      ++working_;
      work_on(*run, lock);
      --working_;
      monitor_.wake_all();
    } else {
      idle_threads_.fetch_add(1, std::memory_order_relaxed);
      monitor_.sleep(lock);
      idle_threads_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

StealingRun* Stealing::run_with_work() {
  for (size_t i = 0; i < runs_.size(); ++i) {
    StealingRun* const run = runs_[++turn_ % runs_.size()];
    if (!run->shared_.empty()) return run;
  }
  return nullptr;
}

void Stealing::work_on(StealingRun& run, Lock& lock) {
  ++run.workers_;
  WorkScope scope(*this, run);
  while (!run.shared_.empty()) {
    run.take(scope.local);
    lock.unlock();
    while (!scope.local.empty()) {
      if (scope.local.size() > 1 && run.wanted()) run.give(scope.local);
      const Closure newest = scope.local.back();
      scope.local.pop_back();
      run.ending_.run(newest);
    }
    lock.lock();
  }
  if (--run.workers_ == 0) monitor_.wake_all();
}

}  // namespace

std::unique_ptr<Engine> make_stealing(EngineOptions options) {
  return std::make_unique<Stealing>(options);
}

}  // namespace litmusfuzz::engines
