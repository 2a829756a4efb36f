#include "control.h"

#include <algorithm>
#include <utility>

#include "backend.h"
#include "copy.h"

namespace litmusfuzz::executor {
namespace {

bool truth(const Node& node, const Tensor& predicate) {
  return node.backend ? node.backend->truth(predicate) : *predicate.as<uint8_t>();
}

}  // namespace

std::unique_ptr<Control> Control::make(const Program& program, Frame& frame, uint32_t number) {
  const Node& node = frame.node(number);
  if (node.kind == Kind::kIf) return std::make_unique<Branch>(program, frame, node);
  if (node.kind == Kind::kCall) return std::make_unique<Call>(program, frame, node);
  return std::make_unique<Loop>(program, frame, node);
}

Control::Control(const Program& program, Frame& frame, const Node& node)
    : program_(program), frame_(frame), node_(node), left_(node.results) {}

std::unique_ptr<Frame> Control::open(uint32_t which, uint32_t iteration,
                                     const std::vector<Tensor>& given, Tasks& tasks) {
  const uint64_t event =
      frame_.first_event + node_.first_event + first_event_of(program_, node_, which, iteration);
  auto frame =
      std::make_unique<Frame>(frame_.copy, program_, node_.bodies[which], frame_.run, event);
  frame->around = this;
  frame->iteration = iteration;
  frame->which = which;
  tasks.push({Task::Sort::kStart, frame.get()});
  for (uint32_t k = 0; k < given.size(); ++k) {
    if (given[k]) tasks.push({Task::Sort::kArrive, frame.get(), k, given[k]});
  }
  return frame;
}

void Control::leave(uint32_t place, Tensor value, Tasks& tasks) {
  if (node_.late && !over_) {
    held_.emplace_back(place, std::move(value));
  } else {
    deliver(place, std::move(value), tasks);
  }
}

void Control::deliver(uint32_t place, Tensor value, Tasks& tasks) {
  tasks.push({Task::Sort::kArrive, &frame_, node_.slot + 1 + place, std::move(value)});
  if (--left_ == 0 && ready_with_results()) {
    tasks.push({Task::Sort::kArrive, &frame_, node_.slot});
  }
  finish_if_all_left(tasks);
}

void Control::finish(Tasks& tasks) {
  over_ = true;
  if (!ready_with_results()) tasks.push({Task::Sort::kArrive, &frame_, node_.slot});
  if (held_.empty()) finish_if_all_left(tasks);
  for (auto& [place, value] : std::exchange(held_, {})) deliver(place, std::move(value), tasks);
}

void Control::finish_if_all_left(Tasks& tasks) {
  if (!over_ || left_) return;
  tasks.push({Task::Sort::kArrive, &frame_, node_.slot + 1 + node_.results});
  tasks.push({Task::Sort::kFinish, &frame_});
}

bool Control::ready_with_results() const {
  // Without results, a mutant too has nothing earlier to go by.
  const bool early = program_.broken(Defect::kEarlyReturn) && node_.results > 0;
  return node_.kind != Kind::kCall || early;
}

// --- conditionals ---------------------------------------------------------------

Branch::Branch(const Program& program, Frame& frame, const Node& node)
    : Control(program, frame, node), arguments_(node.arguments.size()) {}

void Branch::begin(Tasks& tasks) {
  const std::lock_guard guard(lock_);
  const bool predicate = truth(node_, frame_.slots[node_.inputs[0]]);
  taken_ = open(predicate ? 0 : 1, 0, arguments_, tasks);
}

void Branch::argument(uint32_t place, Tensor value, Tasks& tasks) {
  const std::lock_guard guard(lock_);
  if (taken_) tasks.push({Task::Sort::kArrive, taken_.get(), place, value});
  arguments_[place] = std::move(value);
}

void Branch::result(const Frame&, uint32_t place, Tensor value, Tasks& tasks) {
  const std::lock_guard guard(lock_);
  leave(place, std::move(value), tasks);
}

void Branch::over(const Frame&, Tasks& tasks) {
  const std::lock_guard guard(lock_);
  finish(tasks);
}

// --- calls ----------------------------------------------------------------------

Call::Call(const Program& program, Frame& frame, const Node& node)
    : Control(program, frame, node), arguments_(node.arguments.size()) {}

bool Call::unused() const {
  for (uint32_t k = 1; k <= node_.results; ++k) {
    const Slot& slot = frame_.body.slots[node_.slot + k];
    const bool shown =
        std::any_of(program_.observed.begin(), program_.observed.end(), [&](const Observed& each) {
          return !frame_.around && each.run == frame_.run && each.slot == node_.slot + k;
        });
    if (shown || !slot.edges.empty() || !slot.results.empty()) return false;
  }
  return true;
}

void Call::begin(Tasks& tasks) {
  const std::lock_guard guard(lock_);
  if (program_.broken(Defect::kPrunedCall) && unused()) {
    for (uint32_t k = 0; k < node_.results; ++k) leave(k, {}, tasks);
    return finish(tasks);
  }
  body_ = open(0, 0, arguments_, tasks);
}

void Call::argument(uint32_t place, Tensor value, Tasks& tasks) {
  const std::lock_guard guard(lock_);
  if (body_) tasks.push({Task::Sort::kArrive, body_.get(), place, value});
  arguments_[place] = std::move(value);
}

void Call::result(const Frame&, uint32_t place, Tensor value, Tasks& tasks) {
  const std::lock_guard guard(lock_);
  leave(place, std::move(value), tasks);
}

void Call::over(const Frame&, Tasks& tasks) {
  const std::lock_guard guard(lock_);
  finish(tasks);
}

// --- loops ----------------------------------------------------------------------

Loop::Loop(const Program& program, Frame& frame, const Node& node)
    : Control(program, frame, node), taken_(node.arguments.size() - node.carried) {
  following(0);
}

Loop::Iteration& Loop::following(uint32_t number) {
  if (number == iterations_.size()) {
    Iteration& added = iterations_.emplace_back();
    added.arguments.resize(node_.carried);
    added.arguments.insert(added.arguments.end(), taken_.begin(), taken_.end());
  }
  return iterations_[number];
}

void Loop::begin(Tasks& tasks) {
  const std::lock_guard guard(lock_);
  begun_ = true;
  advance(tasks);
}

void Loop::argument(uint32_t place, Tensor value, Tasks& tasks) {
  const std::lock_guard guard(lock_);
  if (place < node_.carried) {
    arrive(iterations_[0], place, std::move(value), tasks);
  } else {
    taken_[place - node_.carried] = value;
    for (Iteration& each : iterations_) arrive(each, place, value, tasks);
  }
  advance(tasks);
}

void Loop::arrive(Iteration& iteration, uint32_t place, Tensor value, Tasks& tasks) {
  for (const auto& frame : {iteration.condition.get(), iteration.body.get()}) {
    if (frame) tasks.push({Task::Sort::kArrive, frame, place, shown(*frame, place, value)});
  }
  if (place < node_.carried && iteration.tested && !iteration.goes_on) leave(place, value, tasks);
  iteration.arguments[place] = std::move(value);
}

void Loop::result(const Frame& frame, uint32_t place, Tensor value, Tasks& tasks) {
  const std::lock_guard guard(lock_);
  if (frame.which == 1 && held_early(frame, place, value)) {
    // A mutant has begun the body too early.
  } else if (frame.which == 1) {
    arrive(following(frame.iteration + 1), place, std::move(value), tasks);
  } else {
    Iteration& iteration = iterations_[frame.iteration];
    iteration.tested = true;
    iteration.goes_on = truth(node_, value);
    for (uint32_t k = 0; !iteration.goes_on && k < node_.carried; ++k) {
      if (iteration.arguments[k]) leave(k, iteration.arguments[k], tasks);
    }
    for (auto& [k, each] : std::exchange(early_, {})) {
      if (iteration.goes_on) arrive(following(frame.iteration + 1), k, std::move(each), tasks);
    }
  }
  advance(tasks);
}

void Loop::over(const Frame& frame, Tasks& tasks) {
  const std::lock_guard guard(lock_);
  Iteration& iteration = iterations_[frame.iteration];
  (frame.which ? iteration.body_over : iteration.condition_over) = true;
  advance(tasks);
}

std::vector<Tensor> Loop::arguments_of(uint32_t iteration) const {
  std::vector<Tensor> given = iterations_[iteration].arguments;
  if (!program_.broken(Defect::kOldFrame)) return given;
  for (uint32_t k = 0; k < node_.carried; ++k) {
    if (given[k]) given[k] = old_value(iteration, k, given[k]);
  }
  return given;
}

Tensor Loop::shown(const Frame& frame, uint32_t place, const Tensor& value) const {
  const bool old = program_.broken(Defect::kOldFrame) && frame.which == 1;
  return old ? old_value(frame.iteration, place, value) : value;
}

/// Of all but the counter, without which the loop would not end.
Tensor Loop::old_value(uint32_t iteration, uint32_t place, const Tensor& value) const {
  if (iteration == 0 || place == 0 || place >= node_.carried) return value;
  const Tensor& before = iterations_[iteration - 1].arguments[place];
  return before ? before : value;
}

/// Holds the values of a body that began before its condition, which may be false.
bool Loop::held_early(const Frame& frame, uint32_t place, Tensor& value) {
  const Iteration& iteration = iterations_[frame.iteration];
  if (!program_.broken(Defect::kEarlyBody) || (iteration.tested && iteration.goes_on)) return false;
  if (!iteration.tested) early_.emplace_back(place, std::move(value));
  return true;
}

bool Loop::complete(const Iteration& iteration) const {
  return std::all_of(iteration.arguments.begin(), iteration.arguments.end(),
                     [](const Tensor& each) { return bool(each); });
}

void Loop::advance(Tasks& tasks) {
  const size_t before = over_count_;
  while (over_count_ < iterations_.size() && iterations_[over_count_].over()) ++over_count_;
  for (uint32_t n = 0; n < iterations_.size(); ++n) {
    Iteration& each = iterations_[n];
    // The window: nothing of this iteration, its condition and exits included,
    // before one that is `parallel` iterations earlier is over.
    const bool in_window = n < over_count_ + node_.parallel || program_.broken(Defect::kNoWindow);
    const bool may_begin =
        begun_ && in_window && each.arguments[0] && (!node_.gathers || complete(each));
    if (!each.condition && may_begin) each.condition = open(0, n, each.arguments, tasks);
    const bool works = each.tested && each.goes_on && (!node_.gathers || each.condition_over);
    const bool early = program_.broken(Defect::kEarlyBody) && each.condition && complete(each);
    if (!each.body && (works || early)) each.body = open(1, n, arguments_of(n), tasks);
  }
  // Only the last iteration does not go on.
  const bool ends = over_count_ == iterations_.size() && !iterations_.back().goes_on;
  if (ends && over_count_ > before) finish(tasks);
}

}  // namespace litmusfuzz::executor
