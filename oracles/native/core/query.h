// Facts that one outcome implies for a component before any search: the result of
// each read, the writes it can come from, and the order that follows.
#pragma once

#include <cstdint>
#include <vector>

#include "program.h"

namespace litmusfuzz::oracle {

/// In an outcome: a value not seen, which matches everything.
inline constexpr Value kAnything = kNoValue + 1;
/// In an outcome: an absent value, since the run did not end.
inline constexpr Value kAbsent = kNoValue + 2;

/// How a total order ends (semantics.md, 3).
enum class Status : uint8_t { kCompleted, kBlocked, kFailed };

/// Membership question for one component and one outcome.
///
/// Every fact here holds in *every* total order that yields the outcome. The search
/// may thus prune by it without losing an order.
struct Query {
  /// `wanted` is by place in `Program::observed`, `last` by global variable.
  Query(const Component& component, const std::vector<Value>& wanted,
        const std::vector<Value>& last, Status status, ValueTable& table);

  /// Adds the order that follows from the sources of reads, up to a fixed point.
  /// Returns false if that order is cyclic or some value has no source: then the
  /// outcome is forbidden.
  bool saturate();

  const Component& component;
  ValueTable& table;
  Status status;
  bool impossible = false;    // some value has no source at all
  std::vector<Value> result;  // by event: result of this read; kNoValue: unknown
  std::vector<Value> dequeued;    // by event: result of this dequeue or size
  std::vector<Value> known;   // by event: value this write stores; kNoValue: unknown
  std::vector<Value> last;    // by local variable
  std::vector<Value> wanted;  // by observation
  BitMatrix sources;          // by read with a result: writes it may see
  std::vector<uint8_t> from_start;  // by read: it may see the initial value
  BitMatrix final_sources;    // by variable: writes that may be the last
  BitMatrix reads;            // by variable: reads with a known result
  /// Stronger than the component's own orders once `saturate` was called.
  BitMatrix before, direct, blockers;
  bool saturated = false;

  const BitMatrix& order() const { return saturated ? before : component.before; }
  const BitMatrix& next() const { return saturated ? direct : component.direct; }
  const BitMatrix& blocking() const { return saturated ? blockers : component.blockers; }

 private:
  void know_writes();
  bool can_store(int32_t write, const Op* reader, Value wanted) const;
  bool add(int32_t earlier, int32_t later);
  bool saturate_read(int32_t read, bool& changed);
  bool saturate_last(size_t variable, bool& changed);
};

}  // namespace litmusfuzz::oracle
