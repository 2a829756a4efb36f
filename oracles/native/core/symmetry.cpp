#include "symmetry.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace litmusfuzz::oracle {
namespace {

bool same_op(const Op& one, const Op& other) {
  if (&one == &other) return true;
  // Two functions of the caller's may be the same, but nothing says so.
  return one.code == other.code && one.code != OpCode::kCalled && one.nesterov == other.nesterov &&
         one.rows == other.rows && one.row_size == other.row_size && one.n == other.n &&
         one.k == other.k && one.m == other.m;
}

}  // namespace

Symmetry::Symmetry(const Component& component, ValueTable& table)
    : original_(component), table_(table), ordered_(component) {
  if (component.dynamic || component.program->speculates) return;
  local_.assign(component.program->events.size(), -1);
  for (size_t e = 0; e < component.events.size(); ++e) {
    local_[component.events[e].global] = static_cast<int32_t>(e);
  }
  const Threads all = threads();
  find(all);
  if (!only_moves()) return;
  const auto without = std::move(exchanges_);
  const Component plain = std::move(ordered_);
  exchanges_.clear();
  ordered_ = component;
  add_symbols();
  find(all);
  if (exchanges_.size() > without.size()) return;
  exchanges_ = without;
  ordered_ = plain;
  symbols_.clear();
}

/// True if no event and no observed token computes with a value, or looks into it.
bool Symmetry::only_moves() const {
  const Program& program = *original_.program;
  const auto moves = [&](int32_t t) {
    const Token& token = program.tokens[t];
    switch (token.kind) {
      case TokenKind::kResult:
      case TokenKind::kHeld: return true;
      case TokenKind::kPure: return token.op < 0 || program.ops[token.op].code == OpCode::kIdentity;
      default: return false;
    }
  };
  const auto all_move = [&](const std::vector<int32_t>& closure) {
    return std::ranges::all_of(closure, moves);
  };
  return std::ranges::all_of(original_.events,
                             [&](const LocalEvent& event) {
                               switch (event.access) {
                                 case Access::kRead:
                                 case Access::kState:
                                 case Access::kAcquire:
                                 case Access::kRelease:
                                 case Access::kDequeue:
                                 case Access::kSize:
                                 case Access::kClose: break;
                                 case Access::kWrite:
                                   if (event.op->code != OpCode::kAssign) return false;
                                   break;
                                 case Access::kEnqueue:
                                   if (event.part >= 0) return false;
                                   break;
                                 default: return false;
                               }
                               return !event.gathers && all_move(event.closure);
                             }) &&
         std::ranges::all_of(original_.observations,
                             [&](const Observation& each) { return all_move(each.closure); });
}

/// Gives each constant that an event stores a symbol, unlike any value of a test.
void Symmetry::add_symbols() {
  program_ = std::make_unique<Program>(*original_.program);
  for (LocalEvent& event : ordered_.events) {
    for (int32_t& t : event.operands) {
      const Token token = program_->tokens[t];
      if (token.kind != TokenKind::kConst) continue;
      const std::array<int64_t, 2> ints{kMaxMagnitude, static_cast<int64_t>(symbols_.size())};
      symbols_.emplace_back(table_.intern(ints), token.value);
      t = static_cast<int32_t>(program_->tokens.size());
      program_->tokens.push_back({.kind = TokenKind::kConst, .value = symbols_.back().first});
    }
  }
  ordered_.program = program_.get();
}

bool Symmetry::is_symbol(Value value) const {
  return std::ranges::any_of(symbols_, [&](const auto& each) { return each.first == value; });
}

/// Sets of events that no order connects; each in ascending order.
Symmetry::Threads Symmetry::threads() const {
  const size_t n = original_.events.size();
  std::vector<size_t> thread(n);
  std::iota(thread.begin(), thread.end(), 0);
  for (size_t e = 0; e < n; ++e) {
    for_each_bit(original_.before.row(e), original_.words, [&](int32_t other) {
      const size_t old = thread[e], now = thread[other];
      if (old != now) std::ranges::replace(thread, old, now);
    });
  }
  std::map<size_t, std::vector<int32_t>> found;
  for (size_t e = 0; e < n; ++e) found[thread[e]].push_back(static_cast<int32_t>(e));
  Threads out;
  for (auto& [first, events] : found) out.push_back(std::move(events));
  return out;
}

