// Choices that are none: predicates that no event has a part in, such as those of
// a loop whose counter alone decides.
#pragma once

#include "program.h"

namespace litmusfuzz::oracle {

/// Takes out such choices: an event that is always chosen waits for its
/// predicate instead, one that never is gets `Event::never`. What total orders
/// there are, and what they yield, stays the same.
void fold(Program& program);

}  // namespace litmusfuzz::oracle
