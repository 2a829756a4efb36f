#include "search.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "evaluator.h"
#include "live.h"
#include "symmetry.h"

namespace litmusfuzz::oracle {
namespace {

/// Depth-first search with a memo of states. `kWords` is the number of words of a set
/// of events, or 0 for any number. Most tests have at most 64 events, whose sets then
/// live in registers.
template <size_t kWords>
class Search {
 public:
  Search(const Component& component, const Query* query, const Budget& budget, ValueTable& table)
      : c_(component),
        query_(query),
        budget_(budget),
        table_(table),
        evaluator_(component, table),
        before_(query ? query->order() : component.before),
        direct_(query ? query->next() : component.direct),
        blockers_(query ? query->blocking() : component.blockers),
        n_(component.events.size()),
        words_(component.words),
        cells_(component.variables.size() + component.slots),
        key_(2 * words_ * (component.dynamic ? 2 : 1) + cells_),
        seen_(key_.size()),
        blocking_(component.program->blocking()),
        outcomes_(1 + component.observations.size() + component.variables.size()) {
    keep_.assign(c_.slots, 0);
    typical_.assign(c_.slots, kNoValue);
    token_ready_.assign(c_.dynamic ? c_.program->tokens.size() : 0, 0);
    for (const Observation& each : c_.observations) {
      for (const int32_t t : each.ending) {
        for_each_result(c_.program->tokens[t], [&](int32_t e) { keep_[c_.slot_of[e]] = 1; });
      }
      // A query compares the result of a read when the read is done.
      if (query && each.event >= 0) continue;
      for (const int32_t t : each.closure) {
        for_each_result(c_.program->tokens[t], [&](int32_t e) { keep_[c_.slot_of[e]] = 1; });
      }
    }
    for (const LocalEvent& event : c_.events) {
      // Only the end of an order decides whether an early event was chosen.
      if (!c_.program->speculates || event.guards.empty()) continue;
      for (const int32_t slot : event.consumed) keep_[slot] = 1;
    }
    choices_.resize(n_ + 2);
    bits_.resize((n_ + 2) * kSets * words());
    values_.resize((n_ + 2) * cells_);
    trail_at_.resize(n_ + 2);
    trail_.reserve(n_);
  }

  /// Visits all states, or stops when one order yields the outcome of the query.
  Answer run() {
    start();
    if (!reduce(0)) return matched_ ? Answer::kAllowed : Answer::kForbidden;
    size_t depth = 0;
    if (visit(0)) {
      if (query_ && matched_) return Answer::kAllowed;
    } else {
      return complete_ ? Answer::kForbidden : Answer::kUnknown;
    }
    while (true) {
      const int32_t event = take(depth);
      if (event < 0) {
        if (depth == 0) break;
        --depth;
        continue;
      }
      copy(depth, depth + 1);
      trail_.resize(trail_at_[depth]);
      if (!execute(event, depth + 1) || !reduce(depth + 1)) {
        if (matched_) return Answer::kAllowed;
        continue;
      }
      if (!visit(depth + 1)) {
        if (!complete_) return Answer::kUnknown;
        continue;
      }
      if (query_ && matched_) return Answer::kAllowed;
      ++depth;
    }
    return Answer::kForbidden;
  }

  std::vector<int32_t> witness() const {
    std::vector<int32_t> out;
    for (const int32_t e : trail_) out.push_back(c_.events[e].global);
    return out;
  }

  StateSet& outcomes() { return outcomes_; }
  uint64_t states() const { return seen_.size(); }
  bool complete() const { return complete_; }

 private:
  // Sets of events at one depth.
  enum Set : size_t { kDone, kDead, kReady, kTodo, kSets };

  size_t words() const { return kWords ? kWords : words_; }
  uint64_t* bits(size_t depth, Set set) { return bits_.data() + (depth * kSets + set) * words(); }
  Value* memory(size_t depth) { return values_.data() + depth * cells_; }
  Value* slots(size_t depth) { return memory(depth) + c_.variables.size(); }
  static bool has(const uint64_t* set, int32_t e) { return set[e >> 6] >> (e & 63) & 1; }
  static void put(uint64_t* set, int32_t e) { set[e >> 6] |= uint64_t{1} << (e & 63); }
  static void drop(uint64_t* set, int32_t e) { set[e >> 6] &= ~(uint64_t{1} << (e & 63)); }

