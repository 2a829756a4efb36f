#include "strategies/pos.h"

namespace litmusfuzz::executor {

Pos::Pos(const Program& program, uint64_t seed)
    : random_(seed), touching_(2 * program.resources.size()) {}

void Pos::begin() {
  heap_.clear();
  for (auto& each : touching_) each.clear();
}

void Pos::insert(Ticket ticket, const Step& step) {
  if (ticket >= places_.size()) places_.resize(ticket + 1);
  Places& at = places_[ticket];
  at.count = step.resources[0] == step.resources[1] ? 1 : 2;
  for (uint32_t i = 0; i < at.count; ++i) {
    at.lists[i] = 2 * step.resources[i] + step.looks;
    at.places[i] = static_cast<uint32_t>(touching_[at.lists[i]].size());
    touching_[at.lists[i]].push_back(ticket);
  }
}

void Pos::remove(Ticket ticket) {
  const Places& at = places_[ticket];
  for (uint32_t i = 0; i < at.count; ++i) {
    std::vector<Ticket>& list = touching_[at.lists[i]];
    const Ticket last = list.back();
    list[at.places[i]] = last;
    list.pop_back();
    Places& moved = places_[last];
    moved.places[moved.lists[0] == at.lists[i] ? 0 : 1] = at.places[i];
  }
}

void Pos::ready(Event event, Ticket ticket) {
  heap_.set_score(ticket, random_.next());
  insert(ticket, step_of(event));
}

void Pos::draw_again(const Choices& choices, uint32_t list) {
  for (const Ticket each : touching_[list]) {
    heap_.set_score(each, random_.next());
    if (choices.contains(each)) heap_.push(each);
  }
}

std::optional<size_t> Pos::choose(const Choices& choices) {
  const Ticket chosen = heap_.pop(choices);
  const size_t place = choices.place_of(chosen);
  remove(chosen);
  const Places& at = places_[chosen];
  for (uint32_t i = 0; i < at.count; ++i) {
    const uint32_t changing = at.lists[i] & ~1u;
    const bool looks = at.lists[i] & 1u;
    draw_again(choices, changing);
    if (!looks) draw_again(choices, changing + 1);
  }
  return place;
}

}  // namespace litmusfuzz::executor
