#include "schedulers/pos.h"

namespace litmusfuzz::executor {

void Pos::begin(const Runtime& runtime) {
  runtime_ = &runtime;
  heap_.clear();
  for (auto& each : touching_) each.clear();
}

void Pos::insert(Ticket ticket, const Step& step) {
  if (ticket >= places_.size()) places_.resize(ticket + 1);
  std::vector<Place>& at = places_[ticket];
  at.clear();
  for (const uint32_t resource : step.resources) {
    const uint32_t list = 2 * resource + step.reads_only;
    if (list >= touching_.size()) touching_.resize(2 * resource + 2);
    at.push_back({list, static_cast<uint32_t>(touching_[list].size())});
    touching_[list].push_back(ticket);
  }
}

void Pos::remove(Ticket ticket) {
  for (const Place& at : places_[ticket]) {
    std::vector<Ticket>& list = touching_[at.list];
    const Ticket last = list.back();
    list[at.place] = last;
    list.pop_back();
    for (Place& moved : places_[last]) {
      if (moved.list == at.list) moved.place = at.place;
    }
  }
}

void Pos::ready(Ticket ticket) {
  heap_.set_score(ticket, random_.next());
  insert(ticket, runtime_->step(ticket));
}

void Pos::resample(const Choices& choices, uint32_t list) {
  for (const Ticket each : touching_[list]) {
    heap_.set_score(each, random_.next());
    if (choices.contains(each)) heap_.push(each);
  }
}

std::optional<size_t> Pos::choose(const Choices& choices) {
  const Ticket chosen = heap_.pop(choices);
  const size_t place = choices.place_of(chosen);
  remove(chosen);
  for (const Place& at : places_[chosen]) {
    const uint32_t changing = at.list & ~1u;
    const bool reads_only = at.list & 1u;
    resample(choices, changing);
    if (!reads_only) resample(choices, changing + 1);
  }
  return place;
}

}  // namespace litmusfuzz::executor
