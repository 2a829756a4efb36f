#include "schedulers/uniform.h"

#include <stdexcept>
#include <string>

namespace litmusfuzz::executor {
namespace {

bool branches(const Program& program) {
  for (const Body& body : program.bodies) {
    for (const Node& node : body.nodes) {
      if (!node.bodies.empty()) return true;
    }
  }
  return false;
}

Downset no_events(const Program& program) {
  uint64_t events = 0;
  for (const Run& run : program.runs) events += program.bodies[run.body].events;
  return Downset(events / 64 + 1);
}

void add(Downset& set, uint64_t event) { set[event / 64] |= uint64_t{1} << event % 64; }

/// Visits all downsets depth-first. An execution ends at a downset with a known count;
/// each remaining step starts a new execution.
class Counter final : public Scheduler {
 public:
  Counter(Downset nothing, OrderCounts& counts) : nothing_(std::move(nothing)), counts_(counts) {}

  void begin(const Runtime& runtime) override { runtime_ = &runtime; }

  std::optional<size_t> choose(const Choices& choices) override {
    if (depth_ == levels_.size()) {
      Downset here = reached();
      if (const auto known = counts_.find(here); known != counts_.end()) {
        levels_.back().orders += known->second;
        return std::nullopt;
      }
      Level& level = levels_.emplace_back(std::move(here));
      for (const Ticket each : choices) level.events.push_back(runtime_->step(each).id);
    }
    return levels_[depth_++].next;
  }
  void end() override {
    counts_[reached()] = 1;
    if (!levels_.empty()) levels_.back().orders += 1;
  }
  /// Moves to the next execution; false if there is none.
  bool next() {
    depth_ = 0;
    while (!levels_.empty()) {
      Level& level = levels_.back();
      if (++level.next < level.events.size()) return true;
      const double orders = level.orders;
      counts_[level.done] = orders;
      levels_.pop_back();
      if (!levels_.empty()) levels_.back().orders += orders;
    }
    return false;
  }

 private:
  struct Level {
    explicit Level(Downset its_done) : done(std::move(its_done)) {}
    Downset done;
    std::vector<uint64_t> events = {};  // enabled events
    size_t next = 0;                    // the current one
    double orders = 0;                  // orders counted by way of earlier ones
  };

  Downset reached() const {
    if (levels_.empty()) return nothing_;
    Downset here = levels_.back().done;
    add(here, levels_.back().events[levels_.back().next]);
    return here;
  }

  Downset nothing_;
  OrderCounts& counts_;
  const Runtime* runtime_ = nullptr;
  std::vector<Level> levels_;
  size_t depth_ = 0;
};

}  // namespace

size_t DownsetHash::operator()(const Downset& set) const {
  uint64_t hash = 0;
  for (const uint64_t each : set) hash = ((hash ^ each) * 0xd6e8feb86659fd93u) ^ hash >> 32;
  return hash ^ hash >> 32;
}

Uniform::Uniform(const Program& program, uint64_t seed, size_t limit)
    : random_(seed), nothing_(no_events(program)) {
  if (branches(program)) {
    throw std::invalid_argument("the scheduler uniform takes no conditionals and loops");
  }
  Controlled controlled(program);
  Counter counter(nothing_, counts_);
  do {
    controlled.run(counter);
    if (counts_.size() > limit) {
      throw std::invalid_argument("the scheduler uniform takes tests with at most " +
                                  std::to_string(limit) + " sets of events that can be done");
    }
  } while (counter.next());
}

void Uniform::begin(const Runtime& runtime) {
  runtime_ = &runtime;
  done_ = nothing_;
}

double Uniform::orders(const Downset& from) const {
  const auto found = counts_.find(from);
  return found == counts_.end() ? 1 : found->second;
}

std::optional<size_t> Uniform::choose(const Choices& choices) {
  Downset after;
  double left = random_.unit() * orders(done_);
  size_t place = 0;
  for (;; ++place) {
    after = done_;
    add(after, runtime_->step(choices[place]).id);
    left -= orders(after);
    if (left < 0 || place + 1 == choices.size()) break;  // the latter against rounding
  }
  done_ = std::move(after);
  return place;
}

}  // namespace litmusfuzz::executor