  bool within(const uint64_t* small, const uint64_t* large) const {
    for (size_t w = 0; w < words(); ++w) {
      if (small[w] & ~large[w]) return false;
    }
    return true;
  }

  /// True if some event of `set` is neither done nor dead.
  bool any_pending(const uint64_t* set, size_t depth) {
    const uint64_t *done = bits(depth, kDone), *dead = bits(depth, kDead);
    for (size_t w = 0; w < words(); ++w) {
      if (set[w] & ~done[w] & ~dead[w]) return true;
    }
    return false;
  }

  void start() {
    std::ranges::copy(c_.initial, memory(0));
    std::fill_n(slots(0), c_.slots, 0);
    if (c_.dynamic) {
      mark_dead(0);
      return;
    }
    for (size_t e = 0; e < n_; ++e) {
      if (is_ready(static_cast<int32_t>(e), 0)) put(bits(0, kReady), static_cast<int32_t>(e));
    }
  }

  void copy(size_t from, size_t to) {
    std::copy_n(bits(from, kDone), 3 * words(), bits(to, kDone));
    std::copy_n(memory(from), cells_, memory(to));
  }

  /// The next event to try, with the `element_` that a dequeue takes; -1 if all were
  /// tried.
  int32_t take(size_t depth) {
    uint64_t* todo = bits(depth, kTodo);
    for (size_t w = 0; w < words(); ++w) {
      if (!todo[w]) continue;
      const auto e = static_cast<int32_t>((w << 6) + __builtin_ctzll(todo[w]));
      element_ = choices_[depth]++;
      if (choices_[depth] >= elements(e, depth)) {
        todo[w] &= todo[w] - 1;
        choices_[depth] = 0;
      }
      return e;
    }
    return -1;
  }

  /// Number of elements of its queue that an event may take; 1 for other events.
  size_t elements(int32_t e, size_t depth) {
    const LocalEvent& event = c_.events[e];
    if (c_.program->fifo || event.access != Access::kDequeue) return 1;
    return queue_elements(memory(depth)[event.variables[0]], table_).size();
  }

  // --- readiness --------------------------------------------------------------------

  bool is_ready(int32_t e, size_t depth) {
    if (!within(before_.row(e), bits(depth, kDone))) return false;
    if (!c_.dynamic) return true;
    const LocalEvent& event = c_.events[e];
    for (const auto& [token, polarity] : event.guards) {
      if (!token_ready_[token]) {
        if (!c_.program->speculates) return false;
      } else if (!decided(token) || evaluator_.holds(token) != polarity) {
        return false;
      }
    }
    return std::ranges::all_of(event.dynamic,
                               [&](int32_t token) { return token_ready_[token] != 0; });
  }

  /// True if a predicate is ready and has not failed.
  bool decided(int32_t token) { return token_ready_[token] && !evaluator_.failed(token); }

  /// Computes which tokens are ready, and the values that decide others.
  void update_tokens(size_t depth) {
    evaluator_.compute(c_.deciding, read_slots(depth));
    const auto ready = [&](int32_t t) { return token_ready_[t] != 0; };
    const auto done = [&](int32_t e) { return has(bits(depth, kDone), local(e)); };
    for (const int32_t t : c_.watched) {
      const Token& token = c_.program->tokens[t];
      bool out = false;
      switch (token.kind) {
        case TokenKind::kResult: out = done(token.event); break;
        case TokenKind::kStack: out = std::ranges::all_of(token.events, done); break;
        case TokenKind::kFinished:
          out = std::ranges::all_of(
                    token.events,
                    [&](int32_t e) { return done(e) || has(bits(depth, kDead), local(e)); }) &&
                std::ranges::all_of(token.waits, ready);
          break;
        case TokenKind::kPick:
          out = decided(token.inputs[0]) &&
                ready(token.inputs[evaluator_.holds(token.inputs[0]) ? 1 : 2]);
          break;
        default:
          out = std::ranges::all_of(token.inputs, ready) && std::ranges::all_of(token.waits, ready);
      }
      token_ready_[t] = out;
    }
  }

  /// Results of reads; kNoValue for reads that are not done.
  const Value* read_slots(size_t depth) {
    if (!c_.dynamic) return slots(depth);
    available_.assign(slots(depth), slots(depth) + c_.slots);
    for (size_t e = 0; e < n_; ++e) {
      const int32_t slot = c_.events[e].slot;
      if (slot < 0) continue;
      if (!has(bits(depth, kDone), static_cast<int32_t>(e))) {
        available_[slot] = kNoValue;
      } else if (forgotten(slot, depth)) {
        // No event depends on the value, but it is computed and needs the right size.
        available_[slot] = typical_[slot];
      }
    }
    return available_.data();
  }

