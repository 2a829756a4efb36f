// Chains of closures pinned to threads that start together.
//
// A closure that another one of its run schedules runs on the same thread, next. On
// the way from one to the other there is no lock, no atomic update and no fence: what
// the two closures do to memory is ordered by the processor alone.
#pragma once

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

std::unique_ptr<Engine> make_gang(EngineOptions options);

}  // namespace litmusfuzz::engines
