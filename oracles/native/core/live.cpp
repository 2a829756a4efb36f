#include "live.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <unordered_map>

#include "evaluator.h"

namespace litmusfuzz::oracle {
namespace {

using Word = uint64_t;

/// States that may be stored, and visited, for each state of the budget: those here are smaller
/// and quicker than those of the plain search, and most of them are soon dropped.
constexpr uint64_t kStored = 4, kVisits = 16;

/// Search by sets of events, with the values that are still needed only.
///
/// A *place* is a variable, or the slot of a read's result. In a total order, a place is *live*
/// after some of its events if the outcome depends on the value that it holds then: some later
/// event uses that value, before another overwrites it, for a value that is itself live; or the
/// outcome shows it. Going back through an order, the places live after an event decide which
/// are live before it (`before`), whatever the values are.
///
/// The component is such that sets of events alone decide what may come next. So the first pass
/// finds the sets that partial orders reach, without values; the second goes back from the set
/// of all events, and finds for each set what may be live there. A pair of a set and its live
/// places is a *node*. The third pass goes forward again, and keeps for each node the distinct
/// values of its live places.
///
/// Each total order passes through exactly one node for each set that it reaches, and the values
/// that the node keeps are its values: by induction, an event whose effect is live finds in the
/// live places all that it uses. Conversely each path from node to node is a total order, and
/// each value is computed from values of the same order. So the outcomes at the last node are
/// those of all total orders. Two orders meet in a node if they differ in dead values only: of n
/// unordered increments, whose results one chain of k of them decides, the other n - k leave
/// nothing in the state but that they have happened.
class LiveSearch {
 public:
  LiveSearch(const Component& component, const Query* query, const Budget& budget,
             ValueTable& table)
      : c_(component),
        query_(query),
        budget_(budget),
        table_(table),
        evaluator_(component, table),
        order_(query ? query->order() : component.before),
        blockers_(query ? query->blocking() : component.blockers),
        n_(component.events.size()),
        variables_(component.variables.size()),
        all_(n_ == 64 ? ~Word{0} : (Word{1} << n_) - 1),
        cells_(variables_ + component.slots, kNoValue) {
    for (const LocalEvent& event : c_.events) uses_.push_back(uses(event));
    for (size_t v = 0; v < variables_; ++v) {
      if (!query || query->last[v] != kAnything) last_ |= Word{1} << v;
    }
    for (size_t i = 0; i < c_.observations.size(); ++i) {
      const Observation& each = c_.observations[i];
      // The result of a read is compared when the read is done.
      if (query && (each.event >= 0 || query->wanted[i] == kAnything)) continue;
      for (const int32_t t : each.closure) {
        for_each_result(c_.program->tokens[t], [&](int32_t e) { last_ |= slot(c_.slot_of[e]); });
      }
    }
  }

  /// Finds the nodes; false if they exceed the budget.
  bool plan() {
    find_sets();
    return !over_ && find_live();
  }

  /// Visits all nodes, with all values; false if that exceeds the budget.
  bool run(StateSet* outcomes) {
    rows_.resize(nodes_.size());
    parents_.resize(nodes_.size());
    std::ranges::fill(cells_, kNoValue);
    std::ranges::copy(c_.initial, cells_.begin());
    for (int32_t node = first_[0]; node < first_[1]; ++node) keep(node, {-1, 0, -1});
    for (size_t i = 0; i < sets_.size(); ++i) {
      for (int32_t node = first_[i]; node < first_[i + 1]; ++node) {
        if (!rows_[node]) continue;
        if (sets_[i].done == all_) return end(node, outcomes);
        for (const Step& step : nodes_[node].steps) {
          if (!follow(node, step)) return false;
        }
        if (!query_) free(node);
      }
    }
    return true;
  }

  uint64_t states() const { return states_; }
  /// The largest number of states that were stored at once.
  uint64_t most_stored() const { return most_stored_; }
  bool matched() const { return matched_; }
  const std::vector<int32_t>& witness() const { return witness_; }

