// Noise: delays, pinning and barriers for the threads that perform events, so that rare
// interleavings occur. It changes when and where events happen, never their effects.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "frame.h"

namespace litmusfuzz::executor {

struct Noise {
  bool barrier = false;        // no event before all roots have been scheduled
  bool pinned = false;         // each thread stays on one core
  uint32_t delay_us_max = 0;   // before an event, at random
  uint32_t yield_percent = 0;  // events before which the thread yields
  uint32_t together = 0;       // first events of a copy that briefly wait for each other
};

class Perturbation {
 public:
  /// Throws std::invalid_argument where threads cannot be pinned.
  explicit Perturbation(const Noise& noise);
  /// Unpins the threads; threads of a runtime outlive the engine.
  ~Perturbation();
  Perturbation(const Perturbation&) = delete;
  Perturbation& operator=(const Perturbation&) = delete;

  /// Before the first event is scheduled. All choices come from `seed`; `first` holds the
  /// first events of all copies.
  void begin(uint64_t seed, const std::vector<Event>& first);
  /// All roots have been scheduled: the barrier falls.
  void go();
  /// On the thread that is about to perform the event of copy number `copy`.
  void before(const Event& event, uint32_t copy);

 private:
  void pin_this_thread();
  static void meet(std::atomic<uint32_t>& awaited, uint64_t random);

  const Noise noise_;
  const uint64_t number_;  // unique in this process
  uint64_t seed_ = 0;
  /// Relaxed: the engine synchronizes the threads.
  std::atomic<uint32_t> open_{0};
  /// By copy: events that wait for each other and have not come.
  std::deque<std::atomic<uint32_t>> awaited_;
  std::vector<int> cores_;  // that this process may use
  std::mutex lock_;
  std::vector<int> pinned_;  // threads, as the system numbers them
};

}  // namespace litmusfuzz::executor
