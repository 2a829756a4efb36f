#include "controlled.h"

#include <algorithm>

namespace litmusfuzz::executor {

Step step_of(const Event& event) {
  const Node& node = event.frame->node(event.node);
  const uint64_t id = event.frame->first_event + node.first_event + event.step;
  const auto reads = static_cast<uint32_t>(node.resources.size());
  if (node.kind == Kind::kSplitUpdate) {
    const uint32_t resource = node.resources[event.step % reads];
    return {id, {resource, resource}, event.step < reads};
  }
  const bool looks = node.kind == Kind::kRead || node.kind == Kind::kSize;
  return {id, {node.resources[0], node.resources.back()}, looks};
}

std::span<const Event> Controlled::enabled() {
  if (!program_.blocks) return ready_;
  enabled_.clear();
  for (const Event& each : ready_) {
    if (copy_.possible(each)) enabled_.push_back(each);
  }
  return enabled_;
}

void Controlled::finish_transfers() {
  while (!transfers_.empty()) {
    const Event event = transfers_.back();
    transfers_.pop_back();
    copy_.perform(event);
  }
}

bool Controlled::run(Strategy& strategy) {
  ready_.clear();
  transfers_.clear();
  copy_.reset();
  copy_.start();
  finish_transfers();
  for (auto events = enabled(); !events.empty() && !copy_.failed(); events = enabled()) {
    const std::optional<size_t> chosen = strategy.choose(events);
    if (!chosen) return false;
    const Event event = events[*chosen];
    // Without blocking the two lists are one; else the place must be looked up.
    size_t place = *chosen;
    while (ready_[place].frame != event.frame || ready_[place].node != event.node ||
           ready_[place].step != event.step) {
      ++place;
    }
    ready_[place] = ready_.back();
    ready_.pop_back();
    copy_.perform(event);
    finish_transfers();
  }
  strategy.end();
  return true;
}

uint64_t digest_of(std::span<const Event> events) {
  uint64_t sum = 0;
  for (const Event& each : events) {
    uint64_t hash = (step_of(each).id + 1) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
    sum += hash ^ hash >> 32;
  }
  return sum;
}

std::optional<size_t> Recorder::choose(std::span<const Event> enabled) {
  const std::optional<size_t> index = inner_.choose(enabled);
  if (index) {
    choices_.push_back({static_cast<uint32_t>(*index), static_cast<uint32_t>(enabled.size()),
                        digest_of(enabled)});
  }
  return index;
}

std::optional<size_t> Replay::choose(std::span<const Event> enabled) {
  if (made_ == choices_.size()) return std::nullopt;
  const Choice& choice = choices_[made_];
  if (choice.count != enabled.size() || choice.index >= choice.count ||
      choice.digest != digest_of(enabled)) {
    return std::nullopt;
  }
  ++made_;
  return choice.index;
}

std::optional<size_t> Forced::choose(std::span<const Event> enabled) {
  if (made_ == order_.size()) return std::nullopt;
  for (size_t i = 0; i < enabled.size(); ++i) {
    if (step_of(enabled[i]).id != order_[made_]) continue;
    ++made_;
    return i;
  }
  return std::nullopt;
}

}  // namespace litmusfuzz::executor
