// Search over states. A state is the set of events done, memory, and the results of
// reads that are still in use. Two total orders that reach one state have the same
// futures.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "program.h"
#include "query.h"
#include "state_set.h"

namespace litmusfuzz::oracle {

/// Called with the number of states so far, now and then (`kHeedEvery`); it may throw, which ends
/// the search: an interrupt, for example.
using Heed = std::function<void(uint64_t)>;
inline constexpr uint64_t kHeedEvery = 1 << 14;  // states: some ten milliseconds

struct Budget {
  uint64_t states = 0;
  uint64_t bytes = 0;
  /// States of the plain search, after which the search over live values takes over: on small
  /// components the plain search is faster. No limit where some value may be too large.
  uint64_t plain = UINT64_MAX;
  Heed heed = {};
};

enum class Answer : uint8_t { kForbidden, kAllowed, kUnknown };

struct Found {
  /// Rows: status, the values of the component's observations, then of its
  /// resources; kAbsent where the outcome has none.
  StateSet outcomes;
  uint64_t states = 0;  // visited
  uint64_t stored = 0;  // at once: what the budget limits
  bool complete = true;
};

/// All outcomes of a component.
Found explore(const Component& component, const Budget& budget, ValueTable& table);

struct Membership {
  Answer answer = Answer::kForbidden;
  uint64_t states = 0;
  std::vector<int32_t> witness;  // global events, in order; if allowed
};

/// Decides whether some total order of the component answers `query`.
Membership decide(Query& query, const Budget& budget, ValueTable& table);

}  // namespace litmusfuzz::oracle
