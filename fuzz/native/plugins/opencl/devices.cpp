// Devices that OpenCL's loader finds on this machine.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "opencl/platform.h"

namespace litmusfuzz::executor::opencl {

std::string name_of(cl_int error) {
  switch (error) {
#define NAMED(code) \
  case code: return #code
    NAMED(CL_DEVICE_NOT_FOUND);
    NAMED(CL_DEVICE_NOT_AVAILABLE);
    NAMED(CL_COMPILER_NOT_AVAILABLE);
    NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE);
    NAMED(CL_OUT_OF_RESOURCES);
    NAMED(CL_OUT_OF_HOST_MEMORY);
    NAMED(CL_BUILD_PROGRAM_FAILURE);
    NAMED(CL_MAP_FAILURE);
    NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    NAMED(CL_INVALID_VALUE);
    NAMED(CL_INVALID_DEVICE);
    NAMED(CL_INVALID_CONTEXT);
    NAMED(CL_INVALID_COMMAND_QUEUE);
    NAMED(CL_INVALID_MEM_OBJECT);
    NAMED(CL_INVALID_BUFFER_SIZE);
    NAMED(CL_INVALID_KERNEL_ARGS);
    NAMED(CL_INVALID_WORK_GROUP_SIZE);
    NAMED(CL_INVALID_EVENT_WAIT_LIST);
#undef NAMED
    case -1001: return "CL_PLATFORM_NOT_FOUND_KHR";
    default: return "error " + std::to_string(error);
  }
}

void check(cl_int error, const char* call) {
  if (error == CL_SUCCESS) return;
  const std::string line = "OpenCL: " + std::string(call) + ": " + name_of(error);
  switch (error) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:  // more than the device gives one buffer
      throw gpu::OutOfMemory(line);
    default: throw std::runtime_error(line);
  }
}

namespace {

template <typename Get, typename Object>
std::string text_of(Get get, Object object, cl_uint what) {
  size_t size = 0;
  if (get(object, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (get(object, what, size, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(std::min(text.find('\0'), text.size()));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// The first line of a compiler's output that tells of an error.
std::string error_of(cl_program program, cl_device_id device) {
  size_t size = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  std::string first;
  for (size_t start = 0, end = 0; start < log.size(); start = end + 1) {
    end = std::min(log.find('\n', start), log.size());
    std::string line = log.substr(start, end - start);
    while (!line.empty() && (line.back() == '\0' || line.back() == '\r')) line.pop_back();
    if (first.empty()) first = line;
    if (line.find("error") != std::string::npos) return line;
  }
  return first;
}

std::vector<cl_device_id> parts_of(cl_device_id device, uint32_t count) {
  cl_uint units = 0;
  check(clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, nullptr),
        "clGetDeviceInfo");
  if (count < 2 || units < count) return {device};
  std::vector<cl_device_partition_property> how{CL_DEVICE_PARTITION_BY_COUNTS};
  how.insert(how.end(), count, units / count);
  how.insert(how.end(), {CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0});
  std::vector<cl_device_id> parts(count);
  if (clCreateSubDevices(device, how.data(), count, parts.data(), nullptr) != CL_SUCCESS) {
    return {device};
  }
  return parts;
}

std::vector<Found> find(const std::string& wanted, uint32_t sub_devices) {
  cl_uint count = 0;
  check(clGetPlatformIDs(0, nullptr, &count), "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(count);
  check(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  std::vector<Found> found;
  for (cl_uint p = 0; p < count; ++p) {
    const std::string name = text_of(clGetPlatformInfo, platforms[p], CL_PLATFORM_NAME);
    const bool named = wanted == std::to_string(p) || name.find(wanted) != std::string::npos;
    if (!wanted.empty() && !named) continue;
    cl_uint there = 0;
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 0, nullptr, &there) != CL_SUCCESS) {
      continue;  // a platform without devices
    }
    std::vector<cl_device_id> ids(there);
    check(clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, there, ids.data(), nullptr),
          "clGetDeviceIDs");
    for (const cl_device_id whole : ids) {
      const auto parts = parts_of(whole, sub_devices);
      for (size_t k = 0; k < parts.size(); ++k) {
        std::string text = text_of(clGetDeviceInfo, whole, CL_DEVICE_NAME);
        if (parts.size() > 1) {
          text += ", part " + std::to_string(k + 1) + " of " + std::to_string(parts.size());
        }
        text += " (" + name + ", " + text_of(clGetDeviceInfo, whole, CL_DEVICE_VERSION) +
                ", driver " + text_of(clGetDeviceInfo, whole, CL_DRIVER_VERSION) + ")";
        found.push_back({parts[k], std::move(text)});
      }
    }
  }
  return found;
}

}  // namespace

const std::vector<Found>& devices(const std::string& platform, uint32_t sub_devices) {
  // Never destroyed, as is everything that lives as long as the process: at its end the driver
  // may be gone already.
  static std::mutex& lock = *new std::mutex;
  static auto& known = *new std::map<std::pair<std::string, uint32_t>, std::vector<Found>>;
  const std::lock_guard guard(lock);
  const auto key = std::pair(platform, sub_devices);
  if (!known.contains(key)) known.emplace(key, find(platform, sub_devices));
  return known.at(key);
}

cl_device_id chosen(const gpu::Settings& settings) {
  const auto& found = devices(settings.platform, settings.sub_devices);
  if (settings.number < found.size()) return found[settings.number].device;
  throw std::runtime_error("number " + std::to_string(settings.number) + " of " +
                           std::to_string(found.size()));
}

Program built(const Context& context, cl_device_id device, const std::string& source,
              const std::string& options) {
  const char* start = source.c_str();
  cl_int error = 0;
  Program made(clCreateProgramWithSource(context.get(), 1, &start, nullptr, &error));
  check(error, "clCreateProgramWithSource");
  const cl_int result = clBuildProgram(made.get(), 1, &device, options.c_str(), nullptr, nullptr);
  if (result == CL_BUILD_PROGRAM_FAILURE) {
    throw std::runtime_error("OpenCL: the kernels do not compile: " + error_of(made.get(), device));
  }
  check(result, "clBuildProgram");
  return made;
}

}  // namespace litmusfuzz::executor::opencl
