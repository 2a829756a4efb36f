#include "query.h"

#include <algorithm>

#include "evaluator.h"

namespace litmusfuzz::oracle {
namespace {

bool any(const uint64_t* bits, size_t words) {
  return std::any_of(bits, bits + words, [](uint64_t word) { return word != 0; });
}

}  // namespace

Query::Query(const Component& c, const std::vector<Value>& outcome,
             const std::vector<Value>& finals, Status ends, ValueTable& values)
    : component(c), table(values), status(ends) {
  const size_t n = c.events.size();
  result.assign(n, kNoValue);
  known.assign(n, kNoValue);
  dequeued.assign(n, kNoValue);
  for (const Observation& each : c.observations) {
    wanted.push_back(outcome[each.place]);
    if (wanted.back() == kAnything || wanted.back() == kAbsent) continue;
    if (each.event >= 0) {
      result[each.event] = wanted.back();
    } else if (each.slot >= 0) {
      for (size_t e = 0; e < n; ++e) {
        if (c.events[e].slot == each.slot) dequeued[e] = wanted.back();
      }
    }
  }
  for (const int32_t v : c.variables) {
    last.push_back(static_cast<size_t>(v) < finals.size() ? finals[v] : kAnything);
  }
  know_writes();

  const size_t variables = c.variables.size();
  sources = BitMatrix(n, c.words);
  from_start.assign(n, 0);
  final_sources = BitMatrix(variables, c.words);
  reads = BitMatrix(variables, c.words);
  for (size_t e = 0; e < n; ++e) {
    if (result[e] == kNoValue) continue;
    const LocalEvent& event = c.events[e];
    const int32_t v = event.variables[0];
    const auto read = static_cast<int32_t>(e);
    reads.set(v, e);
    for_each_bit(c.writers.row(v), c.words, [&](int32_t write) {
      if (!c.before.test(write, e) && can_store(write, event.op, result[read])) {
        sources.set(e, write);
      }
    });
    from_start[e] =
        !is_empty(c.initial[v], table) && gathers(*event.op, c.initial[v], result[e], table);
    impossible |= !from_start[e] && !any(sources.row(e), c.words);
  }
  for (size_t v = 0; v < variables; ++v) {
    if (last[v] == kAnything) continue;
    for_each_bit(c.writers.row(v), c.words, [&](int32_t write) {
      if (known[write] == kNoValue || known[write] == last[v]) final_sources.set(v, write);
    });
    if (!any(final_sources.row(v), c.words) && c.initial[v] != last[v]) impossible = true;
  }
}

/// Computes the values of writes whose operands are constants or known results.
void Query::know_writes() {
  const Component& c = component;
  std::vector<Value> slots(c.slots, kNoValue);
  for (size_t e = 0; e < c.events.size(); ++e) {
    if (c.events[e].slot >= 0) slots[c.events[e].slot] = result[e];
  }
  Evaluator evaluator(c, table);
  for (size_t e = 0; e < c.events.size(); ++e) {
    const LocalEvent& event = c.events[e];
    if (event.access != Access::kWrite || !event.saw.empty() || event.op->code != OpCode::kAssign) {
      continue;
    }
    // A branch of a conditional may have no value.
    if (c.dynamic && !event.closure.empty()) continue;
    if (std::ranges::any_of(event.consumed, [&](int32_t s) { return slots[s] == kNoValue; })) {
      continue;
    }
    try {
      evaluator.compute(event.closure, slots.data());
      known[e] = evaluator.value(event.operands[0]);
    } catch (const ValueTooLarge&) {
      // The outcome may be forbidden, so this says nothing about the test.
    }
  }
}

bool Query::can_store(int32_t write, const Op* reader, Value value) const {
  return known[write] == kNoValue || gathers(*reader, known[write], value, table);
}

bool Query::saturate() {
  const Component& c = component;
  // An event that may be dead, or never done, orders nothing.
  if (c.dynamic || status != Status::kCompleted) return true;
  const size_t n = c.events.size();
  before = c.before;
  direct = c.direct;
  saturated = true;
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t e = 0; e < n; ++e) {
      if (result[e] != kNoValue && !saturate_read(static_cast<int32_t>(e), changed)) return false;
    }
    for (size_t v = 0; v < last.size(); ++v) {
      if (last[v] != kAnything && !saturate_last(v, changed)) return false;
    }
  }
  blockers = c.conflicts;
  for (size_t e = 0; e < n; ++e) {
    for_each_bit(before.row(e), c.words,
                 [&](int32_t other) { blockers.row(other)[e >> 6] &= ~(uint64_t{1} << (e & 63)); });
  }
  return true;
}

