// Engines from users' shared libraries.
#pragma once

#include <string>

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

/// Loads an engine. Throws std::invalid_argument, with one line, if the file is no engine
/// or has another interface version; passes on exceptions of the engine's own `make`. The
/// library stays loaded.
std::unique_ptr<Engine> load(const std::string& path, EngineOptions options);

}  // namespace litmusfuzz::engines
