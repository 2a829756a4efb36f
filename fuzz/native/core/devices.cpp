#include "devices.h"

#include "engines/table.h"

namespace litmusfuzz::executor {

Engines make_engines(const Program& program, const std::string& name, EngineOptions options) {
  Engines made;
  for (uint32_t d = 0; d < program.devices; ++d) made.push_back(engines::make(name, options));
  return made;
}

}  // namespace litmusfuzz::executor
