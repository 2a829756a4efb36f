// Kernels of the ops: pure functions of buffers, without locks or frames.
#pragma once

#include <array>

#include "program.h"

namespace litmusfuzz::executor {

/// Operands by pointer: an op does not share their buffers.
using Operands = std::array<const Tensor*, 3>;

/// Result of a pure node with operands.
Tensor compute(const Node& node, const Operands& operands);

/// The rows of a variable's contents that a gather returns.
Tensor gathered(const Node& node, const Tensor& contents);

/// Replaces the values that an update read by those that it writes; `contents` has one
/// tensor for each of its variables. Works in place where the buffer has one owner, or if
/// `in_place`.
void apply_update(const Node& node, Tensor* contents, const Operands& operands,
                  bool in_place = false);

}  // namespace litmusfuzz::executor
