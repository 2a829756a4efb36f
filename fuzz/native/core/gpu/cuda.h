// Real GPUs, through a plug-in, so that the core needs no CUDA toolkit.
#pragma once

#include <memory>
#include <string>

#include "gpu/device.h"

namespace litmusfuzz::executor::gpu {

/// Opens a GPU by number, through the plug-in library (fuzz/native/plugins/cuda.cu). Throws
/// std::runtime_error with one line if there is none.
std::unique_ptr<Device> load_cuda(const std::string& path, uint32_t number);

}  // namespace litmusfuzz::executor::gpu
