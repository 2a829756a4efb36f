// Engines by name. A new engine needs a .h/.cpp pair and a line in table.cpp.
#pragma once

#include <string>

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

/// Makes an engine. `name` is a name of the table, or the path of a shared library with a
/// slash. Throws std::invalid_argument with the known names.
std::unique_ptr<Engine> make(const std::string& name, EngineOptions options);

}  // namespace litmusfuzz::engines
