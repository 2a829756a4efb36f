// What schedulers see of a system: pending events, and what each of them touches.
//
// Two systems are scheduled: the native executor (controlled.h), and TensorFlow
// (../control/controller.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace litmusfuzz::executor {

/// What schedulers know of an event.
struct Step {
  uint64_t id;                          // the same in all executions
  std::span<const uint32_t> resources;  // resources that it touches, each once
  bool reads_only;                      // changes none of them
  bool may_be_disabled = false;         // while it is ready, by an event on one of them
  /// The op instance that it is a part of. A switch from one that could go on is a preemption.
  uint64_t task = 0;

  bool touches(uint32_t resource) const {
    return std::find(resources.begin(), resources.end(), resource) != resources.end();
  }
  /// True if the two events do not commute.
  bool depends_on(const Step& other) const {
    if (reads_only && other.reads_only) return false;
    return std::any_of(resources.begin(), resources.end(),
                       [&](uint32_t each) { return other.touches(each); });
  }
};

/// A small number that identifies an event from when it is ready until it is chosen;
/// then another event gets it. Schedulers index their state by ticket.
using Ticket = uint32_t;

/// The enabled events, in an order that depends only on the execution so far.
class Choices {
 public:
  size_t size() const { return tickets_.size(); }
  bool empty() const { return tickets_.empty(); }
  Ticket operator[](size_t place) const { return tickets_[place]; }
  auto begin() const { return tickets_.begin(); }
  auto end() const { return tickets_.end(); }

  bool contains(Ticket ticket) const {
    return ticket < places_.size() && places_[ticket] != kNowhere;
  }
  /// Position of a ticket that `contains` has.
  size_t place_of(Ticket ticket) const { return places_[ticket]; }

  void clear() {
    for (const Ticket each : tickets_) places_[each] = kNowhere;
    tickets_.clear();
  }
  void add(Ticket ticket) {
    if (ticket >= places_.size()) places_.resize(ticket + 1, kNowhere);
    places_[ticket] = static_cast<uint32_t>(tickets_.size());
    tickets_.push_back(ticket);
  }
  void remove(size_t place) {
    const Ticket removed = tickets_[place], last = tickets_.back();
    places_[last] = static_cast<uint32_t>(place);
    places_[removed] = kNowhere;  // second, since the two may be one
    tickets_[place] = last;
    tickets_.pop_back();
  }

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  std::vector<Ticket> tickets_;
  std::vector<uint32_t> places_;  // by ticket
};

class Scheduler;

/// A system that is executed one event at a time.
class Runtime {
 public:
  virtual ~Runtime() = default;
  /// Executes once; false if the scheduler abandoned the execution.
  virtual bool run(Scheduler& scheduler) = 0;
  /// What is known of a pending event.
  virtual Step step(Ticket ticket) const = 0;
  /// What identifies it in records: the same in all processes.
  virtual uint64_t fingerprint(Ticket ticket) const { return step(ticket).id; }
};

/// Rule that chooses the next event of a controlled execution.
///
/// The callbacks let a scheduler keep state without a scan of all events at each step.
/// There is no callback when an event is disabled again (its mutex was taken):
/// `Choices::contains` says so, and `enabled` follows when it is enabled again.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// A new execution begins.
  virtual void begin(const Runtime&) {}
  /// The event becomes ready because the last chosen event was performed, so it comes
  /// after that one in every order. The first events become ready before any choice.
  virtual void ready(Ticket) {}
  /// The event is enabled, for the first time or again.
  virtual void enabled(Ticket) {}
  /// Returns the position of one of the events, of which there is at least one; or
  /// nothing, to abandon the execution.
  virtual std::optional<size_t> choose(const Choices& choices) = 0;
  /// No event is enabled, or the test has failed.
  virtual void end() {}
};

}  // namespace litmusfuzz::executor
