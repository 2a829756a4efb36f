#include "arithmetic.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <unordered_map>

namespace litmusfuzz::oracle {
namespace {

/// Ints of a value while an op works on it.
using Ints = std::vector<int64_t>;

int64_t exact(const Op& op, int64_t value) {
  if (value <= -kMaxMagnitude || value >= kMaxMagnitude) throw ValueTooLarge{op.node, value};
  return value;
}

/// One element of an elementwise op. Operands are below 2**24, so that no
/// product overflows.
int64_t element(const Op& op, OpCode code, int64_t a, int64_t b) {
  switch (code) {
    case OpCode::kAdd: return exact(op, a + b);
    case OpCode::kSub: return exact(op, a - b);
    case OpCode::kMul: return exact(op, a * b);
    case OpCode::kMaximum: return std::max(a, b);
    case OpCode::kMinimum: return std::min(a, b);
    case OpCode::kLess: return a < b;
    case OpCode::kEqual: return a == b;
    case OpCode::kReluGrad:  // gradients, features
      return b > 0 ? a : 0;
    default: throw std::logic_error("no elementwise op");
  }
}

Value zip(const Op& op, OpCode code, Value x, Value y, ValueTable& table) {
  if (is_scalar(x) && is_scalar(y)) return static_cast<Value>(element(op, code, x, y));
  int64_t scalar_a = 0, scalar_b = 0;
  const auto a = table.view(x, scalar_a), b = table.view(y, scalar_b);
  Ints out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = element(op, code, a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
  }
  return table.intern(out);
}

Value map(Value x, ValueTable& table, int64_t (*f)(int64_t)) {
  if (is_scalar(x)) return static_cast<Value>(f(x));
  int64_t scalar = 0;
  const auto a = table.view(x, scalar);
  Ints out(a.size());
  std::ranges::transform(a, out.begin(), f);
  return table.intern(out);
}

Value select(std::span<const Value> inputs, ValueTable& table) {
  if (is_scalar(inputs[0])) return inputs[inputs[0] ? 1 : 2];
  int64_t scalar[3];
  const auto condition = table.view(inputs[0], scalar[0]);
  const auto then = table.view(inputs[1], scalar[1]);
  const auto other = table.view(inputs[2], scalar[2]);
  Ints out(then.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = condition[i] ? then[i] : other[i];
  return table.intern(out);
}

Value matmul(const Op& op, std::span<const Value> inputs, ValueTable& table) {
  int64_t scalar[2];
  const auto a = table.view(inputs[0], scalar[0]), b = table.view(inputs[1], scalar[1]);
  Ints out;
  for (int32_t i = 0; i < op.n; ++i) {
    for (int32_t j = 0; j < op.m; ++j) {
      int64_t sum = 0, magnitude = 0;
      for (int32_t x = 0; x < op.k; ++x) {
        const int64_t product = a[i * op.k + x] * b[x * op.m + j];
        // A kernel may add in any order: the sum of magnitudes bounds each
        // partial sum. It throws as soon as the sum is too large, so nothing overflows.
        magnitude = exact(op, magnitude + std::abs(product));
        sum += product;
      }
      out.push_back(sum);
    }
  }
  return table.intern(out);
}

Value momentum(const Op& op, std::span<const Value> seen, std::span<const Value> operands,
               size_t which, ValueTable& table) {
  const auto mul = [&](Value x, Value y) { return zip(op, OpCode::kMul, x, y, table); };
  const auto add = [&](Value x, Value y) { return zip(op, OpCode::kAdd, x, y, table); };
  const auto sub = [&](Value x, Value y) { return zip(op, OpCode::kSub, x, y, table); };
  Value var = seen[0], accum = seen[1];
  const Value lr = operands[0], grad = operands[1], factor = operands[2];
  const Value step = mul(lr, grad);
  if (op.code == OpCode::kKerasMomentum) {
    accum = sub(mul(accum, factor), step);
    var = add(var, op.nesterov ? sub(mul(accum, factor), step) : accum);
  } else {
    accum = add(mul(accum, factor), grad);
    const Value change = op.nesterov ? add(step, mul(mul(accum, factor), lr)) : mul(accum, lr);
    var = sub(var, change);
  }
  return which == 0 ? var : accum;
}

int64_t combine(const Op& op, int64_t old, int64_t next) {
  switch (op.code) {
    case OpCode::kScatterUpdate: return next;
    case OpCode::kScatterAdd: return exact(op, old + next);
    case OpCode::kScatterSub: return exact(op, old - next);
    case OpCode::kScatterMul: return exact(op, old * next);
    case OpCode::kScatterMin: return std::min(old, next);
    case OpCode::kScatterMax: return std::max(old, next);
    default: throw std::logic_error("no scatter");
  }
}

Value scattered(const Op& op, Value seen, Value operand, ValueTable& table) {
  int64_t scalar[2];
  const auto old = table.view(seen, scalar[0]);
  const auto updates = table.view(operand, scalar[1]);
  Ints out(old.begin(), old.end());
  size_t position = 0;
  for (const int32_t row : op.rows) {  // rows may repeat and accumulate
    for (int32_t i = 0; i < op.row_size; ++i, ++position) {
      int64_t& cell = out[static_cast<size_t>(row) * op.row_size + i];
      cell = combine(op, cell, updates[updates.size() == 1 ? 0 : position]);
    }
  }
  return table.intern(out);
}

/// A result of the caller's function, from the table if it is known.
Value called(const Op& op, std::span<const Value> inputs, ValueTable& table) {
  if (const auto found = table.find_call(op.node, inputs)) return *found;
  std::vector<std::vector<int64_t>> operands;
  for (const Value each : inputs) {
    int64_t scalar = 0;
    const auto ints = table.view(each, scalar);
    operands.emplace_back(ints.begin(), ints.end());
  }
  const Value result = table.intern(op.function(operands));
  table.note_call(op.node, inputs, result);
  return result;
}

}  // namespace

OpCode op_code(const std::string& name) {
  static const std::unordered_map<std::string, OpCode> codes = {
      {"NoOp", OpCode::kNothing},
      {"ResourceAccumulatorApplyGradient", OpCode::kAccumulate},
      {"ReadVariableOp", OpCode::kNothing},
      {"ResourceGather", OpCode::kNothing},
      {"ResourceGatherNd", OpCode::kNothing},
      {"Identity", OpCode::kIdentity},
      {"Neg", OpCode::kNeg},
      {"Relu", OpCode::kRelu},
      {"AddV2", OpCode::kAdd},
      {"Sub", OpCode::kSub},
      {"Mul", OpCode::kMul},
      {"Maximum", OpCode::kMaximum},
      {"Minimum", OpCode::kMinimum},
      {"Less", OpCode::kLess},
      {"Equal", OpCode::kEqual},
      {"Select", OpCode::kSelect},
      {"ReluGrad", OpCode::kReluGrad},
      {"MatMul", OpCode::kMatMul},
      {"AssignVariableOp", OpCode::kAssign},
      {"AssignAddVariableOp", OpCode::kAssignAdd},
      {"AssignSubVariableOp", OpCode::kAssignSub},
      {"ResourceApplyGradientDescent", OpCode::kGradientDescent},
      {"ResourceApplyMomentum", OpCode::kMomentum},
      {"ResourceApplyKerasMomentum", OpCode::kKerasMomentum},
      {"ResourceScatterUpdate", OpCode::kScatterUpdate},
      {"ResourceScatterAdd", OpCode::kScatterAdd},
      {"ResourceScatterSub", OpCode::kScatterSub},
      {"ResourceScatterMul", OpCode::kScatterMul},
      {"ResourceScatterMin", OpCode::kScatterMin},
      {"ResourceScatterMax", OpCode::kScatterMax},
      {"ResourceScatterNdUpdate", OpCode::kScatterUpdate},
      {"ResourceScatterNdAdd", OpCode::kScatterAdd},
      {"ResourceScatterNdSub", OpCode::kScatterSub},
      {"ResourceStridedSliceAssign", OpCode::kScatterUpdate},
  };
  const auto found = codes.find(name);
  if (found == codes.end()) throw std::invalid_argument("the explorer does not know op " + name);
  return found->second;
}

Value evaluate(const Op& op, std::span<const Value> inputs, ValueTable& table) {
  switch (op.code) {
    case OpCode::kNothing:  // a read inside a cluster
      return gathered(op, inputs[0], table);
    case OpCode::kIdentity: return inputs[0];
    case OpCode::kNeg: return map(inputs[0], table, [](int64_t x) { return -x; });
    case OpCode::kRelu:
      return map(inputs[0], table, [](int64_t x) { return std::max<int64_t>(x, 0); });
    case OpCode::kSelect: return select(inputs, table);
    case OpCode::kMatMul: return matmul(op, inputs, table);
    case OpCode::kCalled: return called(op, inputs, table);
    default: return zip(op, op.code, inputs[0], inputs[1], table);
  }
}

Value gathered(const Op& op, Value value, ValueTable& table) {
  if (op.rows.empty()) return value;
  int64_t scalar = 0;
  const auto ints = table.view(value, scalar);
  Ints out;
  out.reserve(op.rows.size() * op.row_size);
  for (const int32_t row : op.rows) {
    for (int32_t i = 0; i < op.row_size; ++i) {
      out.push_back(ints[static_cast<size_t>(row) * op.row_size + i]);
    }
  }
  return table.intern(out);
}

bool gathers(const Op& op, Value value, Value wanted, const ValueTable& table) {
  if (op.rows.empty()) return value == wanted;
  int64_t scalar[2];
  const auto ints = table.view(value, scalar[0]);
  const auto want = table.view(wanted, scalar[1]);
  if (want.size() != op.rows.size() * op.row_size) return false;
  size_t position = 0;
  for (const int32_t row : op.rows) {
    for (int32_t i = 0; i < op.row_size; ++i, ++position) {
      if (ints[static_cast<size_t>(row) * op.row_size + i] != want[position]) return false;
    }
  }
  return true;
}

Value stored(const Op& op, std::span<const Value> seen, std::span<const Value> operands,
             size_t which, ValueTable& table) {
  switch (op.code) {
    case OpCode::kAssign: return operands[0];
    case OpCode::kAssignAdd: return zip(op, OpCode::kAdd, seen[0], operands[0], table);
    case OpCode::kAssignSub: return zip(op, OpCode::kSub, seen[0], operands[0], table);
    case OpCode::kGradientDescent:
      return zip(op, OpCode::kSub, seen[0], zip(op, OpCode::kMul, operands[0], operands[1], table),
                 table);
    case OpCode::kAccumulate: {
      // seen: sum, count, global step; operands: local step (or none: never stale), gradient.
      // All but the sum and the gradient are scalars, which stand for themselves.
      const bool stale = operands.size() > 1 && operands[0] < seen[2];
      const Value gradient = operands.back();
      if (which == 0) return stale ? seen[0] : zip(op, OpCode::kAdd, seen[0], gradient, table);
      return which == 1 && !stale ? seen[1] + 1 : seen[which];
    }
    case OpCode::kMomentum:
    case OpCode::kKerasMomentum: return momentum(op, seen, operands, which, table);
    case OpCode::kCalled: {
      std::vector<Value> inputs(seen.begin(), seen.end());
      inputs.insert(inputs.end(), operands.begin(), operands.end());
      return called(op, inputs, table);
    }
    default: return scattered(op, seen[0], operands[0], table);
  }
}

}  // namespace litmusfuzz::oracle
