// Probabilistic concurrency testing: priorities, and a few changes of them.
//
// Each chain gets a random priority, and the enabled event of highest priority is
// performed. At d-1 random points in [1, k), counted in events, the chain of the last event
// gets a priority below all others: i at the i-th point. An outcome that needs d ordering
// constraints between events occurs with probability at least 1 / (n k^(d-1)), for n
// chains and k events.
//
// k is the largest number of events of any execution so far, those of `EventCounts`
// included. A static bound would count both branches of every conditional and all
// iterations of every loop, and points beyond the end have no effect. The probability
// does not hold for executions longer than any before.
//
// References: Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized
// Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010; for
// chains in place of threads, chains.h.
#pragma once

#include "schedulers/chains.h"
#include "schedulers/event_counts.h"
#include "schedulers/heap.h"
#include "schedulers/random.h"

namespace litmusfuzz::executor {

class Pct final : public Scheduler {
 public:
  /// `depth` is at least 1.
  Pct(Runtime& runtime, uint32_t depth, uint64_t seed);
  void begin(const Runtime&) override;
  void ready(Ticket ticket) override;
  void enabled(Ticket ticket) override { heap_.push(ticket); }
  std::optional<size_t> choose(const Choices& choices) override;
  void end() override;

 private:
  Random random_;
  uint32_t longest_;  // largest number of events of an execution
  uint32_t done_ = 0;
  std::vector<uint32_t> points_;      // where priorities change: after so many events
  std::vector<uint64_t> priorities_;  // by chain
  Chains chains_;
  ScoreHeap heap_;
};

}  // namespace litmusfuzz::executor
