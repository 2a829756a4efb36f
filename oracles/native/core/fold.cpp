#include "fold.h"

#include <algorithm>

namespace litmusfuzz::oracle {
namespace {

class Folder {
 public:
  explicit Folder(Program& program) : program_(program), values_(program.tokens.size(), kNoValue) {}

  void run() {
    // A token stands after its parts.
    for (size_t t = 0; t < program_.tokens.size(); ++t) {
      Token& token = program_.tokens[t];
      values_[t] = constant(token);
      if (token.kind == TokenKind::kPick && known(token.inputs[0])) choose(token);
    }
    for (Event& event : program_.events) fold_event(event);
    for (Token& token : program_.tokens) {
      if (token.kind == TokenKind::kFinished) wait_for_guards(token);
    }
  }

 private:
  bool known(int32_t t) const { return values_[t] != kNoValue; }

  bool is_true(int32_t t) const {
    int64_t scalar = 0;
    return program_.constants.view(values_[t], scalar)[0] != 0;
  }

  /// The value of a token that depends on no event; else kNoValue.
  Value constant(const Token& token) {
    switch (token.kind) {
      case TokenKind::kConst: return token.value;
      case TokenKind::kHeld: return values_[token.inputs[0]];
      case TokenKind::kPick:
        if (!known(token.inputs[0])) return kNoValue;
        return values_[token.inputs[is_true(token.inputs[0]) ? 1 : 2]];
      case TokenKind::kPure: break;
      default: return kNoValue;
    }
    if (token.op < 0) return kNoValue;
    std::vector<Value> inputs;
    for (const int32_t t : token.inputs) {
      if (!known(t)) return kNoValue;
      inputs.push_back(values_[t]);
    }
    try {
      return evaluate(program_.ops[token.op], inputs, program_.constants);
    } catch (const ValueTooLarge&) {
      return kNoValue;  // the search reports it if an event uses the value
    }
  }

  /// Replaces a choice whose predicate is constant by the chosen token.
  void choose(Token& token) {
    const int32_t predicate = token.inputs[0];
    token.kind = TokenKind::kHeld;
    token.inputs = {token.inputs[is_true(predicate) ? 1 : 2]};
    token.waits.push_back(predicate);
  }

  void fold_event(Event& event) {
    std::vector<int32_t> fails;
    for (const auto& [t, wanted] : event.guards) {
      if (known(t) && is_true(t) != wanted) fails.push_back(t);
    }
    if (!fails.empty()) {
      // The event is dead as soon as one of its guards is ready and fails. That is
      // the first guard known to fail, if all guards that may fail wait for it.
      const bool follow = std::ranges::all_of(event.guards, [&](const auto& guard) {
        const auto& [t, wanted] = guard;
        return known(t) && is_true(t) == wanted ? true : waits_for(t, fails[0]);
      });
      if (follow) event.never = fails[0];
      return;
    }
    std::erase_if(event.guards, [&](const auto& guard) {
      if (!known(guard.first)) return false;
      event.needs.push_back(guard.first);
      return true;
    });
  }

  /// True if `t` is ready only after `other`.
  bool waits_for(int32_t t, int32_t other) const {
    std::vector<int32_t> stack{t};
    std::vector<uint8_t> seen(program_.tokens.size());
    while (!stack.empty()) {
      const int32_t each = stack.back();
      stack.pop_back();
      if (each == other) return true;
      if (seen[each]) continue;
      seen[each] = 1;
      const Token& token = program_.tokens[each];
      if (token.kind == TokenKind::kPick) {
        stack.push_back(token.inputs[0]);
      } else {
        stack.insert(stack.end(), token.inputs.begin(), token.inputs.end());
      }
      stack.insert(stack.end(), token.waits.begin(), token.waits.end());
      for_each_result(token, [&](int32_t e) {
        const Event& event = program_.events[e];
        stack.insert(stack.end(), event.needs.begin(), event.needs.end());
        for (const auto& guard : event.guards) stack.push_back(guard.first);
      });
    }
    return false;
  }

  /// Replaces events that never happen by their failing guards.
  void wait_for_guards(Token& token) {
    std::erase_if(token.events, [&](int32_t e) {
      const int32_t never = program_.events[e].never;
      if (never >= 0) token.waits.push_back(never);
      return never >= 0;
    });
    std::ranges::sort(token.waits);
    token.waits.erase(std::ranges::unique(token.waits).begin(), token.waits.end());
  }

  Program& program_;
  std::vector<Value> values_;
};

}  // namespace

void fold(Program& program) {
  // With speculation, an event must keep its guards: it may come before them.
  if (!program.speculates) Folder(program).run();
}

}  // namespace litmusfuzz::oracle
