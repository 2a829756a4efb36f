// Weighted random selection with changing weights.
#pragma once

#include <algorithm>
#include <vector>

#include "scheduling.h"

namespace litmusfuzz::executor {

/// A binary tree of sums: an update, or a selection, visits one path.
class Weights {
 public:
  void clear() { std::fill(sums_.begin(), sums_.end(), 0); }
  uint32_t total() const { return sums_[1]; }

  void set(Ticket ticket, uint32_t weight) {
    while (ticket >= leaves()) grow();
    size_t at = leaves() + ticket;
    const uint32_t more = weight - sums_[at];  // modulo 2^32, as are all sums
    for (; at > 0; at /= 2) sums_[at] += more;
  }
  /// The ticket that contains `number`, which is below the total, in the prefix sums.
  Ticket at(uint32_t number) const {
    size_t at = 1;
    while (at < leaves()) {
      at *= 2;
      if (number >= sums_[at]) number -= sums_[at++];
    }
    return static_cast<Ticket>(at - leaves());
  }

 private:
  size_t leaves() const { return sums_.size() / 2; }

  void grow() {
    std::vector<uint32_t> wider(2 * sums_.size());
    std::copy(sums_.begin() + static_cast<ptrdiff_t>(leaves()), sums_.end(),
              wider.begin() + static_cast<ptrdiff_t>(wider.size() / 2));
    for (size_t at = wider.size() / 2; --at > 0;) wider[at] = wider[2 * at] + wider[2 * at + 1];
    sums_ = std::move(wider);
  }

  std::vector<uint32_t> sums_ = std::vector<uint32_t>(16);
};

}  // namespace litmusfuzz::executor
