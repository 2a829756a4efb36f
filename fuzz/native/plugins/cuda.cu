// CUDA implementation of gpu/device.h: one stream, stream-ordered memory, pinned host memory.
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "gpu/element.h"

namespace {

using namespace litmusfuzz::executor;
using namespace litmusfuzz::executor::gpu;

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(error));
}

template <typename T>
__global__ void kernel(const Call call) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < call.threads) element<T>(call, i);
}

/// A CUDA event for one wait: unlike a wait for the stream, later calls of other threads
/// do not delay it.
class Mark {
 public:
  Mark() {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming | cudaEventBlockingSync));
  }
  ~Mark() { cudaEventDestroy(event_); }
  Mark(const Mark&) = delete;
  void wait(cudaStream_t stream) {
    check(cudaEventRecord(event_, stream));
    check(cudaEventSynchronize(event_));
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// A stream on one GPU, and a memory pool. The pool keeps freed memory, since each
/// execution needs about as much as the one before.
class Cuda final : public Device {
 public:
  explicit Cuda(uint32_t number) : number_(static_cast<int>(number)) {
    select();
    int pools = 0;
    check(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, number_));
    if (!pools) throw std::runtime_error("CUDA: the device has no memory pools");
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, number_};
    check(cudaMemPoolCreate(&pool_, &properties));
    try {
      uint64_t kept = UINT64_MAX;
      check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &kept));
      check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    } catch (...) {
      cudaMemPoolDestroy(pool_);
      throw;
    }
  }
  ~Cuda() override {
    cudaSetDevice(number_);
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
    cudaMemPoolDestroy(pool_);
  }
  Cuda(const Cuda&) = delete;

  void* allocate(size_t bytes) override {
    select();
    void* made = nullptr;
    check(cudaMallocFromPoolAsync(&made, bytes, pool_, stream_));
    return made;
  }
  void free(void* there) noexcept override {
    cudaSetDevice(number_);
    cudaFreeAsync(there, stream_);  // an error comes from a kernel, and `wait` reports it
  }

  std::byte* allocate_here(size_t bytes) override {
    select();
    void* made = nullptr;
    check(cudaHostAlloc(&made, bytes, cudaHostAllocDefault));
    return static_cast<std::byte*>(made);
  }
  void free_here(std::byte* here) noexcept override { cudaFreeHost(here); }

  void copy_in(void* there, const std::byte* here, size_t bytes) override {
    select();
    check(cudaMemcpyAsync(there, here, bytes, cudaMemcpyHostToDevice, stream_));
  }
  void copy_out(std::byte* here, const void* there, size_t bytes) override {
    select();
    check(cudaMemcpyAsync(here, there, bytes, cudaMemcpyDeviceToHost, stream_));
    wait();
  }

  void launch(const Call& call) override {
    if (call.threads == 0) return;
    select();
    constexpr uint32_t kBlock = 128;
    const uint32_t blocks = (call.threads - 1) / kBlock + 1;
    with_dtype(call.dtype,
               [&](auto t) { kernel<decltype(t)><<<blocks, kBlock, 0, stream_>>>(call); });
    check(cudaGetLastError());
  }

  void wait() override {
    select();
    Mark().wait(stream_);
  }

 private:
  /// Selects the device: CUDA has a current device for each thread, and any may call.
  void select() const { check(cudaSetDevice(number_)); }

  const int number_;
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) uint32_t litmusfuzz_gpu_interface() {
  return kInterface;
}

extern "C" __attribute__((visibility("default"))) void litmusfuzz_list_gpus(
    const Settings&, std::vector<std::string>* lines, std::string* error) {
  try {
    int count = 0, driver = 0, runtime = 0;
    check(cudaGetDeviceCount(&count));
    check(cudaDriverGetVersion(&driver));
    check(cudaRuntimeGetVersion(&runtime));
    const auto text = [](int version) {  // 12040 is 12.4
      return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    };
    for (int number = 0; number < count; ++number) {
      cudaDeviceProp properties;
      check(cudaGetDeviceProperties(&properties, number));
      lines->push_back(std::string(properties.name) + " (CUDA " + text(runtime) + ", driver " +
                       text(driver) + ")");
    }
  } catch (const std::exception& thrown) {
    *error = thrown.what();
  }
}

/// Returns null, and sets `error`, if there is no such GPU.
extern "C" __attribute__((visibility("default"))) Device* litmusfuzz_make_gpu(
    const Settings& settings, std::string* error) {
  const uint32_t number = settings.number;
  int count = 0;
  if (const cudaError_t found = cudaGetDeviceCount(&count); found != cudaSuccess) {
    *error = cudaGetErrorString(found);
    return nullptr;
  }
  if (number >= static_cast<uint32_t>(count)) {
    *error = "number " + std::to_string(number) + " of " + std::to_string(count);
    return nullptr;
  }
  try {
    return std::make_unique<Cuda>(number).release();
  } catch (const std::exception& thrown) {
    *error = thrown.what();
    return nullptr;
  }
}
