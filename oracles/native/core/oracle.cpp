#include "oracle.h"

#include <algorithm>

#include "fold.h"

namespace litmusfuzz::oracle {
namespace {

/// The value with those ints; kNoValue, which equals none, if one is too large
/// for any model value.
Value value_of(const Ints& ints, ValueTable& table) {
  for (const int64_t each : ints) {
    if (each <= -kMaxMagnitude || each >= kMaxMagnitude) return kNoValue;
  }
  return table.intern(ints);
}

Value value_of(const Part& part, ValueTable& table) {
  switch (part.kind) {
    case Part::Kind::kValue: return value_of(part.ints, table);
    case Part::Kind::kAnything: return kAnything;
    case Part::Kind::kAbsent: return kAbsent;
    case Part::Kind::kQueue: break;
  }
  std::vector<Value> elements;
  for (const Ints& each : part.elements) {
    elements.push_back(value_of(each, table));
    if (elements.back() == kNoValue) return kNoValue;
  }
  return queue_value(false, elements, table);
}

Ints ints_of(Value value, const ValueTable& table) {
  int64_t scalar = 0;
  const auto ints = table.view(value, scalar);
  return {ints.begin(), ints.end()};
}

}  // namespace

Oracle::Oracle(std::unique_ptr<Program> program) {
  fold(*program);
  // `split` adds the constants that it computes to the program's table.
  auto parts = std::make_shared<Split>(split(*program, program->constants));
  program_ = std::move(program);
  split_ = std::move(parts);
}

OutcomeSet Oracle::all(const Budget& budget) const {
  OutcomeSet out;
  out.program_ = program_;
  out.split_ = split_;
  out.table_ = std::make_unique<ValueTable>(&program_->constants);
  out.rest_.assign(names(), kNoValue);
  for (const auto& [place, value] : split_->fixed) out.rest_[place] = value;
  for (const int32_t v : split_->idle_variables) {
    if (static_cast<size_t>(v) < program_->finals()) {
      out.rest_[program_->observed.size() + v] = program_->initial[v];
    }
  }
  Budget left = budget;
  for (const Component& component : split_->components) {
    out.found_.push_back(explore(component, left, *out.table_));
    const Found& found = out.found_.back();
    left.states -= std::min(left.states, found.stored);
    out.states_ += found.states;
    out.complete_ &= found.complete;
    const uint64_t more = found.outcomes.size();
    out.size_ =
        more && out.size_ > (uint64_t{1} << 62) / more ? uint64_t{1} << 62 : out.size_ * more;
  }
  return out;
}

Outcome OutcomeSet::outcome(uint64_t number) const {
  Outcome out;
  std::vector<Value> values = rest_;
  for (size_t i = 0; i < found_.size(); ++i) {
    const Component& component = split_->components[i];
    const StateSet& outcomes = found_[i].outcomes;
    const uint32_t* row = outcomes.row(number % outcomes.size());
    number /= outcomes.size();
    out.status = static_cast<Status>(*row++);
    for (const Observation& each : component.observations) {
      values[each.place] = static_cast<Value>(*row++);
    }
    for (const int32_t v : component.variables) {
      const auto value = static_cast<Value>(*row++);
      if (static_cast<size_t>(v) < program_->finals()) {
        values[program_->observed.size() + v] = value;
      }
    }
  }
  out.parts.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const Value value = values[i];
    Part part;
    if (value == kAbsent) {
      part.kind = Part::Kind::kAbsent;
    } else if (i >= program_->observed.size() + program_->variables) {
      part.kind = Part::Kind::kQueue;
      for (const int64_t each : queue_elements(value, *table_)) {
        part.elements.push_back(ints_of(static_cast<Value>(each), *table_));
      }
    } else {
      part.ints = ints_of(value, *table_);
    }
    out.parts.push_back(std::move(part));
  }
  return out;
}

Oracle::Judgement Oracle::judge(const Outcome& outcome, const Budget& budget) const {
  ValueTable table(&program_->constants);
  const size_t observed = program_->observed.size();
  std::vector<Value> wanted, last;
  // Without events no order can block or fail.
  const bool can_stop = program_->blocking() && !split_->components.empty();
  if (outcome.status != Status::kCompleted && !can_stop) {
    return {Answer::kForbidden, 0, {}};
  }
  for (size_t i = 0; i < outcome.parts.size(); ++i) {
    Value value = value_of(outcome.parts[i], table);
    if (outcome.status == Status::kFailed) value = kAnything;
    if (value == kNoValue) return {Answer::kForbidden, 0, {}};
    (i < observed ? wanted : last).push_back(value);
  }
  for (const auto& [place, value] : split_->fixed) {
    if (wanted[place] != value && wanted[place] != kAnything) return {Answer::kForbidden, 0, {}};
  }
  for (const int32_t v : split_->idle_variables) {
    if (static_cast<size_t>(v) >= program_->finals()) continue;
    if (last[v] != program_->initial[v] && last[v] != kAnything) {
      return {Answer::kForbidden, 0, {}};
    }
  }
  Judgement out;
  Budget left = budget;
  for (const Component& component : split_->components) {
    Query query(component, wanted, last, outcome.status, table);
    Membership part = decide(query, left, table);
    out.states += part.states;
    left.states -= std::min(left.states, part.states);
    if (part.answer == Answer::kForbidden) return {Answer::kForbidden, out.states, {}};
    if (part.answer == Answer::kUnknown) out.answer = Answer::kUnknown;
    out.witness.insert(out.witness.end(), part.witness.begin(), part.witness.end());
  }
  if (out.answer != Answer::kAllowed) out.witness.clear();
  return out;
}

}  // namespace litmusfuzz::oracle
