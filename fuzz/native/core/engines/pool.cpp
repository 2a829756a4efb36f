#include "engines/pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace litmusfuzz::engines {
namespace {

class PoolRun;

/// Closures that a thread takes at once, at most.
constexpr size_t kMost = 16;

/// A thread without work looks on for that long before it sleeps, since to wake it
/// takes as long as a small graph.
constexpr std::chrono::microseconds kSpin{50};

/// One lock for everything; threads take several closures at once, so that it is
/// seldom wanted. A thread of the pool takes closures of any run; one in `wait`
/// takes those of its own. Both count as working while they run some.
class Pool final : public Engine {
 public:
  Pool(EngineOptions options, PopOrder pop_order);
  ~Pool() override;
  std::unique_ptr<RunState> start_run(uint64_t seed) override;

 private:
  friend class PoolRun;
  using Lock = std::unique_lock<std::mutex>;

  void work();
  PoolRun* run_with_work();
  /// Runs some closures of `run`, with the lock released.
  void run_some(PoolRun& run, Lock& lock);
  /// Returns when something has changed; or sooner.
  void sleep(Lock& lock);
  void wake_all();

  const PopOrder order_;
  const uint32_t limit_;
  std::mutex lock_;
  std::condition_variable changed_;
  uint32_t asleep_ = 0;  // and not told to wake up
  /// Relaxed: it says only that it may be worth while to take the lock again.
  std::atomic<uint32_t> news_{0};
  uint32_t working_ = 0;
  bool stopping_ = false;
  size_t turn_ = 0;
  std::vector<PoolRun*> runs_;
  std::vector<std::thread> threads_;
};

/// The pool for which this thread is running a closure now. It may wait for a
/// run inside: it then works on, and does not count twice.
thread_local const Pool* working_for = nullptr;

class PoolRun final : public RunState {
 public:
  PoolRun(Pool& pool, uint64_t seed) : pool_(pool), random_(seed) {}
  ~PoolRun() override {
    const std::lock_guard guard(pool_.lock_);
    std::erase(pool_.runs_, this);
  }

  void schedule(Closure closure) override {
    const std::lock_guard guard(pool_.lock_);
    ready_.push_back(closure);
    ++outstanding_;
    pool_.wake_all();
  }

  void wait() override {
    Pool::Lock lock(pool_.lock_);
    const bool nested = working_for == &pool_;
    while (outstanding_) {
      if (!left() || (!nested && pool_.working_ == pool_.limit_)) {
        pool_.sleep(lock);
      } else {
        pool_.working_ += !nested;
        pool_.run_some(*this, lock);
        pool_.working_ -= !nested;
      }
    }
    // Whoever waits for a place among those that work.
    pool_.wake_all();
  }

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
  // All guarded by the pool's lock.
  uint64_t random_;
  std::vector<Closure> ready_;
  size_t first_ = 0;        // those before were popped; with random pop always 0
  size_t outstanding_ = 0;  // ready or running
};

Pool::Pool(EngineOptions options, PopOrder pop_order)
    : order_(pop_order), limit_(std::max(1u, options.threads)) {
  // The thread that waits is one of them.
  for (uint32_t i = 1; i < limit_; ++i) threads_.emplace_back([this] { work(); });
}

Pool::~Pool() {
  {
    const std::lock_guard guard(lock_);
    stopping_ = true;
    wake_all();
  }
  for (std::thread& each : threads_) each.join();
}

std::unique_ptr<RunState> Pool::start_run(uint64_t seed) {
  auto run = std::make_unique<PoolRun>(*this, seed);
  const std::lock_guard guard(lock_);
  runs_.push_back(run.get());
  return run;
}

void Pool::work() {
  Lock lock(lock_);
  while (!stopping_) {
    PoolRun* const run = working_ < limit_ ? run_with_work() : nullptr;
    if (!run) {
      sleep(lock);
      continue;
    }
    ++working_;
    run_some(*run, lock);
    --working_;
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
  // Few of those that are ready: there must be choice left, and work for others.
  std::array<Closure, kMost> chosen;
  const size_t count = std::clamp<size_t>(run.left() / (4 * limit_), 1, kMost);
  for (size_t i = 0; i < count; ++i) chosen[i] = run.pop();
  const Pool* const before = std::exchange(working_for, this);
  lock.unlock();
  for (size_t i = 0; i < count; ++i) chosen[i]();
  lock.lock();
  working_for = before;
  run.outstanding_ -= count;
  if (run.outstanding_ == 0) wake_all();
}

void Pool::sleep(Lock& lock) {
  const uint32_t seen = news_.load(std::memory_order_relaxed);
  lock.unlock();
  const auto end = std::chrono::steady_clock::now() + kSpin;
  while (news_.load(std::memory_order_relaxed) == seen && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  lock.lock();
  if (news_.load(std::memory_order_relaxed) != seen) return;
  ++asleep_;
  changed_.wait(lock);
}

void Pool::wake_all() {
  news_.fetch_add(1, std::memory_order_relaxed);
  if (!asleep_) return;
  asleep_ = 0;  // each is told once
  changed_.notify_all();
}

}  // namespace

std::unique_ptr<Engine> make_pool(EngineOptions options, PopOrder order) {
  return std::make_unique<Pool>(options, order);
}

}  // namespace litmusfuzz::engines