  /// True if no pending event uses the result in `slot`.
  bool forgotten(int32_t slot, size_t depth) {
    return !keep_[slot] && !any_pending(c_.consumers.row(slot), depth);
  }

  void store(const LocalEvent& event, size_t depth, Value value) {
    if (event.slot < 0) return;
    slots(depth)[event.slot] = value;
    if (typical_[event.slot] == kNoValue) typical_[event.slot] = value;
  }

  int32_t local(int32_t global) {
    if (locals_.empty()) {
      locals_.assign(c_.program->events.size(), -1);
      for (size_t e = 0; e < n_; ++e) locals_[c_.events[e].global] = static_cast<int32_t>(e);
    }
    return locals_[global];
  }

  /// True if all predicates of an event are ready and hold.
  bool chosen(int32_t e) {
    return std::ranges::all_of(c_.events[e].guards, [&](const auto& guard) {
      return decided(guard.first) && evaluator_.holds(guard.first) == guard.second;
    });
  }

  /// True if every event that came before its predicates was chosen by them.
  bool all_chosen(size_t depth) {
    if (!c_.program->speculates || !c_.dynamic) return true;
    update_tokens(depth);
    for (size_t i = 0; i < n_; ++i) {
      const auto e = static_cast<int32_t>(i);
      if (has(bits(depth, kDone), e) && !chosen(e)) return false;
    }
    return true;
  }

  /// Marks the events that are dead now, then those that are ready.
  void mark_dead(size_t depth) {
    for (bool changed = true; changed;) {
      changed = false;
      update_tokens(depth);
      for (size_t i = 0; i < n_; ++i) {
        const auto e = static_cast<int32_t>(i);
        if (has(bits(depth, kDone), e) || has(bits(depth, kDead), e)) continue;
        const bool dies = std::ranges::any_of(c_.events[i].guards, [&](const auto& guard) {
          return decided(guard.first) && evaluator_.holds(guard.first) != guard.second;
        });
        if (!dies) continue;
        put(bits(depth, kDead), e);
        drop(bits(depth, kReady), e);
        changed = true;
      }
    }
    for (size_t i = 0; i < n_; ++i) {
      const auto e = static_cast<int32_t>(i);
      if (has(bits(depth, kDead), e)) {
        forget(e, depth);
      } else if (!has(bits(depth, kDone), e) && is_ready(e, depth)) {
        put(bits(depth, kReady), e);
      }
    }
  }

  /// Clears the results that only `e` used, which are no longer part of the state.
  void forget(int32_t e, size_t depth) {
    for (const int32_t slot : c_.events[e].consumed) {
      if (forgotten(slot, depth)) slots(depth)[slot] = 0;
    }
  }

  /// True if its resource lets a ready event happen now.
  bool possible(int32_t e, size_t depth) {
    const LocalEvent& event = c_.events[e];
    if (event.access == Access::kCheck) return true;
    const Value held = memory(depth)[event.variables[0]];
    switch (event.access) {
      case Access::kAcquire: return held == 0;
      case Access::kEnqueue: {
        const auto capacity = c_.program->capacity[c_.variables[event.variables[0]]];
        return fails(event, depth) ||
               queue_elements(held, table_).size() < static_cast<size_t>(capacity);
      }
      case Access::kDequeue: return fails(event, depth) || !queue_elements(held, table_).empty();
      case Access::kTake: {
        const Value count = memory(depth)[event.variables[kCount]];
        if (count < (event.operands.empty() ? 1 : operand_values(event, depth)[0])) return false;
        int64_t scalar = 0;
        return table_.view(memory(depth)[event.variables[kLine]], scalar)[0] == event.part;
      }
      default: return true;
    }
  }

  /// True if an op ends in an error instead.
  bool fails(const LocalEvent& event, size_t depth) {
    const Value* memory = this->memory(depth);
    const Value held = memory[event.variables[0]];
    switch (event.access) {
      case Access::kEnqueue: return queue_closed(held, table_);
      case Access::kJoin: return operand_values(event, depth)[0] <= 0;
      case Access::kDequeue:
        return queue_closed(held, table_) && queue_elements(held, table_).empty();
      case Access::kRead:
      case Access::kUpdate:
        return c_.program->uninitialized && std::ranges::any_of(event.variables, [&](int32_t v) {
                 return is_empty(memory[v], table_);
               });
      default: return false;
    }
  }

