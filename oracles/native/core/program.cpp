#include "program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace litmusfuzz::oracle {

Value queue_value(bool closed, std::span<const Value> elements, ValueTable& table) {
  // At least two ints, so that the value is never a scalar.
  std::vector<int64_t> ints{closed, static_cast<int64_t>(elements.size())};
  ints.insert(ints.end(), elements.begin(), elements.end());
  return table.intern(ints);
}

bool queue_closed(Value queue, const ValueTable& table) {
  int64_t scalar = 0;
  return table.view(queue, scalar)[0] != 0;
}

std::span<const int64_t> queue_elements(Value queue, const ValueTable& table) {
  int64_t scalar = 0;
  return table.view(queue, scalar).subspan(2);
}

std::vector<int32_t> value_closure(const Program& program, std::vector<int32_t> stack) {
  std::vector<int32_t> found;
  std::vector<uint8_t> seen(program.tokens.size());
  while (!stack.empty()) {
    const int32_t t = stack.back();
    stack.pop_back();
    if (seen[t] || program.tokens[t].kind == TokenKind::kConst) continue;
    seen[t] = 1;
    found.push_back(t);
    const auto& inputs = program.tokens[t].inputs;
    stack.insert(stack.end(), inputs.begin(), inputs.end());
  }
  std::ranges::sort(found);
  return found;
}

