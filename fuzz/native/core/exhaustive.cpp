#include "exhaustive.h"

#include <algorithm>

namespace litmusfuzz::executor {
namespace {

bool contains(const std::vector<Step>& steps, const Step& step) {
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Step& each) { return each.id == step.id; });
}

/// The first event from `from` on that is not asleep; the number of events if none is.
size_t first_awake(const std::vector<Step>& enabled, const std::vector<Step>& asleep, size_t from) {
  while (from < enabled.size() && contains(asleep, enabled[from])) ++from;
  return from;
}

}  // namespace

Exhaustive::Exhaustive(const Program& program) : total_(program.resources.size()) {
  // How often each body may run, from the outside in; a body stands after those inside.
  std::vector<int64_t> times(program.bodies.size());
  for (const Run& run : program.runs) ++times[run.body];
  for (size_t b = program.bodies.size(); b-- > 0;) {
    for (const Node& node : program.bodies[b].nodes) {
      for (const uint32_t inner : node.bodies) {
        times[inner] += times[b] * (node.kind == Kind::kWhile ? node.bound + 1 : 1);
      }
      const bool reads_only = node.reads_only(0);
      for (const uint32_t resource : node.resources) {
        if (reads_only) total_[resource].reads_only += times[b];
        if (!reads_only || node.kind == Kind::kSplitUpdate) {
          // A take from an accumulator joins its line, then takes the sum.
          total_[resource].changes += times[b] * (node.kind == Kind::kTakeSum ? 2 : node.parts);
        }
      }
      for (const uint32_t resource : node.written) total_[resource].changes += times[b];
    }
  }
  left_ = total_;
}

/// True if an event that the step depends on may still come.
bool Exhaustive::may_depend(const Step& step) const {
  return std::any_of(step.resources.begin(), step.resources.end(), [&](uint32_t resource) {
    const Left& left = left_[resource];
    return step.reads_only ? left.changes > 0 : left.changes + left.reads_only > 1;
  });
}

void Exhaustive::take(const Step& step) {
  for (const uint32_t resource : step.resources) {
    Left& left = left_[resource];
    --(step.reads_only ? left.reads_only : left.changes);
  }
}

Exhaustive::Level Exhaustive::reach(const Choices& choices) const {
  Level level;
  for (const Pending& each : choices) level.enabled.push_back(step_of(each.event));
  if (depth_ > 0) {
    const Level& above = levels_[depth_ - 1];
    const Step& last = above.enabled[above.chosen];
    for (const Step& each : above.asleep) {
      if (!each.depends_on(last)) level.asleep.push_back(each);
    }
  }
  for (size_t i = 0; i < level.enabled.size(); ++i) {
    if (may_depend(level.enabled[i])) continue;
    level.only = true;
    // Asleep: every continuation is equivalent to one explored before.
    level.chosen = contains(level.asleep, level.enabled[i]) ? level.enabled.size() : i;
    return level;
  }
  level.chosen = first_awake(level.enabled, level.asleep, 0);
  return level;
}

std::optional<size_t> Exhaustive::choose(const Choices& choices) {
  if (depth_ == levels_.size()) {
    Level level = reach(choices);
    if (level.chosen == level.enabled.size()) return std::nullopt;  // all were tried before
    levels_.push_back(std::move(level));
  }
  const Level& level = levels_[depth_++];
  take(level.enabled[level.chosen]);
  return level.chosen;
}

bool Exhaustive::next() {
  depth_ = 0;
  left_ = total_;
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (!level.only) {
      level.asleep.push_back(level.enabled[level.chosen]);
      level.chosen = first_awake(level.enabled, level.asleep, level.chosen);
      if (level.chosen < level.enabled.size()) return true;
    }
    levels_.pop_back();
  }
  return false;
}

Exhausted exhaust(const Program& program, uint64_t limit) {
  Exhausted found;
  Controlled controlled(program);
  Exhaustive scheduler(program);
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
