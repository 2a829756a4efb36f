// Real GPUs, by a plug-in: a machine without the CUDA toolkit has the same core.
#pragma once

#include <memory>
#include <string>

#include "gpu/device.h"

namespace litmusfuzz::executor::gpu {

/// The GPU of that number, by the library fuzz/native/plugins/cuda.cu. Throws
/// std::runtime_error, which says in one line why there is none.
std::unique_ptr<Device> load_cuda(const std::string& path, uint32_t number);

}  // namespace litmusfuzz::executor::gpu