/// Finds classes of interchangeable threads, and orders them.
void Symmetry::find(const Threads& threads) {
  Threads classes;  // by class: the first events of its threads
  std::vector<const std::vector<int32_t>*> first;  // by class: its first thread
  for (const auto& thread : threads) {
    // Search::canonicalize does better with equal instances whose results nobody sees.
    const bool canonical = std::ranges::any_of(original_.symmetric, [&](const auto& members) {
      return std::ranges::any_of(members, [&](const auto& each) { return each == thread; });
    });
    if (canonical) continue;
    bool placed = false;
    for (size_t i = 0; !placed && i < classes.size(); ++i) {
      Exchange exchange;
      if (!is_exchange(*first[i], thread, exchange)) continue;
      placed = true;
      classes[i].push_back(thread[0]);
      exchanges_.push_back(std::move(exchange));
    }
    if (placed) continue;
    classes.push_back({thread[0]});
    first.push_back(&thread);
  }
  order(classes);
}

/// True if the exchange of two threads changes nothing but which is which.
bool Symmetry::is_exchange(const std::vector<int32_t>& one, const std::vector<int32_t>& other,
                           Exchange& out) const {
  if (one.size() != other.size()) return false;
  const size_t n = ordered_.events.size(), words = ordered_.words;
  Mapping mapping;
  mapping.events.resize(n);
  std::iota(mapping.events.begin(), mapping.events.end(), 0);
  for (size_t k = 0; k < one.size(); ++k) {
    mapping.events[one[k]] = other[k];
    mapping.events[other[k]] = one[k];
  }
  const auto same_set = [&](const uint64_t* from, const uint64_t* to) {
    size_t count = 0, size = 0;
    bool same = true;
    for_each_bit(to, words, [&](int32_t) { ++size; });
    for_each_bit(from, words, [&](int32_t e) {
      const int32_t there = mapping.events[e];
      same = same && (to[there >> 6] >> (there & 63) & 1);
      ++count;
    });
    return same && count == size;
  };
  for (size_t e = 0; e < n; ++e) {
    const LocalEvent& from = ordered_.events[e];
    const LocalEvent& to = ordered_.events[mapping.events[e]];
    if (from.access != to.access || !same_op(*from.op, *to.op) || from.gathers != to.gathers ||
        from.part != to.part || from.variables != to.variables || from.which != to.which ||
        (from.slot < 0) != (to.slot < 0) || from.operands.size() != to.operands.size() ||
        !same_set(original_.before.row(e), original_.before.row(mapping.events[e]))) {
      return false;
    }
    const Program& program = *ordered_.program;
    if (!same_events(program.events[from.global].after, program.events[to.global].after, mapping)) {
      return false;
    }
    for (size_t i = 0; i < from.operands.size(); ++i) {
      if (!same_token(from.operands[i], to.operands[i], mapping)) return false;
    }
  }
  const size_t observed = ordered_.observations.size();
  std::vector<uint8_t> taken(observed);
  for (size_t i = 0; i < observed; ++i) {
    size_t goes = observed;
    for (size_t j = 0; goes == observed && j < observed; ++j) {
      const bool ends = ordered_.endings.rows() == 0 ||
                        same_set(ordered_.endings.row(i), ordered_.endings.row(j));
      Mapping tried = mapping;
      if (!taken[j] && ends &&
          same_token(ordered_.observations[i].token, ordered_.observations[j].token, tried)) {
        goes = j;
      }
    }
    if (goes == observed) return false;
    taken[goes] = 1;
    out.observations.push_back(goes);
  }
  out.symbols = std::move(mapping.symbols);
  return true;
}

/// True if the exchange turns the value of one token into that of the other.
bool Symmetry::same_token(int32_t one, int32_t other, Mapping& mapping) const {
  if (!mapping.tokens.emplace(one, other).second) return true;
  const Program& program = *ordered_.program;
  const Token &from = program.tokens[one], &to = program.tokens[other];
  if (from.kind != to.kind || from.first != to.first || from.count != to.count ||
      from.inputs.size() != to.inputs.size() || (from.op < 0) != (to.op < 0) ||
      (from.event < 0) != (to.event < 0)) {
    return false;
  }
  if (from.kind == TokenKind::kConst) {
    if (is_symbol(from.value) && is_symbol(to.value)) {
      if (from.value != to.value) mapping.symbols.emplace_back(from.value, to.value);
      return true;
    }
    return from.value == to.value;
  }
  if (from.op >= 0 && !same_op(program.ops[from.op], program.ops[to.op])) return false;
  if (from.event >= 0 && !same_events({from.event}, {to.event}, mapping)) return false;
  if (!same_events(from.events, to.events, mapping)) return false;
  for (size_t i = 0; i < from.inputs.size(); ++i) {
    if (!same_token(from.inputs[i], to.inputs[i], mapping)) return false;
  }
  return true;
}

