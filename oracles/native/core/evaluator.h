// Values of tokens, from what reads returned.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "program.h"

namespace litmusfuzz::oracle {

class Evaluator {
 public:
  Evaluator(const Component& component, ValueTable& table)
      : component_(component), table_(table), values_(component.program->tokens.size()) {}

  /// Computes the tokens of a closure; `slots` has what reads returned, or
  /// kNoValue where a read is not done: whatever needs that has no value.
  void compute(const std::vector<int32_t>& closure, const Value* slots) {
    for (const int32_t t : closure) values_[t] = one(component_.program->tokens[t], slots);
  }

  /// A constant, or computed last.
  Value value(int32_t t) const {
    const Token& token = component_.program->tokens[t];
    return token.kind == TokenKind::kConst ? token.value : values_[t];
  }

  ValueTable& table() { return table_; }

 private:
  Value one(const Token& token, const Value* slots) {
    if (token.kind == TokenKind::kResult) return slots[component_.slot_of[token.event]];
    if (token.kind == TokenKind::kPick) {
      const Value predicate = value(token.inputs[0]);
      if (predicate == kNoValue) return kNoValue;
      return value(token.inputs[holds(predicate) ? 1 : 2]);
    }
    if (token.kind == TokenKind::kStack) return stacked(token, slots);
    if (token.op < 0) return kNoValue;
    std::array<Value, 4> inputs;
    const size_t count = token.inputs.size();
    for (size_t i = 0; i < count; ++i) {
      inputs[i] = value(token.inputs[i]);
      if (inputs[i] == kNoValue) return kNoValue;
    }
    return evaluate(component_.program->ops[token.op], {inputs.data(), count}, table_);
  }

  Value stacked(const Token& token, const Value* slots) {
    std::vector<int64_t> ints;
    for (const int32_t e : token.events) {
      const Value part = slots[component_.slot_of[e]];
      if (part == kNoValue) return kNoValue;
      int64_t room = 0;
      const auto more = table_.view(part, room);
      ints.insert(ints.end(), more.begin(), more.end());
    }
    return table_.intern(ints);
  }

 public:
  /// A predicate is its first row (semantics.md, 1).
  bool holds(Value predicate) const {
    int64_t room = 0;
    return table_.view(predicate, room)[0] != 0;
  }

 private:
  const Component& component_;
  ValueTable& table_;
  std::vector<Value> values_;
};

}  // namespace litmusfuzz::oracle
