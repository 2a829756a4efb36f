// No threads: whoever waits for a run does its work, first in, first out.
#pragma once

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

std::unique_ptr<Engine> make_inline();

}  // namespace litmusfuzz::engines
