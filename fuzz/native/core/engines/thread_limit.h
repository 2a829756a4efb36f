// Hard limit on running threads, for engines that do not own their threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace litmusfuzz::engines {

/// Semaphore: at most `count` threads run closures at once, over all runs of an engine.
class ThreadLimit {
 public:
  explicit ThreadLimit(uint32_t count) : free_(std::max(1u, count)) {}

  /// Waits for a slot and takes it.
  void acquire() {
    if (try_acquire(1)) return;
    std::unique_lock lock(lock_);
    waiting_.fetch_add(1, std::memory_order_seq_cst);
    freed_.wait(lock, [this] { return try_acquire(1) == 1; });
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }

  /// Takes the free slots, at most `most`; returns their number.
  uint32_t try_acquire(uint32_t most) {
    uint32_t seen = free_.load(std::memory_order_seq_cst);
    while (seen && !free_.compare_exchange_weak(seen, seen - std::min(seen, most),
                                                std::memory_order_seq_cst)) {
    }
    return std::min(seen, most);
  }

  void release(uint32_t count = 1) {
    free_.fetch_add(count, std::memory_order_seq_cst);
    if (!waiting_.load(std::memory_order_seq_cst)) return;
    {
      const std::lock_guard until_they_sleep(lock_);
    }
    freed_.notify_all();
  }

 private:
  // Both sequentially consistent: a waiting thread announces itself and then checks for a
  // free slot; a releasing thread frees a slot and then checks for waiting threads. At
  // least one of them sees the other.
  std::atomic<uint32_t> free_, waiting_{0};
  std::mutex lock_;
  std::condition_variable freed_;
};

/// Holds a slot for its lifetime.
class ThreadSlot {
 public:
  explicit ThreadSlot(ThreadLimit& thread_limit) : thread_limit_(thread_limit) {
    thread_limit_.acquire();
  }
  ~ThreadSlot() { thread_limit_.release(); }
  ThreadSlot(const ThreadSlot&) = delete;
  ThreadSlot& operator=(const ThreadSlot&) = delete;

 private:
  ThreadLimit& thread_limit_;
};

/// Releases the slot of a thread while its closure waits for another run; the closures
/// that it runs meanwhile take a slot each. So a thread with a slot never waits for
/// another thread, and no thread waits for a slot forever.
class ReleasedSlot {
 public:
  ReleasedSlot(ThreadLimit& thread_limit, bool inside)
      : thread_limit_(inside ? &thread_limit : nullptr) {
    if (thread_limit_) thread_limit_->release();
  }
  ~ReleasedSlot() {
    if (thread_limit_) thread_limit_->acquire();
  }
  ReleasedSlot(const ReleasedSlot&) = delete;
  ReleasedSlot& operator=(const ReleasedSlot&) = delete;

 private:
  ThreadLimit* const thread_limit_;
};

}  // namespace litmusfuzz::engines
