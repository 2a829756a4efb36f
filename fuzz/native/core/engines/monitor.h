// Monitor: a lock, and a notification of changes to the guarded data.
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

  /// Waits for a change, and returns with the lock held; may return early.
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

  /// Notifies all waiting threads of a change. With the lock held.
  void wake_all() {
    news_.fetch_add(1, std::memory_order_relaxed);
    if (!asleep_) return;
    asleep_ = 0;  // each is notified once
    changed_.notify_all();
  }

 private:
  /// A waiting thread spins this long before it sleeps, since a wake-up takes as long as
  /// a small graph.
  static constexpr std::chrono::microseconds kSpin{50};

  std::mutex lock_;
  std::condition_variable changed_;
  uint32_t asleep_ = 0;  // threads asleep and not yet notified
  /// Relaxed: a hint that the lock is worth taking again.
  std::atomic<uint32_t> news_{0};
};

}  // namespace litmusfuzz::engines
