#include "schedulers/bounded.h"

#include <algorithm>

#include "controlled.h"

namespace litmusfuzz::executor {

void Bounded::begin(const Runtime&) {
  chains_.clear();
  last_ = 0;
  begun_ = false;
  spent_ = 0;
  depth_ = 0;
}

void Bounded::ready(Ticket ticket) { chains_.join(ticket); }

uint32_t Bounded::Level::cost(Measure measure) const {
  if (measure == Measure::kDelays) return static_cast<uint32_t>(chosen);
  return chosen > 0 && !free;
}

Bounded::Level Bounded::reach(const Choices& choices) {
  Level level;
  for (size_t place = 0; place < choices.size(); ++place) {
    const Chain chain = chains_.of(choices[place]);
    level.options.push_back({(chain + chains_.count() - last_) % chains_.count(), place});
  }
  std::sort(level.options.begin(), level.options.end(),
            [](const Option& a, const Option& b) { return a.distance < b.distance; });
  level.free = !begun_ || level.options[0].distance > 0;
  level.chosen = level.options.size() - 1;
  while (spent_ + level.cost(measure_) > bound_) {
    --level.chosen;
    level.options.pop_back();
    cut_ = true;
  }
  level.chosen = 0;
  return level;
}

std::optional<size_t> Bounded::choose(const Choices& choices) {
  if (depth_ == levels_.size()) levels_.push_back(reach(choices));
  const Level& level = levels_[depth_++];
  spent_ += level.cost(measure_);
  const size_t place = level.options[level.chosen].place;
  const Ticket ticket = choices[place];
  last_ = chains_.of(ticket);
  chains_.advance(ticket);
  begun_ = true;
  return place;
}

bool Bounded::next() {
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (++level.chosen < level.options.size()) return true;
    levels_.pop_back();
  }
  return false;
}

Searched search(const Program& program, Measure measure, uint32_t bound, uint64_t limit) {
  Searched found;
  Controlled controlled(program);
  Bounded scheduler(measure, bound);
  do {
    if (found.executions == limit) return found;
    ++found.executions;
    controlled.run(scheduler);
    ++found.outcomes[controlled.outcome()];
  } while (scheduler.next());
  found.complete = true;
  found.whole = !scheduler.cut();
  return found;
}

}  // namespace litmusfuzz::executor
