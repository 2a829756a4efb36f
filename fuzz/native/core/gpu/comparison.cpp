#include "gpu/comparison.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "kernels.h"

namespace litmusfuzz::executor::gpu {
namespace {

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kInt32: return "int32";
    case DType::kInt64: return "int64";
    case DType::kFloat32: return "float32";
    case DType::kFloat64: return "float64";
    case DType::kBool: return "bool";
  }
  return "";
}

const char* name_of(Op op) {
  switch (op) {
    case Op::kNoOp: return "NoOp";
    case Op::kConst: return "Const";
    case Op::kIdentity: return "ResourceGather";
    case Op::kNeg: return "Neg";
    case Op::kRelu: return "Relu";
    case Op::kAddV2: return "AddV2";
    case Op::kSub: return "Sub";
    case Op::kMul: return "Mul";
    case Op::kMaximum: return "Maximum";
    case Op::kMinimum: return "Minimum";
    case Op::kLess: return "Less";
    case Op::kEqual: return "Equal";
    case Op::kSelect: return "Select";
    case Op::kReluGrad: return "ReluGrad";
    case Op::kMatMul: return "MatMul";
    case Op::kAssignAdd: return "AssignAdd";
    case Op::kAssignSub: return "AssignSub";
    case Op::kGradientDescent: return "ApplyGradientDescent";
    case Op::kMomentum: return "ApplyMomentum";
    case Op::kKerasMomentum: return "ApplyKerasMomentum";
    case Op::kScatterUpdate: return "ScatterUpdate";
    case Op::kScatterAdd: return "ScatterAdd";
    case Op::kScatterSub: return "ScatterSub";
    case Op::kScatterMul: return "ScatterMul";
    case Op::kScatterMin: return "ScatterMin";
    case Op::kScatterMax: return "ScatterMax";
  }
  return "";
}

/// Numbers whose sums and products are mostly rounded, or wrap around.
class Numbers {
 public:
  Tensor draw(DType dtype, uint32_t elements) {
    Tensor made = Tensor::of_size(elements * item_size(dtype));
    with_dtype(dtype, [&](auto t) {
      using T = decltype(t);
      for (uint32_t i = 0; i < elements; ++i) {
        T& out = made.as<T>()[i];
        if constexpr (std::is_floating_point_v<T>) {
          out = std::uniform_real_distribution<T>(-8, 8)(random_);
        } else {
          out = static_cast<T>(random_());
        }
        if (i % 5 == 4) out = made.as<T>()[i - 1];  // some are equal
        if (i % 7 == 6) out = 0;
      }
    });
    return made;
  }
  Tensor truths(uint32_t elements) {
    Tensor made = Tensor::of_size(elements);
    for (uint32_t i = 0; i < elements; ++i) made.as<uint8_t>()[i] = random_() & 1;
    return made;
  }

 private:
  std::mt19937_64 random_{1};
};

bool same(const Tensor& a, const Tensor& b) {
  return a.size_bytes() == b.size_bytes() && !std::memcmp(a.bytes(), b.bytes(), a.size_bytes());
}

/// Executes one op on the host and on the GPU, and compares the results.
class Comparison {
 public:
  explicit Comparison(Gpu& gpu) : gpu_(gpu) {}

  const std::vector<std::string>& differences() const { return differences_; }

  void compute(Node node, const std::vector<Tensor>& operands) {
    give(node, operands);
    const Tensor wanted = litmusfuzz::executor::compute(node, here_);
    expect(same(gpu_.read(gpu_.compute(node, there_), node.type), wanted), node);
  }
  void gather(Node node, const Tensor& contents) {
    gpu_.prepare(node);
    const Tensor seen = gpu_.gathered(node, gpu_.entered(contents));
    expect(same(gpu_.read(seen, node.type), litmusfuzz::executor::gathered(node, contents)), node);
  }
  void update(Node node, const std::vector<Tensor>& contents, const std::vector<Tensor>& operands) {
    give(node, operands);
    gpu_.prepare(node);
    std::vector<Tensor> before, after, wanted = contents;
    for (const Tensor& each : contents) before.push_back(gpu_.entered(each));
    after = before;
    node.resources.resize(contents.size());
    litmusfuzz::executor::apply_update(node, wanted.data(), here_);
    gpu_.apply_update(node, after.data(), there_);
    for (size_t k = 0; k < contents.size(); ++k) {
      expect(same(gpu_.read(after[k], node.type), wanted[k]), node);
      expect(same(gpu_.read(before[k], node.type), contents[k]), node);  // never in place
    }
  }

