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
    // Acquire: its partner is the release in `unlock`.
    for (int tries = 0; held_.exchange(true, std::memory_order_acquire); ++tries) {
      if (tries >= 32) std::this_thread::yield();
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace litmusfuzz::executor
