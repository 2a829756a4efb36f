// The controlled engine: one copy on one thread, one event at a time, in the
// order that a strategy chooses.
//
// It is told events, not closures: what may come next, and what depends on what,
// is the matter of a strategy.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "copy.h"
#include "outcome.h"

namespace litmusfuzz::executor {

/// An event as strategies see it.
struct Step {
  uint64_t id;  // the same in all executions
  uint32_t resources[2];  // the second is the first again, if there is only one
  bool looks;   // leaves its resource as it is

  /// Whether the order of the two matters to what either does.
  bool depends_on(const Step& other) const {
    if (looks && other.looks) return false;
    for (const uint32_t mine : resources) {
      for (const uint32_t theirs : other.resources) {
        if (mine == theirs) return true;
      }
    }
    return false;
  }
};

Step step_of(const Event& event);

/// The rule by which the next event is chosen.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Index of one of the events that may come next, of which there is at least
  /// one; nothing to abandon the execution.
  virtual std::optional<size_t> choose(std::span<const Event> enabled) = 0;
  /// Nothing may come next, or the test has failed.
  virtual void end() {}
};

/// Executes one copy of a program again and again.
class Controlled final : public Scheduler {
 public:
  explicit Controlled(const Program& program) : program_(program), copy_(program, *this) {}

  /// One execution; false if the strategy abandoned it.
  bool run(Strategy& strategy);
  /// What it showed.
  Row outcome() const { return outcome_of(program_, copy_); }
  void read_outcome(Row& row) const { executor::read_outcome(program_, copy_, row); }

 private:
  void ready(Event event) override { ready_.push_back(event); }
  void transfer(Event event) override { transfers_.push_back(event); }
  /// Transfers are transparent: they are over before anything is chosen.
  void finish_transfers();
  std::span<const Event> enabled();

  const Program& program_;
  Copy copy_;
  std::vector<Event> ready_;    // their turn has come; some may have to wait for others
  std::vector<Event> transfers_;
  std::vector<Event> enabled_;  // those that need not
};

/// Each of the events that may come next with the same probability.
class RandomWalk final : public Strategy {
 public:
  explicit RandomWalk(uint64_t seed) : random_(seed) {}
  std::optional<size_t> choose(std::span<const Event> enabled) override {
    return std::uniform_int_distribution<size_t>(0, enabled.size() - 1)(random_);
  }

 private:
  std::mt19937_64 random_;
};

// --- records -----------------------------------------------------------------------

/// A choice, and among what: how many events, and a digest of which.
struct Choice {
  uint32_t index;
  uint32_t count;
  uint64_t digest;
};

/// Whatever the order in which they are listed.
uint64_t digest_of(std::span<const Event> events);

/// Passes on another strategy's choices and notes them.
class Recorder final : public Strategy {
 public:
  explicit Recorder(Strategy& inner) : inner_(inner) {}
  std::optional<size_t> choose(std::span<const Event> enabled) override;
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  Strategy& inner_;
  std::vector<Choice> choices_;
};

/// Makes recorded choices again; stops where it meets other events than then.
class Replay final : public Strategy {
 public:
  explicit Replay(std::vector<Choice> choices) : choices_(std::move(choices)) {}
  std::optional<size_t> choose(std::span<const Event> enabled) override;
  /// How many choices could be made.
  size_t made() const { return made_; }

 private:
  std::vector<Choice> choices_;
  size_t made_ = 0;
};

/// Performs exactly the given events in their order; stops where one of them
/// may not come next, or where none is left though others may.
class Forced final : public Strategy {
 public:
  explicit Forced(std::vector<uint64_t> order) : order_(std::move(order)) {}
  std::optional<size_t> choose(std::span<const Event> enabled) override;
  /// How many events of the order came.
  size_t made() const { return made_; }

 private:
  std::vector<uint64_t> order_;
  size_t made_ = 0;
};

}  // namespace litmusfuzz::executor
