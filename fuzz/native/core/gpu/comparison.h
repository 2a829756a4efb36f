// Comparison of a device's kernels with the host's, bit by bit.
#pragma once

#include <string>
#include <vector>

#include "gpu/gpu.h"

namespace litmusfuzz::executor::gpu {

/// The kernels whose results differ from the host's, as "AddV2 of float32[6]", without
/// repetitions. Compares all ops and operand types that the device has, with values of up to
/// three times as many elements as each of `sizes`. Call it once for a backend.
std::vector<std::string> kernel_differences(Gpu& gpu, const std::vector<uint32_t>& sizes);

}  // namespace litmusfuzz::executor::gpu
