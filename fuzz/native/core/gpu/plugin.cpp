#include "gpu/plugin.h"

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

void* opened(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  const uint32_t theirs = symbol<uint32_t()>(library, path, "litmusfuzz_gpu_interface")();
  if (theirs != kInterface) {
    throw std::runtime_error(path + " was built with GPU interface " + std::to_string(theirs) +
                             "; this is " + std::to_string(kInterface));
  }
  return library;
}

}  // namespace

std::unique_ptr<Device> load(const std::string& path, const Settings& settings) {
  void* const library = opened(path);
  std::string error;
  std::unique_ptr<Device> made(symbol<Device*(const Settings&, std::string*)>(
      library, path, "litmusfuzz_make_gpu")(settings, &error));
  if (!made) throw std::runtime_error("no device: " + error);
  return made;
}

std::vector<std::string> list(const std::string& path, const Settings& settings) {
  void* const library = opened(path);
  std::vector<std::string> lines;
  std::string error;
  symbol<void(const Settings&, std::vector<std::string>*, std::string*)>(
      library, path, "litmusfuzz_list_gpus")(settings, &lines, &error);
  if (!error.empty()) throw std::runtime_error(error);
  return lines;
}

RaceHistogram race(const std::string& path, const Settings& settings, const Race& race) {
  void* const library = opened(path);
  RaceHistogram outcomes;
  std::string error;
  symbol<void(const Settings&, const Race&, RaceHistogram*, std::string*)>(
      library, path, "litmusfuzz_race_gpu")(settings, race, &outcomes, &error);
  if (!error.empty()) throw std::runtime_error(error);
  return outcomes;
}

}  // namespace litmusfuzz::executor::gpu
