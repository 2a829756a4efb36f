#include "engines/table.h"

#include <stdexcept>

#include "engines/inline.h"
#include "engines/pool.h"

namespace litmusfuzz::engines {

std::unique_ptr<Engine> make(const std::string& name, EngineOptions options) {
  if (name == "inline") return make_inline();
  if (name == "pool") return make_pool(options, PopOrder::kRandom);
  if (name == "fifo") return make_pool(options, PopOrder::kFifo);
  throw std::invalid_argument("no engine '" + name + "'; there are inline, pool, fifo");
}

}  // namespace litmusfuzz::engines
