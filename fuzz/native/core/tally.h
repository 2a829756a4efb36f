// A count that many threads add to, read when they rest.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace litmusfuzz::executor {

/// A small number for each thread, in the order in which they first ask.
inline uint32_t thread_number() {
  static std::atomic<uint32_t> started{0};
  // One more than it; 0 as long as it has none. Initial-exec: found without a call, for
  // a few of the bytes that a process keeps for libraries that it loads later.
  static constinit thread_local uint32_t number [[gnu::tls_model("initial-exec")]] = 0;
  // Relaxed: it hands out numbers and orders nothing.
  if (number == 0) number = started.fetch_add(1, std::memory_order_relaxed) + 1;
  return number - 1;
}

/// Adds without a locked instruction: each thread has a line of its own. Threads
/// of one engine are started together, so that no two of up to 256 share one.
class Tally {
 public:
  void add() {
    std::atomic<uint64_t>& mine = lines_[thread_number() % lines_.size()].count;
    // Relaxed: nobody else writes it, and who reads it has waited for the engine.
    mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Of the calling thread.
  uint64_t mine() const {
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
