// A litmus test in the explorer's form (the unfolding of oracles/events.py, encoded
// as numbers), and its independent components.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "arithmetic.h"
#include "value.h"

namespace litmusfuzz::oracle {

/// Atomic action of an event. A new action needs a line here, a case in
/// `Search::execute`, and one in `Search::possible` if it may block.
enum class Access : uint8_t {
  kRead,
  kWrite,
  kUpdate,
  kAcquire,
  kRelease,
  kEnqueue,
  kDequeue,
  kSize,
  kClose,
  kSnapshot,
  kWriteBack,
  kCheck,  // touches no resource: computes its operand, which may fail
  kState,  // tells whether a variable has a value
  kJoin,   // a take joins the line of an accumulator
  kTake,   // the head of the line takes the sum, once there are enough gradients
};

/// True if the action does not change its resource.
inline bool only_reads(Access access) {
  return access == Access::kRead || access == Access::kSize || access == Access::kSnapshot ||
         access == Access::kState;
}

/// `Event::part` of a check whose op an executor may leave out.
inline constexpr int32_t kOptional = -2;

/// Kind of token. A new kind needs a line here, and a case in `split` (its
/// dependencies), in `Search::update_tokens` and in `Evaluator::one`.
enum class TokenKind : uint8_t {
  kConst,    // ready when `waits` are; its value is constant
  kResult,   // result of `event`
  kPure,     // pure op on `inputs`; a Join is one without a value
  kPick,     // inputs: predicate, then, other; ready when the chosen one is
  kFinished,  // ready when each of `events` is done or dead
  kHeld,     // the value of its input, ready when that and `waits` are
  kStack,    // concatenated results of `events`
  kSeen,     // ints [`first`, `first` + `count`) of the snapshot `event`
  kStored,   // value that `op` stores in its resource number `first`; inputs: `count`
             // values that it read, then its operands
};

struct Event {
  Access access;
  int32_t op;
  std::vector<int32_t> variables;  // resources that it reads or writes
  std::vector<int32_t> resources;  // all resources of its node
  std::vector<int32_t> needs;      // tokens
  std::vector<int32_t> after;      // events: the reads of a split update, in order
  std::vector<int32_t> operands;   // tokens; for a write-back see oracles/events.py
  std::vector<std::pair<int32_t, bool>> guards;  // tokens and their required values
  int32_t part = -1;   // many-op: number of the element of its operand; kCheck: kOptional;
                      // kJoin and kTake: the take's number in the line, not 0
  int32_t never = -1;  // a guard that never holds (`fold`): in no component
};

struct Token {
  TokenKind kind;
  int32_t op = -1;  // for a pure node with a value
  int32_t event = -1;  // kResult, kSeen
  int32_t first = 0, count = 0;  // kSeen, kStored
  Value value = kNoValue;  // kConst
  std::vector<int32_t> inputs = {};
  std::vector<int32_t> waits = {};
  std::vector<int32_t> events = {};  // kFinished, kStack
};

/// Invariant: events and tokens refer to smaller indices (a Result to any event);
/// index order of events is an allowed total order.
struct Program {
  ValueTable constants;
  std::vector<Value> initial;  // by resource: variables, then queues, then what no outcome shows:
                               // mutexes, and the step and line of each accumulator
  size_t variables = 0, queues = 0;
  std::vector<int32_t> capacity;  // by resource; for queues
  std::vector<Op> ops;
  std::vector<Event> events;
  std::vector<Token> tokens;
  std::vector<int32_t> observed;  // tokens
  std::vector<int32_t> ended;  // for each observed token: ready when its run has ended
  bool fifo = true;  // else a dequeue takes any element
  bool checks = false;  // has an event of the kind kCheck
  bool speculates = false;  // an event may come before its predicates are known

  bool is_queue(size_t resource) const {
    return resource >= variables && resource < variables + queues;
  }
  bool uninitialized = false;  // some variable has no initial value: a read of it fails
  /// True if an event may block or fail, so that an order may end before all events are done.
  bool blocking() const { return initial.size() > variables || checks || uninitialized; }
  /// Resources whose contents are part of an outcome.
  size_t finals() const { return variables + queues; }
};

/// True if a variable has no value: it holds a vector without ints.
inline bool is_empty(Value held, const ValueTable& table) {
  int64_t scalar = 0;
  return !is_scalar(held) && table.view(held, scalar).empty();
}

/// A queue's contents as one value: closed or not, and the elements.
Value queue_value(bool closed, std::span<const Value> elements, ValueTable& table);
bool queue_closed(Value queue, const ValueTable& table);
/// The elements of a queue; valid until the table changes.
std::span<const int64_t> queue_elements(Value queue, const ValueTable& table);

// --- bit sets ---------------------------------------------------------------

/// Rows of bits, each of `words` words.
class BitMatrix {
 public:
  BitMatrix() = default;
  BitMatrix(size_t rows, size_t words) : words_(words), bits_(rows * words) {}
  uint64_t* row(size_t i) { return bits_.data() + i * words_; }
  const uint64_t* row(size_t i) const { return bits_.data() + i * words_; }
  void set(size_t i, size_t j) { row(i)[j >> 6] |= uint64_t{1} << (j & 63); }
  bool test(size_t i, size_t j) const { return row(i)[j >> 6] >> (j & 63) & 1; }
  /// Adds the bits of row `j` of `other` to row `i`.
  void merge(size_t i, const BitMatrix& other, size_t j) {
    const uint64_t* from = other.row(j);
    for (size_t w = 0; w < words_; ++w) row(i)[w] |= from[w];
  }
  size_t words() const { return words_; }
  size_t rows() const { return words_ ? bits_.size() / words_ : 0; }

