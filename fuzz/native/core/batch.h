// Copies of a test side by side, on the threads of an engine.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "copy.h"
#include "litmusfuzz/engine.h"
#include "outcome.h"
#include "tally.h"

namespace litmusfuzz::executor {

/// One run of the engine for each run of the test, all copies together: only
/// then is there enough to do for several threads.
class Batch final : public Scheduler {
 public:
  /// `engine` may have other users meanwhile.
  Batch(const Program& program, Engine& engine, uint32_t copies);

  /// Executes all copies once and counts what they show. It is known exactly
  /// when a copy is blocked: nothing runs, nothing is ready, something is not done.
  /// The first `together` events of each copy wait for each other, a short time:
  /// as many threads are then at it at the same moment. 0 for none.
  void run(uint64_t seed, bool shuffle, uint32_t together, Histogram& seen);

  /// Events so far by thread; the thread that called `run` is one of them.
  const Tally& performed() const { return performed_; }

 private:
  static constexpr uint32_t kMeets = 1u << 31;  // in a closure: an event that meets others

  void ready(Event event) override;
  void schedule(Event event);
  static void perform(void* frame, uint64_t event);
  void wait();
  void appoint(uint32_t together);
  void meet(std::atomic<uint32_t>& awaited, uint64_t event);
  bool quiet() const;

  const Program& program_;
  Engine& engine_;
  std::deque<Copy> copies_;  // never moved
  std::vector<std::unique_ptr<RunState>> states_;  // by run
  std::vector<Event> first_;  // of the start, until all copies have started
  bool starting_ = false;     // written while no other thread works here
  /// Of a test with several runs: with one, its state says when all is done.
  std::atomic<uint64_t> scheduled_{0}, done_{0};
  uint64_t meetings_ = 0;
  Row row_;
  Tally performed_;
};

}  // namespace litmusfuzz::executor
