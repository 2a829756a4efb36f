// Engine `gang`: threads start together, and each runs chains of closures of its own.
//
// A closure runs next on the thread of the closure that scheduled it. Between the two
// there is no lock, no atomic update and no fence, so that only the processor orders
// their memory accesses.
#pragma once

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

std::unique_ptr<Engine> make_gang(EngineOptions options);

}  // namespace litmusfuzz::engines
