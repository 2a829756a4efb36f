// Engines for the C++ tests, one for each device of a program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices.h"
#include "engines/table.h"

namespace litmusfuzz::executor {

class SomeEngines {
 public:
  SomeEngines(const Program& program, const std::string& name, EngineOptions options) {
    for (uint32_t d = 0; d < program.devices; ++d) made_.push_back(engines::make(name, options));
  }
  Engines all() const {
    Engines borrowed;
    for (const auto& each : made_) borrowed.push_back(each.get());
    return borrowed;
  }

 private:
  std::vector<std::unique_ptr<Engine>> made_;
};

}  // namespace litmusfuzz::executor
