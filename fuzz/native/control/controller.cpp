#include "controller.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace litmusfuzz::control {
namespace {

Controller& of(void* controller) { return *static_cast<Controller*>(controller); }

/// Writes the name of an op instance, the same in all executions: run, node and instance.
void write_task(uint32_t run, const LitmusFuzzEvent& event, std::string& name) {
  name.assign(std::to_string(run)).append(1, '|').append(event.node).append(1, '|');
  if (event.frame != 0 || event.iteration != 0) {
    name.append(std::to_string(event.frame)).append(1, '.').append(std::to_string(event.iteration));
  }
  name.append(1, '|');
}

/// What a part needs to begin, and has until it ends.
constexpr char kThreads[] = ".threads";

}  // namespace

thread_local Controller::Stack* Controller::current = nullptr;

Controller::Controller()
    : hooks_{LITMUSFUZZ_CONTROL_VERSION,
             this,
             [](void* self, int64_t step_id) { return of(self).arrive(step_id); },
             [](void* self, int64_t) { of(self).begun(); },
             [](void* self, int64_t step_id) { of(self).run_ended(step_id); },
             [](void* self, int64_t step_id, LitmusFuzzCall call, void* data) -> int {
               return of(self).post(step_id, {call, data});
             },
             [](void* self, const LitmusFuzzEvent* event, LitmusFuzzCall call, void* data) -> int {
               return of(self).decide(*event, {call, data});
             },
             [](void* self, const LitmusFuzzEvent* event) -> int { return of(self).stop(*event); },
             [](void* self, int64_t step_id, uint64_t mutex, int shared) -> int {
               return of(self).acquire(step_id, mutex, shared != 0);
             },
             [](void* self, uint64_t mutex) { of(self).release(mutex); },
             [](void* self, int64_t step_id, int change) { of(self).outside(step_id, change); },
             [](void* self, int64_t step_id) { of(self).fail(step_id); },
             [](void* self, const LitmusFuzzEvent* event, LitmusFuzzCall call, void* data) -> int {
               return of(self).share(*event, {call, data});
             },
             [](void* self, int64_t step_id) -> int { return of(self).has_parts(step_id); },
             [](void* self, const LitmusFuzzEvent* event) -> int { return of(self).join(*event); },
             [](void*) -> int {
               const bool does = current != nullptr && current->task && current->task->of;
               return does ? static_cast<int>(current->task->thread) : -1;
             }} {}

void Controller::watch(const std::vector<std::string>& resources) {
  watched_.clear();
  for (const std::string& each : resources) {
    const uint32_t number = resource(each);
    if (number >= watched_.size()) watched_.resize(number + 1);
    watched_[number] = true;
  }
}

// --- names -------------------------------------------------------------------------

uint64_t Controller::number(const std::string& name) {
  const auto [found, is_new] = numbers_.try_emplace(name, names_.size());
  if (is_new) {
    names_.push_back(name);
    events_.emplace_back();
  }
  return found->second;
}

uint32_t Controller::resource(const std::string& name) {
  const auto [found, is_new] =
      resources_.try_emplace(name, static_cast<uint32_t>(resource_names_.size()));
  if (is_new) resource_names_.push_back(name);
  return found->second;
}

std::vector<std::string> Controller::touched(uint64_t id) const {
  std::vector<std::string> names;
  const auto* const resources = events_.at(id).resources;
  if (resources == nullptr) return names;
  for (const uint32_t each : *resources) names.push_back(resource_names_[each]);
  return names;
}

std::vector<std::string> Controller::enabled() const {
  std::vector<std::string> names;
  for (const Ticket each : choices_) names.push_back(names_[waiting_[each].id]);
  return names;
}

Step Controller::step(Ticket ticket) const {
  const uint64_t id = waiting_[ticket].id;
  const Known& known = events_[id];
  return {id, *known.resources, known.reads_only, known.acquires, known.task};
}