  // --- execution --------------------------------------------------------------------

  /// Executes one event; false if the outcome of the query is then unreachable.
  bool execute(int32_t e, size_t depth) {
    const LocalEvent& event = c_.events[e];
    Value* memory = this->memory(depth);
    if (event.access == Access::kCheck) {
      if (!check(e, depth)) return false;
    } else if (blocking_ && fails(event, depth)) {
      trail_.push_back(e);
      // It has no result that could choose others.
      if (all_chosen(depth) && (!c_.program->speculates || chosen(e))) fail();
      put(bits(depth, kDone), e);
      return false;
    }
    switch (event.access) {
      case Access::kRead: {
        const Value whole = memory[event.variables[0]];
        if (query_ && query_->result[e] != kNoValue &&
            !read_matches(event, whole, query_->result[e])) {
          return false;
        }
        if (event.slot >= 0) {
          store(event, depth, event.gathers ? gathered(*event.op, whole, table_) : whole);
        }
        break;
      }
      case Access::kState:
        store(event, depth, is_empty(memory[event.variables[0]], table_) ? 0 : 1);
        break;
      case Access::kWrite:
        if (query_ && query_->known[e] != kNoValue) {
          memory[event.variables[0]] = query_->known[e];
        } else {
          saw_.clear();
          for (const int32_t slot : event.saw) saw_.push_back(slots(depth)[slot]);
          const auto operands = operand_values(event, depth);
          memory[event.variables[0]] =
              stored(*event.op, saw_, operands, static_cast<size_t>(event.which[0]), table_);
        }
        break;
      case Access::kUpdate: {
        saw_.clear();
        for (const int32_t v : event.variables) saw_.push_back(memory[v]);
        const auto operands = operand_values(event, depth);
        for (size_t i = 0; i < event.variables.size(); ++i) {
          memory[event.variables[i]] =
              stored(*event.op, saw_, operands, static_cast<size_t>(event.which[i]), table_);
        }
        break;
      }
      case Access::kJoin: {
        Value& line = memory[event.variables[0]];
        take_line(line);
        elements_.push_back(event.part);
        line = line_value();
        break;
      }
      case Access::kTake: {
        const Value taken = memory[event.variables[kSum]];
        if (event.slot >= 0) store(event, depth, taken);
        int64_t scalar = 0;
        memory[event.variables[kSum]] = zeros(table_.view(taken, scalar).size());
        memory[event.variables[kCount]] = 0;
        memory[event.variables[kStep]] += 1;
        Value& line = memory[event.variables[kLine]];
        take_line(line);
        elements_.erase(elements_.begin());
        line = line_value();
        break;
      }
      case Access::kSnapshot:
        if (event.slot >= 0) store(event, depth, snapshot(event, memory));
        break;
      case Access::kWriteBack:
        evaluator_.compute(event.closure, read_slots(depth));
        for (size_t i = 0; i < event.variables.size(); ++i) {
          if (evaluator_.holds(event.operands[2 * i + 1])) {
            memory[event.variables[i]] = evaluator_.value(event.operands[2 * i]);
          }
        }
        break;
      default: break;  // queue_or_mutex
    }
    if (blocking_ && event.access != Access::kCheck && !queue_or_mutex(e, depth)) return false;
    put(bits(depth, kDone), e);
    drop(bits(depth, kReady), e);
    forget(e, depth);
    trail_.push_back(e);
    if (c_.dynamic) {
      mark_dead(depth);
    } else {
      const uint64_t *done = bits(depth, kDone), *next = direct_.row(e);
      uint64_t* ready = bits(depth, kReady);
      for (size_t w = 0; w < words(); ++w) {
        for (uint64_t rest = next[w] & ~done[w]; rest; rest &= rest - 1) {
          const auto other = static_cast<int32_t>((w << 6) + __builtin_ctzll(rest));
          if (within(before_.row(other), done)) put(ready, other);
        }
      }
    }
    if (query_ && !only_reads(event.access)) {
      for (const int32_t v : event.variables) {
        if (!reachable(v, depth)) return false;
      }
    }
    return true;
  }

