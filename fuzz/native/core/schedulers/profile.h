// What a few executions show of a program: how long it runs, and how much hangs on
// each event.
//
// The events that an event *leads to* are those that come only after it: its
// subtree in a tree where each event hangs on the one in whose performance it
// became ready. An event that waits for several hangs on whichever was last; if
// two executions do not agree, it is moved up to what both have in common. So the
// tree tends to that of the immediate dominators. For chains and forests it is
// exact after one execution; a join is counted for none of the chains that lead to
// it, once it was seen to follow more than one of them.
//
// Counts of executions rather than of the program: branches that are not taken
// and iterations that are not reached have no events. They are a mean, and 1 for an
// event that was never seen.
#pragma once

#include <cstdint>
#include <vector>

#include "program.h"

namespace litmusfuzz::executor {

class Profile {
 public:
  /// Executes the program a few times, always the same.
  explicit Profile(const Program& program);

  /// Events in the longest execution.
  uint32_t longest() const { return longest_; }
  /// Events that this one leads to, itself included.
  uint32_t led_to(uint64_t event) const { return event < led_to_.size() ? led_to_[event] : 1; }
  /// The same of events on one resource; 0 if it leads to none.
  uint32_t led_to(uint64_t event, uint32_t resource) const {
    return event < led_to_.size() ? on_[resource][event] : 0;
  }
  /// Those that two events touch, not both of them only looking.
  const std::vector<uint32_t>& contended() const { return contended_; }

 private:
  using Counts = std::vector<uint32_t>;  // by number of the event

  uint32_t longest_ = 0;
  Counts led_to_;
  std::vector<Counts> on_;  // by resource
  std::vector<uint32_t> contended_;
};

}  // namespace litmusfuzz::executor
