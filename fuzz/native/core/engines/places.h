// A hard limit on threads, for engines whose threads belong to somebody else.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace litmusfuzz::engines {

/// So many threads may run closures at the same moment, over all runs of an engine.
class Places {
 public:
  explicit Places(uint32_t count) : free_(std::max(1u, count)) {}

  /// One; waits for it.
  void take() {
    if (take_free(1)) return;
    std::unique_lock lock(lock_);
    waiting_.fetch_add(1, std::memory_order_seq_cst);
    freed_.wait(lock, [this] { return take_free(1) == 1; });
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }

  /// As many as are free, at most `most`; says how many.
  uint32_t take_free(uint32_t most) {
    uint32_t seen = free_.load(std::memory_order_seq_cst);
    while (seen && !free_.compare_exchange_weak(seen, seen - std::min(seen, most),
                                                std::memory_order_seq_cst)) {
    }
    return std::min(seen, most);
  }

  void give_back(uint32_t count = 1) {
    free_.fetch_add(count, std::memory_order_seq_cst);
    if (!waiting_.load(std::memory_order_seq_cst)) return;
    {
      const std::lock_guard until_they_sleep(lock_);
    }
    freed_.notify_all();
  }

 private:
  // Sequentially consistent, both: who waits says so and then looks for a free one,
  // who gives back frees one and then looks for who waits. One sees the other.
  std::atomic<uint32_t> free_, waiting_{0};
  std::mutex lock_;
  std::condition_variable freed_;
};

/// A place for as long as it lives.
class Place {
 public:
  explicit Place(Places& places) : places_(places) { places_.take(); }
  ~Place() { places_.give_back(); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  Places& places_;
};

/// While a closure waits for another run its thread needs no place: what it works on
/// then takes one for each closure. So whoever has a place needs nothing else to go
/// on, and nobody waits for one for ever.
class Lent {
 public:
  Lent(Places& places, bool inside) : places_(inside ? &places : nullptr) {
    if (places_) places_->give_back();
  }
  ~Lent() {
    if (places_) places_->take();
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  Places* const places_;
};

}  // namespace litmusfuzz::engines