/// FNV-1a of its name.
uint64_t Controller::fingerprint(Ticket ticket) const {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char each : names_[waiting_[ticket].id]) {
    hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3u;
  }
  return hash;
}

// --- what the runtime calls --------------------------------------------------------------

/// The run with a step of that number, if it is controlled; else null.
Controller::Execution* Controller::run_of(int64_t step_id) {
  if (!active_) return nullptr;
  const auto found = std::find_if(runs_.begin(), runs_.end(),
                                  [&](const Execution& run) { return run.step_id == step_id; });
  return found == runs_.end() ? nullptr : &*found;
}

uint64_t Controller::arrive(int64_t step_id) {
  const std::lock_guard guard(lock_);
  if (!active_) return 0;
  if (run_of(step_id) == nullptr) runs_.push_back({step_id, expected_});
  ++run_of(step_id)->executors;
  return execution_;
}

void Controller::begun() {
  {
    const std::lock_guard guard(lock_);
    ++arrived_;
    changed_.notify_all();
    if (arrived_ != awaited_) return;
  }
  try {
    proceed(false);
  } catch (...) {  // must not pass through the runtime
    std::unique_lock guard(lock_);
    error_ = std::current_exception();
    let_go(guard);
  }
}

void Controller::run_ended(int64_t step_id) {
  const std::lock_guard guard(lock_);
  Execution* const run = run_of(step_id);
  if (run == nullptr || --run->executors > 0) return;
  news_ = true;
  ended_.push_back(run->number);
}

bool Controller::post(int64_t step_id, Called called) {
  const std::lock_guard guard(lock_);
  if (run_of(step_id) == nullptr) return false;
  closures_.push_back(called);
  changed_.notify_all();
  return true;
}

std::optional<Controller::Waiting> Controller::read(uint32_t run, const LitmusFuzzEvent& event,
                                                    bool of_part) {
  const auto decides = [&](const char* name) {
    if (watched_.empty()) return true;
    const auto found = resources_.find(name);
    return found != resources_.end() && found->second < watched_.size() && watched_[found->second];
  };
  if (std::none_of(event.resources, event.resources + event.resource_count, decides)) return {};
  write_task(run, event, name_);
  const uint64_t task = number(name_);
  uint64_t id = number(name_ += event.point);
  // A point that an instance passes several times.
  if (id >= times_.size()) times_.resize(names_.size());
  if (const uint32_t times = times_[id]++) id = number(name_ += '|' + std::to_string(times));
  Known& known = events_[id];
  touched_.clear();
  for (uint32_t i = 0; i < event.resource_count; ++i) {
    const uint32_t each = resource(event.resources[i]);
    if (std::find(touched_.begin(), touched_.end(), each) == touched_.end()) {
      touched_.push_back(each);
    }
  }
  // Any event of a part may be its last one, so that a thread is free.
  if (of_part) touched_.push_back(resource(kThreads));
  // A handle may stand for other resources in another execution. What schedulers remember of
  // this event then covers both.
  if (known.resources != nullptr) {
    for (const uint32_t each : *known.resources) {
      if (std::find(touched_.begin(), touched_.end(), each) == touched_.end()) {
        touched_.push_back(each);
      }
    }
  }
  std::sort(touched_.begin(), touched_.end());
  if (known.resources == nullptr || *known.resources != touched_) {
    known.resources = &*sets_.insert(touched_).first;
  }
  known.task = task;
  known.reads_only = event.reads_only != 0;
  const auto effect = static_cast<LitmusFuzzEffect>(event.effect);
  known.acquires = effect == LITMUSFUZZ_ACQUIRES;
  return Waiting{id, {}, nullptr, effect, event.mutex, event.shared != 0, nullptr};
}

bool Controller::decide(const LitmusFuzzEvent& event, Called called) {
  const std::lock_guard guard(lock_);
  const Execution* const run = run_of(event.step_id);
  if (run == nullptr) return false;
  if (std::optional<Waiting> waiting = read(run->number, event, false)) {
    waiting->called = called;
    fresh_.push_back(*waiting);
  } else {
    closures_.push_back(called);
  }
  changed_.notify_all();
  return true;
}