/// `earlier` comes before `later`; false if it also comes after it.
bool Query::add(int32_t earlier, int32_t later) {
  if (earlier == later || before.test(earlier, later)) return false;
  if (before.test(later, earlier)) return true;
  direct.set(earlier, later);
  for (size_t e = 0; e < component.events.size(); ++e) {
    if (static_cast<int32_t>(e) == later || before.test(e, later)) {
      before.set(e, earlier);
      before.merge(e, before, earlier);
    }
  }
  return true;
}

bool Query::saturate_read(int32_t read, bool& changed) {
  const Component& c = component;
  const int32_t v = c.events[read].variables[0];
  // A write on some paths only need not fall between two events.
  const uint64_t* writers = c.definite.row(v);
  int32_t left = 0, only = -1;
  std::vector<int32_t> gone;
  for_each_bit(sources.row(read), c.words, [&](int32_t write) {
    bool out = before.test(write, read);
    if (!out && before.test(read, write)) {
      // Another write always falls between the two.
      for_each_bit(writers, c.words, [&](int32_t other) {
        out |= before.test(other, write) && before.test(read, other);
      });
    }
    if (out) {
      gone.push_back(write);
    } else {
      ++left;
      only = write;
    }
  });
  for (const int32_t write : gone) {
    sources.row(read)[write >> 6] &= ~(uint64_t{1} << (write & 63));
    changed = true;
  }
  if (from_start[read]) {
    bool out = false;
    for_each_bit(writers, c.words, [&](int32_t other) { out |= before.test(read, other); });
    if (out) {
      from_start[read] = 0;
      changed = true;
    }
  }
  if (left + from_start[read] == 0) return false;
  bool fine = true;
  const auto must = [&](int32_t earlier, int32_t later) {
    if (earlier != later && before.test(later, earlier)) return;
    fine = fine && add(earlier, later);
    changed = true;
  };
  if (left == 1 && !from_start[read]) {
    must(only, read);
    for_each_bit(writers, c.words, [&](int32_t other) {
      if (fine && other != only && before.test(read, other)) must(other, only);
    });
  }
  // A write after all sources of a read comes after the read.
  for_each_bit(writers, c.words, [&](int32_t other) {
    if (!fine || before.test(other, read)) return;
    bool later = true;
    for_each_bit(sources.row(read), c.words,
                 [&](int32_t write) { later = later && before.test(other, write); });
    if (later) must(read, other);
  });
  return fine;
}

bool Query::saturate_last(size_t variable, bool& changed) {
  const Component& c = component;
  const uint64_t* writers = c.definite.row(variable);
  if (!any(writers, c.words)) return true;
  int32_t left = 0, only = -1;
  std::vector<int32_t> gone;
  for_each_bit(final_sources.row(variable), c.words, [&](int32_t write) {
    bool out = false;
    for_each_bit(writers, c.words, [&](int32_t other) { out |= before.test(other, write); });
    if (out) {
      gone.push_back(write);
    } else {
      ++left;
      only = write;
    }
  });
  for (const int32_t write : gone) {
    final_sources.row(variable)[write >> 6] &= ~(uint64_t{1} << (write & 63));
    changed = true;
  }
  if (left == 0) return false;
  bool fine = true;
  if (left == 1) {
    for_each_bit(writers, c.words, [&](int32_t other) {
      if (!fine || other == only || before.test(only, other)) return;
      fine = add(other, only);
      changed = true;
    });
  }
  return fine;
}

}  // namespace litmusfuzz::oracle
