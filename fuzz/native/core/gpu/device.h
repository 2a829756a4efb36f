// Minimal interface of a GPU, with two implementations: a real GPU
// (fuzz/native/plugins/cuda.cu), and a thread that emulates one (emulated.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "program.h"

namespace litmusfuzz::executor::gpu {

/// Version of `Call` and `Device`: a plug-in built with another version is refused.
inline constexpr uint32_t kInterface = 1;

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

/// One stream. Operations are asynchronous and run in the order of their calls, except for
/// `wait` and host allocations. Any thread may call the methods. They throw
/// std::runtime_error with the device's error message.
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
  virtual void copy_in(void* there, const std::byte* here, size_t bytes) = 0;
  virtual void copy_out(std::byte* here, const void* there, size_t bytes) = 0;
  virtual void launch(const Call& call) = 0;

  /// Returns when all operations called so far are done.
  virtual void wait() = 0;
};

}  // namespace litmusfuzz::executor::gpu