bool Controller::stop(const LitmusFuzzEvent& event) {
  Stack* const here = current;
  {
    const std::lock_guard guard(lock_);
    const Execution* const run = run_of(event.step_id);
    if (here == nullptr || run == nullptr) return false;
    std::optional<Waiting> waiting = read(run->number, event, here->task->of != nullptr);
    if (!waiting) return false;
    waiting->stopped = here;
    fresh_.push_back(*waiting);
  }
  here->fiber.stop();
  return true;
}

bool Controller::share(const LitmusFuzzEvent& event, Called called) {
  const std::lock_guard guard(lock_);
  const Execution* const run = run_of(event.step_id);
  if (current == nullptr || run == nullptr || busy_.empty()) return false;
  std::optional<Waiting> waiting = read(run->number, event, true);
  if (!waiting) return false;
  Known& known = events_[waiting->id];
  known.acquires = true;
  known.reads_only = false;  // whether another part can begin depends on it
  waiting->called = called;
  waiting->part = std::make_shared<Task>();
  waiting->part->of = current->task;
  for (Task* each = current->task.get(); each != nullptr; each = each->of.get()) ++each->parts;
  fresh_.push_back(std::move(*waiting));
  return true;
}

bool Controller::has_parts(int64_t step_id) {
  const std::lock_guard guard(lock_);
  return current != nullptr && run_of(step_id) != nullptr && current->task->parts > 0;
}

bool Controller::join(const LitmusFuzzEvent& event) {
  Stack* const here = current;
  {
    const std::lock_guard guard(lock_);
    const Execution* const run = run_of(event.step_id);
    if (here == nullptr || run == nullptr || here->task->parts == 0) return false;
    std::optional<Waiting> waiting = read(run->number, event, here->task->of != nullptr);
    if (!waiting) return false;
    waiting->stopped = here;
    here->task->joins = std::move(waiting);  // not yet ready
  }
  here->fiber.stop();
  return true;
}

size_t Controller::depth(const Task* task) {
  size_t depth = 0;
  for (; task != nullptr; task = task->of.get()) ++depth;
  return depth;
}

void Controller::over(const Task& task) {
  if (!task.of) return;
  busy_[task.thread] = false;
  for (Task* each = task.of.get(); each != nullptr; each = each->of.get()) {
    if (--each->parts > 0 || !each->joins) continue;
    fresh_.push_back(*each->joins);
    each->joins.reset();
  }
}

bool Controller::acquire(int64_t step_id, uint64_t mutex, bool shared) {
  const std::lock_guard guard(lock_);
  if (current == nullptr || run_of(step_id) == nullptr) return false;
  const auto found = held_.find(mutex);
  if (found != held_.end() && !(shared && found->second > 0)) return false;
  held_[mutex] = shared ? held_[mutex] + 1 : -1;
  return true;
}

void Controller::release(uint64_t mutex) {
  const std::lock_guard guard(lock_);
  const auto found = held_.find(mutex);
  if (found != held_.end() && --found->second <= 0) held_.erase(found);
}

void Controller::outside(int64_t step_id, int change) {
  const std::lock_guard guard(lock_);
  // What was let go at the end of an execution may come back in the next one.
  if (run_of(step_id) == nullptr) return;
  outside_ += change;
  changed_.notify_all();
}

void Controller::fail(int64_t step_id) {
  const std::lock_guard guard(lock_);
  if (run_of(step_id) != nullptr) failed_ = true;
}

// --- an execution ------------------------------------------------------------------------

bool Controller::run(Scheduler& scheduler) {
  scheduler_ = &scheduler;
  execute_();
  scheduler_ = nullptr;
  return !abandoned_;
}

