// Randomized schedulers by name. A new one needs a .h/.cpp pair and a line in table.cpp.
#pragma once

#include <memory>
#include <string>

#include "controlled.h"

namespace litmusfuzz::executor {

/// Makes a scheduler; only pct uses `depth`. Throws std::invalid_argument for an unknown
/// name, or for a program or depth that the scheduler does not accept.
std::unique_ptr<Scheduler> make_scheduler(const std::string& name, uint32_t depth,
                                          const Program& program, uint64_t seed);

}  // namespace litmusfuzz::executor