bool Symmetry::same_events(const std::vector<int32_t>& one, const std::vector<int32_t>& other,
                           Mapping& mapping) const {
  return std::ranges::equal(one, other, [&](int32_t from, int32_t to) {
    return local_[from] >= 0 && local_[to] >= 0 && mapping.events[local_[from]] == local_[to];
  });
}

/// Adds edges between the first events of each class.
void Symmetry::order(const Threads& classes) {
  const size_t n = ordered_.events.size(), words = ordered_.words;
  for (const auto& events : classes) {
    for (size_t i = 1; i < events.size(); ++i) {
      const int32_t earlier = events[i - 1], later = events[i];
      ordered_.direct.set(earlier, later);
      for (size_t e = 0; e < n; ++e) {
        if (static_cast<int32_t>(e) != later && !ordered_.before.test(e, later)) continue;
        ordered_.before.set(e, earlier);
        ordered_.before.merge(e, ordered_.before, earlier);
      }
    }
    if (events.size() < 2) continue;
    std::erase_if(ordered_.symmetric, [&](const auto& members) {
      return std::ranges::any_of(members, [&](const auto& member) {
        return std::ranges::any_of(
            member, [&](int32_t e) { return std::ranges::find(events, e) != events.end(); });
      });
    });
  }
  for (size_t e = 0; e < n; ++e) {
    for_each_bit(ordered_.before.row(e), words, [&](int32_t other) {
      ordered_.blockers.row(other)[e >> 6] &= ~(uint64_t{1} << (e & 63));
    });
  }
}

/// A resource's contents, with each value changed.
Value Symmetry::contents(size_t variable, Value held, const auto& change) const {
  if (!original_.program->is_queue(static_cast<size_t>(original_.variables[variable]))) {
    return change(held);
  }
  std::vector<Value> elements;
  for (const int64_t each : queue_elements(held, table_)) {
    elements.push_back(change(static_cast<Value>(each)));
  }
  return queue_value(queue_closed(held, table_), elements, table_);
}

Found Symmetry::expand(Found found, const Budget& budget) const {
  const size_t observed = original_.observations.size(), variables = original_.variables.size();
  const size_t width = 1 + observed + variables;
  std::vector<uint32_t> row(width);
  // The row that `change`, of values, and the places of observations make of another.
  const auto make = [&](const uint32_t* from, const auto& change, const auto& place) {
    row[0] = from[0];
    for (size_t i = 0; i < observed; ++i) {
      row[1 + place(i)] = static_cast<uint32_t>(change(static_cast<Value>(from[1 + i])));
    }
    const bool failed = static_cast<Status>(from[0]) == Status::kFailed;  // shows nothing
    for (size_t v = 0; v < variables; ++v) {
      const auto held = static_cast<Value>(from[1 + observed + v]);
      const bool resource =
          static_cast<size_t>(original_.variables[v]) < original_.program->finals();
      row[1 + observed + v] =
          static_cast<uint32_t>(failed || !resource ? held : contents(v, held, change));
    }
  };
  StateSet& rows = found.outcomes;
  const auto within = [&](const StateSet& set) {
    return set.size() <= budget.states &&
           rows.needed() + set.needed() + table_.bytes() <= budget.bytes;
  };
  for (size_t number = 0; number < rows.size() && found.complete; ++number) {
    if (budget.heed && (number + 1) % kHeedEvery == 0) budget.heed(found.states);
    const std::vector<uint32_t> from(rows.row(number), rows.row(number) + width);
    for (const Exchange& exchange : exchanges_) {
      make(
          from.data(),
          [&](Value value) {
            for (const auto& [symbol, other] : exchange.symbols) {
              if (symbol == value) return other;
            }
            return value;
          },
          [&](size_t i) { return exchange.observations[i]; });
      rows.insert(row.data());
    }
    found.complete = within(rows);
  }
  if (symbols_.empty()) return found;
  StateSet out(width);
  for (size_t number = 0; number < rows.size(); ++number) {
    make(
        rows.row(number),
        [&](Value value) {
          for (const auto& [symbol, constant] : symbols_) {
            if (symbol == value) return constant;
          }
          return value;
        },
        [](size_t i) { return i; });
    out.insert(row.data());
    found.complete = found.complete && within(out);
  }
  found.outcomes = std::move(out);
  return found;
}

}  // namespace litmusfuzz::oracle
