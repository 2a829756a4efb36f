#include "strategies/urw.h"

namespace litmusfuzz::executor {

void Urw::ready(const Pending& pending) {
  if (pending.ticket >= led_to_.size()) led_to_.resize(pending.ticket + 1);
  led_to_[pending.ticket] = profile_.led_to(step_of(pending.event).id);
}

std::optional<size_t> Urw::choose(const Choices& choices) {
  for (;;) {
    const Ticket drawn = weights_.at(random_.below(weights_.total()));
    weights_.set(drawn, 0);
    // It may have to wait since it was given its weight; `enabled` gives it again.
    if (choices.contains(drawn)) return choices.place_of(drawn);
  }
}

}  // namespace litmusfuzz::executor
