// Search over live values, for tests in which values are overwritten unread.
#pragma once

#include <optional>

#include "search.h"

namespace litmusfuzz::oracle {

/// True if the search over live values handles the component: in every total order the same
/// events happen, none of them blocks or fails, and sets of events and of places fit a word.
bool handles_live(const Component& component);

/// True if some event uses what a function of the caller's returns, which may be no value.
bool uses_calls(const Component& component);

/// All outcomes of a component; nothing if the plan exceeds the budget.
///
/// It computes only values that an outcome depends on. The caller must know that no other value
/// is too large, and that each has one.
std::optional<Found> explore_live(const Component& component, const Budget& budget,
                                  ValueTable& table);

/// Decides whether some total order answers `query`, which is saturated; nothing if the plan
/// exceeds the budget.
std::optional<Membership> decide_live(Query& query, const Budget& budget, ValueTable& table);

}  // namespace litmusfuzz::oracle
