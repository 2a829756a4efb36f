// Interchangeable threads of a component: taken in one order, and put back into the outcomes.
#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "search.h"

namespace litmusfuzz::oracle {

/// A component whose interchangeable threads are ordered, and the exchanges that undo this.
///
/// A *thread* here is a set of events that no order connects with the others. Two threads are
/// interchangeable if the exchange of their events, one by one, leaves the component as it is:
/// the same actions on the same resources, operands, order, and runs that wait for them. The
/// exchange of the threads' events in a total order is then a total order, whose outcome has the
/// observed values of the two threads exchanged.
///
/// So it is enough to visit the orders in which the first events of interchangeable threads come
/// in the order of their numbers: any other becomes one of these by exchanges, and the exchanges
/// turn their outcomes into all others. The order is that of more edges. It blocks nothing: the
/// first events have no others before them, so that one is enabled wherever the next would be.
///
/// Threads may differ in constants where values are only moved, never computed with or compared:
/// each constant that an event stores is then a *symbol* of its own, an exchange also exchanges
/// the symbols, and in the end each symbol stands for its constant. What happens depends on no
/// value, so the orders are the same for all constants.
class Symmetry {
 public:
  Symmetry(const Component& component, ValueTable& table);

  /// True if there are interchangeable threads.
  bool found() const { return !exchanges_.empty(); }
  /// The component with more edges; lives as long as this.
  const Component& ordered() const { return ordered_; }
  /// Adds the outcomes of all other orders; not complete if that exceeds the budget.
  Found expand(Found ordered, const Budget& budget) const;

 private:
  using Threads = std::vector<std::vector<int32_t>>;
  /// Effects of an exchange on an outcome.
  struct Exchange {
    std::vector<size_t> observations;  // where each observation goes
    std::vector<std::pair<Value, Value>> symbols;
  };
  /// An exchange of two threads while it is checked.
  struct Mapping {
    std::vector<int32_t> events;  // where each event goes
    std::vector<std::pair<Value, Value>> symbols;
    std::set<std::pair<int32_t, int32_t>> tokens;  // found equal: they may share parts
  };

  bool only_moves() const;
  void add_symbols();
  bool is_symbol(Value value) const;
  Threads threads() const;
  void find(const Threads& threads);
  bool is_exchange(const std::vector<int32_t>& one, const std::vector<int32_t>& other,
                   Exchange& out) const;
  bool same_token(int32_t one, int32_t other, Mapping& mapping) const;
  bool same_events(const std::vector<int32_t>& one, const std::vector<int32_t>& other,
                   Mapping& mapping) const;
  void order(const Threads& classes);
  Value contents(size_t variable, Value held, const auto& change) const;

  const Component& original_;
  ValueTable& table_;
  std::unique_ptr<Program> program_;  // with symbols; null without
  Component ordered_;
  std::vector<int32_t> local_;  // by global event
  std::vector<std::pair<Value, Value>> symbols_;  // symbol, constant
  std::vector<Exchange> exchanges_;
};

}  // namespace litmusfuzz::oracle
