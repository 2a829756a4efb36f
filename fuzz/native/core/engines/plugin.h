// Engines from shared libraries of others.
#pragma once

#include <string>

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

/// Throws std::invalid_argument, in one line, if the file is no engine or was
/// built with another interface; and what the engine's own `make` throws. A library
/// stays loaded.
std::unique_ptr<Engine> load(const std::string& path, EngineOptions options);

}  // namespace litmusfuzz::engines
