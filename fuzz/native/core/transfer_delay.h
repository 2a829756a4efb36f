// Random delays of transfers between devices, so that transfers overtake each other.
// Delays change no order that a graph requires.
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

class TransferDelay {
 public:
  /// Calls `deliver` from its own thread.
  explicit TransferDelay(std::function<void(Event)> deliver);
  ~TransferDelay();

  /// Sets a random bound, `delay_us_max` halved a random number of times down to none,
  /// and delays each later transfer by a random time up to it. Short delays, of about
  /// the time of an op, show most orders; long ones repeat one order. Only while no
  /// transfer is held.
  void set(uint32_t delay_us_max, uint64_t seed);
  /// True if there is a delay at all. Written while no thread works.
  bool slow() const { return bound_us_ != 0; }

  void hold(Event event);
  /// Waits until all held transfers have been delivered.
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
  // Guarded by the lock.
  std::priority_queue<Held, std::vector<Held>, std::greater<>> held_;
  size_t count_ = 0;  // held, or being delivered
  std::minstd_rand random_;
  bool stopping_ = false;
  std::thread thread_;  // started with the first transfer that is held
};

}  // namespace litmusfuzz::executor