 private:
  void give(Node& node, const std::vector<Tensor>& operands) {
    node.inputs.resize(operands.size());
    values_ = operands;
    copies_.clear();
    for (const Tensor& each : values_) copies_.push_back(gpu_.entered(each));
    here_ = there_ = {};
    for (size_t k = 0; k < operands.size(); ++k) {
      here_[k] = &values_[k];
      there_[k] = &copies_[k];
    }
  }

  void expect(bool equal, const Node& node) {
    if (equal) return;
    std::string name = std::string(name_of(node.op)) + " of " + name_of(node.operand_dtype) + "[" +
                       std::to_string(node.type.elements) + "]";
    if (std::find(differences_.begin(), differences_.end(), name) == differences_.end()) {
      differences_.push_back(std::move(name));
    }
  }

  Gpu& gpu_;
  std::vector<std::string> differences_;
  std::vector<Tensor> values_, copies_;
  Operands here_{}, there_{};
};

Node node_of(Op op, DType dtype, uint32_t elements, std::vector<uint32_t> sizes) {
  Node node;
  node.op = op;
  node.type = {dtype, elements, elements};
  node.operand_dtype = dtype;
  node.input_sizes = std::move(sizes);
  return node;
}

void kernels(Comparison& compare, DType dtype, const std::vector<uint32_t>& sizes) {
  Numbers numbers;
  const bool number = dtype != DType::kBool;
  const bool real = dtype == DType::kFloat32 || dtype == DType::kFloat64;
  for (const uint32_t n : sizes) {
    const auto some = [&](uint32_t elements) { return numbers.draw(dtype, elements); };
    for (const Op op : {Op::kNeg, Op::kRelu}) {
      if (number) compare.compute(node_of(op, dtype, n, {n}), {some(n)});
    }
    for (const Op op : {Op::kAddV2, Op::kSub, Op::kMul, Op::kMaximum, Op::kMinimum, Op::kReluGrad,
                        Op::kLess, Op::kEqual}) {
      for (const auto& [x, y] : {std::pair(n, n), std::pair(1u, n), std::pair(n, 1u)}) {
        if (!number && op != Op::kEqual) continue;
        Node node = node_of(op, dtype, n, {x, y});
        if (op == Op::kLess || op == Op::kEqual) node.type.dtype = DType::kBool;
        compare.compute(node, {some(x), some(y)});
      }
    }
    for (const uint32_t c : {1u, n}) {
      compare.compute(node_of(Op::kSelect, dtype, n, {c, n, n}),
                      {numbers.truths(c), some(n), some(n)});
    }
    if (!number) continue;
    Node product = node_of(Op::kMatMul, dtype, 5 * n, {3 * n, 15});
    product.inner = 3;
    product.columns = 5;
    compare.compute(product, {some(3 * n), some(15)});

    Node rows = node_of(Op::kIdentity, dtype, 4 * n, {});
    rows.rows = {2, 0, 2, 1};
    rows.row_elements = n;
    compare.gather(rows, some(3 * n));
    for (const Op op : {Op::kScatterUpdate, Op::kScatterAdd, Op::kScatterSub, Op::kScatterMul,
                        Op::kScatterMin, Op::kScatterMax}) {
      for (const uint32_t size : {1u, 4 * n}) {  // duplicates accumulate, in order
        Node scatter = node_of(op, dtype, 3 * n, {size});
        scatter.rows = rows.rows;
        scatter.row_elements = n;
        compare.update(scatter, {some(3 * n)}, {some(size)});
      }
    }
    for (const Op op : {Op::kAssignAdd, Op::kAssignSub}) {
      compare.update(node_of(op, dtype, n, {n}), {some(n)}, {some(n)});
    }
    if (!real) continue;
    compare.update(node_of(Op::kGradientDescent, dtype, n, {1, n}), {some(n)}, {some(1), some(n)});
    for (const Op op : {Op::kMomentum, Op::kKerasMomentum}) {
      for (const bool nesterov : {false, true}) {
        Node node = node_of(op, dtype, n, {1, n, 1});
        node.nesterov = nesterov;
        compare.update(node, {some(n), some(n)}, {some(1), some(n), some(1)});
      }
    }
  }
}

}  // namespace

std::vector<std::string> kernel_differences(Gpu& gpu, const std::vector<uint32_t>& sizes) {
  Comparison compare(gpu);
  for (const DType dtype :
       {DType::kInt32, DType::kInt64, DType::kFloat32, DType::kFloat64, DType::kBool}) {
    if (gpu.device().computes(dtype)) kernels(compare, dtype, sizes);
  }
  return compare.differences();
}

}  // namespace litmusfuzz::executor::gpu
