// What an outcome tells of a component before any search: which value each
// read returned, where it can come from, and what order follows.
#pragma once

#include <cstdint>
#include <vector>

#include "program.h"

namespace litmusfuzz::oracle {

/// In an outcome: not seen, matches everything.
inline constexpr Value kAnything = kNoValue + 1;
/// In an outcome: not there, since the run did not end.
inline constexpr Value kAbsent = kNoValue + 2;

/// How a total order ends (semantics.md, 3).
enum class Status : uint8_t { kCompleted, kBlocked, kFailed };

/// Membership of one outcome, one component's part.
///
/// Everything derived here holds in *every* total order that yields the
/// outcome. It may thus be used to prune, never to forbid more.
struct Query {
  /// `wanted` is by place in `Program::observed`, `last` by global variable.
  Query(const Component& component, const std::vector<Value>& wanted,
        const std::vector<Value>& last, Status status, ValueTable& table);

  /// Adds the order that follows from where reads' values come from, until
  /// nothing more follows; false if that order is cyclic, or some value can
  /// come from nowhere: then the outcome is forbidden.
  bool saturate();

  const Component& component;
  ValueTable& table;
  Status status;
  bool impossible = false;    // some value has no source at all
  std::vector<Value> result;  // by event: what this read returns; kNoValue: not told
  std::vector<Value> told;    // by event: the same of a dequeue or size
  std::vector<Value> known;   // by event: what this write stores; kNoValue: not told
  std::vector<Value> last;    // by local variable
  std::vector<Value> wanted;  // by observation
  BitMatrix sources;          // by read with a result: writes it may see
  std::vector<uint8_t> from_start;  // by read: it may see the initial value
  BitMatrix final_sources;    // by variable: writes that may be the last
  BitMatrix reads;            // by variable: reads with a known result
  /// Stronger than the component's own once `saturate` was called.
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
