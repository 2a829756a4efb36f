// Every total order with the same probability, whatever the shape of the graph.
//
// The orders that go on from each downset (set of events that are done) are
// counted beforehand, once for each downset: an event comes next with odds
// proportional to the orders that go on from where it leads. What blocks is counted
// as it is; an order ends where nothing may come next, or the test fails.
//
// That takes what has been done to determine what may come next. Where values do
// as well, in conditionals and loops, there is no such count, and the test is
// refused; so is one with too many downsets.
//
// Reference: Brightwell and Winkler, "Counting Linear Extensions", Order 8, 1991:
// in general there is no fast way to count.
#pragma once

#include <unordered_map>

#include "controlled.h"
#include "schedulers/random.h"

namespace litmusfuzz::executor {

/// Events that are done, a bit for each.
using Downset = std::vector<uint64_t>;

struct DownsetHash {
  size_t operator()(const Downset& set) const;
};
/// Total orders that go on from there: exact below 2^53.
using OrderCounts = std::unordered_map<Downset, double, DownsetHash>;

class Uniform final : public Scheduler {
 public:
  /// Throws std::invalid_argument for a program with conditionals or loops, or
  /// with more than `limit` downsets.
  Uniform(const Program& program, uint64_t seed, size_t limit = 1 << 17);
  void begin() override;
  std::optional<size_t> choose(const Choices& choices) override;

 private:
  /// 1 for one that was not met: where an op fails in one order of the same events
  /// and not in another, the test has no orders to speak of (semantics.md, 3).
  double orders(const Downset& from) const;

  Random random_;
  OrderCounts counts_;
  Downset nothing_, done_;
};

}  // namespace litmusfuzz::executor
