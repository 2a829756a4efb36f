// The controlled engine: one copy on one thread, one event at a time, in the
// order that a scheduler chooses.
//
// It works on events, not closures, since a scheduler needs to know which events are
// enabled and which depend on each other. Randomized schedulers are in schedulers/.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "copy.h"
#include "outcome.h"
#include "scheduling.h"

namespace litmusfuzz::executor {

/// Executes one copy of a program repeatedly.
class Controlled final : public EventRunner, public Runtime {
 public:
  explicit Controlled(const Program& program)
      : program_(program), copy_(program, *this), contenders_(program.resources.size()) {}

  bool run(Scheduler& scheduler) override;
  Step step(Ticket ticket) const override;
  /// Outcome of the last execution.
  Row outcome() const { return outcome_of(program_, copy_); }
  void read_outcome(Row& row) const { executor::read_outcome(program_, copy_, row); }

 private:
  void ready(Event event) override;
  void transfer(Event event) override { transfers_.push_back(event); }
  void perform(Event event) override { copy_.perform(event); }
  /// Transfers are transparent: they finish before the next choice.
  void finish_transfers();
  Ticket new_ticket(Event event);
  void enable(Ticket ticket);
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
  std::vector<std::vector<Ticket>> contenders_;
  std::vector<Event> events_;  // by ticket; one for each distinct ticket in this execution
  std::vector<Ticket> free_;   // tickets of events that were performed
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
uint64_t digest_of(const Runtime& runtime, const Choices& choices);

/// Records the choices of another scheduler.
class Recorder final : public Scheduler {
 public:
  explicit Recorder(Scheduler& inner) : inner_(inner) {}
  void begin(const Runtime& runtime) override;
  void ready(Ticket ticket) override { inner_.ready(ticket); }
  void enabled(Ticket ticket) override { inner_.enabled(ticket); }
  std::optional<size_t> choose(const Choices& choices) override;
  void end() override { inner_.end(); }
  /// Choices of the last execution.
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  Scheduler& inner_;
  const Runtime* runtime_ = nullptr;
  std::vector<Choice> choices_;
};

/// Repeats recorded choices; stops where the enabled events differ from the record.
class Replay final : public Scheduler {
 public:
  explicit Replay(std::vector<Choice> choices) : choices_(std::move(choices)) {}
  void begin(const Runtime& runtime) override;
  std::optional<size_t> choose(const Choices& choices) override;
  /// Number of choices made.
  size_t made() const { return made_; }

 private:
  const Runtime* runtime_ = nullptr;
  std::vector<Choice> choices_;
  size_t made_ = 0;
};

/// Performs exactly the given events in their order; stops where one of them is not
/// enabled, or where others are enabled after the last.
class Forced final : public Scheduler {
 public:
  explicit Forced(std::vector<uint64_t> order) : order_(std::move(order)) {}
  void begin(const Runtime& runtime) override;
  std::optional<size_t> choose(const Choices& choices) override;
  /// Number of events of the order performed.
  size_t made() const { return made_; }

 private:
  const Runtime* runtime_ = nullptr;
  std::vector<uint64_t> order_;
  size_t made_ = 0;
};

}  // namespace litmusfuzz::executor
