// Counter of events that many threads increment; read while they are idle.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace litmusfuzz::executor {

/// A small number for each thread, in the order of first calls.
inline uint32_t thread_number() {
  static std::atomic<uint32_t> started{0};
  // The number plus one; 0 before the first call. Initial-exec avoids a call, at the cost
  // of a few bytes of static thread-local storage.
  static constinit thread_local uint32_t number [[gnu::tls_model("initial-exec")]] = 0;
  // Relaxed: it hands out numbers and orders nothing.
  if (number == 0) number = started.fetch_add(1, std::memory_order_relaxed) + 1;
  return number - 1;
}

/// Increments without an atomic read-modify-write: each thread has a cache line of its
/// own. An engine starts its threads together, so that up to 256 share no line.
class EventCounter {
 public:
  void add() {
    std::atomic<uint64_t>& mine = lines_[thread_number() % lines_.size()].count;
    // Relaxed: no other thread writes it, and readers have waited for the engine.
    mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Count of the calling thread.
  uint64_t of_this_thread() const {
    return lines_[thread_number() % lines_.size()].count.load(std::memory_order_relaxed);
  }
  uint64_t sum() const {
    uint64_t all = 0;
    for (const Line& each : lines_) all += each.count.load(std::memory_order_relaxed);
    return all;
  }

 private:
  struct alignas(64) Line {
    std::atomic<uint64_t> count{0};
  };
  std::array<Line, 256> lines_;
};

}  // namespace litmusfuzz::executor
