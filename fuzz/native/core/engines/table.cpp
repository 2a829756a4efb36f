#include "engines/table.h"

#include <stdexcept>

#include "engines/gang.h"
#include "engines/inline.h"
#include "engines/plugin.h"
#include "engines/pool.h"
#include "engines/stealing.h"

namespace litmusfuzz::engines {

std::unique_ptr<Engine> make(const std::string& name, EngineOptions options) {
  if (name == "inline") return make_inline();
  if (name == "pool") return make_pool(options, PopOrder::kRandom);
  if (name == "fifo") return make_pool(options, PopOrder::kFifo);
  if (name == "stealing") return make_stealing(options);
  if (name == "gang") return make_gang(options);
  if (name.find('/') != std::string::npos) return load(name, options);
  throw std::invalid_argument(
      "no engine '" + name +
      "'; there are inline, pool, fifo, stealing, gang, and paths of shared libraries");
}

}  // namespace litmusfuzz::engines
