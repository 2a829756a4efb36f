// Real devices, through plug-ins, so that the core needs neither CUDA nor OpenCL.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device.h"

namespace litmusfuzz::executor::gpu {

/// Opens a device through the plug-in library (fuzz/native/plugins). Throws std::runtime_error
/// with one line if there is none.
std::unique_ptr<Device> load(const std::string& path, const Settings& settings);

/// The devices that the plug-in finds, one line for each, by number: name, platform and driver.
/// Only `platform` and `sub_devices` of the settings count.
std::vector<std::string> list(const std::string& path, const Settings& settings);

/// A litmus test whose chains are work-items, on a device of OpenCL C 2.0 or later.
///
/// The kernels race_0, race_1, ... take (variables, seen, instances, seed). Variable v of instance
/// i is the int (v * instances + i) * kStride, observed value o is seen[o * instances + i]. The int
/// after the last variable is 0 at the start.
struct Race {
  static constexpr uint32_t kStride = 16;  // ints: each variable has a line of a cache

  std::string source;
  uint32_t kernels = 1;
  std::vector<uint32_t> items;   // by kernel: work-items of an instance
  std::vector<int32_t> initial;  // by variable
  uint32_t observed = 0;
  uint32_t instances = 1;  // of the test, in one launch, at most
  uint64_t count = 1;      // of executions, rounded up to launches
  uint64_t seed = 0;
};

/// How often each outcome was seen: observed values, then final values of variables.
using RaceHistogram = std::map<std::vector<int32_t>, uint64_t>;

/// Runs a race through the OpenCL plug-in. Throws std::runtime_error with one line.
RaceHistogram race(const std::string& path, const Settings& settings, const Race& race);

}  // namespace litmusfuzz::executor::gpu