 private:
  /// Events that come one after another, and the set that they lead to.
  struct Move {
    std::vector<int32_t> events;
    int32_t to;
  };
  struct Set {
    Word done;
    std::vector<Move> moves;
  };
  struct Step {
    int32_t move, to;  // `to` is a node
  };
  struct Node {
    int32_t set;
    Word live;
    std::vector<Step> steps;
  };
  /// Where a row comes from.
  struct Parent {
    int32_t node;
    uint32_t row;
    int32_t move;
  };
  /// What an event does with places.
  struct Uses {
    Word variables = 0, slot = 0, consumed = 0, definite = 0;
    bool compared = false;  // the query knows its result
    bool known = false;     // the query knows what it writes
  };

  Word slot(int32_t number) const { return Word{1} << (variables_ + number); }

  Uses uses(const LocalEvent& event) const {
    Uses out;
    const auto e = uses_.size();
    for (const int32_t v : event.variables) {
      out.variables |= Word{1} << v;
      if (c_.definite.test(v, e)) out.definite |= Word{1} << v;
    }
    if (event.slot >= 0) out.slot = slot(event.slot);
    for (const int32_t s : event.consumed) out.consumed |= slot(s);
    out.compared = query_ && query_->result[e] != kNoValue;
    out.known = query_ && query_->known[e] != kNoValue;
    return out;
  }

  /// The places live before an event, from those live after it.
  Word before(int32_t e, Word live) const {
    const Uses& uses = uses_[e];
    switch (c_.events[e].access) {
      case Access::kRead:
      case Access::kState:
      case Access::kSnapshot:
        if (uses.compared || (live & uses.slot)) live |= uses.variables;
        return live & ~uses.slot;
      case Access::kUpdate:
        if (live & uses.variables) live |= uses.variables | uses.consumed;
        return live;
      default:
        if (!(live & uses.variables)) return live;
        live &= ~uses.definite;
        return uses.known ? live : live | uses.consumed;
    }
  }

  // --- first pass: sets of events -----------------------------------------------------

  bool ready(int32_t e, Word done) const { return !(done >> e & 1) && !(*order_.row(e) & ~done); }

  /// Executes events that need no alternatives, as `Search::reduce` does.
  void reduce(Word& done, std::vector<int32_t>& events) const {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < n_; ++i) {
        const auto e = static_cast<int32_t>(i);
        if (!ready(e, done)) continue;
        const bool unused = only_reads(c_.events[i].access) && !uses_[i].slot && !uses_[i].compared;
        if (!unused && (*blockers_.row(i) & ~done)) continue;
        done |= Word{1} << i;
        events.push_back(e);
        changed = true;
      }
    }
  }

  void find_sets() {
    std::unordered_map<Word, int32_t> numbers;
    std::vector<Set> found;
    const auto number = [&](Word done) {
      const auto [place, is_new] = numbers.emplace(done, static_cast<int32_t>(found.size()));
      if (is_new) found.push_back({done, {}});
      return place->second;
    };
    number(0);
    size_t moves = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const Word done = found[i].done;
      std::vector<Move> out;
      const auto add = [&](Word next, std::vector<int32_t> events) {
        reduce(next, events);
        if (!events.empty()) out.push_back({std::move(events), number(next)});
      };
      if (i == 0) add(0, {});
      const bool forced = !out.empty();  // the other sets are reduced already
      for (size_t e = 0; !forced && e < n_; ++e) {
        if (ready(static_cast<int32_t>(e), done)) {
          add(done | Word{1} << e, {static_cast<int32_t>(e)});
        }
      }
      if (budget_.heed && (i + 1) % kHeedEvery == 0) budget_.heed(0);
      moves += out.size();
      found[i].moves = std::move(out);
      if (found.size() > budget_.states || (found.size() + moves) * 128 > budget_.bytes) {
        over_ = true;
        return;
      }
    }
    // In the order of their sizes, so that each comes before those that it leads to.
    std::vector<int32_t> order(found.size()), place(found.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::ranges::stable_sort(order, {},
                             [&](int32_t i) { return __builtin_popcountll(found[i].done); });
    for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int32_t>(i);
    for (const int32_t i : order) {
      sets_.push_back(std::move(found[i]));
      for (Move& move : sets_.back().moves) move.to = place[move.to];
    }
    spent_ = (found.size() + moves) * 128;
  }

