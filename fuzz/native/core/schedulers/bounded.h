// Bounded exploration: every execution with few preemptions, or few delays.
//
// Most outcomes need few switches away from a chain (chains.h) that could continue, so
// that a low bound shows most outcomes after few executions. There is no partial-order
// reduction: of two executions that differ in the order of independent events, one may be
// within the bound and the other not.
//
// The chains form a circle, in the order in which they begin. At no cost, a chain
// continues until it ends or blocks; then
//   preemptions: any other chain follows at no cost; leaving a chain earlier costs 1;
//   delays: the next chain in the circle follows; each enabled chain that is skipped,
//     the current one included, costs 1.
//
// References: Musuvathi and Qadeer, "Iterative Context Bounding for Systematic
// Testing of Multithreaded Programs", PLDI 2007; Emmi, Qadeer and Rakamaric,
// "Delay-Bounded Scheduling", POPL 2011. Both for threads.
#pragma once

#include "outcome.h"
#include "schedulers/chains.h"

namespace litmusfuzz::executor {

enum class Measure : uint8_t { kPreemptions, kDelays };

class Bounded final : public Scheduler {
 public:
  Bounded(Measure measure, uint32_t bound) : measure_(measure), bound_(bound) {}
  void begin(const Runtime&) override;
  void ready(Ticket ticket) override;
  std::optional<size_t> choose(const Choices& choices) override;
  /// Moves to the next execution; false if there is none.
  bool next();
  /// True if the bound excluded some choice.
  bool cut() const { return cut_; }

 private:
  struct Option {
    Chain distance;  // in the circle, from the last chain
    size_t place;
  };
  struct Level {
    std::vector<Option> options;  // within the bound, the nearest first
    size_t chosen = 0;
    bool free = false;  // the last chain cannot continue

    uint32_t cost(Measure measure) const;
  };

  Level reach(const Choices& choices);

  Measure measure_;
  uint32_t bound_;
  bool cut_ = false;
  Chains chains_;
  Chain last_ = 0;
  bool begun_ = false;
  uint32_t spent_ = 0;
  std::vector<Level> levels_;
  size_t depth_ = 0;
};

/// Outcomes of all executions within a bound.
struct Searched {
  Histogram outcomes;
  uint64_t executions = 0;
  bool complete = false;  // all executions within the bound were visited
  bool whole = false;     // and no execution is beyond it
};

/// `limit` bounds the executions.
Searched search(const Program& program, Measure measure, uint32_t bound, uint64_t limit);

}  // namespace litmusfuzz::executor