  /// Computes a pure op that may fail; false if the order ends there.
  ///
  /// An order ends as soon as an op fails: `reduce` makes checks before any other event, so that
  /// no event uses a value that has failed.
  bool check(int32_t e, size_t depth) {
    const LocalEvent& event = c_.events[e];
    evaluator_.compute(event.closure, read_slots(depth));
    if (!evaluator_.failed(event.operands[0])) {
      evaluator_.value(event.operands[0]);  // may be too large
      return true;
    }
    if (all_chosen(depth)) fail();
    return event.part == kOptional && !matched_;
  }

  /// The concatenated variables of a cluster.
  Value snapshot(const LocalEvent& event, const Value* memory) {
    if (event.variables.size() == 1) return memory[event.variables[0]];
    std::vector<int64_t> ints;
    for (const int32_t v : event.variables) {
      int64_t scalar = 0;
      const auto more = table_.view(memory[v], scalar);
      ints.insert(ints.end(), more.begin(), more.end());
    }
    return table_.intern(ints);
  }

  /// Actions on queues and mutexes (rules 2 and 4); returns as `execute` does.
  bool queue_or_mutex(int32_t e, size_t depth) {
    const LocalEvent& event = c_.events[e];
    Value& held = memory(depth)[event.variables[0]];
    Value returned = kNoValue;
    switch (event.access) {
      case Access::kAcquire: held = 1; return true;
      case Access::kRelease: held = 0; return true;
      case Access::kEnqueue: {
        Value element = operand_values(event, depth)[0];
        if (event.part >= 0) {
          int64_t scalar = 0;
          element = static_cast<Value>(table_.view(element, scalar)[event.part]);
        }
        take_elements(held);
        elements_.push_back(element);
        held = queue_value(false, elements_, table_);
        return true;
      }
      case Access::kClose:
        take_elements(held);
        held = queue_value(true, elements_, table_);
        return true;
      case Access::kDequeue: {
        const bool closed = queue_closed(held, table_);
        take_elements(held);
        returned = static_cast<Value>(elements_[element_]);
        elements_.erase(elements_.begin() + static_cast<std::ptrdiff_t>(element_));
        held = queue_value(closed, elements_, table_);
        break;
      }
      case Access::kSize: returned = static_cast<Value>(queue_elements(held, table_).size()); break;
      default: return true;
    }
    if (query_ && query_->dequeued[e] != kNoValue && query_->dequeued[e] != returned) return false;
    store(event, depth, returned);
    return true;
  }

  /// The resources of kTake.
  enum Cell : size_t { kSum, kCount, kStep, kLine };

  /// Copies the line of an accumulator, whose value is 0 if nobody waits, into `elements_`.
  void take_line(Value line) {
    int64_t scalar = 0;
    const auto ints = table_.view(line, scalar);
    elements_.clear();
    if (line != 0) elements_.assign(ints.begin(), ints.end());
  }

  Value line_value() {
    if (elements_.empty()) return 0;
    const std::vector<int64_t> ints(elements_.begin(), elements_.end());
    return table_.intern(ints);
  }

  Value zeros(size_t count) { return table_.intern(std::vector<int64_t>(count, 0)); }

  void take_elements(Value queue) {
    const auto ints = queue_elements(queue, table_);
    elements_.assign(ints.begin(), ints.end());
  }

  bool read_matches(const LocalEvent& event, Value whole, Value wanted) const {
    if (is_empty(whole, table_)) return false;  // the read fails
    return event.gathers ? gathers(*event.op, whole, wanted, table_) : whole == wanted;
  }

  std::span<const Value> operand_values(const LocalEvent& event, size_t depth) {
    evaluator_.compute(event.closure, read_slots(depth));
    operands_.clear();
    for (const int32_t t : event.operands) operands_.push_back(evaluator_.value(t));
    return operands_;
  }

  /// True if all pending reads of `v`, and its final value, can still have the values
  /// of the outcome: from memory, or from a pending write.
  bool reachable(int32_t v, size_t depth) {
    const Value now = memory(depth)[v];
    const uint64_t *done = bits(depth, kDone), *dead = bits(depth, kDead);
    const uint64_t* reads = query_->reads.row(v);
    for (size_t w = 0; w < words(); ++w) {
      for (uint64_t rest = reads[w] & ~done[w] & ~dead[w]; rest; rest &= rest - 1) {
        const auto read = static_cast<int32_t>((w << 6) + __builtin_ctzll(rest));
        if (any_pending(query_->sources.row(read), depth)) continue;
        if (!read_matches(c_.events[read], now, query_->result[read])) return false;
      }
    }
    const Value last = query_->last[v];
    return last == kAnything || last == contents(static_cast<size_t>(v), depth) ||
           any_pending(query_->final_sources.row(v), depth);
  }

