// Event counts of a system, estimated from a few executions: the length of an execution,
// and the number of events that each event leads to.
//
// The events that an event *leads to* are those that it dominates: its subtree in a tree
// where the parent of an event is the event whose execution made it ready. An event with
// several predecessors hangs on the last of them; if two executions disagree, it moves up
// to their common ancestor. So the tree converges to the dominator tree. For chains and
// forests it is exact after one execution; a join counts for none of the chains that lead
// to it, once it was seen to follow more than one of them.
//
// Executions are counted rather than the program, since branches not taken and iterations
// not reached have no events. A count is a mean over executions, and 1 for an event that
// was never seen.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduling.h"

namespace litmusfuzz::executor {

class EventCounts {
 public:
  /// Executes the system a few times, with fixed seeds.
  explicit EventCounts(Runtime& runtime);

  /// Events in the longest execution.
  uint32_t longest() const { return longest_; }
  /// Number of events that this one leads to, itself included.
  uint32_t led_to(uint64_t event) const { return event < led_to_.size() ? led_to_[event] : 1; }
  /// The same for events on one resource; 0 if there is none.
  uint32_t led_to(uint64_t event, uint32_t resource) const {
    return event < led_to_.size() && resource < on_.size() ? on_[resource][event] : 0;
  }
  /// Resources with a conflict: touched by two events, one of which writes.
  const std::vector<uint32_t>& contended() const { return contended_; }

 private:
  using Counts = std::vector<uint32_t>;  // by number of the event

  uint32_t longest_ = 0;
  Counts led_to_;
  std::vector<Counts> on_;  // by resource
  std::vector<uint32_t> contended_;
};

}  // namespace litmusfuzz::executor
