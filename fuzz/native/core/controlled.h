// The controlled engine: one copy on one thread, one event at a time, in the
// order that a scheduler chooses.
//
// It works on events, not closures, since a scheduler needs to know which events are
// enabled and which depend on each other. Randomized schedulers are in schedulers/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "copy.h"
#include "outcome.h"

namespace litmusfuzz::executor {

/// What schedulers know of an event.
struct Step {
  uint64_t id;  // the same in all executions
  std::span<const uint32_t> resources;  // resources that it touches, each once
  bool reads_only;                      // changes none of them

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

Step step_of(const Event& event);

/// A small number that identifies an event from when it is ready until it is chosen;
/// then another event gets it. Schedulers index their state by ticket.
using Ticket = uint32_t;

struct Pending {
  Event event;
  Ticket ticket;
};

/// The enabled events, in an order that depends only on the execution so far.
class Choices {
 public:
  size_t size() const { return events_.size(); }
  bool empty() const { return events_.empty(); }
  const Pending& operator[](size_t place) const { return events_[place]; }
  auto begin() const { return events_.begin(); }
  auto end() const { return events_.end(); }

  bool contains(Ticket ticket) const {
    return ticket < places_.size() && places_[ticket] != kNowhere;
  }
  /// Position of a ticket that `contains` has.
  size_t place_of(Ticket ticket) const { return places_[ticket]; }

 private:
  friend class Controlled;
  static constexpr uint32_t kNowhere = UINT32_MAX;

  void clear();
  void add(Event event, Ticket ticket);
  void remove(size_t place);

  std::vector<Pending> events_;
  std::vector<uint32_t> places_;  // by ticket
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
  virtual void begin() {}
  /// The event becomes ready because the last chosen event was performed, so it comes
  /// after that one in every order. The first events become ready before any choice.
  virtual void ready(Event, Ticket) {}
  /// The event is enabled, for the first time or again.
  virtual void enabled(Ticket) {}
  /// Returns the position of one of the events, of which there is at least one; or
  /// nothing, to abandon the execution.
  virtual std::optional<size_t> choose(const Choices& choices) = 0;
  /// No event is enabled, or the test has failed.
  virtual void end() {}
};

/// Executes one copy of a program repeatedly.
class Controlled final : public EventRunner {
 public:
  explicit Controlled(const Program& program)
      : program_(program), copy_(program, *this), contenders_(program.resources.size()) {}

  /// Executes once; false if the scheduler abandoned the execution.
  bool run(Scheduler& scheduler);
  /// Outcome of the last execution.
  Row outcome() const { return outcome_of(program_, copy_); }
  void read_outcome(Row& row) const { executor::read_outcome(program_, copy_, row); }

 private:
  void ready(Event event) override;
  void transfer(Event event) override { transfers_.push_back(event); }
  void perform(Event event) override { copy_.perform(event); }
  /// Transfers are transparent: they finish before the next choice.
  void finish_transfers();
  Ticket new_ticket();
  void enable(Event event, Ticket ticket);
  bool blocks(uint32_t resource) const {
    return program_.resources[resource].sort != Resource::Sort::kVariable;
  }
  void reconsider(uint32_t resource);

  const Program& program_;
  Copy copy_;
  Scheduler* scheduler_ = nullptr;  // of the current execution
  Choices choices_;
  std::vector<Event> transfers_;
  /// By queue or mutex: ready events, enabled or not.
  std::vector<std::vector<Pending>> contenders_;
  std::vector<Ticket> free_;  // tickets of events that were performed
  Ticket tickets_ = 0;        // number of distinct tickets in this execution
};

/// Histogram of `count` executions.
Histogram walk(const Program& program, Scheduler& scheduler, uint64_t count);

// --- records -----------------------------------------------------------------------

/// A recorded choice, with the number and a digest of the enabled events.
struct Choice {
  uint32_t index;
  uint32_t count;
  uint64_t digest;
};

/// Digest of the enabled events, independent of their order.
uint64_t digest_of(const Choices& choices);

/// Records the choices of another scheduler.
class Recorder final : public Scheduler {
 public:
  explicit Recorder(Scheduler& inner) : inner_(inner) {}
  void begin() override;
  void ready(Event event, Ticket ticket) override { inner_.ready(event, ticket); }
  void enabled(Ticket ticket) override { inner_.enabled(ticket); }
  std::optional<size_t> choose(const Choices& choices) override;
  void end() override { inner_.end(); }
  /// Choices of the last execution.
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  Scheduler& inner_;
  std::vector<Choice> choices_;
};

/// Repeats recorded choices; stops where the enabled events differ from the record.
class Replay final : public Scheduler {
 public:
  explicit Replay(std::vector<Choice> choices) : choices_(std::move(choices)) {}
  void begin() override { made_ = 0; }
  std::optional<size_t> choose(const Choices& choices) override;
  /// Number of choices made.
  size_t made() const { return made_; }

 private:
  std::vector<Choice> choices_;
  size_t made_ = 0;
};

/// Performs exactly the given events in their order; stops where one of them is not
/// enabled, or where others are enabled after the last.
class Forced final : public Scheduler {
 public:
  explicit Forced(std::vector<uint64_t> order) : order_(std::move(order)) {}
  void begin() override { made_ = 0; }
  std::optional<size_t> choose(const Choices& choices) override;
  /// Number of events of the order performed.
  size_t made() const { return made_; }

 private:
  std::vector<uint64_t> order_;
  size_t made_ = 0;
};

}  // namespace litmusfuzz::executor