namespace {

class Unions {
 public:
  explicit Unions(size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0); }
  size_t find(size_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void join(size_t a, size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<size_t> parent_;
};

/// Builds one component; `events` are its events in the program's order.
class Builder {
 public:
  Builder(const Program& program, const std::vector<uint8_t>& sourceless,
          std::vector<int32_t> events, std::vector<int32_t> variables,
          std::vector<int32_t> observed)
      : program_(program), sourceless_(sourceless), members_(std::move(events)) {
    out_.program = &program;
    out_.variables = std::move(variables);
    for (const int32_t v : out_.variables) out_.initial.push_back(program.initial[v]);
    for (const int32_t place : observed) {
      const int32_t token = program.observed[place];
      out_.observations.push_back(
          {token, place, program.ended[place], -1, -1, value_closure(program, {token}), {}});
    }
  }

  Component build() {
    const size_t n = members_.size();
    out_.words = (n + 63) / 64;
    local_.assign(program_.events.size(), -1);
    for (size_t i = 0; i < n; ++i) local_[members_[i]] = static_cast<int32_t>(i);
    local_variable_.assign(program_.initial.size(), -1);
    for (size_t v = 0; v < out_.variables.size(); ++v) {
      local_variable_[out_.variables[v]] = static_cast<int32_t>(v);
    }
    for (const int32_t e : members_) add(e);
    order();
    keep_values();
    watch();
    conflict();
    find_endings();
    find_symmetric_instances();
    return std::move(out_);
  }

 private:
  void add(int32_t global) {
    const Event& event = program_.events[global];
    LocalEvent local{.access = event.access, .op = &program_.ops[event.op]};
    local.global = global;
    local.gathers = local.op->code == OpCode::kNothing && !local.op->rows.empty();
    for (const int32_t v : event.variables) {
      local.variables.push_back(local_variable_[v]);
      const auto place = std::ranges::find(event.resources, v);
      local.which.push_back(static_cast<int32_t>(place - event.resources.begin()));
    }
    local.operands = event.operands;
    local.closure = value_closure(program_, event.operands);
    local.guards = event.guards;
    local.part = event.part;
    out_.dynamic |= !event.guards.empty();
    out_.events.push_back(std::move(local));
  }

  /// Computes the order of events. `front_` has the events that a token waits for
  /// directly; `dynamic_` marks tokens whose readiness depends on more than events.
  void order() {
    const size_t n = members_.size(), words = out_.words;
    out_.before = BitMatrix(n, words);
    out_.direct = BitMatrix(n, words);
    front_ = BitMatrix(program_.tokens.size(), words);
    dynamic_.assign(program_.tokens.size(), 0);
    for (size_t t = 0; t < program_.tokens.size(); ++t) resolve(static_cast<int32_t>(t));
    BitMatrix wanted(1, words);
    for (size_t e = 0; e < n; ++e) {
      const Event& event = program_.events[members_[e]];
      std::fill_n(wanted.row(0), words, 0);
      for (const int32_t t : event.needs) {
        wanted.merge(0, front_, t);
        if (dynamic_[t]) out_.events[e].dynamic.push_back(t);
      }
      for (const auto& [t, polarity] : event.guards) {
        if (!program_.speculates) wanted.merge(0, front_, t);
      }
      for (const int32_t other : event.after) wanted.set(0, local_[other]);
      out_.dynamic |= !out_.events[e].dynamic.empty();
      for_each_bit(wanted.row(0), words, [&](int32_t other) {
        out_.direct.set(other, e);
        out_.before.set(e, other);
        out_.before.merge(e, out_.before, other);
      });
    }
  }

  void resolve(int32_t t) {
    const Token& token = program_.tokens[t];
    if (sourceless_[t]) return;
    for_each_result(token, [&](int32_t e) {
      if (local_[e] >= 0) front_.set(t, local_[e]);
    });
    if (token.kind == TokenKind::kFinished) {
      for (const int32_t e : token.events) {
        // An event without guards is never dead: the token always waits for it.
        dynamic_[t] |= !program_.events[e].guards.empty();
        if (local_[e] >= 0 && program_.events[e].guards.empty()) front_.set(t, local_[e]);
      }
      for (const int32_t other : token.waits) follow(t, other);
      return;
    }
    dynamic_[t] = token.kind == TokenKind::kPick;
    // A choice always waits for its predicate only.
    const size_t inputs = token.kind == TokenKind::kPick ? 1 : token.inputs.size();
    for (size_t i = 0; i < inputs; ++i) follow(t, token.inputs[i]);
    for (const int32_t other : token.waits) follow(t, other);
  }

  void follow(int32_t t, int32_t other) {
    front_.merge(t, front_, other);
    dynamic_[t] |= dynamic_[other];
  }

  /// Assigns slots to the results of reads, and finds the consumers of each slot.
  void keep_values() {
    auto& events = out_.events;
    out_.slot_of.assign(program_.events.size(), -1);
    const auto slot = [&](int32_t global) {
      int32_t& s = out_.slot_of[global];
      if (s < 0) {
        s = static_cast<int32_t>(out_.slots++);
        events[local_[global]].slot = s;
      }
      return s;
    };
    const auto results = [&](const std::vector<int32_t>& closure) {
      std::vector<int32_t> used;
      for (const int32_t t : closure) {
        for_each_result(program_.tokens[t], [&](int32_t e) { used.push_back(slot(e)); });
      }
      return used;
    };
    std::vector<int32_t> shown;
    for (Observation& each : out_.observations) {
      auto used = results(each.closure);
      shown.insert(shown.end(), used.begin(), used.end());
      if (out_.dynamic && program_.blocking()) {
        // The end of an order must know whether the value is shown.
        each.ending = predicates(each.ended);
        const auto more = results(each.ending);
        shown.insert(shown.end(), more.begin(), more.end());
      }
      if (program_.tokens[each.token].kind == TokenKind::kResult) {
        each.slot = used[0];
        const int32_t event = local_[program_.tokens[each.token].event];
        if (events[event].access == Access::kRead) each.event = event;
      }
    }
    for (LocalEvent& event : events) {
      event.consumed = results(event.closure);
      for (const auto& [t, polarity] : event.guards) {
        // The event needs a guard's value, and the values that decide the guard's
        // readiness, until it is done or dead.
        for (const auto& closure : {value_closure(program_, {t}), predicates(t)}) {
          const auto used = results(closure);
          event.consumed.insert(event.consumed.end(), used.begin(), used.end());
        }
      }
      for (const int32_t t : event.dynamic) {
        const auto used = results(predicates(t));
        event.consumed.insert(event.consumed.end(), used.begin(), used.end());
      }
      if (event.access != Access::kWrite) continue;
      for (const int32_t other : program_.events[event.global].after) {
        event.saw.push_back(slot(other));
        event.consumed.push_back(event.saw.back());
      }
    }
    out_.consumers = BitMatrix(out_.slots, out_.words);
    for (size_t e = 0; e < events.size(); ++e) {
      for (const int32_t s : events[e].consumed) out_.consumers.set(s, e);
    }
    out_.shown.assign(out_.slots, 0);
    for (const int32_t s : shown) out_.shown[s] = 1;
  }

  /// See `Component::watched`.
  void watch() {
    if (!out_.dynamic) return;
    std::vector<int32_t> stack, wanted;
    for (const LocalEvent& event : out_.events) {
      for (const auto& [t, polarity] : event.guards) {
        stack.push_back(t);
        wanted.push_back(t);
      }
      stack.insert(stack.end(), event.dynamic.begin(), event.dynamic.end());
    }
    // Without blocking every run ends; its end depends on all components.
    if (program_.blocking()) {
      for (const Observation& each : out_.observations) stack.push_back(each.ended);
    }
    std::vector<uint8_t> seen(program_.tokens.size());
    while (!stack.empty()) {
      const int32_t t = stack.back();
      stack.pop_back();
      if (seen[t]) continue;
      seen[t] = 1;
      out_.watched.push_back(t);
      const Token& token = program_.tokens[t];
      if (token.kind == TokenKind::kPick) wanted.push_back(token.inputs[0]);
      stack.insert(stack.end(), token.inputs.begin(), token.inputs.end());
      stack.insert(stack.end(), token.waits.begin(), token.waits.end());
    }
    std::ranges::sort(out_.watched);  // each token after its parts
    out_.deciding = value_closure(program_, std::move(wanted));
  }

  /// Tokens whose values decide whether `t` is ready.
  std::vector<int32_t> predicates(int32_t t) const {
    std::vector<int32_t> wanted, stack{t};
    std::vector<uint8_t> seen(program_.tokens.size());
    while (!stack.empty()) {
      const int32_t each = stack.back();
      stack.pop_back();
      if (seen[each]) continue;
      seen[each] = 1;
      const Token& token = program_.tokens[each];
      if (token.kind == TokenKind::kPick) wanted.push_back(token.inputs[0]);
      stack.insert(stack.end(), token.inputs.begin(), token.inputs.end());
      stack.insert(stack.end(), token.waits.begin(), token.waits.end());
    }
    return value_closure(program_, std::move(wanted));
  }

  void conflict() {
    const size_t n = out_.events.size(), words = out_.words;
    BitMatrix touching(out_.variables.size(), words);
    out_.writers = BitMatrix(out_.variables.size(), words);
    out_.definite = BitMatrix(out_.variables.size(), words);
    for (size_t e = 0; e < n; ++e) {
      const LocalEvent& event = out_.events[e];
      for (size_t i = 0; i < event.variables.size(); ++i) {
        const int32_t v = event.variables[i];
        touching.set(v, e);
        if (only_reads(event.access)) continue;
        out_.writers.set(v, e);
        const bool maybe = event.access == Access::kWriteBack &&
                           program_.tokens[event.operands[2 * i + 1]].kind != TokenKind::kConst;
        if (!maybe) out_.definite.set(v, e);
      }
    }
    out_.conflicts = BitMatrix(n, words);
    for (size_t e = 0; e < n; ++e) {
      const bool writes = !only_reads(out_.events[e].access);
      for (const int32_t v : out_.events[e].variables) {
        out_.conflicts.merge(e, writes ? touching : out_.writers, v);
      }
      out_.conflicts.row(e)[e >> 6] &= ~(uint64_t{1} << (e & 63));
    }
    out_.blockers = out_.conflicts;
    for (size_t e = 0; e < n; ++e) {
      for_each_bit(out_.before.row(e), words, [&](int32_t other) {
        out_.blockers.row(other)[e >> 6] &= ~(uint64_t{1} << (e & 63));
      });
    }
  }

  /// See `Component::endings`.
  void find_endings() {
    if (out_.dynamic || !program_.blocking()) return;
    out_.endings = BitMatrix(out_.observations.size(), out_.words);
    for (size_t i = 0; i < out_.observations.size(); ++i) {
      std::vector<int32_t> stack{out_.observations[i].ended};
      std::vector<uint8_t> seen(program_.tokens.size());
      while (!stack.empty()) {
        const int32_t t = stack.back();
        stack.pop_back();
        if (seen[t]) continue;
        seen[t] = 1;
        const Token& token = program_.tokens[t];
        if (token.event >= 0) out_.endings.set(i, local_[token.event]);
        for (const int32_t e : token.events) out_.endings.set(i, local_[e]);
        stack.insert(stack.end(), token.inputs.begin(), token.inputs.end());
        stack.insert(stack.end(), token.waits.begin(), token.waits.end());
      }
    }
  }

  void find_symmetric_instances() {
    if (out_.dynamic) return;
    const size_t n = out_.events.size(), words = out_.words;
    BitMatrix after(n, words);  // the transpose of `before`
    for (size_t e = 0; e < n; ++e) {
      for_each_bit(out_.before.row(e), words, [&](int32_t other) { after.set(other, e); });
    }
    // Events of one node have consecutive numbers.
    using Signature = std::vector<int64_t>;
    std::map<Signature, std::vector<std::vector<int32_t>>> classes;
    for (size_t first = 0; first < n;) {
      size_t end = first + 1;
      while (end < n && out_.events[end].op == out_.events[first].op) ++end;
      Signature signature;
      if (sign(first, end, after, signature)) {
        std::vector<int32_t> member(end - first);
        std::iota(member.begin(), member.end(), static_cast<int32_t>(first));
        classes[signature].push_back(std::move(member));
      }
      first = end;
    }
    for (auto& [signature, members] : classes) {
      if (members.size() > 1) out_.symmetric.push_back(std::move(members));
    }
  }

  /// Computes the signature of the op instance [first, end). Returns false if other
  /// events or the outcome use its results: then no other instance is symmetric to it.
  bool sign(size_t first, size_t end, const BitMatrix& after, std::vector<int64_t>& out) const {
    const Op& op = *out_.events[first].op;
    out = {static_cast<int64_t>(op.code), op.nesterov, op.row_size,
           static_cast<int64_t>(end - first)};
    const auto list = [&](const auto& values) {
      out.push_back(static_cast<int64_t>(values.size()));
      out.insert(out.end(), values.begin(), values.end());
    };
    const auto order = [&](const uint64_t* bits) {
      std::vector<int32_t> outside, inside;
      for_each_bit(bits, out_.words, [&](int32_t other) {
        const auto place = static_cast<size_t>(other);
        if (place >= first && place < end) {
          inside.push_back(other - static_cast<int32_t>(first));
        } else {
          outside.push_back(other);
        }
      });
      list(outside);
      list(inside);
    };
    list(op.rows);
    for (size_t e = first; e < end; ++e) {
      const LocalEvent& event = out_.events[e];
      // The line of an accumulator names its takes.
      if (event.access == Access::kJoin) return false;
      out.push_back(static_cast<int64_t>(event.access));
      list(event.variables);
      order(out_.before.row(e));
      order(after.row(e));
      // An observed constant of a blocked test depends only on the end of its run.
      for (size_t i = 0; i < out_.endings.rows(); ++i) out.push_back(out_.endings.test(i, e));
      for (const int32_t t : event.operands) {
        const Token& token = program_.tokens[t];
        const bool constant = token.kind == TokenKind::kConst;
        out.push_back(constant);
        out.push_back(constant ? token.value : t);
      }
      for (const int32_t other : program_.events[event.global].after) {
        out.push_back(local_[other] - static_cast<int32_t>(first));
      }
      if (event.slot < 0) continue;
      if (out_.shown[event.slot]) return false;
      bool outside = false;
      for_each_bit(out_.consumers.row(event.slot), out_.words, [&](int32_t other) {
        outside |= static_cast<size_t>(other) < first || static_cast<size_t>(other) >= end;
      });
      if (outside) return false;
    }
    return true;
  }

  const Program& program_;
  const std::vector<uint8_t>& sourceless_;
  std::vector<int32_t> members_;
  std::vector<int32_t> local_, local_variable_;
  BitMatrix front_;
  std::vector<uint8_t> dynamic_;
  Component out_;
};

/// Marks tokens that depend on no event: constant expressions.
std::vector<uint8_t> find_sourceless(const Program& program) {
  std::vector<uint8_t> out(program.tokens.size());
  for (size_t t = 0; t < out.size(); ++t) {
    const Token& token = program.tokens[t];
    const auto all = [&](const std::vector<int32_t>& parts) {
      return std::ranges::all_of(parts, [&](int32_t part) { return out[part]; });
    };
    out[t] = token.event < 0 && token.events.empty() && all(token.inputs) && all(token.waits);
  }
  return out;
}

/// Marks tokens that an event waits for or an outcome shows, and their parts.
std::vector<uint8_t> find_used(const Program& program) {
  std::vector<uint8_t> out(program.tokens.size());
  std::vector<int32_t> stack = program.observed;
  for (const Event& event : program.events) {
    if (event.never >= 0) continue;
    stack.insert(stack.end(), event.needs.begin(), event.needs.end());
    for (const auto& [t, polarity] : event.guards) stack.push_back(t);
  }
  if (program.blocking()) stack.insert(stack.end(), program.ended.begin(), program.ended.end());
  while (!stack.empty()) {
    const int32_t t = stack.back();
    stack.pop_back();
    if (out[t]) continue;
    out[t] = 1;
    const Token& token = program.tokens[t];
    stack.insert(stack.end(), token.inputs.begin(), token.inputs.end());
    stack.insert(stack.end(), token.waits.begin(), token.waits.end());
  }
  return out;
}

Value constant_value(const Program& program, int32_t wanted, ValueTable& table) {
  std::vector<Value> values(program.tokens.size(), kNoValue);
  const auto value_of = [&](int32_t t) {
    const Token& token = program.tokens[t];
    return token.kind == TokenKind::kConst ? token.value : values[t];
  };
  for (const int32_t t : value_closure(program, {wanted})) {
    const Token& token = program.tokens[t];
    std::vector<Value> inputs;
    for (const int32_t part : token.inputs) inputs.push_back(value_of(part));
    if (token.kind == TokenKind::kHeld) {
      values[t] = inputs[0];
    } else if (token.kind == TokenKind::kPick) {
      int64_t scalar = 0;
      values[t] = inputs[table.view(inputs[0], scalar)[0] ? 1 : 2];
    } else if (token.op >= 0) {
      values[t] = evaluate(program.ops[token.op], inputs, table);
    }
  }
  return value_of(wanted);
}

}  // namespace

Split split(const Program& program, ValueTable& table) {
  const size_t n = program.events.size(), variables = program.initial.size();
  if (std::ranges::all_of(program.events, [](const Event& e) { return e.never >= 0; })) {
    Split out;
    for (size_t v = 0; v < variables; ++v) out.idle_variables.push_back(static_cast<int32_t>(v));
    for (size_t place = 0; place < program.observed.size(); ++place) {
      out.fixed.emplace_back(place, constant_value(program, program.observed[place], table));
    }
    return out;
  }
  const auto sourceless = find_sourceless(program);
  // Numbers in the union-find: events, variables, tokens.
  Unions unions(n + variables + program.tokens.size());
  const auto of_variable = [&](int32_t v) { return n + static_cast<size_t>(v); };
  const auto of_token = [&](int32_t t) { return n + variables + static_cast<size_t>(t); };
  const auto join_tokens = [&](size_t whom, const std::vector<int32_t>& tokens) {
    for (const int32_t t : tokens) {
      // A shared constant does not connect its users.
      if (!sourceless[t]) unions.join(whom, of_token(t));
    }
  };
  std::vector<uint8_t> touched(variables);
  for (size_t e = 0; e < n; ++e) {
    const Event& event = program.events[e];
    if (event.never >= 0) continue;
    for (const int32_t v : event.variables) {
      unions.join(e, of_variable(v));
      touched[v] = 1;
    }
    join_tokens(e, event.needs);
    join_tokens(e, event.operands);
    for (const auto& [t, polarity] : event.guards) join_tokens(e, {t});
    for (const int32_t other : event.after) unions.join(e, static_cast<size_t>(other));
  }
  const auto used = find_used(program);
  for (size_t t = 0; t < program.tokens.size(); ++t) {
    if (!used[t]) continue;
    const Token& token = program.tokens[t];
    const size_t self = of_token(static_cast<int32_t>(t));
    if (token.event >= 0) unions.join(self, static_cast<size_t>(token.event));
    for (const int32_t e : token.events) unions.join(self, static_cast<size_t>(e));
    join_tokens(self, token.inputs);
    join_tokens(self, token.waits);
  }

  // The observed values of one part depend on whether another part blocks.
  if (program.blocking()) {
    for (size_t i = 1; i < n + program.initial.size() + program.tokens.size(); ++i) {
      unions.join(i, i - 1);
    }
  }

  struct Parts {
    std::vector<int32_t> events, variables, observed;
  };
  std::map<size_t, Parts> parts;
  Split out;
  for (size_t e = 0; e < n; ++e) {
    if (program.events[e].never < 0) {
      parts[unions.find(e)].events.push_back(static_cast<int32_t>(e));
    }
  }
  for (size_t v = 0; v < variables; ++v) {
    const auto number = static_cast<int32_t>(v);
    if (touched[v] || program.blocking()) {
      parts[unions.find(of_variable(number))].variables.push_back(number);
    } else {
      out.idle_variables.push_back(number);
    }
  }
  for (size_t place = 0; place < program.observed.size(); ++place) {
    const int32_t token = program.observed[place];
    if (sourceless[token] && !program.blocking()) {
      out.fixed.emplace_back(place, constant_value(program, token, table));
    } else {
      parts[unions.find(of_token(token))].observed.push_back(static_cast<int32_t>(place));
    }
  }
  for (auto& [root, part] : parts) {
    out.components.push_back(Builder(program, sourceless, std::move(part.events),
                                     std::move(part.variables), std::move(part.observed))
                                 .build());
  }
  return out;
}

}  // namespace litmusfuzz::oracle
