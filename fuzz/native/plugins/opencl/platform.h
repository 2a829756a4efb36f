// OpenCL's objects, released by themselves; its errors, as exceptions; its devices.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpu/device.h"

namespace litmusfuzz::executor::opencl {

/// Name of an error code.
std::string name_of(cl_int error);

/// Throws gpu::OutOfMemory where memory is used up, else std::runtime_error: one line with the
/// call and the error's name.
void check(cl_int error, const char* call);

/// Owns one reference to an object; counts the objects of its type.
template <typename T, cl_int (*release)(T)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T object) : object_(object) { ++count_; }
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() {
    if (!object_) return;
    release(object_);
    --count_;
  }
  explicit operator bool() const { return object_; }
  T get() const { return object_; }

  /// How many are owned in this process.
  static uint64_t count() { return count_; }

 private:
  T object_ = nullptr;
  // Sequentially consistent, the default: a count, seldom changed.
  static inline std::atomic<uint64_t> count_{0};
};

using Context = Handle<cl_context, clReleaseContext>;
using Queue = Handle<cl_command_queue, clReleaseCommandQueue>;
using Program = Handle<cl_program, clReleaseProgram>;
using Kernel = Handle<cl_kernel, clReleaseKernel>;
using Memory = Handle<cl_mem, clReleaseMemObject>;
using EventHandle = Handle<cl_event, clReleaseEvent>;

/// A device, or a part of one, and its description in one line.
struct Found {
  cl_device_id device;
  std::string text;
};

/// The devices of the platforms of that number or name ("" for all), each divided into
/// `sub_devices` parts if it can be.
const std::vector<Found>& devices(const std::string& platform, uint32_t sub_devices);
/// The device that the settings name; throws std::runtime_error if there is none.
cl_device_id chosen(const gpu::Settings& settings);

/// A program compiled for a device; an error is one line of the compiler's.
Program built(const Context& context, cl_device_id device, const std::string& source,
              const std::string& options);

}  // namespace litmusfuzz::executor::opencl
