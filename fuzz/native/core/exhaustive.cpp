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

/// Index of an event of a task; the number of events if it has none.
size_t place_of_task(const std::vector<Step>& steps, uint64_t task) {
  return static_cast<size_t>(std::find_if(steps.begin(), steps.end(),
                                          [&](const Step& each) { return each.task == task; }) -
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
    const Level& before = levels_[depth_ - 1];
    const Step& last = at(depth_ - 1);
    const size_t place = place_of_task(level.enabled, last.task);
    if (place < level.enabled.size()) level.continues = place;
    level.spent = before.spent_with(before.chosen);
    if (sleeps()) {
      for (const Step& each : before.asleep) {
        if (!each.depends_on(last)) level.asleep.push_back(each);
      }
    }
  }
  level.chosen = first_awake(level.enabled, level.asleep);
  if (preemptions_ && level.continues != kNone) level.chosen = level.continues;
  level.to_try.resize(level.enabled.size(), reduction_ == Reduction::kNone);
  return level;
}

uint32_t Exhaustive::preemptions() const {
  return levels_.empty() ? 0 : levels_.back().spent_with(levels_.back().chosen);
}

std::optional<size_t> Exhaustive::choose(const Choices& choices) {
  const bool is_new = depth_ == levels_.size();
  if (is_new) {
    Level level = reach(choices);
    if (level.chosen == level.enabled.size()) {
      // All were tried before. But what is disabled would have found its races when performed: the
      // execution in which it comes first may not be one of those that were tried.
      for (const Waiting& each : waiting_) {
        if (each.pending && !contains(level.enabled, each.step)) find_races(each, depth_);
      }
      return std::nullopt;
    }
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
    // it will. But perhaps they cannot be: since this one is disabled until that has enabled it,
    // or within the bound.
    if (!event.step.may_be_disabled && !preemptions_) direct.add(levels_[i].before);
  }
  for (const size_t each : racing) reverse(each, event, before, count);
}

void Exhaustive::reverse(size_t position, const Waiting& event, const Past& before, size_t count) {
  if (preemptions_) {
    try_task(position, event.step);
    return try_task(start_of(position), event.step);
  }
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

void Exhaustive::try_task(size_t position, const Step& event) {
  Level& level = levels_[position];
  const bool can = place_of_task(level.enabled, event.task) < level.enabled.size();
  for (size_t i = 0; i < level.enabled.size(); ++i) {
    if (!can || level.enabled[i].task == event.task) level.to_try[i] = true;
  }
}

size_t Exhaustive::start_of(size_t position) const {
  size_t start = position;
  while (start > 0 && at(start - 1).task == at(position).task) --start;
  return start;
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
    if (place == last.enabled.size()) continue;
    last.to_try[place] = true;
    if (preemptions_) try_task(start_of(levels_.size() - 1), each.step);
  }
}

bool Exhaustive::next() {
  while (!levels_.empty()) {
    Level& level = levels_.back();
    level.asleep.push_back(level.enabled[level.chosen]);
    for (size_t i = 0; i < level.enabled.size(); ++i) {
      if (!level.to_try[i] || contains(level.asleep, level.enabled[i])) continue;
      if (preemptions_ && level.spent_with(i) > *preemptions_) {
        cut_ = true;
        continue;
      }
      level.chosen = i;
      return true;
    }
    levels_.pop_back();
  }
  return false;
}

Exhausted exhaust(const Program& program, uint64_t limit, Exhaustive scheduler) {
  Exhausted found;
  Controlled controlled(program);
  do {
    if (found.executions == limit) return found;
    ++found.executions;
    if (controlled.run(scheduler)) {
      ++found.traces;
      ++found.outcomes[controlled.outcome()];
    }
  } while (scheduler.next());
  found.complete = true;
  found.whole = !scheduler.cut();
  return found;
}

}  // namespace litmusfuzz::executor