  // --- second pass: what is live ------------------------------------------------------

  bool find_live() {
    std::vector<std::vector<Node>> found(sets_.size());
    size_t count = 0, steps = 0;
    for (size_t i = sets_.size(); i-- > 0;) {
      std::vector<Node>& here = found[i];
      if (sets_[i].done == all_) here.push_back({static_cast<int32_t>(i), last_, {}});
      std::unordered_map<Word, size_t> numbers;
      for (size_t m = 0; m < sets_[i].moves.size(); ++m) {
        const Move& move = sets_[i].moves[m];
        for (size_t to = 0; to < found[move.to].size(); ++to) {
          Word live = found[move.to][to].live;
          for (size_t k = move.events.size(); k-- > 0;) live = before(move.events[k], live);
          const auto [place, is_new] = numbers.emplace(live, here.size());
          if (is_new) here.push_back({static_cast<int32_t>(i), live, {}});
          here[place->second].steps.push_back({static_cast<int32_t>(m), static_cast<int32_t>(to)});
          ++steps;
        }
      }
      count += here.size();
      if (count > budget_.states || spent_ + count * 128 + steps * 16 > budget_.bytes) return false;
    }
    spent_ += count * 128 + steps * 16;
    for (auto& here : found) {
      first_.push_back(static_cast<int32_t>(nodes_.size()));
      std::ranges::move(here, std::back_inserter(nodes_));
    }
    first_.push_back(static_cast<int32_t>(nodes_.size()));
    for (Node& node : nodes_) {
      for (Step& step : node.steps) step.to += first_[sets_[node.set].moves[step.move].to];
    }
    return true;
  }

  // --- third pass: values -------------------------------------------------------------

  /// Continues each row of a node by a step; false if that exceeds the budget.
  bool follow(int32_t node, const Step& step) {
    const Move& move = sets_[nodes_[node].set].moves[step.move];
    const Word live = nodes_[node].live;
    // Of the events, those whose effects are live, or that the query compares.
    steps_.clear();
    Word after = nodes_[step.to].live;
    for (size_t k = move.events.size(); k-- > 0;) {
      const int32_t e = move.events[k];
      const Uses& uses = uses_[e];
      const bool reads = only_reads(c_.events[e].access);
      if (uses.compared || (after & (reads ? uses.slot : uses.variables))) {
        steps_.push_back({e, after});
      }
      after = before(e, after);
    }
    const uint32_t count = static_cast<uint32_t>(rows_[node]->size());
    for (uint32_t row = 0; row < count; ++row) {
      load(live, rows_[node]->row(row));
      bool fits = true;
      for (size_t k = steps_.size(); fits && k-- > 0;) {
        fits = execute(steps_[k].first, steps_[k].second);
      }
      if (fits && !keep(step.to, {node, row, step.move})) return false;
    }
    return true;
  }

  void load(Word live, const uint32_t* row) {
    for (; live; live &= live - 1) {
      cells_[static_cast<size_t>(__builtin_ctzll(live))] = static_cast<Value>(*row++);
    }
  }

  /// Adds the values of the cells to a node; false if that exceeds the budget.
  bool keep(int32_t node, const Parent& parent) {
    Word live = nodes_[node].live;
    const auto size = static_cast<size_t>(__builtin_popcountll(live));
    if (!rows_[node]) rows_[node] = std::make_unique<StateSet>(std::max<size_t>(1, size), 4);
    row_.assign(std::max<size_t>(1, size), 0);
    for (size_t i = 0; live; live &= live - 1) {
      row_[i++] = static_cast<uint32_t>(cells_[static_cast<size_t>(__builtin_ctzll(live))]);
    }
    const size_t held = rows_[node]->needed();
    if (!rows_[node]->insert(row_.data())) return true;
    spent_ += rows_[node]->needed() - held;
    if (query_) {
      parents_[node].push_back(parent);
      spent_ += sizeof parent;
    }
    if (++states_ % kHeedEvery == 0 && budget_.heed) budget_.heed(states_);
    most_stored_ = std::max(most_stored_, ++stored_);
    return stored_ / kStored <= budget_.states && states_ / kVisits <= budget_.states &&
           spent_ + table_.bytes() <= budget_.bytes;
  }

