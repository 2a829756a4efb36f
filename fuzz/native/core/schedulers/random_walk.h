// Random walk: each enabled event is next with equal probability.
//
// Effective for its cost, but it seldom delays a chain while a longer one runs: the
// probability halves, or worse, with each event.
#pragma once

#include "schedulers/random.h"
#include "scheduling.h"

namespace litmusfuzz::executor {

class RandomWalk final : public Scheduler {
 public:
  explicit RandomWalk(uint64_t seed) : random_(seed) {}
  std::optional<size_t> choose(const Choices& choices) override {
    return random_.below(static_cast<uint32_t>(choices.size()));
  }

 private:
  Random random_;
};

}  // namespace litmusfuzz::executor
