#include "kernels.h"

#include <type_traits>

#include "scalar.h"

namespace litmusfuzz::executor {
namespace {

/// An operand; a single element is broadcast.
template <typename T>
struct Operand {
  const T* data;
  size_t stride;
  Operand(const Tensor& tensor, uint32_t elements)
      : data(tensor.as<T>()), stride(elements == 1 ? 0 : 1) {}
  T operator[](size_t i) const { return data[i * stride]; }
};

template <typename Out, typename In, typename F>
Tensor map(const Node& node, const Operands& operands, F f) {
  Tensor out = Tensor::of_size(node.type.bytes());
  const Operand<In> x(*operands[0], node.input_sizes[0]);
  const size_t last = node.input_sizes.size() - 1;
  const Operand<In> y(*operands[last], node.input_sizes[last]);
  for (size_t i = 0; i < node.type.elements; ++i) out.as<Out>()[i] = f(x[i], y[i]);
  return out;
}

template <typename T>
Tensor select(const Node& node, const Operands& operands) {
  Tensor out = Tensor::of_size(node.type.bytes());
  const Operand<uint8_t> condition(*operands[0], node.input_sizes[0]);
  const Operand<T> then(*operands[1], node.input_sizes[1]);
  const Operand<T> other(*operands[2], node.input_sizes[2]);
  for (size_t i = 0; i < node.type.elements; ++i) {
    out.as<T>()[i] = condition[i] ? then[i] : other[i];
  }
  return out;
}

template <typename T>
Tensor matmul(const Node& node, const Tensor& a, const Tensor& b) {
  Tensor out = Tensor::of_size(node.type.bytes());
  const size_t columns = node.columns, inner = node.inner;
  for (size_t i = 0; i < node.type.elements; ++i) {
    const T* row = a.as<T>() + i / columns * inner;
    T sum = 0;
    for (size_t k = 0; k < inner; ++k) {
      sum = add(sum, mul(row[k], b.as<T>()[k * columns + i % columns]));
    }
    out.as<T>()[i] = sum;
  }
  return out;
}

template <typename T>
Tensor compute_as(const Node& node, const Operands& in) {
  switch (node.op) {
    case Op::kNeg: return map<T, T>(node, in, [](T x, T) { return sub(T{0}, x); });
    case Op::kRelu: return map<T, T>(node, in, [](T x, T) { return larger(x, T{0}); });
    case Op::kAddV2: return map<T, T>(node, in, add<T>);
    case Op::kSub: return map<T, T>(node, in, sub<T>);
    case Op::kMul: return map<T, T>(node, in, mul<T>);
    case Op::kMaximum: return map<T, T>(node, in, larger<T>);
    case Op::kMinimum: return map<T, T>(node, in, smaller<T>);
    case Op::kLess: return map<uint8_t, T>(node, in, [](T x, T y) { return x < y; });
    case Op::kEqual: return map<uint8_t, T>(node, in, [](T x, T y) { return x == y; });
    case Op::kReluGrad:
      return map<T, T>(node, in, [](T gradient, T x) { return x > 0 ? gradient : T{0}; });
    case Op::kSelect: return select<T>(node, in);
    case Op::kMatMul: return matmul<T>(node, *in[0], *in[1]);
    default: return *in[0];  // Identity
  }
}

template <typename T, typename F>
void scatter(const Node& node, Tensor& contents, const Tensor& updates, F f) {
  const Operand<T> values(updates, node.input_sizes[0]);
  const size_t width = node.row_elements;
  T* const out = contents.as<T>();
  for (size_t k = 0; k < node.rows.size(); ++k) {
    T* const row = out + static_cast<size_t>(node.rows[k]) * width;
    for (size_t i = 0; i < width; ++i) row[i] = f(row[i], values[k * width + i]);
  }
}

/// One optimizer step, as documented for TensorFlow's kernel.
template <typename T>
void momentum(const Node& node, Tensor* contents, const Operands& operands) {
  T* const var = contents[0].as<T>();
  T* const accum = contents[1].as<T>();
  const T lr = *operands[0]->as<T>(), factor = *operands[2]->as<T>();
  const T* const grad = operands[1]->as<T>();
  for (size_t i = 0; i < node.type.elements; ++i) {
    if (node.op == Op::kKerasMomentum) {
      accum[i] = accum[i] * factor - lr * grad[i];
      var[i] += node.nesterov ? accum[i] * factor - lr * grad[i] : accum[i];
    } else {
      accum[i] = accum[i] * factor + grad[i];
      var[i] -= node.nesterov ? lr * grad[i] + lr * factor * accum[i] : lr * accum[i];
    }
  }
}

template <typename T>
void update_as(const Node& node, Tensor* contents, const Operands& in) {
  const size_t elements = node.type.elements;
  T* const out = contents[0].as<T>();
  switch (node.op) {
    case Op::kAssignAdd:
      for (size_t i = 0; i < elements; ++i) out[i] = add(out[i], in[0]->as<T>()[i]);
      return;
    case Op::kAssignSub:
      for (size_t i = 0; i < elements; ++i) out[i] = sub(out[i], in[0]->as<T>()[i]);
      return;
    case Op::kGradientDescent:
      for (size_t i = 0; i < elements; ++i) {
        out[i] = sub(out[i], mul(*in[0]->as<T>(), in[1]->as<T>()[i]));
      }
      return;
    case Op::kScatterUpdate:
      return scatter<T>(node, contents[0], *in[0], [](T, T value) { return value; });
    case Op::kScatterAdd: return scatter<T>(node, contents[0], *in[0], add<T>);
    case Op::kScatterSub: return scatter<T>(node, contents[0], *in[0], sub<T>);
    case Op::kScatterMul: return scatter<T>(node, contents[0], *in[0], mul<T>);
    case Op::kScatterMin: return scatter<T>(node, contents[0], *in[0], smaller<T>);
    case Op::kScatterMax: return scatter<T>(node, contents[0], *in[0], larger<T>);
    default:
      if constexpr (std::is_floating_point_v<T>) momentum<T>(node, contents, in);
  }
}

}  // namespace

Tensor compute(const Node& node, const Operands& operands) {
  return with_dtype(node.operand_dtype,
                    [&](auto t) { return compute_as<decltype(t)>(node, operands); });
}

Tensor gathered(const Node& node, const Tensor& contents) {
  const size_t width = node.row_elements * item_size(node.type.dtype);
  Tensor out = Tensor::of_size(node.type.bytes());
  for (size_t k = 0; k < node.rows.size(); ++k) {
    const std::byte* const row = contents.bytes() + static_cast<size_t>(node.rows[k]) * width;
    std::memcpy(out.bytes() + k * width, row, width);
  }
  return out;
}

void apply_update(const Node& node, Tensor* contents, const Operands& operands, bool in_place) {
  for (size_t i = 0; i < node.variables() && !in_place; ++i) contents[i].make_unique();
  with_dtype(node.type.dtype, [&](auto t) { update_as<decltype(t)>(node, contents, operands); });
}

}  // namespace litmusfuzz::executor
