#include "engines/plugin.h"

#include <dlfcn.h>

#include <stdexcept>

namespace litmusfuzz::engines {
namespace {

template <typename F>
F* symbol(void* library, const std::string& path, const char* name) {
  void* const found = dlsym(library, name);
  if (!found) throw std::invalid_argument(path + " is no engine: it has no " + name);
  return reinterpret_cast<F*>(found);
}

}  // namespace

std::unique_ptr<Engine> load(const std::string& path, EngineOptions options) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::invalid_argument(dlerror());
  const uint32_t theirs = symbol<uint32_t()>(library, path, "litmusfuzz_engine_interface")();
  if (theirs != kEngineInterface) {
    throw std::invalid_argument(path + " was built with engine interface " +
                                std::to_string(theirs) + "; this is " +
                                std::to_string(kEngineInterface));
  }
  auto* const make = symbol<Engine*(const EngineOptions*)>(library, path, "litmusfuzz_make_engine");
  std::unique_ptr<Engine> made(make(&options));
  if (!made) throw std::invalid_argument(path + " made no engine");
  return made;
}

}  // namespace litmusfuzz::engines
