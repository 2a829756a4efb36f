// Work stealing: each thread has closures of its own and runs the newest first; a
// thread without any gets the oldest half of another's.
//
// The lists are private, and it is their owner who gives, between two closures, when
// it sees somebody hungry: nothing is locked on the way from one closure to the next,
// and what is shared stands under one lock, which is easier to believe in than a
// deque without locks. The price: who is long in one closure gives nothing meanwhile.
//
// Reference: Acar, Chargueraud, Rainey, "Scheduling Parallel Programs by Work
// Stealing with Private Deques", PPoPP 2013, section 3.
#pragma once

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

std::unique_ptr<Engine> make_stealing(EngineOptions options);

}  // namespace litmusfuzz::engines
