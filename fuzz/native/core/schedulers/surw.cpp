#include "schedulers/surw.h"

namespace litmusfuzz::executor {

void Surw::begin(const Runtime& runtime) {
  runtime_ = &runtime;
  leading_.clear();
  going_.clear();
  intended_ = kNone;
  passing_ = false;
  const auto& contended = counts_.contended();
  resource_ = contended.empty() ? kNothing
                                : contended[random_.below(static_cast<uint32_t>(contended.size()))];
}

void Surw::ready(Ticket ticket) {
  const Step step = runtime_->step(ticket);
  if (ticket >= selected_.size()) selected_.resize(ticket + 1);
  selected_[ticket] = resource_ != kNothing && step.touches(resource_);
  const uint32_t count = resource_ == kNothing ? 0 : counts_.led_to(step.id, resource_);
  leading_.set(ticket, count);
  if (passing_) followers_.emplace_back(ticket, count);
}

void Surw::enabled(Ticket ticket) {
  if (!selected_[ticket] || ticket == intended_) going_.set(ticket, 1);
}

/// Makes the event the path to the next event on the resource.
void Surw::intend(Ticket ticket, const Choices& choices) {
  intended_ = ticket;
  if (selected_[ticket] && choices.contains(ticket)) going_.set(ticket, 1);
}

/// A random event that is not held back.
Ticket Surw::sample(const Choices& choices) {
  while (going_.total() > 0) {
    const Ticket sampled = going_.at(random_.below(going_.total()));
    if (choices.contains(sampled)) return sampled;
    going_.set(sampled, 0);  // disabled; `enabled` adds it again
  }
  // The intended event waits for one that is held back.
  return choices[random_.below(static_cast<uint32_t>(choices.size()))];
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
  const Ticket chosen = sample(choices);
  perform(chosen);
  return choices.place_of(chosen);
}

}  // namespace litmusfuzz::executor
