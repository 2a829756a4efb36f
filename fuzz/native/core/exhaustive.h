// Exhaustive exploration: depth-first search over all choices, with sleep sets.
//
// Two executions that differ only in the order of independent events belong to one
// Mazurkiewicz trace and have the same outcome. Sleep sets cut all but one execution of
// each trace: an event that was tried at a choice sleeps after other events until an
// event that depends on it is performed.
//
// If no other event can touch the resources of an enabled event any more, the search
// tries only that event: a persistent set of one.
//
// Each alternative starts a new execution, which repeats the choices before it.
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
  /// Moves to the next execution; false if there is none.
  bool next();

 private:
  struct Level {
    std::vector<Step> enabled;
    std::vector<Step> asleep;  // tried here, or earlier and independent of all events since
    size_t chosen = 0;
    bool only = false;  // a persistent set of one: no other event is tried here
  };
  /// Upper bound on the events on one resource that may still come.
  struct Left {
    int64_t reads_only = 0, changes = 0;
  };

  Level reach(const Choices& choices) const;
  bool may_depend(const Step& step) const;
  void take(const Step& step);

  std::vector<Left> total_, left_;  // by resource
  std::vector<Level> levels_;
  size_t depth_ = 0;
};

/// Outcomes of all executions, with the number of traces of each.
struct Exhausted {
  Histogram outcomes;
  uint64_t traces = 0;
  uint64_t executions = 0;  // traces, and abandoned executions of known traces
  bool complete = false;
};

/// `limit` bounds the executions.
Exhausted exhaust(const Program& program, uint64_t limit);

}  // namespace litmusfuzz::executor
