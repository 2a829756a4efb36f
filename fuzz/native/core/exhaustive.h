// Exhaustive exploration: depth-first search with source sets and sleep sets.
//
// Two executions that differ only in the order of independent events belong to one
// Mazurkiewicz trace and have the same outcome. Of each trace the search completes one
// execution. It begins with one event at each choice. Whenever two events of an execution
// race (they depend on each other, and could come in the other order), it adds an event to try
// at the earlier one's choice: one that begins such an execution. Sleep sets end an execution
// that repeats a trace: an event that was tried at a choice sleeps after other events until an
// event that depends on it is performed.
//
// It knows nothing of the system in advance. The causes of an event are known as far as
// `Scheduler::ready` tells: the last of them. An event that waited for several may then seem to
// race with another one of them. That costs an execution that is abandoned, and no trace.
//
// Each alternative starts a new execution, which repeats the choices before it. Where other
// events are enabled than before, the system is no function of its choices: `choose` throws
// std::runtime_error.
//
// References: Abdulla, Aronis, Jonsson and Sagonas, "Optimal Dynamic Partial Order Reduction",
// POPL 2014, section 4 (source-DPOR); Flanagan and Godefroid, "Dynamic Partial-Order Reduction
// for Model Checking Software", POPL 2005, for events that are disabled.
#pragma once

#include <vector>

#include "outcome.h"
#include "scheduling.h"

namespace litmusfuzz::executor {

class Exhaustive final : public Scheduler {
 public:
  void begin(const Runtime& runtime) override;
  void ready(Ticket ticket) override;
  std::optional<size_t> choose(const Choices& choices) override;
  void end() override;
  /// Moves to the next execution; false if there is none.
  bool next();

 private:
  static constexpr size_t kNone = SIZE_MAX;

  /// Positions of events in the execution.
  class Past {
   public:
    void add(size_t position) {
      if (position / 64 >= words_.size()) words_.resize(position / 64 + 1);
      words_[position / 64] |= uint64_t{1} << position % 64;
    }
    void add(const Past& other) {
      if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
      for (size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
    }
    bool contains(size_t position) const {
      return position / 64 < words_.size() && words_[position / 64] >> position % 64 & 1;
    }

   private:
    std::vector<uint64_t> words_;
  };
  struct Level {
    std::vector<Step> enabled;
    std::vector<Step> asleep;     // tried here, or earlier and independent of all events since
    std::vector<uint8_t> to_try;  // by enabled event: tried, or to be tried
    size_t chosen = 0;
    Past before;  // events that come before the chosen one in every order of the trace, and it
  };
  struct Waiting {
    Step step = {};
    size_t cause = kNone;  // position of the event that made it ready; none for the first
    bool pending = false;
  };

  const Step& at(size_t position) const {
    return levels_[position].enabled[levels_[position].chosen];
  }
  Level reach(const Choices& choices) const;
  /// Finds the events that race with one that comes after the first `count`.
  void find_races(const Waiting& event, size_t count);
  /// Makes sure that an execution is tried in which the event comes before that at `position`.
  void reverse(size_t position, const Waiting& event, const Past& before, size_t count);

  const Runtime* runtime_ = nullptr;
  std::vector<Level> levels_;
  std::vector<Waiting> waiting_;  // by ticket
  size_t depth_ = 0;
};

/// Outcomes of all executions, with the number of traces of each.
struct Exhausted {
  Histogram outcomes;
  uint64_t traces = 0;
  uint64_t executions = 0;  // traces, and abandoned executions of known traces
  bool complete = false;
};

/// `limit` bounds the executions.
Exhausted exhaust(const Program& program, uint64_t limit);

}  // namespace litmusfuzz::executor
