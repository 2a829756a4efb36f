// A test as the explorer is given it (oracles/events.py, flattened to numbers),
// and its division into components that are explored apart.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "arithmetic.h"
#include "value.h"

namespace litmusfuzz::oracle {

/// What an event does, atomically. A new action: a line here, a case in
/// `Search::execute`, and one in `Search::possible` if it may have to wait.
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
};

/// Whether it leaves its resource as it is.
inline bool only_looks(Access access) {
  return access == Access::kRead || access == Access::kSize || access == Access::kSnapshot;
}

/// What can become ready. A new token: a line here, and a case in `split`
/// (what it waits for), in `Search::look_at_tokens` and in `Evaluator::one`.
enum class TokenKind : uint8_t {
  kConst,    // ready when `waits` are; its value is always there
  kResult,   // of `event`
  kPure,     // of `inputs`; a Join is one without a value
  kPick,     // inputs: predicate, then, other; ready with the one chosen
  kSettled,  // ready when each of `events` is done or dead
  kHeld,     // the value of its input, ready with that and its waits
  kStack,    // what `events` returned, one after another
  kSeen,     // ints [`first`, `first` + `count`) of what `event`, a snapshot, returned
  kStored,   // what `op` stores in its resource number `first`; inputs: `count`
             // values that it saw, then its operands
};

struct Event {
  Access access;
  int32_t op;
  std::vector<int32_t> variables;  // that it reads or writes
  std::vector<int32_t> resources;  // of its node, in the roles' order
  std::vector<int32_t> needs;      // tokens
  std::vector<int32_t> after;      // events: what a split update saw, in order
  std::vector<int32_t> operands;   // tokens; of a write-back see oracles/events.py
  std::vector<std::pair<int32_t, bool>> guards;  // tokens, and what each must be
  int32_t part = -1;  // of a many-op: which element of its operand
  int32_t never = -1;  // a guard that never holds (`fold`): part of no component
};

struct Token {
  TokenKind kind;
  int32_t op = -1;                  // of a pure node with a value
  int32_t event = -1;               // kResult, kSeen
  int32_t first = 0, count = 0;     // kSeen, kStored
  Value value = kNoValue;           // kConst
  std::vector<int32_t> inputs = {};
  std::vector<int32_t> waits = {};
  std::vector<int32_t> events = {};  // kSettled, kStack
};

/// Invariant: events and tokens refer to what stands before them (a Result to
/// any event); index order of events is an allowed total order.
struct Program {
  ValueTable constants;
  std::vector<Value> initial;  // by resource: variables, then queues, then mutexes
  size_t variables = 0, queues = 0;
  std::vector<int32_t> capacity;  // by resource; of queues
  std::vector<Op> ops;
  std::vector<Event> events;
  std::vector<Token> tokens;
  std::vector<int32_t> observed;  // tokens
  std::vector<int32_t> ended;     // for each: ready when its run has ended
  bool fifo = true;         // else a dequeue takes any element
  bool speculates = false;  // an event may come before its predicates are known

  bool is_queue(size_t resource) const {
    return resource >= variables && resource < variables + queues;
  }
  /// Whether an event may have to wait for others than those before it, and
  /// an order thus end before all is done.
  bool blocking() const { return initial.size() > variables; }
  /// Resources whose contents are part of an outcome.
  size_t finals() const { return variables + queues; }
};

/// A queue's contents as a value: whether it is closed, and its elements.
Value queue_value(bool closed, std::span<const Value> elements, ValueTable& table);
bool queue_closed(Value queue, const ValueTable& table);
/// Elements; valid while nothing is added to the table.
std::span<const int64_t> queue_elements(Value queue, const ValueTable& table);

// --- bit sets ---------------------------------------------------------------

/// Rows of bits, all of `words` words.
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

/// An event inside its component: numbers of events, variables and slots are
/// the component's own, those of tokens the program's.
struct LocalEvent {
  Access access;
  const Op* op;
  bool gathers = false;            // a read of some rows
  int32_t part = -1;               // see Event
  int32_t slot = -1;               // where what it read is kept; -1: nobody asks
  int32_t global = 0;              // its number in the program
  std::vector<int32_t> variables = {};
  std::vector<int32_t> which = {};    // for each: its place among the node's resources
  std::vector<int32_t> saw = {};      // slots: what a split update read
  std::vector<int32_t> operands = {};  // tokens
  std::vector<int32_t> closure = {};   // tokens whose values those need, in order
  std::vector<int32_t> consumed = {};  // slots that it uses
  std::vector<int32_t> dynamic = {};   // needs whose readiness is no set of events
  std::vector<std::pair<int32_t, bool>> guards = {};
};

/// What an outcome says of one component: this token has this value.
struct Observation {
  int32_t token;
  int32_t place;       // in `Program::observed`
  int32_t ended;       // token: ready when its run has ended
  int32_t slot = -1;   // where its value lies, if it is just what a read returned
  int32_t event = -1;  // that read
  std::vector<int32_t> closure = {};
  std::vector<int32_t> ending = {};  // values that decide whether its run has ended
};

/// Events that share no resource and no path with any other component's.
struct Component {
  const Program* program = nullptr;
  std::vector<LocalEvent> events;
  std::vector<int32_t> variables;  // resources of any kind, local to global
  std::vector<Value> initial;      // by local variable
  std::vector<Observation> observations;
  size_t words = 0;  // of a set of events
  size_t slots = 0;
  bool dynamic = false;  // guards or choices: an event may be dead

  // If dynamic: tokens whose readiness decides what is enabled, dead or shown,
  // with all that they are made of, and those whose values decide that.
  std::vector<int32_t> watched;
  std::vector<int32_t> deciding;

  BitMatrix before;     // done before it in every total order (transitive)
  BitMatrix direct;     // e -> events that may become enabled when e is done
  BitMatrix conflicts;  // same variable, at least one writes
  BitMatrix blockers;   // conflicts, less those that are always later
  BitMatrix writers;    // by variable
  BitMatrix definite;   // by variable: those that always write it
  BitMatrix consumers;  // by slot
  BitMatrix endings;    // by observation: those that its run waits for; unless dynamic
  std::vector<uint8_t> shown;  // by slot: an outcome depends on it
  std::vector<int32_t> slot_of;  // by global event; -1

  /// Classes of op instances that can be exchanged without changing anything:
  /// same op, variables, operands and order, runs that are shown end with both or
  /// neither, and nobody looks at them. Each member lists its events.
  std::vector<std::vector<std::vector<int32_t>>> twins;
};

/// The components, and what stands apart from all: variables that no event
/// touches, observed tokens that no event feeds.
struct Split {
  std::vector<Component> components;
  std::vector<int32_t> idle_variables;
  std::vector<std::pair<int32_t, Value>> fixed;  // place in `observed`, value
};

/// Tokens whose values `wanted` need, themselves included, constants left out;
/// in an order in which each comes after its inputs.
std::vector<int32_t> value_closure(const Program& program, std::vector<int32_t> wanted);

/// Throws ValueTooLarge if an observed constant expression is too large.
Split split(const Program& program, ValueTable& table);

}  // namespace litmusfuzz::oracle
