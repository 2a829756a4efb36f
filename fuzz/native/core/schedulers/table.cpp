#include "schedulers/table.h"

#include <stdexcept>

#include "schedulers/pct.h"
#include "schedulers/pos.h"
#include "schedulers/random_walk.h"
#include "schedulers/surw.h"
#include "schedulers/uniform.h"
#include "schedulers/urw.h"

namespace litmusfuzz::executor {

std::unique_ptr<Scheduler> make_scheduler(const std::string& name, uint32_t depth, Runtime& runtime,
                                          uint64_t seed) {
  if (name == "random") return std::make_unique<RandomWalk>(seed);
  if (name == "pct") {
    if (depth < 1 || depth > 64) throw std::invalid_argument("the depth of pct must be 1 to 64");
    return std::make_unique<Pct>(runtime, depth, seed);
  }
  if (name == "pos") return std::make_unique<Pos>(seed);
  if (name == "urw") return std::make_unique<Urw>(runtime, seed);
  if (name == "surw") return std::make_unique<Surw>(runtime, seed);
  throw std::invalid_argument("no scheduler '" + name + "'; there are random, pct, pos, urw, surw");
}

std::unique_ptr<Scheduler> make_scheduler(const std::string& name, uint32_t depth,
                                          const Program& program, uint64_t seed) {
  if (name == "uniform") return std::make_unique<Uniform>(program, seed);
  Controlled counted(program);
  return make_scheduler(name, depth, counted, seed);
}

}  // namespace litmusfuzz::executor
