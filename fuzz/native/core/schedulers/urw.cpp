#include "schedulers/urw.h"

namespace litmusfuzz::executor {

void Urw::begin(const Runtime& runtime) {
  runtime_ = &runtime;
  weights_.clear();
}

void Urw::ready(Ticket ticket) {
  if (ticket >= led_to_.size()) led_to_.resize(ticket + 1);
  led_to_[ticket] = counts_.led_to(runtime_->step(ticket).id);
}

std::optional<size_t> Urw::choose(const Choices& choices) {
  for (;;) {
    const Ticket sampled = weights_.at(random_.below(weights_.total()));
    weights_.set(sampled, 0);
    // The event may be disabled meanwhile; `enabled` sets its weight again.
    if (choices.contains(sampled)) return choices.place_of(sampled);
  }
}

}  // namespace litmusfuzz::executor
