// Engine `inline`: no threads; the waiting thread runs all closures, first in, first out.
#pragma once

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

std::unique_ptr<Engine> make_inline();

}  // namespace litmusfuzz::engines
