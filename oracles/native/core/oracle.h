// Interface of the explorer: the allowed set of a test, and the verdict on one
// outcome.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "program.h"
#include "search.h"

namespace litmusfuzz::oracle {

using Ints = std::vector<int64_t>;

/// One value of an outcome.
struct Part {
  enum class Kind : uint8_t { kValue, kQueue, kAnything, kAbsent };
  Kind kind = Kind::kValue;
  Ints ints = {};                   // kValue
  std::vector<Ints> elements = {};  // kQueue
};

/// Observed values, then variables, then queues, in the test's order.
struct Outcome {
  Status status = Status::kCompleted;
  std::vector<Part> parts = {};
};

/// The outcomes of a whole test: all combinations of its components' outcomes.
class OutcomeSet {
 public:
  /// Number of outcomes; saturates at 2**62.
  uint64_t size() const { return size_; }
  uint64_t states() const { return states_; }
  bool complete() const { return complete_; }
  /// The outcome with that number.
  Outcome outcome(uint64_t number) const;

 private:
  friend class Oracle;
  std::shared_ptr<const Program> program_;
  std::shared_ptr<const Split> split_;
  std::unique_ptr<ValueTable> table_;
  std::vector<Found> found_;  // by component
  std::vector<Value> rest_;   // by place in an outcome: values outside all components
  uint64_t size_ = 1;
  uint64_t states_ = 0;
  bool complete_ = true;
};

class Oracle {
 public:
  explicit Oracle(std::unique_ptr<Program> program);

  /// May throw ValueTooLarge.
  OutcomeSet all(const Budget& budget) const;

  struct Judgement {
    Answer answer = Answer::kAllowed;
    uint64_t states = 0;
    std::vector<int32_t> witness;  // events in order; if allowed
  };
  /// May throw ValueTooLarge, but need not when some total order would.
  Judgement judge(const Outcome& outcome, const Budget& budget) const;

  size_t names() const { return program_->observed.size() + program_->finals(); }
  /// The first place in an outcome that has a queue's contents.
  size_t first_queue() const { return program_->observed.size() + program_->variables; }

 private:
  std::shared_ptr<const Program> program_;
  std::shared_ptr<const Split> split_;
};

}  // namespace litmusfuzz::oracle
