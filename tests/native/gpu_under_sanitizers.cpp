// The GPU backend on an emulated GPU, for ThreadSanitizer and AddressSanitizer; with the path
// of the CUDA plug-in as argument on a real GPU, without sanitizers.
#include <future>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "batch.h"
#include "check.h"
#include "gpu/cuda.h"
#include "gpu/emulated.h"
#include "gpu/gpu.h"
#include "hops.h"
#include "kernels.h"
#include "test_engines.h"

using namespace litmusfuzz::executor;

namespace {

std::string library;  // path of the CUDA plug-in

std::unique_ptr<gpu::Device> device() {
  if (library.empty()) return std::make_unique<gpu::Emulated>();
  return gpu::load_cuda(library, 0);
}

// --- every kernel equals the host's, bit by bit --------------------------------------

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
  explicit Comparison(gpu::Gpu& gpu) : gpu_(gpu) {}

  void compute(Node node, const std::vector<Tensor>& operands) {
    give(node, operands);
    const Tensor wanted = litmusfuzz::executor::compute(node, here_);
    CHECK(same(gpu_.read(gpu_.compute(node, there_), node.type), wanted));
  }
  void gather(Node node, const Tensor& contents) {
    gpu_.prepare(node);
    const Tensor seen = gpu_.gathered(node, gpu_.entered(contents));
    CHECK(same(gpu_.read(seen, node.type), gathered(node, contents)));
  }
  void update(Node node, const std::vector<Tensor>& contents, const std::vector<Tensor>& operands) {
    give(node, operands);
    gpu_.prepare(node);
    std::vector<Tensor> before, after, wanted = contents;
    for (const Tensor& each : contents) before.push_back(gpu_.entered(each));
    after = before;
    node.resources.resize(contents.size());
    apply_update(node, wanted.data(), here_);
    gpu_.apply_update(node, after.data(), there_);
    for (size_t k = 0; k < contents.size(); ++k) {
      CHECK(same(gpu_.read(after[k], node.type), wanted[k]));
      CHECK(same(gpu_.read(before[k], node.type), contents[k]));  // never in place
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

  gpu::Gpu& gpu_;
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

void kernels(DType dtype) {
  gpu::Gpu gpu(device());
  Comparison compare(gpu);
  Numbers numbers;
  const bool number = dtype != DType::kBool;
  const bool real = dtype == DType::kFloat32 || dtype == DType::kFloat64;
  for (const uint32_t n : {1u, 6u, 300u}) {  // the last in several blocks of threads
    gpu.begin();
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

// --- asynchronous calls and lifetimes -------------------------------------------------

Tensor ints(std::vector<int32_t> values) {
  return Tensor::copy_of(values.data(), 4 * values.size());
}

/// While the stream is stopped, all calls return and nothing is executed; only a read of a
/// value waits. Inputs are not read after the call.
void nobody_waits_but_for_values() {
  auto owned = std::make_unique<gpu::Emulated>();
  gpu::Emulated& stream = *owned;
  gpu::Gpu gpu(std::move(owned));
  gpu.begin();
  std::promise<void> go;
  stream.ask([gone = go.get_future().share()] { gone.wait(); });

  Tensor given = ints({1, 2, 3, 4});
  Tensor value = gpu.entered(given);
  for (int32_t& each : std::span(given.as<int32_t>(), 4)) each = 99;
  const Node add = [] {
    Node made = node_of(Op::kAddV2, DType::kInt32, 4, {4, 4});
    made.inputs.resize(2);
    return made;
  }();
  Tensor sum = value;
  for (int i = 0; i < 3; ++i) sum = gpu.compute(add, {&sum, &value});
  Node queue = add;
  queue.parts = 4;
  const Tensor last = gpu.element(queue, sum, 3), number = gpu.number(add, 7);
  Node two = add;
  two.type.elements = 2;
  const Tensor stacked = gpu.stacked(two, std::vector{last, number});
  Node less = node_of(Op::kLess, DType::kInt32, 1, {1, 1});
  less.type.dtype = DType::kBool;
  less.inputs.resize(2);
  const Tensor no = gpu.compute(less, {&last, &number}), yes = gpu.compute(less, {&number, &last});

  auto known = std::async(std::launch::async, [&] {
    CHECK(gpu.truth(yes) && !gpu.truth(no));
    return gpu.read(sum, add.type);
  });
  CHECK(known.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  go.set_value();
  CHECK(same(known.get(), ints({4, 8, 12, 16})));
  CHECK(same(gpu.read(stacked, two.type), ints({16, 7})));
}

/// Executions, and the backend, end while operations are pending: no memory is freed while
/// in use, and none leaks.
void memory_outlives_what_is_asked_for() {
  for (const bool next : {false, true}) {
    gpu::Gpu gpu(device());
    const Tensor kept = gpu.keep(ints(std::vector<int32_t>(100, 1)));
    Node add = node_of(Op::kAddV2, DType::kInt32, 100, {100, 100});
    add.inputs.resize(2);
    for (int execution = 0; execution < 20; ++execution) {
      gpu.begin();
      Tensor sum = kept;
      for (int i = 0; i < 20; ++i) sum = gpu.compute(add, {&sum, &kept});
      // More than a piece of staging memory.
      for (int i = 0; i < 3; ++i) gpu.entered(ints(std::vector<int32_t>(10'000)));
      if (next) CHECK(gpu.read(sum, add.type).as<int32_t>()[99] == 21);
    }
  }
}

// --- the host and a GPU ------------------------------------------------------------------

void to_and_fro(const std::string& engine, uint32_t threads, uint32_t delay_us) {
  gpu::Gpu gpu(device());
  const Program program = hops(2, &gpu);
  const SomeEngines engines(program, engine, {.threads = threads});
  Batch batch(program, engines.all(), 8);
  batch.set_transfer_delay(delay_us);
  Histogram seen;
  for (uint64_t seed = 0; seed < 30; ++seed) batch.run(seed, true, seen);
  CHECK(seen.size() == 1);
  check_row(seen.begin()->first, true, true);
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) library = arguments[1];
  for (const DType dtype :
       {DType::kInt32, DType::kInt64, DType::kFloat32, DType::kFloat64, DType::kBool}) {
    kernels(dtype);
  }
  nobody_waits_but_for_values();
  memory_outlives_what_is_asked_for();
  for (const char* engine : {"inline", "pool", "fifo"}) {
    for (const uint32_t threads : {1u, 3u}) {
      for (const uint32_t delay_us : {0u, 40u}) to_and_fro(engine, threads, delay_us);
    }
  }
  std::puts("ok");
}
