// Uniform sampling: every total order has the same probability, for any graph.
//
// The constructor counts the total orders that continue from each downset (set of events
// done). An event is next with weight proportional to the orders after it. Blocking is
// part of the count: an order ends where no event is enabled, or where the test fails.
//
// The set of events done must determine the enabled events. In conditionals and loops
// values matter as well, so such tests are refused; so are tests with too many downsets.
//
// Reference: Brightwell and Winkler, "Counting Linear Extensions", Order 8, 1991:
// in general there is no fast way to count.
#pragma once

#include <unordered_map>

#include "controlled.h"
#include "schedulers/random.h"

namespace litmusfuzz::executor {

/// Bit set of the events done.
using Downset = std::vector<uint64_t>;

struct DownsetHash {
  size_t operator()(const Downset& set) const;
};
/// Number of total orders that continue from each downset: exact below 2^53.
using OrderCounts = std::unordered_map<Downset, double, DownsetHash>;

class Uniform final : public Scheduler {
 public:
  /// Throws std::invalid_argument for a program with conditionals or loops, or
  /// with more than `limit` downsets.
  Uniform(const Program& program, uint64_t seed, size_t limit = 1 << 17);
  void begin(const Runtime& runtime) override;
  std::optional<size_t> choose(const Choices& choices) override;

 private:
  /// 1 for an unknown downset: if an op fails in only some orders of the same events, the
  /// test is not well specified (semantics.md, 3).
  double orders(const Downset& from) const;

  Random random_;
  OrderCounts counts_;
  Downset nothing_, done_;
  const Runtime* runtime_ = nullptr;
};

}  // namespace litmusfuzz::executor
