// Every execution that matters: depth-first over all choices, with sleep sets.
//
// Two executions that differ only in the order of independent events belong to
// one Mazurkiewicz trace, and show the same. Sleep sets cut all but one of each:
// what was tried at a choice need not be tried after another event that it does
// not depend on, until one comes on which it does.
//
// And where one event touches what nothing else may touch any more, it alone is
// tried: a persistent set of one.
//
// An execution is begun afresh for each choice that is left, and led there by
// the choices before it.
//
// Reference: Godefroid, "Partial-Order Methods for the Verification of Concurrent
// Systems", LNCS 1032, 1996, chapters 4 and 5.
#pragma once

#include "controlled.h"

namespace litmusfuzz::executor {

class Exhaustive final : public Scheduler {
 public:
  explicit Exhaustive(const Program& program);

  std::optional<size_t> choose(const Choices& choices) override;
  /// Turns to the next execution; false if there is none.
  bool next();

 private:
  struct Level {
    std::vector<Step> enabled;
    std::vector<Step> asleep;  // tried here already, or where nothing since depends on it
    size_t chosen = 0;
    bool only = false;  // nothing else need be tried here
  };
  /// Events on one resource that may still come: an upper bound.
  struct Left {
    int64_t looks = 0, changes = 0;
  };

  Level reach(const Choices& choices) const;
  bool may_depend(const Step& step) const;
  void take(const Step& step);

  std::vector<Left> total_, left_;  // by resource
  std::vector<Level> levels_;
  size_t depth_ = 0;
};

/// Outcomes of all executions, with the number of traces that show each.
struct Exhausted {
  Histogram outcomes;
  uint64_t traces = 0;
  uint64_t executions = 0;  // traces, and those that turned out to be of one seen before
  bool complete = false;
};

/// `limit` bounds the executions.
Exhausted exhaust(const Program& program, uint64_t limit);

}  // namespace litmusfuzz::executor