  /// Partial-order reduction: executes events that need no alternatives; false if the
  /// outcome of the query is unreachable.
  ///
  /// These are: an event that conflicts with no pending event that may come before it;
  /// a read that finds the value of the outcome, since later it would return the same;
  /// a read whose result no event uses.
  bool reduce(size_t depth) {
    const uint64_t* ready = bits(depth, kReady);
    bool changed = true;
    while (changed) {
      changed = false;
      if (!make_checks(depth)) return false;
      for (size_t w = 0; w < words(); ++w) {
        for (uint64_t rest = ready[w]; rest; rest &= rest - 1) {
          const auto e = static_cast<int32_t>((w << 6) + __builtin_ctzll(rest));
          if (!has(ready, e)) continue;  // dead meanwhile
          if (blocking_ && !possible(e, depth)) continue;
          const LocalEvent& event = c_.events[e];
          // An event with alternatives needs the full search.
          if (elements(e, depth) > 1 || (c_.program->speculates && !chosen(e))) continue;
          element_ = 0;
          const bool read = event.access == Access::kRead;
          if (read && query_ && query_->result[e] != kNoValue) {
            const Value now = memory(depth)[event.variables[0]];
            if (!read_matches(event, now, query_->result[e])) {
              if (!any_pending(blockers_.row(e), depth)) return false;
              continue;
            }
          } else if ((!(only_reads(event.access) && event.slot < 0) ||
                      (blocking_ && fails(event, depth))) &&
                     any_pending(blockers_.row(e), depth)) {
            continue;
          }
          if (!execute(e, depth) || !make_checks(depth)) return false;
          changed = true;
        }
      }
    }
    trail_at_[depth] = trail_.size();
    return true;
  }

  /// Makes all checks that are ready; false if the order ends in one.
  bool make_checks(size_t depth) {
    for (size_t i = 0; c_.program->checks && i < n_; ++i) {
      const auto e = static_cast<int32_t>(i);
      if (c_.events[i].access != Access::kCheck || !has(bits(depth, kReady), e)) continue;
      if (c_.program->speculates && !chosen(e)) continue;
      if (!execute(e, depth)) return false;
    }
    return true;
  }

  // --- states -----------------------------------------------------------------------

  /// Stores the state and its enabled events; false if the state was known, or if the
  /// order ends here.
  bool visit(size_t depth) {
    const uint64_t *done = bits(depth, kDone), *dead = bits(depth, kDead);
    const uint64_t* ready = bits(depth, kReady);
    uint64_t* todo = bits(depth, kTodo);
    choices_[depth] = 0;
    size_t finished = 0;
    bool enabled = false;
    for (size_t w = 0; w < words(); ++w) {
      finished += static_cast<size_t>(__builtin_popcountll(done[w] | dead[w]));
      todo[w] = ready[w];
      for (uint64_t rest = blocking_ ? ready[w] : 0; rest; rest &= rest - 1) {
        const auto e = static_cast<int32_t>((w << 6) + __builtin_ctzll(rest));
        if (!possible(e, depth)) drop(todo, e);
      }
      enabled |= todo[w] != 0;
    }
    if (!enabled) {
      end(depth, finished == n_ ? Status::kCompleted : Status::kBlocked);
      return matched_;
    }
    write_key(depth);
    if (seen_.size() >= budget_.states || bytes() > budget_.bytes) {
      complete_ = seen_.contains(key_.data());
      return false;
    }
    if (!seen_.insert(key_.data())) return false;
    if (budget_.heed && seen_.size() % kHeedEvery == 0) budget_.heed(seen_.size());
    if (query_) {
      for (size_t w = 0; w < words(); ++w) {
        for (uint64_t rest = ready[w]; rest; rest &= rest - 1) {
          const auto e = static_cast<int32_t>((w << 6) + __builtin_ctzll(rest));
          // `reduce` would have executed the read if it had found its value.
          if (query_->result[e] != kNoValue) drop(todo, e);
        }
      }
    }
    return true;
  }

