// A lock for a few instructions.
#pragma once

#include <atomic>
#include <thread>

namespace litmusfuzz::executor {

/// Half as dear as a std::mutex where nobody else wants it, which is the rule. A
/// holder may have lost its core: who waits soon gives up its own.
class SpinLock {
 public:
  void lock() {
    // Acquire, here and in `wait`: its partner is the release in `unlock`.
    if (held_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  // Apart, so that who need not wait calls nothing.
  [[gnu::noinline, gnu::cold]] void wait() {
    for (int tries = 1; held_.exchange(true, std::memory_order_acquire); ++tries) {
      if (tries >= 32) std::this_thread::yield();
    }
  }

  std::atomic<bool> held_{false};
};

}  // namespace litmusfuzz::executor
