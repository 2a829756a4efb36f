#include "gpu/cuda.h"

#include <dlfcn.h>

#include <stdexcept>

namespace litmusfuzz::executor::gpu {
namespace {

template <typename F>
F* symbol(void* library, const std::string& path, const char* name) {
  void* const found = dlsym(library, name);
  if (!found) throw std::runtime_error(path + " has no " + name);
  return reinterpret_cast<F*>(found);
}

}  // namespace

std::unique_ptr<Device> load_cuda(const std::string& path, uint32_t number) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  const uint32_t theirs = symbol<uint32_t()>(library, path, "litmusfuzz_gpu_interface")();
  if (theirs != kInterface) {
    throw std::runtime_error(path + " was built with GPU interface " + std::to_string(theirs) +
                             "; this is " + std::to_string(kInterface));
  }
  std::string error;
  std::unique_ptr<Device> made(symbol<Device*(uint32_t, std::string*)>(
      library, path, "litmusfuzz_make_gpu")(number, &error));
  if (!made) throw std::runtime_error("no GPU: " + error);
  return made;
}

}  // namespace litmusfuzz::executor::gpu
