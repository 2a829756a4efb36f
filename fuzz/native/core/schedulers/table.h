// Schedulers that draw, by name. A new one: a .h/.cpp pair, and a line in table.cpp.
#pragma once

#include <memory>
#include <string>

#include "controlled.h"

namespace litmusfuzz::executor {

/// `depth` is what pct alone looks at. Throws std::invalid_argument: with the names
/// there are, or with what the scheduler does not take.
std::unique_ptr<Scheduler> make_strategy(const std::string& name, uint32_t depth,
                                         const Program& program, uint64_t seed);

}  // namespace litmusfuzz::executor
