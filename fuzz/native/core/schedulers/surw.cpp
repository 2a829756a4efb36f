#include "schedulers/surw.h"

namespace litmusfuzz::executor {

void Surw::begin() {
  leading_.clear();
  going_.clear();
  intended_ = kNone;
  passing_ = false;
  const auto& contended = profile_.contended();
  resource_ = contended.empty() ? kNothing
                                : contended[random_.below(static_cast<uint32_t>(contended.size()))];
}

void Surw::ready(Event event, Ticket ticket) {
  const Step step = step_of(event);
  if (ticket >= selected_.size()) selected_.resize(ticket + 1);
  selected_[ticket] = resource_ != kNothing && step.touches(resource_);
  const uint32_t count = resource_ == kNothing ? 0 : profile_.led_to(step.id, resource_);
  leading_.set(ticket, count);
  if (passing_) followers_.emplace_back(ticket, count);
}

void Surw::enabled(Ticket ticket) {
  if (!selected_[ticket] || ticket == intended_) going_.set(ticket, 1);
}

/// From now on the way to the next event on the resource leads through it.
void Surw::intend(Ticket ticket, const Choices& choices) {
  intended_ = ticket;
  if (selected_[ticket] && choices.contains(ticket)) going_.set(ticket, 1);
}

/// One that need not be held back, each with the same odds.
Ticket Surw::draw(const Choices& choices) {
  while (going_.total() > 0) {
    const Ticket drawn = going_.at(random_.below(going_.total()));
    if (choices.contains(drawn)) return drawn;
    going_.set(drawn, 0);  // it has to wait; `enabled` will tell when no longer
  }
  // The event intended has to wait for one that is held back.
  return choices[random_.below(static_cast<uint32_t>(choices.size()))].ticket;
}

void Surw::perform(Ticket ticket) {
  leading_.set(ticket, 0);
  going_.set(ticket, 0);
  passing_ = ticket == intended_ && !selected_[ticket];
  followers_.clear();
  if (ticket == intended_) intended_ = kNone;
}

std::optional<size_t> Surw::choose(const Choices& choices) {
  if (passing_) {
    passing_ = false;
    uint32_t total = 0;
    for (const auto& [ticket, count] : followers_) total += count;
    uint32_t number = total ? random_.below(total) : 0;
    for (const auto& [ticket, count] : followers_) {
      if (number < count) {
        intend(ticket, choices);
        break;
      }
      number -= count;
    }
  }
  if (intended_ == kNone && leading_.total() > 0) {
    intend(leading_.at(random_.below(leading_.total())), choices);
  }
  const Ticket chosen = draw(choices);
  perform(chosen);
  return choices.place_of(chosen);
}

}  // namespace litmusfuzz::executor
