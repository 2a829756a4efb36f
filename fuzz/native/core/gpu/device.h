// What a GPU does for the executor, as little as that is. Two things are one: a real one
// (fuzz/native/plugins/cuda.cu), and a thread that plays one (emulated.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "program.h"

namespace litmusfuzz::executor::gpu {

/// Of `Call` and `Device`: a plug-in that was built with another one is refused.
inline constexpr uint32_t kInterface = 1;

/// One kernel launch: `threads` threads, of which the i-th makes element i of what is
/// written (element.h). Pointers are the device's. What is read is never written.
struct Call {
  Op op = Op::kNoOp;
  DType dtype = DType::kInt32;  // of the operands
  bool nesterov = false;
  uint32_t threads = 0;
  void* out[2] = {};
  const void* contents[2] = {};  // what an update saw of its variables
  const void* in[3] = {};        // operands
  bool wide[3] = {};             // or the operand's only element stands for all
  const int32_t* rows = nullptr;  // that a gather or scatter touches, `row_count` of them
  uint32_t row_count = 0;
  uint32_t row_elements = 1;
  uint32_t inner = 0, columns = 0;  // of a MatMul
};

/// One stream: what it is asked to do is done later, in the order of asking, and its
/// methods return at once; all but `wait`, and allocations on the host. Any thread may
/// call them. They throw std::runtime_error with what the device says.
class Device {
 public:
  virtual ~Device() = default;

  /// Memory on the device. In the stream's order: what is freed may be in use by what
  /// was asked for before.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* there) noexcept = 0;
  /// Memory here that a copy may use while the program goes on. Slow: to be kept.
  virtual std::byte* allocate_here(size_t bytes) = 0;
  virtual void free_here(std::byte* here) noexcept = 0;

  /// `here` is of `allocate_here`, and is left as it is until the copy is done.
  virtual void copy_in(void* there, const std::byte* here, size_t bytes) = 0;
  virtual void copy_out(std::byte* here, const void* there, size_t bytes) = 0;
  virtual void launch(const Call& call) = 0;

  /// Returns when all is done that was asked for so far.
  virtual void wait() = 0;
};

}  // namespace litmusfuzz::executor::gpu
