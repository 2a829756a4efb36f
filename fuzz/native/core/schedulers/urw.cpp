#include "schedulers/urw.h"

namespace litmusfuzz::executor {

void Urw::ready(Event event, Ticket ticket) {
  if (ticket >= led_to_.size()) led_to_.resize(ticket + 1);
  led_to_[ticket] = profile_.led_to(step_of(event).id);
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
