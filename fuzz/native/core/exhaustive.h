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
// An event that waits for a lock is never performed if its execution is blocked or abandoned. Its
// races are found then.
//
// Each alternative starts a new execution, which repeats the choices before it. Where other
// events are enabled than before, the system is no function of its choices: `choose` throws
// std::runtime_error.
//
// With a bound, the search keeps to executions with few preemptions: switches away from an op
// instance that has begun and could go on. Neither sleep sets nor the choice of one initial are
// sound then, since the execution that stands for a trace may be beyond the bound while another one
// of the trace is within it. So all races count, not only immediate ones; an event that races is
// tried itself; and it is tried once more where the other op was switched to, at which it costs no
// preemption that was not spent anyway. Some traces are executed more than once.
//
// References: Abdulla, Aronis, Jonsson and Sagonas, "Optimal Dynamic Partial Order Reduction",
// POPL 2014, section 4 (source-DPOR); Flanagan and Godefroid, "Dynamic Partial-Order Reduction
// for Model Checking Software", POPL 2005, for events that are disabled; Coons, Musuvathi and
// McKinley, "Bounded Partial-Order Reduction", OOPSLA 2013, section 4, for the bound.
#pragma once

#include <optional>
#include <vector>

#include "outcome.h"
#include "scheduling.h"

namespace litmusfuzz::executor {

/// The executions that a search leaves out.
enum class Reduction : uint8_t {
  kNone,  // none within the bound: to check the other one with
  kRaces,  // those in which no other order of racing events is to be expected
};

class Exhaustive final : public Scheduler {
 public:
  /// Visits all traces; or all that have an execution with so many preemptions at most.
  explicit Exhaustive(std::optional<uint32_t> preemptions = {},
                      Reduction reduction = Reduction::kRaces)
      : preemptions_(preemptions), reduction_(reduction) {}
  void begin(const Runtime& runtime) override;
  void ready(Ticket ticket) override;
  std::optional<size_t> choose(const Choices& choices) override;
  void end() override;
  /// Moves to the next execution; false if there is none.
  bool next();
  /// True if the bound excluded an execution.
  bool cut() const { return cut_; }
  /// Preemptions of the last execution.
  uint32_t preemptions() const;

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
    std::vector<Step> asleep;  // tried here, or earlier and independent of all events since
    std::vector<uint8_t> to_try;  // by enabled event: tried, or to be tried
    size_t chosen = 0;
    size_t continues = kNone;  // an event of the task that was at work, if one is enabled
    uint32_t spent = 0;  // preemptions before this choice

    uint32_t spent_with(size_t place) const {
      return spent + (continues != kNone && enabled[place].task != enabled[continues].task);
    }
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
  /// Has the task of an event go on at `position`, or all where it cannot.
  void try_task(size_t position, const Step& event);
  /// The choice since which the task of the event at `position` has been at work.
  size_t start_of(size_t position) const;
  /// True if sleep sets are sound.
  bool sleeps() const { return !preemptions_ && reduction_ == Reduction::kRaces; }

  const std::optional<uint32_t> preemptions_;
  const Reduction reduction_;
  bool cut_ = false;
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
  bool complete = false;  // all traces within the bound were visited
  bool whole = false;  // and none is beyond it
};

/// `limit` bounds the executions.
Exhausted exhaust(const Program& program, uint64_t limit, Exhaustive scheduler = Exhaustive());

}  // namespace litmusfuzz::executor
