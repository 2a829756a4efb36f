// Engine `stealing`: each thread has its own list of closures and runs the newest first; an
// idle thread gets the oldest half of another thread's list.
//
// The lists are private: between two closures, their owner shares half of its list if
// some thread is idle. The path from one closure to the next thus takes no lock, and one
// lock guards the shared closures, which is easier to verify than a lock-free deque. The
// cost: a thread shares nothing during a long closure.
//
// Reference: Acar, Chargueraud, Rainey, "Scheduling Parallel Programs by Work
// Stealing with Private Deques", PPoPP 2013, section 3.
#pragma once

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

std::unique_ptr<Engine> make_stealing(EngineOptions options);

}  // namespace litmusfuzz::engines
