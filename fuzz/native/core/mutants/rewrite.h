// Mutants that change the graph before its execution.
#pragma once

#include "program.h"

namespace litmusfuzz::executor {

/// Applies the program's defect, if it changes edges or resources.
void rewrite(Program& program);

}  // namespace litmusfuzz::executor