void Controller::begin() {
  const std::lock_guard guard(lock_);
  if (scheduler_ == nullptr) throw std::logic_error("no scheduler");
  active_ = true;
  ++execution_;
  failed_ = news_ = abandoned_ = false;
  ended_.clear();
  scheduled_ = true;
  outside_ = 0;
  arrived_ = awaited_ = 0;
  runs_.clear();
  returned_.clear();
  closures_.clear();
  fresh_.clear();
  waiting_.clear();
  free_.clear();
  contenders_.clear();
  held_.clear();
  std::fill(times_.begin(), times_.end(), 0);
  std::fill(busy_.begin(), busy_.end(), false);
  choices_.clear();
  chosen_.clear();
  scheduler_->begin(*this);
}

void Controller::proceed_when_begun(uint32_t executors) {
  const std::lock_guard guard(lock_);
  awaited_ = executors;
}

void Controller::expect(uint32_t run) {
  const std::lock_guard guard(lock_);
  expected_ = run;
}

void Controller::wait_for(uint32_t executors) {
  std::unique_lock guard(lock_);
  changed_.wait(guard, [&] {
    return arrived_ >= executors ||
           std::find(returned_.begin(), returned_.end(), expected_) != returned_.end();
  });
}

void Controller::returned(uint32_t run) {
  const std::lock_guard guard(lock_);
  returned_.push_back(run);
  changed_.notify_all();
}

void Controller::settle(std::unique_lock<std::mutex>& guard) {
  for (;;) {
    changed_.wait(guard, [&] { return !closures_.empty() || outside_ == 0; });
    if (closures_.empty()) return;
    const Called called = closures_.front();
    closures_.pop_front();
    guard.unlock();
    called.call(called.data);
    guard.lock();
  }
}

bool Controller::possible(const Waiting& event) const {
  if (event.part) return std::find(busy_.begin(), busy_.end(), false) != busy_.end();
  if (event.effect != LITMUSFUZZ_ACQUIRES) return true;
  const auto found = held_.find(event.mutex);
  return found == held_.end() || (event.shared && found->second > 0);
}

void Controller::resume(const Waiting& event, std::unique_lock<std::mutex>& guard) {
  Stack* stack = event.stopped;
  if (stack == nullptr) {
    if (idle_.empty()) idle_.push_back(stacks_.emplace_back(std::make_unique<Stack>()).get());
    stack = idle_.back();
    idle_.pop_back();
    stack->task = event.part ? event.part : std::make_shared<Task>();
    stack->fiber.begin(event.called.call, event.called.data);
  }
  guard.unlock();
  current = stack;
  const bool ended = stack->fiber.resume();
  current = nullptr;
  guard.lock();
  if (!ended) return;
  over(*std::exchange(stack->task, nullptr));
  idle_.push_back(stack);
}

void Controller::announce() {
  // The same order in all executions, whatever the order in which the runtime found them ready.
  std::sort(fresh_.begin(), fresh_.end(),
            [&](const Waiting& a, const Waiting& b) { return names_[a.id] < names_[b.id]; });
  for (const Waiting& each : fresh_) {
    Ticket ticket = static_cast<Ticket>(waiting_.size());
    if (free_.empty()) {
      waiting_.push_back(each);
    } else {
      ticket = free_.back();
      free_.pop_back();
      waiting_[ticket] = each;
    }
    if (scheduled_) scheduler_->ready(ticket);
    if (each.effect == LITMUSFUZZ_ACQUIRES || each.part) {
      contenders_.push_back(ticket);  // enabled below
    } else {
      choices_.add(ticket);
      if (scheduled_) scheduler_->enabled(ticket);
    }
  }
  fresh_.clear();
  for (const Ticket each : contenders_) {
    const bool now = possible(waiting_[each]);
    if (now == choices_.contains(each)) continue;
    if (now) {
      choices_.add(each);
      if (scheduled_) scheduler_->enabled(each);
    } else {
      choices_.remove(choices_.place_of(each));
    }
  }
}

