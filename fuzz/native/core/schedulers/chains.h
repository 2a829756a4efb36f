// Chains of the partial order, found while it unfolds: what PCT takes for tasks.
//
// An event that becomes ready while another is performed comes after it in every
// order. The first that does so goes on with that one's chain; the others, and
// those that nothing precedes, begin chains of their own. So each chain is
// totally ordered and has at most one event pending.
//
// This is the greedy decomposition of PCTCP (Ozkan, Majumdar, Niksic, Befrouei
// and Weissenbacher, "Randomized Testing of Distributed Systems with Probabilistic
// Guarantees", OOPSLA 2018) as far as it can be known here: of an event that waited
// for several we know the last, and so do not join it to a chain that another of
// them has ended. There can be more chains than the order is wide.
#pragma once

#include <vector>

#include "controlled.h"

namespace litmusfuzz::executor {

using Chain = uint32_t;

class Chains {
 public:
  static constexpr Chain kNone = UINT32_MAX;

  void clear() {
    count_ = 0;
    last_ = kNone;
  }
  /// The event becomes ready. Whether its chain is a new one.
  bool join(Ticket ticket) {
    if (ticket >= chains_.size()) chains_.resize(ticket + 1);
    const bool is_new = last_ == kNone;
    chains_[ticket] = is_new ? count_++ : last_;
    last_ = kNone;  // each event has at most one that goes on with its chain
    return is_new;
  }
  /// The event will be performed.
  void advance(Ticket ticket) { last_ = chains_[ticket]; }
  Chain of(Ticket ticket) const { return chains_[ticket]; }
  /// That have begun, numbered from 0 in that order.
  Chain count() const { return count_; }

 private:
  std::vector<Chain> chains_;  // by ticket
  Chain count_ = 0;
  Chain last_ = kNone;  // of the event performed last, if nothing goes on with it yet
};

}  // namespace litmusfuzz::executor
