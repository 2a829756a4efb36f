#include "engines/stealing.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "engines/monitor.h"
#include "engines/stint.h"

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
  /// Runs closures of `run`, with the lock released, until there is none to be had.
  void play(StealingRun& run, Lock& lock);

  const uint32_t limit_;
  Monitor monitor_;
  uint32_t working_ = 0;  // threads in `play`, one in another counted once
  size_t turn_ = 0;
  std::vector<StealingRun*> runs_;
  bool stopping_ = false;
  /// Threads of ours without work. Written under the lock; relaxed: who reads it
  /// without takes the lock before doing anything about it.
  std::atomic<uint32_t> hungry_{0};
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
    if (Stint* const here = Stint::of(*this)) return here->mine.push_back(closure);
    const auto lock = engine_.monitor_.enter();
    shared_.push_back(closure);
    engine_.monitor_.wake_all();
  }

  void wait() override {
    auto lock = engine_.monitor_.enter();
    const bool nested = Stint::inside(engine_);
    while (!shared_.empty() || players_) {
      if (!nested && engine_.working_ == engine_.limit_) {
        engine_.monitor_.sleep(lock);
      } else if (shared_.empty()) {
        hungry_.fetch_add(1, std::memory_order_relaxed);
        engine_.monitor_.sleep(lock);
        hungry_.fetch_sub(1, std::memory_order_relaxed);
      } else {
        engine_.working_ += !nested;
        engine_.play(*this, lock);
        engine_.working_ -= !nested;
        engine_.monitor_.wake_all();
      }
    }
    ending_.rethrow();
  }

  void cancel() override { ending_.cancel(); }

 private:
  friend class Stealing;

  /// Half of what is shared, the oldest, and at least one.
  void take(std::vector<Closure>& mine) {
    const auto half = static_cast<ptrdiff_t>((shared_.size() + 1) / 2);
    mine.assign(shared_.begin(), shared_.begin() + half);
    shared_.erase(shared_.begin(), shared_.begin() + half);
    given_.store(false, std::memory_order_relaxed);
  }

  bool wanted() const {
    if (given_.load(std::memory_order_relaxed)) return false;  // not taken yet
    return hungry_.load(std::memory_order_relaxed) ||
           engine_.hungry_.load(std::memory_order_relaxed);
  }

  /// The oldest half of them.
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
  // All guarded by the engine's lock; of the atomics a reader without it gets a hint.
  std::deque<Closure> shared_;
  size_t players_ = 0;               // threads in `play` for this run
  std::atomic<uint32_t> hungry_{0};  // threads in `wait`, which take from this run alone
  std::atomic<bool> given_{false};   // by `give`, and nobody came yet
};

Stealing::Stealing(EngineOptions options) : limit_(std::max(1u, options.threads)) {
  // The thread that waits is one of them.
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
      play(*run, lock);
      --working_;
      monitor_.wake_all();
    } else {
      hungry_.fetch_add(1, std::memory_order_relaxed);
      monitor_.sleep(lock);
      hungry_.fetch_sub(1, std::memory_order_relaxed);
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

void Stealing::play(StealingRun& run, Lock& lock) {
  ++run.players_;
  Stint stint(*this, run);
  while (!run.shared_.empty()) {
    run.take(stint.mine);
    lock.unlock();
    while (!stint.mine.empty()) {
      if (stint.mine.size() > 1 && run.wanted()) run.give(stint.mine);
      const Closure newest = stint.mine.back();
      stint.mine.pop_back();
      run.ending_.run(newest);
    }
    lock.lock();
  }
  if (--run.players_ == 0) monitor_.wake_all();
}

}  // namespace

std::unique_ptr<Engine> make_stealing(EngineOptions options) {
  return std::make_unique<Stealing>(options);
}

}  // namespace litmusfuzz::engines
