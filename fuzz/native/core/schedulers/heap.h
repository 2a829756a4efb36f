// Priority queue of pending events by score.
#pragma once

#include <algorithm>
#include <vector>

#include "scheduling.h"

namespace litmusfuzz::executor {

/// A heap with lazy deletion: a new score adds an entry, and the old one is dropped when
/// it reaches the top.
class ScoreHeap {
 public:
  void clear() { entries_.clear(); }
  /// Sets the score of an event, enabled or not.
  void set_score(Ticket ticket, uint64_t score) {
    if (ticket >= scores_.size()) scores_.resize(ticket + 1);
    scores_[ticket] = score;
  }
  /// Adds an enabled event with its score.
  void push(Ticket ticket) {
    entries_.push_back({scores_[ticket], ticket});
    std::push_heap(entries_.begin(), entries_.end());
  }
  /// Removes the enabled event with the highest score; all enabled events were pushed.
  Ticket pop(const Choices& choices) {
    for (;;) {
      std::pop_heap(entries_.begin(), entries_.end());
      const auto [score, ticket] = entries_.back();
      entries_.pop_back();
      // The ticket may have a new owner, or the event may be disabled: `enabled` pushes
      // it again.
      if (choices.contains(ticket) && scores_[ticket] == score) return ticket;
    }
  }

 private:
  std::vector<std::pair<uint64_t, Ticket>> entries_;
  std::vector<uint64_t> scores_;  // by ticket
};

}  // namespace litmusfuzz::executor
