#include "controlled.h"

namespace litmusfuzz::executor {

Step step_of(const Event& event) {
  const Node& node = event.frame->node(event.node);
  const uint64_t id = event.frame->first_event + node.first_event + event.step;
  return {id, event.frame->touched(node, event.step), node.reads_only(event.step)};
}

// --- enabled events --------------------------------------------------------------

void Choices::clear() {
  for (const Pending& each : events_) places_[each.ticket] = kNowhere;
  events_.clear();
}

void Choices::add(Event event, Ticket ticket) {
  if (ticket >= places_.size()) places_.resize(ticket + 1, kNowhere);
  places_[ticket] = static_cast<uint32_t>(events_.size());
  events_.push_back({event, ticket});
}

void Choices::remove(size_t place) {
  const Ticket removed = events_[place].ticket;
  const Pending& last = events_.back();
  places_[last.ticket] = static_cast<uint32_t>(place);
  places_[removed] = kNowhere;  // second, since the two may be one
  events_[place] = last;
  events_.pop_back();
}

Ticket Controlled::new_ticket() {
  if (free_.empty()) return tickets_++;
  const Ticket ticket = free_.back();
  free_.pop_back();
  return ticket;
}

void Controlled::enable(Event event, Ticket ticket) {
  choices_.add(event, ticket);
  scheduler_->enabled(ticket);
}

void Controlled::ready(Event event) {
  const Ticket ticket = new_ticket();
  scheduler_->ready(event, ticket);
  if (program_.blocks) {
    const Frame& frame = *event.frame;
    const uint32_t resource = frame.touched(frame.node(event.node), event.step)[0];
    if (blocks(resource)) contenders_[resource].push_back({event, ticket});
    if (!copy_.possible(event)) return;
  }
  enable(event, ticket);
}

/// After an event on a queue or mutex: updates which others on it are enabled.
void Controlled::reconsider(uint32_t resource) {
  for (const Pending& each : contenders_[resource]) {
    const bool possible = copy_.possible(each.event);
    if (possible == choices_.contains(each.ticket)) continue;
    if (possible) {
      enable(each.event, each.ticket);
    } else {
      choices_.remove(choices_.place_of(each.ticket));
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
  tickets_ = 0;
  transfers_.clear();
  program_.begin_execution();
  copy_.reset();
  scheduler.begin();
  copy_.start();
  finish_transfers();
  while (!choices_.empty() && !copy_.failed()) {
    const std::optional<size_t> chosen = scheduler.choose(choices_);
    if (!chosen) return false;
    const Pending next = choices_[*chosen];
    choices_.remove(*chosen);
    free_.push_back(next.ticket);
    if (!program_.blocks) {
      copy_.perform(next.event);
      finish_transfers();
      continue;
    }
    const Frame& frame = *next.event.frame;
    const uint32_t resource = frame.touched(frame.node(next.event.node), next.event.step)[0];
    if (blocks(resource)) {
      std::erase_if(contenders_[resource],
                    [&](const Pending& each) { return each.ticket == next.ticket; });
    }
    copy_.perform(next.event);
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

uint64_t digest_of(const Choices& choices) {
  uint64_t sum = 0;
  for (const Pending& each : choices) {
    uint64_t hash = (step_of(each.event).id + 1) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
    sum += hash ^ hash >> 32;
  }
  return sum;
}

void Recorder::begin() {
  choices_.clear();
  inner_.begin();
}

std::optional<size_t> Recorder::choose(const Choices& choices) {
  const std::optional<size_t> index = inner_.choose(choices);
  if (index) {
    choices_.push_back(
        {static_cast<uint32_t>(*index), static_cast<uint32_t>(choices.size()), digest_of(choices)});
  }
  return index;
}

std::optional<size_t> Replay::choose(const Choices& choices) {
  if (made_ == choices_.size()) return std::nullopt;
  const Choice& choice = choices_[made_];
  if (choice.count != choices.size() || choice.index >= choice.count ||
      choice.digest != digest_of(choices)) {
    return std::nullopt;
  }
  ++made_;
  return choice.index;
}

std::optional<size_t> Forced::choose(const Choices& choices) {
  if (made_ == order_.size()) return std::nullopt;
  for (size_t place = 0; place < choices.size(); ++place) {
    if (step_of(choices[place].event).id != order_[made_]) continue;
    ++made_;
    return place;
  }
  return std::nullopt;
}

}  // namespace litmusfuzz::executor
