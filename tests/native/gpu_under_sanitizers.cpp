// The GPU backend on an emulated GPU, for ThreadSanitizer and AddressSanitizer; with the path
// of a plug-in as argument on a real device, without sanitizers.
#include <cstdio>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "batch.h"
#include "check.h"
#include "gpu/comparison.h"
#include "gpu/emulated.h"
#include "gpu/gpu.h"
#include "gpu/plugin.h"
#include "hops.h"
#include "test_engines.h"

using namespace litmusfuzz::executor;

namespace {

std::string library;  // path of a plug-in

std::unique_ptr<gpu::Device> device(const gpu::Settings& settings = {}) {
  if (library.empty()) return std::make_unique<gpu::Emulated>();
  return gpu::load(library, settings);
}

// --- every kernel equals the host's, bit by bit --------------------------------------

void kernels() {
  gpu::Gpu gpu(device());
  const auto differences =
      gpu::kernel_differences(gpu, {1, 6, 300});  // the last in several blocks of threads
  for (const std::string& each : differences) std::fprintf(stderr, "%s\n", each.c_str());
  CHECK(differences.empty());
}

// --- asynchronous calls and lifetimes -------------------------------------------------

Node node_of(Op op, DType dtype, uint32_t elements, std::vector<uint32_t> sizes) {
  Node node;
  node.op = op;
  node.type = {dtype, elements, elements};
  node.operand_dtype = dtype;
  node.input_sizes = std::move(sizes);
  return node;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.size_bytes() == b.size_bytes() && !std::memcmp(a.bytes(), b.bytes(), a.size_bytes());
}

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

/// Threads read one value at the same time, by copies and by maps. Where two maps had one address,
/// an unmap of it ended the wrong one, and pocl crashed within some thousand reads.
void many_read_one_value() {
  for (const bool out_of_order : {false, true}) {
    gpu::Settings settings;
    settings.queues = out_of_order ? 2 : 1;
    settings.out_of_order = out_of_order;
    gpu::Gpu gpu(device(settings));
    const Tensor kept = gpu.keep(ints({1, 2, 3, 4}));
    const Node four = node_of(Op::kNeg, DType::kInt32, 4, {4});
    for (int execution = 0; execution < 100; ++execution) {
      gpu.begin();
      std::vector<std::future<void>> readers;
      for (int thread = 0; thread < 4; ++thread) {
        readers.push_back(std::async(std::launch::async, [&] {
          for (int k = 0; k < 100; ++k) CHECK(same(gpu.read(kept, four.type), ints({1, 2, 3, 4})));
        }));
      }
      for (auto& each : readers) each.get();
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
  kernels();
  nobody_waits_but_for_values();
  memory_outlives_what_is_asked_for();
  many_read_one_value();
  for (const char* engine : {"inline", "pool", "fifo"}) {
    for (const uint32_t threads : {1u, 3u}) {
      for (const uint32_t delay_us : {0u, 40u}) to_and_fro(engine, threads, delay_us);
    }
  }
  std::puts("ok");
}