  void free(int32_t node) {
    spent_ -= rows_[node]->needed();
    stored_ -= rows_[node]->size();
    rows_[node].reset();
  }

  Value* memory() { return cells_.data(); }
  Value* slots() { return cells_.data() + variables_; }

  /// Executes an event, as far as places in `live` need it; false if the query forbids it.
  bool execute(int32_t e, Word live) {
    const LocalEvent& event = c_.events[e];
    const Uses& uses = uses_[e];
    Value* memory = this->memory();
    switch (event.access) {
      case Access::kRead: {
        const Value whole = memory[event.variables[0]];
        if (uses.compared && !gathers_wanted(event, whole, query_->result[e])) return false;
        if (live & uses.slot) {
          slots()[event.slot] = event.gathers ? gathered(*event.op, whole, table_) : whole;
        }
        break;
      }
      case Access::kState: slots()[event.slot] = 1; break;  // no variable is ever without a value
      case Access::kSnapshot: slots()[event.slot] = snapshot(event); break;
      case Access::kWrite:
        if (uses.known) {
          memory[event.variables[0]] = query_->known[e];
          break;
        }
        saw_.clear();
        for (const int32_t s : event.saw) saw_.push_back(slots()[s]);
        store(event, operands(event));
        break;
      case Access::kUpdate:
        saw_.clear();
        for (const int32_t v : event.variables) saw_.push_back(memory[v]);
        store(event, operands(event));
        break;
      default:  // a cluster's write-back
        evaluator_.compute(event.closure, slots());
        for (size_t i = 0; i < event.variables.size(); ++i) {
          const int32_t v = event.variables[i];
          if ((live >> v & 1) && evaluator_.holds(event.operands[2 * i + 1])) {
            memory[v] = evaluator_.value(event.operands[2 * i]);
          }
        }
    }
    return true;
  }

  bool gathers_wanted(const LocalEvent& event, Value whole, Value wanted) const {
    return event.gathers ? gathers(*event.op, whole, wanted, table_) : whole == wanted;
  }

  std::span<const Value> operands(const LocalEvent& event) {
    evaluator_.compute(event.closure, slots());
    operands_.clear();
    for (const int32_t t : event.operands) operands_.push_back(evaluator_.value(t));
    return operands_;
  }

  void store(const LocalEvent& event, std::span<const Value> operands) {
    for (size_t i = 0; i < event.variables.size(); ++i) {
      memory()[event.variables[i]] =
          stored(*event.op, saw_, operands, static_cast<size_t>(event.which[i]), table_);
    }
  }

  /// The concatenated variables of a cluster.
  Value snapshot(const LocalEvent& event) {
    if (event.variables.size() == 1) return memory()[event.variables[0]];
    std::vector<int64_t> ints;
    for (const int32_t v : event.variables) {
      int64_t scalar = 0;
      const auto more = table_.view(memory()[v], scalar);
      ints.insert(ints.end(), more.begin(), more.end());
    }
    return table_.intern(ints);
  }

  /// Adds the outcomes of the last node, or looks for that of the query.
  bool end(int32_t node, StateSet* outcomes) {
    for (uint32_t row = 0; row < rows_[node]->size(); ++row) {
      load(nodes_[node].live, rows_[node]->row(row));
      if (!query_) {
        row_.assign(1, static_cast<uint32_t>(Status::kCompleted));
        for (const Observation& each : c_.observations) {
          row_.push_back(static_cast<uint32_t>(observed(each)));
        }
        for (size_t v = 0; v < variables_; ++v) row_.push_back(static_cast<uint32_t>(memory()[v]));
        outcomes->insert(row_.data());
        if (outcomes->size() > budget_.states || outcomes->needed() + spent_ > budget_.bytes) {
          return false;
        }
      } else if (fits()) {
        matched_ = true;
        trace(node, row);
        return true;
      }
    }
    return true;
  }

