// Litmus tests whose chains of ops are work-items: they race on global memory.
#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "gpu/plugin.h"
#include "opencl/platform.h"

namespace litmusfuzz::executor::opencl {
namespace {

using gpu::Race;
using gpu::RaceHistogram;

/// A race compiled for a device, and its memory.
struct Prepared {
  Context context;
  Program program;
  std::vector<Queue> queues;    // one for each kernel
  std::vector<Kernel> kernels;  // race_0, race_1
  Memory variables, seen;
};

Memory buffer(const Prepared& prepared, size_t ints) {
  cl_int error = 0;
  Memory made(clCreateBuffer(prepared.context.get(), CL_MEM_READ_WRITE,
                             std::max<size_t>(ints, 1) * sizeof(cl_int), nullptr, &error));
  check(error, "clCreateBuffer");
  return made;
}

Prepared prepare(const gpu::Settings& settings, const Race& race) {
  const cl_device_id device = chosen(settings);
  Prepared made;
  cl_int error = 0;
  made.context = Context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error));
  check(error, "clCreateContext");
  // Atomics with an order are optional in OpenCL C 3.0, and part of 2.0.
  try {
    made.program = built(made.context, device, race.source, "-cl-std=CL3.0");
  } catch (const std::runtime_error&) {
    made.program = built(made.context, device, race.source, "-cl-std=CL2.0");
  }
  for (uint32_t k = 0; k < race.kernels; ++k) {
    made.queues.emplace_back(clCreateCommandQueue(made.context.get(), device, 0, &error));
    check(error, "clCreateCommandQueue");
    const std::string name = "race_" + std::to_string(k);
    made.kernels.emplace_back(clCreateKernel(made.program.get(), name.c_str(), &error));
    check(error, "clCreateKernel");
  }
  made.variables = buffer(made, race.initial.size() * race.instances * Race::kStride + 1);
  made.seen = buffer(made, size_t{race.observed} * race.instances);
  return made;
}

/// Races once on so many instances, and counts their outcomes.
void race_once(const Prepared& prepared, const Race& race, cl_uint n, cl_uint seed,
               RaceHistogram& outcomes) {
  const size_t variables = race.initial.size();
  std::vector<cl_int> values(variables * n * Race::kStride + 1), seen(size_t{race.observed} * n);
  for (size_t v = 0; v < variables; ++v) {
    for (size_t i = 0; i < n; ++i) values[(v * n + i) * Race::kStride] = race.initial[v];
  }
  const cl_command_queue first = prepared.queues[0].get();
  const auto bytes = [](const auto& all) { return all.size() * sizeof(cl_int); };
  check(clEnqueueWriteBuffer(first, prepared.variables.get(), CL_TRUE, 0, bytes(values),
                             values.data(), 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
  for (size_t k = 0; k < prepared.kernels.size(); ++k) {
    const cl_kernel kernel = prepared.kernels[k].get();
    const cl_mem memory[] = {prepared.variables.get(), prepared.seen.get()};
    const cl_uint numbers[] = {n, seed};
    for (cl_uint a = 0; a < 2; ++a) {
      check(clSetKernelArg(kernel, a, sizeof memory[a], &memory[a]), "clSetKernelArg");
      check(clSetKernelArg(kernel, 2 + a, sizeof numbers[a], &numbers[a]), "clSetKernelArg");
    }
    const size_t items = size_t{n} * race.items[k];
    constexpr size_t kAlone = 1;  // each work-item is a group, which runs on its own
    check(clEnqueueNDRangeKernel(prepared.queues[k].get(), kernel, 1, nullptr, &items, &kAlone, 0,
                                 nullptr, nullptr),
          "clEnqueueNDRangeKernel");
  }
  for (const Queue& each : prepared.queues) check(clFlush(each.get()), "clFlush");
  for (const Queue& each : prepared.queues) check(clFinish(each.get()), "clFinish");
  check(clEnqueueReadBuffer(first, prepared.variables.get(), CL_TRUE, 0, bytes(values),
                            values.data(), 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
  if (!seen.empty()) {
    check(clEnqueueReadBuffer(first, prepared.seen.get(), CL_TRUE, 0, bytes(seen), seen.data(), 0,
                              nullptr, nullptr),
          "clEnqueueReadBuffer");
  }
  std::vector<int32_t> row;
  for (size_t i = 0; i < n; ++i) {
    row.clear();
    for (size_t o = 0; o < race.observed; ++o) row.push_back(seen[o * n + i]);
    for (size_t v = 0; v < variables; ++v) row.push_back(values[(v * n + i) * Race::kStride]);
    ++outcomes[row];
  }
}

}  // namespace
}  // namespace litmusfuzz::executor::opencl

using litmusfuzz::executor::gpu::Race;
using litmusfuzz::executor::gpu::RaceHistogram;
using litmusfuzz::executor::gpu::Settings;
namespace opencl = litmusfuzz::executor::opencl;

extern "C" __attribute__((visibility("default"))) void litmusfuzz_race_gpu(const Settings& settings,
                                                                           const Race& race,
                                                                           RaceHistogram* outcomes,
                                                                           std::string* error) {
  try {
    const opencl::Prepared prepared = opencl::prepare(settings, race);
    std::mt19937 seeds(static_cast<uint32_t>(race.seed));
    for (uint64_t done = 0; done < race.count;) {
      // A driver gives a thread so many groups at once; some number has the chains side by side.
      const uint32_t n = std::max(1u, race.instances >> seeds() % 7);
      opencl::race_once(prepared, race, n, seeds(), *outcomes);
      done += n;
    }
  } catch (const std::exception& thrown) {
    *error = thrown.what();
  }
}