  /// Handles the end of a total order: adds its outcome, or compares it with the query.
  void end(size_t depth, Status status) {
    const auto shown = [&](size_t i) {
      if (status == Status::kCompleted) return true;
      if (c_.dynamic) return token_ready_[c_.observations[i].ended] != 0;
      return within(c_.endings.row(i), bits(depth, kDone));
    };
    if (c_.dynamic) update_tokens(depth);
    if (!all_chosen(depth)) return;
    if (!query_) {
      row_.assign(1, static_cast<uint32_t>(status));
      for (size_t i = 0; i < c_.observations.size(); ++i) {
        const Value value = shown(i) ? observed(c_.observations[i], depth) : kAbsent;
        row_.push_back(static_cast<uint32_t>(value));
      }
      for (size_t v = 0; v < c_.variables.size(); ++v) {
        row_.push_back(static_cast<uint32_t>(contents(v, depth)));
      }
      outcomes_.insert(row_.data());
      return;
    }
    if (status != query_->status) return;
    for (size_t v = 0; v < c_.variables.size(); ++v) {
      const Value last = query_->last[v];
      if (last != kAnything && last != contents(v, depth)) return;
    }
    for (size_t i = 0; i < c_.observations.size(); ++i) {
      const Observation& each = c_.observations[i];
      const Value wanted = query_->wanted[i];
      if (wanted == kAnything) continue;
      if (shown(i) == (wanted == kAbsent)) return;
      // The result of a read was compared when the read was done.
      if (wanted != kAbsent && each.event < 0 && observed(each, depth) != wanted) return;
    }
    matched_ = true;
  }

  /// Handles an order that ends in an op's error, which shows no values.
  void fail() {
    if (query_) {
      matched_ = query_->status == Status::kFailed;
      return;
    }
    row_.assign(1, static_cast<uint32_t>(Status::kFailed));
    row_.resize(1 + c_.observations.size() + c_.variables.size(), static_cast<uint32_t>(kAbsent));
    outcomes_.insert(row_.data());
  }

  /// A resource's contents in an outcome, which shows neither closed queues nor held
  /// mutexes.
  Value contents(size_t v, size_t depth) {
    const Value held = memory(depth)[v];
    if (static_cast<size_t>(c_.variables[v]) >= c_.program->finals()) return 0;
    if (!c_.program->is_queue(static_cast<size_t>(c_.variables[v])) ||
        !queue_closed(held, table_)) {
      return held;
    }
    take_elements(held);
    return queue_value(false, elements_, table_);
  }

  Value observed(const Observation& each, size_t depth) {
    if (each.slot >= 0) return slots(depth)[each.slot];
    evaluator_.compute(each.closure, read_slots(depth));
    return evaluator_.value(each.token);
  }

  /// Writes the state as a key, with symmetric op instances in a canonical order.
  void write_key(size_t depth) {
    uint32_t* out = key_.data();
    const auto put_set = [&](const uint64_t* set) {
      for (size_t w = 0; w < words(); ++w) {
        *out++ = static_cast<uint32_t>(set[w]);
        *out++ = static_cast<uint32_t>(set[w] >> 32);
      }
    };
    put_set(bits(depth, kDone));
    if (c_.dynamic) put_set(bits(depth, kDead));
    std::memcpy(out, memory(depth), cells_ * sizeof(uint32_t));
    for (const auto& symmetric : c_.symmetric) {
      canonicalize(symmetric, depth, out + c_.variables.size());
    }
  }

