// Constant folding of predicates: some depend on no event, for example in a loop
// that only its counter ends.
#pragma once

#include "program.h"

namespace litmusfuzz::oracle {

/// Removes guards with constant predicates. An event that is always chosen waits for
/// its predicate instead; an event that is never chosen gets `Event::never`. The total
/// orders and their outcomes do not change.
void fold(Program& program);

}  // namespace litmusfuzz::oracle
