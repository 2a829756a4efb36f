#include "schedulers/pct.h"

namespace litmusfuzz::executor {
namespace {

/// Above all that change points give.
constexpr uint64_t kInitial = uint64_t{1} << 63;

}  // namespace

Pct::Pct(Runtime& runtime, uint32_t depth, uint64_t seed)
    : random_(seed), longest_(EventCounts(runtime).longest()), points_(depth - 1) {}

void Pct::begin(const Runtime&) {
  done_ = 0;
  chains_.clear();
  heap_.clear();
  priorities_.clear();
  if (longest_ < 2) return points_.assign(points_.size(), 0);  // no place for a change
  for (uint32_t& each : points_) each = 1 + random_.below(longest_ - 1);
}

void Pct::ready(Ticket ticket) {
  // Equal ones are as good as impossible: 2^-63 for each pair.
  if (chains_.join(ticket)) priorities_.push_back(kInitial | random_.next());
  heap_.set_score(ticket, priorities_[chains_.of(ticket)]);
}

std::optional<size_t> Pct::choose(const Choices& choices) {
  const Ticket chosen = heap_.pop(choices);
  chains_.advance(chosen);
  ++done_;
  for (size_t i = 0; i < points_.size(); ++i) {
    if (points_[i] == done_) priorities_[chains_.of(chosen)] = i + 1;
  }
  return choices.place_of(chosen);
}

void Pct::end() { longest_ = std::max(longest_, done_); }

}  // namespace litmusfuzz::executor
