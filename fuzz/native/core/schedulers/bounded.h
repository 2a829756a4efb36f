// Every execution within a bound: few preemptions, or few delays.
//
// Most outcomes need but few switches between chains (chains.h) that could have
// gone on, so that a low bound shows most of them after few executions. Nothing is
// reduced: of two executions that differ in the order of independent events the
// one may be within the bound and the other not.
//
// The chains stand in a circle, in the order in which they begin. Without a bound's
// being spent a chain goes on until it ends or has to wait; then
//   preemptions: any other may follow, for nothing; to leave it earlier costs 1;
//   delays: the next one in the circle follows; each one that could go on and is
//     passed over costs 1, that which is left included.
//
// References: Musuvathi and Qadeer, "Iterative Context Bounding for Systematic
// Testing of Multithreaded Programs", PLDI 2007; Emmi, Qadeer and Rakamaric,
// "Delay-Bounded Scheduling", POPL 2011. Both for threads.
#pragma once

#include "schedulers/chains.h"

namespace litmusfuzz::executor {

enum class Measure : uint8_t { kPreemptions, kDelays };

class Bounded final : public Scheduler {
 public:
  Bounded(Measure measure, uint32_t bound) : measure_(measure), bound_(bound) {}
  void begin() override;
  void ready(Event, Ticket ticket) override;
  std::optional<size_t> choose(const Choices& choices) override;
  /// Turns to the next execution; false if there is none.
  bool next();
  /// Whether a choice was left out since the bound was spent.
  bool cut() const { return cut_; }

 private:
  struct Option {
    Chain distance;  // in the circle, from the chain that went last
    size_t place;
  };
  struct Level {
    std::vector<Option> options;  // within the bound, the nearest first
    size_t chosen = 0;
    bool free = false;  // the chain that went last cannot go on

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

/// What all executions within a bound show.
struct Searched {
  Histogram outcomes;
  uint64_t executions = 0;
  bool complete = false;  // these are all within the bound
  bool whole = false;     // and there are none beyond it
};

/// `limit` bounds the executions.
Searched search(const Program& program, Measure measure, uint32_t bound, uint64_t limit);

}  // namespace litmusfuzz::executor