void Controller::perform(size_t place, std::unique_lock<std::mutex>& guard) {
  const Ticket ticket = choices_[place];
  const Waiting event = waiting_[ticket];
  if (scheduled_) chosen_.push_back({event.id, static_cast<uint32_t>(choices_.size())});
  choices_.remove(place);
  free_.push_back(ticket);
  if (event.part) {
    std::erase(contenders_, ticket);
    const auto free = std::find(busy_.begin(), busy_.end(), false);
    event.part->thread = static_cast<size_t>(free - busy_.begin());
    *free = true;
  } else if (event.effect == LITMUSFUZZ_ACQUIRES) {
    std::erase(contenders_, ticket);
    held_[event.mutex] = event.shared ? held_[event.mutex] + 1 : -1;
  } else if (event.effect == LITMUSFUZZ_RELEASES) {
    held_.erase(event.mutex);
  }
  if (inside_) return resume(event, guard);
  guard.unlock();
  event.called.call(event.called.data);
  guard.lock();
}

void Controller::let_go(std::unique_lock<std::mutex>& guard) {
  scheduled_ = false;
  // What has stopped inside an op goes on, as its locks permit, and its parts are done. All of it
  // is in this thread, so that it must come to its end before a lock, or a part, can be waited for
  // as if nobody controlled it.
  const auto stopped = [&](Ticket each) { return waiting_[each].stopped != nullptr; };
  const auto within = [&](Ticket each) { return stopped(each) || waiting_[each].part; };
  for (;;) {
    announce();
    const auto found = std::find_if(choices_.begin(), choices_.end(), within);
    if (found == choices_.end()) break;
    perform(choices_.place_of(*found), guard);
  }
  active_ = false;
  std::vector<Called> left(closures_.begin(), closures_.end());
  std::vector<Stack*> waiting;  // for each other: now as TensorFlow's threads would
  for (const Ticket each : choices_) left.push_back(waiting_[each].called);
  for (const Ticket each : contenders_) {
    if (choices_.contains(each)) continue;
    if (stopped(each)) {
      waiting.push_back(waiting_[each].stopped);
    } else {
      left.push_back(waiting_[each].called);
    }
  }
  closures_.clear();
  contenders_.clear();
  choices_.clear();
  guard.unlock();
  for (Stack* const each : waiting) {
    each->fiber.resume();
    each->task.reset();
    idle_.push_back(each);
  }
  for (const Called& each : left) each.call(each.data);
  // Parts that had no thread have ended now, and so has what waited for them.
  std::vector<Stack*> joining;
  for (const auto& each : stacks_) {
    if (each->task && each->task->joins) joining.push_back(each.get());
  }
  std::stable_sort(joining.begin(), joining.end(), [](const Stack* a, const Stack* b) {
    return depth(a->task->of.get()) > depth(b->task->of.get());
  });
  for (Stack* const each : joining) {
    each->fiber.resume();
    each->task.reset();
    idle_.push_back(each);
  }
  guard.lock();
}

Standing Controller::proceed(bool stop) {
  std::unique_lock guard(lock_);
  for (;;) {
    settle(guard);
    if (failed_ && scheduled_) {
      scheduler_->end();
      scheduled_ = false;
    }
    if (stop && news_) {
      news_ = false;
      return Standing::kEnded;
    }
    announce();
    if (choices_.empty()) {
      if (scheduled_) scheduler_->end();
      scheduled_ = false;
      const bool over = std::all_of(runs_.begin(), runs_.end(),
                                    [](const Execution& run) { return run.executors == 0; });
      return over ? Standing::kOver : Standing::kBlocked;
    }
    std::optional<size_t> place = 0;
    if (scheduled_) {
      place = scheduler_->choose(choices_);
      if (!place) {
        scheduled_ = false;
        abandoned_ = true;
        where_ = enabled();
        place = 0;
      }
    }
    perform(*place, guard);
  }
}

void Controller::end() {
  std::unique_lock guard(lock_);
  if (active_) let_go(guard);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace litmusfuzz::control
