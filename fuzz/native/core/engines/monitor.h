// A lock, and news for whoever waits for a change of what it guards.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace litmusfuzz::engines {

class Monitor {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Lock enter() { return Lock(lock_); }

  /// Returns, with the lock held again, when something has changed; or sooner.
  void sleep(Lock& lock) {
    const uint32_t seen = news_.load(std::memory_order_relaxed);
    lock.unlock();
    const auto end = std::chrono::steady_clock::now() + kSpin;
    while (news_.load(std::memory_order_relaxed) == seen &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    lock.lock();
    if (news_.load(std::memory_order_relaxed) != seen) return;
    ++asleep_;
    changed_.wait(lock);
  }

  /// With the lock held, after a change that somebody may wait for.
  void wake_all() {
    news_.fetch_add(1, std::memory_order_relaxed);
    if (!asleep_) return;
    asleep_ = 0;  // each is told once
    changed_.notify_all();
  }

 private:
  /// Who waits looks on for that long before it sleeps, since to wake it takes as
  /// long as a small graph.
  static constexpr std::chrono::microseconds kSpin{50};

  std::mutex lock_;
  std::condition_variable changed_;
  uint32_t asleep_ = 0;  // and not told to wake up
  /// Relaxed: it says only that it may be worth while to take the lock again.
  std::atomic<uint32_t> news_{0};
};

}  // namespace litmusfuzz::engines
