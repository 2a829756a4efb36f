// Engines `pool` and `fifo`: a thread pool with one queue for each run, popped at random
// or in order.
#pragma once

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

enum class PopOrder : uint8_t { kRandom, kFifo };

std::unique_ptr<Engine> make_pool(EngineOptions options, PopOrder order);

}  // namespace litmusfuzz::engines
