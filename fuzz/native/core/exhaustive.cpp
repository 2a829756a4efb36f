#include "exhaustive.h"

#include <algorithm>
#include <stdexcept>

#include "controlled.h"

namespace litmusfuzz::executor {
namespace {

bool contains(const std::vector<Step>& steps, const Step& step) {
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Step& each) { return each.id == step.id; });
}

/// Index of an event; the number of events if it is not there.
size_t place_of(const std::vector<Step>& steps, uint64_t id) {
  return static_cast<size_t>(
      std::find_if(steps.begin(), steps.end(), [&](const Step& each) { return each.id == id; }) -
      steps.begin());
}

/// The first event that is not asleep; the number of events if none is.
size_t first_awake(const std::vector<Step>& enabled, const std::vector<Step>& asleep) {
  size_t place = 0;
  while (place < enabled.size() && contains(asleep, enabled[place])) ++place;
  return place;
}

}  // namespace

void Exhaustive::begin(const Runtime& runtime) {
  runtime_ = &runtime;
  depth_ = 0;
  waiting_.clear();
}

void Exhaustive::ready(Ticket ticket) {
  if (ticket >= waiting_.size()) waiting_.resize(ticket + 1);
  waiting_[ticket] = {runtime_->step(ticket), depth_ == 0 ? kNone : depth_ - 1, true};
}

Exhaustive::Level Exhaustive::reach(const Choices& choices) const {
  Level level;
  for (const Ticket each : choices) level.enabled.push_back(waiting_[each].step);
  if (depth_ > 0) {
    const Step& last = at(depth_ - 1);
    for (const Step& each : levels_[depth_ - 1].asleep) {
      if (!each.depends_on(last)) level.asleep.push_back(each);
    }
  }
  level.chosen = first_awake(level.enabled, level.asleep);
  level.to_try.resize(level.enabled.size());
  return level;
}

std::optional<size_t> Exhaustive::choose(const Choices& choices) {
  const bool is_new = depth_ == levels_.size();
  if (is_new) {
    Level level = reach(choices);
    if (level.chosen == level.enabled.size()) return std::nullopt;  // all were tried before
    level.to_try[level.chosen] = true;
    levels_.push_back(std::move(level));
  }
  Level& level = levels_[depth_];
  const uint64_t wanted = level.enabled[level.chosen].id;
  size_t place = level.chosen;  // the same as before, unless the system announces as it likes
  if (place >= choices.size() || waiting_[choices[place]].step.id != wanted) {
    place = 0;
    while (place < choices.size() && waiting_[choices[place]].step.id != wanted) ++place;
  }
  if (choices.size() != level.enabled.size() || place == choices.size()) {
    throw std::runtime_error("other events are enabled than after the same choices before");
  }
  Waiting& next = waiting_[choices[place]];
  // Not only where the level is new: the last one may have got another event to try.
  if (depth_ + 1 == levels_.size()) {
    level.before = {};
    level.before.add(depth_);
    if (next.cause != kNone) level.before.add(levels_[next.cause].before);
    for (size_t i = depth_; i-- > 0;) {
      if (!level.before.contains(i) && at(i).depends_on(next.step)) {
        level.before.add(levels_[i].before);
      }
    }
    find_races(next, depth_);
  }
  next.pending = false;
  ++depth_;
  return place;
}

void Exhaustive::find_races(const Waiting& event, size_t count) {
  Past before, direct;  // what comes before it; and what does so by way of another one
  if (event.cause != kNone) direct = levels_[event.cause].before;
  before = direct;
  std::vector<size_t> racing;
  for (size_t i = count; i-- > 0;) {
    if (!at(i).depends_on(event.step)) continue;
    before.add(levels_[i].before);
    if (direct.contains(i)) continue;
    racing.push_back(i);
    // What the event at `i` comes after cannot race with this one: where the two are reversed,
    // it will. But perhaps they cannot be, since this one is disabled until that has enabled it.
    if (!event.step.may_be_disabled) direct.add(levels_[i].before);
  }
  for (const size_t each : racing) reverse(each, event, before, count);
}

void Exhaustive::reverse(size_t position, const Waiting& event, const Past& before, size_t count) {
  Level& level = levels_[position];
  // The events that do not come after the one at `position`, then this one: an execution without
  // that one. Those of them that can come first are its initials.
  std::vector<size_t> others;
  for (size_t i = position + 1; i < count; ++i) {
    if (!levels_[i].before.contains(position)) others.push_back(i);
  }
  size_t chosen = level.enabled.size();
  const auto consider = [&](uint64_t id, const Past& its) {
    for (const size_t each : others) {
      if (its.contains(each) && at(each).id != id) return false;
    }
    const size_t place = place_of(level.enabled, id);
    if (place == level.enabled.size()) return false;
    if (level.to_try[place] || contains(level.asleep, level.enabled[place])) return true;
    if (chosen == level.enabled.size()) chosen = place;
    return false;
  };
  for (const size_t each : others) {
    if (consider(at(each).id, levels_[each].before)) return;
  }
  if (consider(event.step.id, before)) return;
  if (chosen < level.enabled.size()) {
    level.to_try[chosen] = true;
  } else {
    std::fill(level.to_try.begin(), level.to_try.end(), true);
  }
}

void Exhaustive::end() {
  if (levels_.empty()) return;
  // What was never performed races all the same: it is blocked, or the test has failed.
  for (const Waiting& each : waiting_) {
    if (each.pending) find_races(each, levels_.size());
  }
  // Whatever was enabled when an op failed could have come before it.
  Level& last = levels_.back();
  for (const Waiting& each : waiting_) {
    const size_t place = each.pending ? place_of(last.enabled, each.step.id) : last.enabled.size();
    if (place < last.enabled.size()) last.to_try[place] = true;
  }
}

bool Exhaustive::next() {
  while (!levels_.empty()) {
    Level& level = levels_.back();
    level.asleep.push_back(level.enabled[level.chosen]);
    for (size_t i = 0; i < level.enabled.size(); ++i) {
      if (!level.to_try[i] || contains(level.asleep, level.enabled[i])) continue;
      level.chosen = i;
      return true;
    }
    levels_.pop_back();
  }
  return false;
}

Exhausted exhaust(const Program& program, uint64_t limit) {
  Exhausted found;
  Controlled controlled(program);
  Exhaustive scheduler;
  do {
    if (found.executions == limit) return found;
    ++found.executions;
    if (controlled.run(scheduler)) {
      ++found.traces;
      ++found.outcomes[controlled.outcome()];
    }
  } while (scheduler.next());
  found.complete = true;
  return found;
}

}  // namespace litmusfuzz::executor