  /// Sorts the symmetric instances of one class within the key, by their events done
  /// and their results of reads.
  void canonicalize(const std::vector<std::vector<int32_t>>& symmetric, size_t depth,
                    uint32_t* slots_out) {
    const size_t size = symmetric[0].size();
    const uint64_t* done = bits(depth, kDone);
    const Value* slots_now = slots(depth);
    instance_states_.clear();
    for (const auto& member : symmetric) {
      for (const int32_t e : member) {
        const int32_t slot = c_.events[e].slot;
        const Value value = slot >= 0 ? slots_now[slot] : 0;
        instance_states_.push_back({has(done, e), value});
      }
    }
    order_.resize(symmetric.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    const auto part = [&](size_t i) { return instance_states_.begin() + i * size; };
    std::ranges::sort(order_, [&](size_t a, size_t b) {
      return std::lexicographical_compare(part(a), part(a) + size, part(b), part(b) + size);
    });
    uint32_t* sets = key_.data();
    for (size_t i = 0; i < symmetric.size(); ++i) {
      for (size_t j = 0; j < size; ++j) {
        const int32_t e = symmetric[i][j];
        const auto& [is_done, value] = *(part(order_[i]) + j);
        const uint32_t bit = uint32_t{1} << (e & 31);
        sets[e >> 5] = is_done ? sets[e >> 5] | bit : sets[e >> 5] & ~bit;
        const int32_t slot = c_.events[e].slot;
        if (slot >= 0) slots_out[slot] = static_cast<uint32_t>(value);
      }
    }
  }

  size_t bytes() const { return seen_.needed() + outcomes_.needed() + table_.bytes(); }

  const Component& c_;
  const Query* query_;
  const Budget budget_;
  ValueTable& table_;
  Evaluator evaluator_;
  const BitMatrix &before_, &direct_, &blockers_;
  const size_t n_, words_, cells_;
  std::vector<uint32_t> key_;
  StateSet seen_;
  const bool blocking_;
  StateSet outcomes_;
  std::vector<uint8_t> keep_;   // by slot: the end of an order needs it
  std::vector<Value> typical_;  // by slot: some result of the read
  // By depth: one state for each choice on the current path.
  std::vector<uint64_t> bits_;
  std::vector<Value> values_;
  std::vector<size_t> trail_at_;
  std::vector<size_t> choices_;  // elements tried of the current event
  size_t element_ = 0;           // the element that a dequeue takes
  std::vector<int32_t> trail_;   // events executed
  std::vector<Value> saw_, operands_, available_, elements_;
  std::vector<uint32_t> row_;
  std::vector<std::pair<bool, Value>> instance_states_;
  std::vector<size_t> order_;
  std::vector<uint8_t> token_ready_;  // if dynamic
  std::vector<int32_t> locals_;
  bool matched_ = false;
  bool complete_ = true;
};

template <typename F>
auto with_words(const Component& component, F&& f) {
  if (component.words <= 1) return f.template operator()<1>();
  if (component.words == 2) return f.template operator()<2>();
  return f.template operator()<0>();
}

}  // namespace

namespace {

Found explore_plainly(const Component& component, const Budget& budget, ValueTable& table) {
  return with_words(component, [&]<size_t kWords>() {
    Search<kWords> search(component, nullptr, budget, table);
    search.run();
    const uint64_t states = search.states();
    return Found{std::move(search.outcomes()), states, states, search.complete()};
  });
}

Membership decide_plainly(Query& query, const Budget& budget, ValueTable& table) {
  const Component& component = query.component;
  return with_words(component, [&]<size_t kWords>() {
    Search<kWords> search(component, &query, budget, table);
    Membership out;
    out.answer = search.run();
    out.states = search.states();
    if (out.answer == Answer::kAllowed) out.witness = search.witness();
    return out;
  });
}

/// Past the first states of the plain search.
Found explore_further(const Component& component, const Budget& budget, ValueTable& table) {
  if (handles_live(component) && !uses_calls(component)) {
    // Where every value is used, the search over live values may have more states.
    auto found = explore_live(component, budget, table);
    if (found && found->complete) return std::move(*found);
  }
  return explore_plainly(component, budget, table);
}

}  // namespace

Found explore(const Component& component, const Budget& budget, ValueTable& table) {
  if (budget.plain >= budget.states) return explore_plainly(component, budget, table);
  Found first =
      explore_plainly(component, {budget.plain, budget.bytes, UINT64_MAX, budget.heed}, table);
  if (first.complete) return first;
  const Symmetry symmetry(component, table);
  if (!symmetry.found()) return explore_further(component, budget, table);
  return symmetry.expand(explore_further(symmetry.ordered(), budget, table), budget);
}

Membership decide(Query& query, const Budget& budget, ValueTable& table) {
  if (query.impossible || !query.saturate()) return {};
  const bool live = budget.plain < budget.states && handles_live(query.component);
  if (!live) return decide_plainly(query, budget, table);
  Membership first =
      decide_plainly(query, {budget.plain, budget.bytes, UINT64_MAX, budget.heed}, table);
  if (first.answer != Answer::kUnknown) return first;
  auto found = decide_live(query, budget, table);
  return found && found->answer != Answer::kUnknown ? std::move(*found)
                                                    : decide_plainly(query, budget, table);
}

}  // namespace litmusfuzz::oracle
