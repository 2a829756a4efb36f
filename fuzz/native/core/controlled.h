// The controlled engine: one copy on one thread, one event at a time, in the
// order that a scheduler chooses.
//
// It is told events, not closures: what may come next, and what depends on what,
// is the matter of a scheduler. Those that draw are in schedulers/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "copy.h"
#include "outcome.h"

namespace litmusfuzz::executor {

/// An event as schedulers see it.
struct Step {
  uint64_t id;  // the same in all executions
  std::span<const uint32_t> resources;  // that it touches, each once
  bool looks;  // leaves them as they are

  bool touches(uint32_t resource) const {
    return std::find(resources.begin(), resources.end(), resource) != resources.end();
  }
  /// Whether the order of the two matters to what either does.
  bool depends_on(const Step& other) const {
    if (looks && other.looks) return false;
    return std::any_of(resources.begin(), resources.end(),
                       [&](uint32_t each) { return other.touches(each); });
  }
};

Step step_of(const Event& event);

/// A small number that an event has as its own from when its turn has come until
/// it is chosen; then another gets it. Schedulers keep what they know by ticket.
using Ticket = uint32_t;

struct Pending {
  Event event;
  Ticket ticket;
};

/// The events that may come next, in an order that their history determines.
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
  /// Where it stands, if it does.
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

/// The rule by which the next event is chosen.
///
/// One that must not look at all events each time learns here what changes. It is
/// not told when an event may no longer come next (a mutex was taken before it):
/// `Choices::contains` says so, and `enabled` when it may again.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// A new execution.
  virtual void begin() {}
  /// The event's turn has come, since the one chosen last was performed: it is
  /// one of those that cannot come before that one. None has been chosen yet when
  /// the first events come.
  virtual void ready(Event, Ticket) {}
  /// It may come next: for the first time, or again.
  virtual void enabled(Ticket) {}
  /// Place of one of the events, of which there is at least one; nothing to
  /// abandon the execution.
  virtual std::optional<size_t> choose(const Choices& choices) = 0;
  /// Nothing may come next, or the test has failed.
  virtual void end() {}
};

/// Executes one copy of a program again and again.
class Controlled final : public EventRunner {
 public:
  explicit Controlled(const Program& program)
      : program_(program), copy_(program, *this), contenders_(program.resources.size()) {}

  /// One execution; false if the scheduler abandoned it.
  bool run(Scheduler& scheduler);
  /// What it showed.
  Row outcome() const { return outcome_of(program_, copy_); }
  void read_outcome(Row& row) const { executor::read_outcome(program_, copy_, row); }

 private:
  void ready(Event event) override;
  void transfer(Event event) override { transfers_.push_back(event); }
  void perform(Event event) override { copy_.perform(event); }
  /// Transfers are transparent: they are over before anything is chosen.
  void finish_transfers();
  Ticket new_ticket();
  void enable(Event event, Ticket ticket);
  bool blocks(uint32_t resource) const {
    return program_.resources[resource].sort != Resource::Sort::kVariable;
  }
  void reconsider(uint32_t resource);

  const Program& program_;
  Copy copy_;
  Scheduler* strategy_ = nullptr;  // of the execution
  Choices choices_;
  std::vector<Event> transfers_;
  /// By queue or mutex: events whose turn has come, whether they may come next or not.
  std::vector<std::vector<Pending>> contenders_;
  std::vector<Ticket> free_;  // tickets of events that were performed
  Ticket tickets_ = 0;        // that were ever given out in this execution
};

/// What that many executions show.
Histogram walk(const Program& program, Scheduler& scheduler, uint64_t count);

// --- records -----------------------------------------------------------------------

/// A choice, and among what: how many events, and a digest of which.
struct Choice {
  uint32_t index;
  uint32_t count;
  uint64_t digest;
};

/// Whatever the order in which they are listed.
uint64_t digest_of(const Choices& choices);

/// Passes on another scheduler's choices and notes them.
class Recorder final : public Scheduler {
 public:
  explicit Recorder(Scheduler& inner) : inner_(inner) {}
  void begin() override;
  void ready(Event event, Ticket ticket) override { inner_.ready(event, ticket); }
  void enabled(Ticket ticket) override { inner_.enabled(ticket); }
  std::optional<size_t> choose(const Choices& choices) override;
  void end() override { inner_.end(); }
  /// Those of the last execution.
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  Scheduler& inner_;
  std::vector<Choice> choices_;
};

/// Makes recorded choices again; stops where it meets other events than then.
class Replay final : public Scheduler {
 public:
  explicit Replay(std::vector<Choice> choices) : choices_(std::move(choices)) {}
  void begin() override { made_ = 0; }
  std::optional<size_t> choose(const Choices& choices) override;
  /// How many choices could be made.
  size_t made() const { return made_; }

 private:
  std::vector<Choice> choices_;
  size_t made_ = 0;
};

/// Performs exactly the given events in their order; stops where one of them
/// may not come next, or where none is left though others may.
class Forced final : public Scheduler {
 public:
  explicit Forced(std::vector<uint64_t> order) : order_(std::move(order)) {}
  void begin() override { made_ = 0; }
  std::optional<size_t> choose(const Choices& choices) override;
  /// How many events of the order came.
  size_t made() const { return made_; }

 private:
  std::vector<uint64_t> order_;
  size_t made_ = 0;
};

}  // namespace litmusfuzz::executor
