// Arithmetic of each op (semantics.md, 2). It is written independently of the
// reference oracle, which has its own.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "value.h"

namespace litmusfuzz::oracle {

enum class OpCode : uint8_t {
  kNothing,  // NoOp, and reads: no value is computed
  kIdentity,
  kNeg,
  kRelu,
  kAdd,
  kSub,
  kMul,
  kMaximum,
  kMinimum,
  kLess,
  kEqual,
  kSelect,
  kReluGrad,
  kMatMul,
  kAssign,
  kAssignAdd,
  kAssignSub,
  kGradientDescent,
  kMomentum,
  kKerasMomentum,
  kScatterUpdate,
  kScatterAdd,
  kScatterSub,
  kScatterMul,
  kScatterMin,
  kScatterMax,
  kAccumulate,  // adds a gradient, unless it is stale
  kCalled,  // a function of the caller's
};

/// An op that the caller computes, from the ints of its operands; of an update, after the value
/// that it read. Called once for equal
/// operands in each table, from any thread. May throw ValueTooLarge or OpFails.
using Function = std::function<std::vector<int64_t>(const std::vector<std::vector<int64_t>>&)>;

/// One node's op, with its attributes.
struct Op {
  OpCode code = OpCode::kNothing;
  bool nesterov = false;
  /// Rows that a gather, scatter or slice touches; empty: all of them.
  std::vector<int32_t> rows = {};
  /// Ints in one row of its variables: 1, except for whole matrices.
  int32_t row_size = 1;
  /// MatMul: (n, k) times (k, m).
  int32_t n = 0, k = 0, m = 0;
  /// The caller's number for the node, to name it in errors.
  int32_t node = 0;
  /// kCalled: what it computes.
  Function function = {};
};

/// The op with TensorFlow's name; throws std::invalid_argument if there is none.
OpCode op_code(const std::string& name);

/// A value reaches 2**24, or an op has none: the test is ill-formed.
struct ValueTooLarge {
  int32_t node;
  int64_t value;
};

/// The op fails in some total order: the order ends there.
struct OpFails : ValueTooLarge {};

/// The result of a pure op.
Value evaluate(const Op& op, std::span<const Value> inputs, ValueTable& table);
/// The result of a read of a variable with that `value`.
Value gathered(const Op& op, Value value, ValueTable& table);
/// True if that result is `wanted`; adds nothing to the table.
bool gathers(const Op& op, Value value, Value wanted, const ValueTable& table);
/// The value that a write or update stores in its variable number `which`.
Value stored(const Op& op, std::span<const Value> seen, std::span<const Value> operands,
             size_t which, ValueTable& table);

}  // namespace litmusfuzz::oracle
