// Real devices, through plug-ins, so that the core needs neither CUDA nor OpenCL.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/device.h"

namespace litmusfuzz::executor::gpu {

/// Opens a device through the plug-in library (fuzz/native/plugins). Throws std::runtime_error
/// with one line if there is none.
std::unique_ptr<Device> load(const std::string& path, const Settings& settings);

/// The devices that the OpenCL plug-in finds, one line for each, by number. Only `platform` and
/// `sub_devices` of the settings count.
std::vector<std::string> list(const std::string& path, const Settings& settings);

}  // namespace litmusfuzz::executor::gpu
