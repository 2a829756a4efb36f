// The pending event with the highest score, without a look at all of them.
#pragma once

#include <algorithm>
#include <vector>

#include "controlled.h"

namespace litmusfuzz::executor {

/// A heap that is cleaned late: a new score makes a new entry, and the old one is
/// dropped when it comes to the top.
class ScoreHeap {
 public:
  void clear() { entries_.clear(); }
  /// The score that it has from now on, whether it may come next or not.
  void set_score(Ticket ticket, uint64_t score) {
    if (ticket >= scores_.size()) scores_.resize(ticket + 1);
    scores_[ticket] = score;
  }
  /// It may come next, with the score it has.
  void push(Ticket ticket) {
    entries_.push_back({scores_[ticket], ticket});
    std::push_heap(entries_.begin(), entries_.end());
  }
  /// Takes out the best of the events that may come next; all of them have been pushed.
  Ticket pop(const Choices& choices) {
    for (;;) {
      std::pop_heap(entries_.begin(), entries_.end());
      const auto [score, ticket] = entries_.back();
      entries_.pop_back();
      // Its ticket may be another's by now, or it may have to wait; `enabled`
      // will tell when it no longer has to.
      if (choices.contains(ticket) && scores_[ticket] == score) return ticket;
    }
  }

 private:
  std::vector<std::pair<uint64_t, Ticket>> entries_;
  std::vector<uint64_t> scores_;  // by ticket
};

}  // namespace litmusfuzz::executor
