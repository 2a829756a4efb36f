// Probabilistic concurrency testing: priorities, and a few changes of them.
//
// Each chain gets a random priority; of what may come next the event with the
// highest is performed. At d-1 points drawn from [1, k), counted in events, the
// chain whose event was just performed falls below all others: to priority i at
// the i-th point. An outcome that d ordering constraints between events suffice
// to bring about shows with probability at least 1 / (n k^(d-1)), for n chains
// and k events.
//
// k is the largest number of events that any execution had so far, those of
// `Profile` included. An upper bound from the program would count both branches of
// every conditional and all iterations of every loop, and points beyond the end
// are lost. Executions that turn out longer than any before are outside of the
// bound.
//
// References: Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized
// Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010; for
// chains in place of threads, chains.h.
#pragma once

#include "schedulers/chains.h"
#include "schedulers/heap.h"
#include "schedulers/profile.h"
#include "schedulers/random.h"

namespace litmusfuzz::executor {

class Pct final : public Scheduler {
 public:
  /// `depth` is at least 1.
  Pct(const Program& program, uint32_t depth, uint64_t seed);
  void begin() override;
  void ready(Event, Ticket ticket) override;
  void enabled(Ticket ticket) override { heap_.push(ticket); }
  std::optional<size_t> choose(const Choices& choices) override;
  void end() override;

 private:
  Random random_;
  uint32_t longest_;  // events of an execution
  uint32_t done_ = 0;
  std::vector<uint32_t> points_;      // where priorities change: after so many events
  std::vector<uint64_t> priorities_;  // by chain
  Chains chains_;
  ScoreHeap heap_;
};

}  // namespace litmusfuzz::executor
