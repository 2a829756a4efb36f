// Online decomposition of the partial order into chains, which stand for threads in PCT.
//
// An event that becomes ready while another is performed comes after it in every order.
// The first such event continues the chain of the performed one; other events begin
// chains of their own. So each chain is totally ordered and has at most one pending
// event.
//
// This is the greedy decomposition of PCTCP (Ozkan, Majumdar, Niksic, Befrouei
// and Weissenbacher, "Randomized Testing of Distributed Systems with Probabilistic
// Guarantees", OOPSLA 2018) as far as the executor allows: for an event that waited
// for several, only the last of them is known, so that the event cannot continue the
// chain of another. There can be more chains than the width of the order.
#pragma once

#include <vector>

#include "scheduling.h"

namespace litmusfuzz::executor {

using Chain = uint32_t;

class Chains {
 public:
  static constexpr Chain kNone = UINT32_MAX;

  void clear() {
    count_ = 0;
    last_ = kNone;
  }
  /// The event becomes ready; true if it begins a new chain.
  bool join(Ticket ticket) {
    if (ticket >= chains_.size()) chains_.resize(ticket + 1);
    const bool is_new = last_ == kNone;
    chains_[ticket] = is_new ? count_++ : last_;
    last_ = kNone;  // at most one event continues each chain
    return is_new;
  }
  /// The event will be performed.
  void advance(Ticket ticket) { last_ = chains_[ticket]; }
  Chain of(Ticket ticket) const { return chains_[ticket]; }
  /// Number of chains; they are numbered from 0 in the order of their beginnings.
  Chain count() const { return count_; }

 private:
  std::vector<Chain> chains_;  // by ticket
  Chain count_ = 0;
  Chain last_ = kNone;  // chain of the last event, unless continued already
};

}  // namespace litmusfuzz::executor