 private:
  size_t words_ = 0;
  std::vector<uint64_t> bits_;
};

/// Calls `f` for each set bit, in ascending order.
template <typename F>
void for_each_bit(const uint64_t* bits, size_t words, F&& f) {
  for (size_t w = 0; w < words; ++w) {
    for (uint64_t rest = bits[w]; rest; rest &= rest - 1) {
      f(static_cast<int32_t>((w << 6) + static_cast<size_t>(__builtin_ctzll(rest))));
    }
  }
}

/// Calls `f` for each event whose result the token holds.
template <typename F>
void for_each_result(const Token& token, F&& f) {
  if (token.event >= 0) f(token.event);
  if (token.kind == TokenKind::kStack) {
    for (const int32_t e : token.events) f(e);
  }
}

// --- components -------------------------------------------------------------

/// An event inside its component. Events, variables and slots have the component's
/// numbers; tokens have the program's.
struct LocalEvent {
  Access access;
  const Op* op;
  bool gathers = false;  // reads some rows only
  int32_t part = -1;  // see Event
  int32_t slot = -1;  // slot of its result; -1: unused
  int32_t global = 0;  // its number in the program
  std::vector<int32_t> variables = {};
  std::vector<int32_t> which = {};  // by variable: its index among the node's resources
  std::vector<int32_t> saw = {};  // slots: values that a split update read
  std::vector<int32_t> operands = {};  // tokens
  std::vector<int32_t> closure = {};  // tokens that the operands depend on, in order
  std::vector<int32_t> consumed = {};  // slots that it uses
  std::vector<int32_t> dynamic = {};  // needs that depend on more than a set of events
  std::vector<std::pair<int32_t, bool>> guards = {};
};

/// One observed value of a component.
struct Observation {
  int32_t token;
  int32_t place;  // in `Program::observed`
  int32_t ended;  // token: ready when its run has ended
  int32_t slot = -1;  // slot of the value, if it is the plain result of a read
  int32_t event = -1;  // that read
  std::vector<int32_t> closure = {};
  std::vector<int32_t> ending = {};  // tokens that decide whether its run has ended
};

/// Events that share no resource and no path with any other component.
struct Component {
  const Program* program = nullptr;
  std::vector<LocalEvent> events;
  std::vector<int32_t> variables;  // resources of any kind: local to global number
  std::vector<Value> initial;  // by local variable
  std::vector<Observation> observations;
  size_t words = 0;  // length of a set of events
  size_t slots = 0;
  bool dynamic = false;  // has guards or choices, so that an event may be dead

  // If dynamic: tokens whose readiness decides whether events are enabled or dead and
  // values shown, with all their parts; and tokens whose values decide readiness.
  std::vector<int32_t> watched;
  std::vector<int32_t> deciding;

  BitMatrix before;  // e -> events before e in every total order (transitive)
  BitMatrix direct;  // e -> events that may become enabled when e is done
  BitMatrix conflicts;  // e -> events on the same variable, where one of the two writes
  BitMatrix blockers;  // conflicts, less events that always come later
  BitMatrix writers;  // by variable
  BitMatrix definite;  // by variable: events that always write it
  BitMatrix consumers;  // by slot
  BitMatrix endings;  // by observation: events that its run waits for; unless dynamic
  std::vector<uint8_t> shown;  // by slot: an outcome depends on it
  std::vector<int32_t> slot_of;  // by global event; -1

  /// Classes of symmetric op instances, for symmetry reduction. Instances of a class
  /// have the same op, variables, operands and order; the same observed runs wait for
  /// them; no other event uses their results. Each member lists its events.
  std::vector<std::vector<std::vector<int32_t>>> symmetric;
};

/// The components, and the rest of the test: variables that no event touches, and
/// observed tokens that depend on no event.
struct Split {
  std::vector<Component> components;
  std::vector<int32_t> idle_variables;
  std::vector<std::pair<int32_t, Value>> fixed;  // place in `observed`, value
};

/// Tokens that the values of `wanted` depend on, themselves included, without
/// constants; each comes after its inputs.
std::vector<int32_t> value_closure(const Program& program, std::vector<int32_t> wanted);

/// Throws ValueTooLarge if an observed constant expression is too large.
Split split(const Program& program, ValueTable& table);

}  // namespace litmusfuzz::oracle
