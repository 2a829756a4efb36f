// The explorer's two services on one test: the whole allowed set, and the
// verdict on one outcome.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "program.h"
#include "search.h"

namespace litmusfuzz::oracle {

using Ints = std::vector<int64_t>;

/// An outcome's values: what is observed, then variables, in the test's order.
/// nullopt: not seen, matches everything.
using Values = std::vector<std::optional<Ints>>;

/// The outcomes of a whole test: all combinations of its components' outcomes.
class OutcomeSet {
 public:
  /// How many; saturates at 2**62.
  uint64_t size() const { return size_; }
  uint64_t states() const { return states_; }
  bool complete() const { return complete_; }
  /// The outcome with that number.
  std::vector<Ints> outcome(uint64_t number) const;

 private:
  friend class Oracle;
  std::shared_ptr<const Program> program_;
  std::shared_ptr<const Split> split_;
  std::unique_ptr<ValueTable> table_;
  std::vector<Found> found_;  // by component
  std::vector<Value> rest_;   // by place in an outcome: what stands apart
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
  Judgement judge(const Values& outcome, const Budget& budget) const;

  size_t names() const { return program_->observed.size() + program_->initial.size(); }

 private:
  std::shared_ptr<const Program> program_;
  std::shared_ptr<const Split> split_;
};

}  // namespace litmusfuzz::oracle
