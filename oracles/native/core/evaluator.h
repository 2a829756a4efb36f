// Values of tokens, computed from the results of reads.
#pragma once

#include <cstdint>
#include <vector>

#include "program.h"

namespace litmusfuzz::oracle {

class Evaluator {
 public:
  Evaluator(const Component& component, ValueTable& table)
      : component_(component), table_(table), values_(component.program->tokens.size(), kNoValue) {}

  /// Computes the tokens of a closure. `slots` has the results of reads, or kNoValue
  /// for a read that is not done; a token that depends on one has no value.
  void compute(const std::vector<int32_t>& closure, const Value* slots) {
    for (const int32_t t : closure) {
      try {
        values_[t] = one(component_.program->tokens[t], slots);
      } catch (const OpFails& error) {
        values_[t] = kFails;
      } catch (const ValueTooLarge& error) {
        // An error only if the value is used: a conditional uses one branch.
        values_[t] = kTooLarge;
        too_large_ = error;
      }
    }
  }

  /// The constant, or the value last computed. May throw ValueTooLarge.
  Value value(int32_t t) const {
    const Value found = peek(t);
    if (found == kTooLarge) throw too_large_;
    if (found == kFails) throw OpFails{};
    return found;
  }

  /// True if the value last computed is that of an op that failed, or depends on it.
  bool failed(int32_t t) const { return peek(t) == kFails; }

  /// A predicate is its first row (semantics.md, 1).
  bool holds(int32_t t) const { return is_true(value(t)); }

 private:
  static constexpr Value kTooLarge = kNoValue + 3;
  static constexpr Value kFails = kNoValue + 4;

  static bool missing(Value value) {
    return value == kNoValue || value == kTooLarge || value == kFails;
  }

  Value peek(int32_t t) const {
    const Token& token = component_.program->tokens[t];
    return token.kind == TokenKind::kConst ? token.value : values_[t];
  }

  bool is_true(Value predicate) const {
    int64_t scalar = 0;
    return table_.view(predicate, scalar)[0] != 0;
  }

  Value one(const Token& token, const Value* slots) {
    switch (token.kind) {
      case TokenKind::kResult: return slots[component_.slot_of[token.event]];
      case TokenKind::kStack: return stacked(token, slots);
      case TokenKind::kHeld: return peek(token.inputs[0]);
      case TokenKind::kSeen: return part(token, slots);
      case TokenKind::kStored: break;
      case TokenKind::kPick: {
        const Value predicate = peek(token.inputs[0]);
        if (missing(predicate)) return predicate;
        return peek(token.inputs[is_true(predicate) ? 1 : 2]);
      }
      default: break;
    }
    if (token.op < 0) return kNoValue;
    const size_t count = token.inputs.size();
    inputs_.resize(count);
    auto& inputs = inputs_;
    for (size_t i = 0; i < count; ++i) {
      inputs[i] = peek(token.inputs[i]);
      if (missing(inputs[i])) return inputs[i];
    }
    const Op& op = component_.program->ops[token.op];
    if (token.kind != TokenKind::kStored) return evaluate(op, {inputs.data(), count}, table_);
    const auto seen = static_cast<size_t>(token.count);
    return stored(op, {inputs.data(), seen}, {inputs.data() + seen, count - seen},
                  static_cast<size_t>(token.first), table_);
  }

  /// One variable of a snapshot.
  Value part(const Token& token, const Value* slots) {
    const Value whole = slots[component_.slot_of[token.event]];
    if (whole == kNoValue) return kNoValue;
    int64_t scalar = 0;
    const auto ints = table_.view(whole, scalar);
    std::vector<int64_t> own(ints.begin() + token.first, ints.begin() + token.first + token.count);
    return table_.intern(own);
  }

  Value stacked(const Token& token, const Value* slots) {
    std::vector<int64_t> ints;
    for (const int32_t e : token.events) {
      const Value part = slots[component_.slot_of[e]];
      if (part == kNoValue) return kNoValue;
      int64_t scalar = 0;
      const auto more = table_.view(part, scalar);
      ints.insert(ints.end(), more.begin(), more.end());
    }
    return table_.intern(ints);
  }

  const Component& component_;
  ValueTable& table_;
  std::vector<Value> values_;
  std::vector<Value> inputs_;  // of the token that is computed
  ValueTooLarge too_large_{};
};

}  // namespace litmusfuzz::oracle
