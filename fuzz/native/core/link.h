// A slow link between devices: holds transfers back for random times, so that they
// overtake each other. What it changes is no order that a graph asks for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <random>
#include <thread>
#include <vector>

#include "frame.h"

namespace litmusfuzz::executor {

class Link {
 public:
  /// `deliver` is called from a thread of the link's own.
  explicit Link(std::function<void(Event)> deliver);
  ~Link();

  /// From now on each transfer is held for a time drawn from [0, bound], where the bound
  /// is drawn now: half of `delay_us_max` some times over, down to none. Only delays of
  /// about the time of an op leave much open, and long ones show one order again and
  /// again. Only while nothing is held.
  void set(uint32_t delay_us_max, uint64_t seed);
  /// Whether there is a delay at all. Written while no thread works.
  bool slow() const { return bound_us_ != 0; }

  void hold(Event event);
  /// Returns at a moment when all that was held has been delivered.
  void wait();

 private:
  using Clock = std::chrono::steady_clock;
  struct Held {
    Clock::time_point until;
    Event event;
    bool operator>(const Held& other) const { return until > other.until; }
  };

  void work();

  const std::function<void(Event)> deliver_;
  uint32_t bound_us_ = 0;
  std::mutex lock_;
  std::condition_variable changed_;
  // All guarded by the lock.
  std::priority_queue<Held, std::vector<Held>, std::greater<>> held_;
  size_t count_ = 0;  // held, or being delivered
  std::minstd_rand random_;
  bool stopping_ = false;
  std::thread thread_;  // started with the first transfer that is held
};

}  // namespace litmusfuzz::executor
