// Work of one GPU thread: the ops of kernels.h, one element at a time.
//
// The code is compiled twice, for GPUs and for the emulated GPU, so that tests of one
// cover the arithmetic of the other.
#pragma once

#include "gpu/device.h"
#include "scalar.h"

namespace litmusfuzz::executor::gpu {

template <typename T>
LITMUSFUZZ_ANYWHERE T operand(const Call& call, uint32_t number, uint32_t i) {
  return static_cast<const T*>(call.in[number])[call.wide[number] ? i : 0];
}

template <typename T>
LITMUSFUZZ_ANYWHERE T product(const Call& call, uint32_t i) {
  const T* const row = static_cast<const T*>(call.in[0]) + i / call.columns * call.inner;
  const T* const column = static_cast<const T*>(call.in[1]) + i % call.columns;
  T sum = 0;
  for (uint32_t k = 0; k < call.inner; ++k) {
    sum = add(sum, mul(row[k], column[k * call.columns]));
  }
  return sum;
}

/// Index of the input element for output element i, of a gather or a copy.
LITMUSFUZZ_ANYWHERE inline uint32_t source(const Call& call, uint32_t i) {
  if (!call.rows) return i;
  const auto row = static_cast<uint32_t>(call.rows[i / call.row_elements]);
  return row * call.row_elements + i % call.row_elements;
}

/// Element i of a variable after a scatter. A thread applies all updates of its row in
/// order, as the host does.
template <typename T, typename F>
LITMUSFUZZ_ANYWHERE T scattered(const Call& call, uint32_t i, F f) {
  T value = static_cast<const T*>(call.contents[0])[i];
  const uint32_t row = i / call.row_elements, place = i % call.row_elements;
  for (uint32_t k = 0; k < call.row_count; ++k) {
    if (static_cast<uint32_t>(call.rows[k]) != row) continue;
    value = f(value, operand<T>(call, 0, k * call.row_elements + place));
  }
  return value;
}

/// One optimizer step, in the host's order of operations.
template <typename T>
LITMUSFUZZ_ANYWHERE void momentum(const Call& call, uint32_t i) {
  T var = static_cast<const T*>(call.contents[0])[i];
  T accum = static_cast<const T*>(call.contents[1])[i];
  const T lr = operand<T>(call, 0, 0), factor = operand<T>(call, 2, 0);
  const T grad = operand<T>(call, 1, i);
  if (call.op == Op::kKerasMomentum) {
    accum = accum * factor - lr * grad;
    var += call.nesterov ? accum * factor - lr * grad : accum;
  } else {
    accum = accum * factor + grad;
    var -= call.nesterov ? lr * grad + lr * factor * accum : lr * accum;
  }
  static_cast<T*>(call.out[0])[i] = var;
  static_cast<T*>(call.out[1])[i] = accum;
}

/// Element i of the result, or of the updated variable; T is the operands' type.
template <typename T>
LITMUSFUZZ_ANYWHERE void element(const Call& call, uint32_t i) {
  T* const out = static_cast<T*>(call.out[0]);
  uint8_t* const truth = static_cast<uint8_t*>(call.out[0]);
  const auto in = [&](uint32_t number) { return operand<T>(call, number, i); };
  const auto before = [&] { return static_cast<const T*>(call.contents[0])[i]; };
  switch (call.op) {
    case Op::kIdentity: out[i] = operand<T>(call, 0, source(call, i)); return;
    case Op::kNeg: out[i] = sub(T{0}, in(0)); return;
    case Op::kRelu: out[i] = larger(in(0), T{0}); return;
    case Op::kAddV2: out[i] = add(in(0), in(1)); return;
    case Op::kSub: out[i] = sub(in(0), in(1)); return;
    case Op::kMul: out[i] = mul(in(0), in(1)); return;
    case Op::kMaximum: out[i] = larger(in(0), in(1)); return;
    case Op::kMinimum: out[i] = smaller(in(0), in(1)); return;
    case Op::kLess: truth[i] = in(0) < in(1); return;
    case Op::kEqual: truth[i] = in(0) == in(1); return;
    case Op::kReluGrad: out[i] = in(1) > 0 ? in(0) : T{0}; return;
    case Op::kSelect: out[i] = operand<uint8_t>(call, 0, i) ? in(1) : in(2); return;
    case Op::kMatMul: out[i] = product<T>(call, i); return;
    case Op::kAssignAdd: out[i] = add(before(), in(0)); return;
    case Op::kAssignSub: out[i] = sub(before(), in(0)); return;
    case Op::kGradientDescent: out[i] = sub(before(), mul(operand<T>(call, 0, 0), in(1))); return;
    case Op::kScatterUpdate:
      out[i] = scattered<T>(call, i, [](T, T value) { return value; });
      return;
    case Op::kScatterAdd: out[i] = scattered<T>(call, i, add<T>); return;
    case Op::kScatterSub: out[i] = scattered<T>(call, i, sub<T>); return;
    case Op::kScatterMul: out[i] = scattered<T>(call, i, mul<T>); return;
    case Op::kScatterMin: out[i] = scattered<T>(call, i, smaller<T>); return;
    case Op::kScatterMax: out[i] = scattered<T>(call, i, larger<T>); return;
    case Op::kMomentum:
    case Op::kKerasMomentum:
      if constexpr (std::is_floating_point_v<T>) momentum<T>(call, i);
      return;
    case Op::kNoOp:
    case Op::kConst: return;  // nothing to compute
  }
}

}  // namespace litmusfuzz::executor::gpu
