// Randomized schedulers by name. A new one needs a .h/.cpp pair and a line in table.cpp.
#pragma once

#include <memory>
#include <string>

#include "controlled.h"

namespace litmusfuzz::executor {

/// Makes a scheduler for any system; only pct uses `depth`. Throws std::invalid_argument for
/// an unknown name, or for a depth that the scheduler does not accept.
std::unique_ptr<Scheduler> make_scheduler(const std::string& name, uint32_t depth, Runtime& runtime,
                                          uint64_t seed);
/// The same for a program; `uniform` as well, which does not accept every program.
std::unique_ptr<Scheduler> make_scheduler(const std::string& name, uint32_t depth,
                                          const Program& program, uint64_t seed);

}  // namespace litmusfuzz::executor
