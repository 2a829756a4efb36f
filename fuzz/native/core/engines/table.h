// Engines by name. A new one: a .h/.cpp pair, and a line in table.cpp.
#pragma once

#include <string>

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

/// `name` is one of the table, or a path to a shared library (with a slash).
/// Throws std::invalid_argument, with the names there are.
std::unique_ptr<Engine> make(const std::string& name, EngineOptions options);

}  // namespace litmusfuzz::engines
