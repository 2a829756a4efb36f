// Mutants whose defect lies in the graph that they execute.
#pragma once

#include "program.h"

namespace litmusfuzz::executor {

/// Breaks the program's rule, if it is one about its edges or resources.
void rewrite(Program& program);

}  // namespace litmusfuzz::executor
