// What the ops compute. Pure functions of buffers; no locks, no frames.
#pragma once

#include <array>

#include "program.h"

namespace litmusfuzz::executor {

/// Operands where they lie: an op takes no share in them.
using Operands = std::array<const Tensor*, 3>;

/// Result of a pure node with operands.
Tensor compute(const Node& node, const Operands& operands);

/// The rows of a variable's contents that a gather returns.
Tensor gathered(const Node& node, const Tensor& contents);

/// Makes of what an update saw what it writes: `contents` has one tensor for
/// each of its variables. In place where nobody else has a share, or if told so.
void apply_update(const Node& node, Tensor* contents, const Operands& operands,
                  bool in_place = false);

}  // namespace litmusfuzz::executor
