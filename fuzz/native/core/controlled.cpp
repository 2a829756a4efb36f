#include "controlled.h"

namespace litmusfuzz::executor {

// --- enabled events --------------------------------------------------------------

Step Controlled::step(Ticket ticket) const {
  const Event& event = events_[ticket];
  const Node& node = event.frame->node(event.node);
  const uint64_t task = event.frame->first_event + node.first_event;
  const std::span<const uint32_t> touched = event.frame->touched(node, event.step);
  const bool blocks_here = program_.blocks && !touched.empty() && blocks(touched[0]);
  return {task + event.step, touched, node.reads_only(event.step), blocks_here, task};
}

Ticket Controlled::new_ticket(Event event) {
  if (free_.empty()) {
    events_.push_back(event);
    return static_cast<Ticket>(events_.size() - 1);
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  events_[ticket] = event;
  return ticket;
}

void Controlled::enable(Ticket ticket) {
  choices_.add(ticket);
  scheduler_->enabled(ticket);
}

void Controlled::ready(Event event) {
  const Ticket ticket = new_ticket(event);
  scheduler_->ready(ticket);
  if (program_.blocks) {
    const Frame& frame = *event.frame;
    const uint32_t resource = frame.touched(frame.node(event.node), event.step)[0];
    if (blocks(resource)) contenders_[resource].push_back(ticket);
    if (!copy_.possible(event)) return;
  }
  enable(ticket);
}

/// After an event on a queue or mutex: updates which others on it are enabled.
void Controlled::reconsider(uint32_t resource) {
  for (const Ticket each : contenders_[resource]) {
    const bool possible = copy_.possible(events_[each]);
    if (possible == choices_.contains(each)) continue;
    if (possible) {
      enable(each);
    } else {
      choices_.remove(choices_.place_of(each));
    }
  }
}

void Controlled::finish_transfers() {
  while (!transfers_.empty()) {
    const Event event = transfers_.back();
    transfers_.pop_back();
    copy_.perform(event);
  }
}

bool Controlled::run(Scheduler& scheduler) {
  scheduler_ = &scheduler;
  choices_.clear();
  for (auto& each : contenders_) each.clear();
  free_.clear();
  events_.clear();
  transfers_.clear();
  program_.begin_execution();
  copy_.reset();
  scheduler.begin(*this);
  copy_.start();
  finish_transfers();
  while (!choices_.empty() && !copy_.failed()) {
    const std::optional<size_t> chosen = scheduler.choose(choices_);
    if (!chosen) return false;
    const Ticket next = choices_[*chosen];
    const Event event = events_[next];
    choices_.remove(*chosen);
    free_.push_back(next);
    if (!program_.blocks) {
      copy_.perform(event);
      finish_transfers();
      continue;
    }
    const Frame& frame = *event.frame;
    const uint32_t resource = frame.touched(frame.node(event.node), event.step)[0];
    if (blocks(resource)) std::erase(contenders_[resource], next);
    copy_.perform(event);
    finish_transfers();
    if (blocks(resource)) reconsider(resource);
  }
  if (kMutants) copy_.flush_stores();
  scheduler.end();
  return true;
}

Histogram walk(const Program& program, Scheduler& scheduler, uint64_t count) {
  Histogram seen;
  Controlled controlled(program);
  Row row;
  for (uint64_t i = 0; i < count; ++i) {
    controlled.run(scheduler);
    controlled.read_outcome(row);
    ++seen[row];
  }
  return seen;
}

// --- records -----------------------------------------------------------------------

uint64_t digest_of(const Runtime& runtime, const Choices& choices) {
  uint64_t sum = 0;
  for (const Ticket each : choices) {
    uint64_t hash = (runtime.fingerprint(each) + 1) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
    sum += hash ^ hash >> 32;
  }
  return sum;
}

void Recorder::begin(const Runtime& runtime) {
  runtime_ = &runtime;
  choices_.clear();
  inner_.begin(runtime);
}

std::optional<size_t> Recorder::choose(const Choices& choices) {
  const std::optional<size_t> index = inner_.choose(choices);
  if (index) {
    choices_.push_back({static_cast<uint32_t>(*index), static_cast<uint32_t>(choices.size()),
                        digest_of(*runtime_, choices)});
  }
  return index;
}

void Replay::begin(const Runtime& runtime) {
  runtime_ = &runtime;
  made_ = 0;
}

std::optional<size_t> Replay::choose(const Choices& choices) {
  if (made_ == choices_.size()) return std::nullopt;
  const Choice& choice = choices_[made_];
  if (choice.count != choices.size() || choice.index >= choice.count ||
      choice.digest != digest_of(*runtime_, choices)) {
    return std::nullopt;
  }
  ++made_;
  return choice.index;
}

void Forced::begin(const Runtime& runtime) {
  runtime_ = &runtime;
  made_ = 0;
}

std::optional<size_t> Forced::choose(const Choices& choices) {
  if (made_ == order_.size()) return std::nullopt;
  for (size_t place = 0; place < choices.size(); ++place) {
    if (runtime_->step(choices[place]).id != order_[made_]) continue;
    ++made_;
    return place;
  }
  return std::nullopt;
}

}  // namespace litmusfuzz::executor