  Value observed(const Observation& each) {
    if (each.slot >= 0) return slots()[each.slot];
    evaluator_.compute(each.closure, slots());
    return evaluator_.value(each.token);
  }

  bool fits() {
    for (size_t v = 0; v < variables_; ++v) {
      if (query_->last[v] != kAnything && query_->last[v] != memory()[v]) return false;
    }
    for (size_t i = 0; i < c_.observations.size(); ++i) {
      const Observation& each = c_.observations[i];
      if (query_->wanted[i] == kAbsent) return false;
      if (each.event >= 0 || query_->wanted[i] == kAnything) continue;
      if (observed(each) != query_->wanted[i]) return false;
    }
    return true;
  }

  void trace(int32_t node, uint32_t row) {
    std::vector<const std::vector<int32_t>*> parts;
    while (true) {
      const Parent& from = parents_[node][row];
      if (from.node < 0) break;
      parts.push_back(&sets_[nodes_[from.node].set].moves[from.move].events);
      node = from.node;
      row = from.row;
    }
    for (size_t i = parts.size(); i-- > 0;) {
      for (const int32_t e : *parts[i]) witness_.push_back(c_.events[e].global);
    }
  }

  const Component& c_;
  const Query* query_;
  const Budget budget_;
  ValueTable& table_;
  Evaluator evaluator_;
  const BitMatrix &order_, &blockers_;
  const size_t n_, variables_;
  const Word all_;
  std::vector<Value> cells_;  // variables, then slots; those that are not live hold any value
  std::vector<Uses> uses_;  // by event
  Word last_ = 0;  // places live after the last event
  std::vector<Set> sets_;  // the smaller first
  std::vector<Node> nodes_;  // by set
  std::vector<int32_t> first_;  // by set: its first node
  std::vector<std::unique_ptr<StateSet>> rows_;  // by node: the values of its live places
  std::vector<std::vector<Parent>> parents_;  // by node and row, for a query
  uint64_t states_ = 0, stored_ = 0, most_stored_ = 0;
  size_t spent_ = 0;  // bytes
  bool over_ = false, matched_ = false;
  std::vector<int32_t> witness_;
  std::vector<std::pair<int32_t, Word>> steps_;
  std::vector<Value> saw_, operands_;
  std::vector<uint32_t> row_;
};

}  // namespace

bool handles_live(const Component& c) {
  return !c.dynamic && !c.program->blocking() && c.events.size() <= 64 &&
         c.variables.size() + c.slots <= 64;
}

bool uses_calls(const Component& c) {
  const auto called = [&](int32_t t) {
    const int32_t op = c.program->tokens[t].op;
    return op >= 0 && c.program->ops[op].code == OpCode::kCalled;
  };
  return std::ranges::any_of(c.events, [&](const LocalEvent& event) {
    return event.op->code == OpCode::kCalled || std::ranges::any_of(event.closure, called);
  });
}

std::optional<Found> explore_live(const Component& c, const Budget& budget, ValueTable& table) {
  LiveSearch search(c, nullptr, budget, table);
  if (!search.plan()) return std::nullopt;
  Found out{StateSet(1 + c.observations.size() + c.variables.size())};
  out.complete = search.run(&out.outcomes);
  out.states = search.states();
  out.stored = search.most_stored() / kStored;
  return out;
}

std::optional<Membership> decide_live(Query& query, const Budget& budget, ValueTable& table) {
  LiveSearch search(query.component, &query, budget, table);
  if (!search.plan()) return std::nullopt;
  Membership out;
  const bool complete = search.run(nullptr);
  out.states = search.states();
  if (search.matched()) {
    out.answer = Answer::kAllowed;
    out.witness = search.witness();
  } else {
    out.answer = complete ? Answer::kForbidden : Answer::kUnknown;
  }
  return out;
}

}  // namespace litmusfuzz::oracle
