// Each of the events that may come next with the same probability.
//
// Strong for its price, but a chain is seldom held back while a longer one runs:
// the odds of that fall by half, or more, with each event.
#pragma once

#include "controlled.h"
#include "schedulers/random.h"

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
