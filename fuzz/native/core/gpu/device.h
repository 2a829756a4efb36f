// Minimal interface of a GPU or another accelerator, with three implementations: CUDA
// (fuzz/native/plugins/cuda.cu), OpenCL (fuzz/native/plugins/opencl), and a thread that emulates
// a GPU (emulated.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "program.h"

namespace litmusfuzz::executor::gpu {

/// Version of this file: a plug-in built with another version is refused.
inline constexpr uint32_t kInterface = 2;

/// Which device to open, and how to use it. CUDA looks at `number` only.
struct Settings {
  std::string platform;       // number of an OpenCL platform, or a part of its name; "" for all
  uint32_t number = 0;        // of the device
  uint32_t sub_devices = 1;   // parts of each device that can be partitioned
  uint32_t queues = 1;        // command queues, which take commands in turns
  bool out_of_order = false;  // queues start each command when those that it waits for are done
  /// Commands are held back, and released one by one in a random order that their waits allow.
  bool gated = false;
  Defect defect = Defect::kNone;  // of a mutant
};

/// Objects that a device holds.
struct Usage {
  uint64_t buffers = 0, events = 0;
};

/// The device's memory is used up.
class OutOfMemory final : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

/// One kernel launch: thread i of `threads` computes element i of the output (element.h).
/// Pointers are device pointers. Inputs are never written.
struct Call {
  Op op = Op::kNoOp;
  DType dtype = DType::kInt32;  // of the operands
  bool nesterov = false;
  uint32_t threads = 0;
  void* out[2] = {};
  const void* contents[2] = {};  // values that an update read
  const void* in[3] = {};        // operands
  bool wide[3] = {};             // false: the operand's only element is broadcast
  const int32_t* rows = nullptr;  // `row_count` rows that a gather or scatter touches
  uint32_t row_count = 0;
  uint32_t row_elements = 1;
  uint32_t inner = 0, columns = 0;  // for a MatMul
};

/// Operations are asynchronous. Their results are as if they ran in the order of their calls;
/// a device may run them in another order where no operand depends on it. Any thread may call
/// the methods. They throw std::runtime_error with the device's error message, or OutOfMemory.
class Device {
 public:
  virtual ~Device() = default;

  /// Device memory, in stream order: earlier operations may still use freed memory.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* there) noexcept = 0;
  /// Host memory for asynchronous copies. Slow to allocate, so callers keep it.
  virtual std::byte* allocate_here(size_t bytes) = 0;
  virtual void free_here(std::byte* here) noexcept = 0;

  /// `here` comes from `allocate_here`, and must not change until the copy is done.
  /// `here` comes from `allocate_here`, and must not change before `wait`.
  virtual void copy_in(void* there, const std::byte* here, size_t bytes) = 0;
  /// Returns when the bytes are in `here`, which comes from `allocate_here`.
  virtual void copy_out(std::byte* here, const void* there, size_t bytes) = 0;
  virtual void launch(const Call& call) = 0;
  /// True if it has kernels for operands of this type.
  virtual bool computes(DType /*dtype*/) const { return true; }

  /// Returns when all copies to the device called so far are done.
  virtual void wait() = 0;

  /// Starts anew what the device does at random; waits for all operations.
  virtual void reseed(uint64_t /*seed*/) {}
  virtual Usage usage() const { return {}; }
};

}  // namespace litmusfuzz::executor::gpu
