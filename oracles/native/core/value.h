// Values of the model, as small numbers that can be compared and hashed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace litmusfuzz::oracle {

/// Exclusive bound on the magnitude of every value (semantics.md, 1).
inline constexpr int64_t kMaxMagnitude = int64_t{1} << 24;

/// A model value: a scalar stands for itself, a vector for its number in a
/// `ValueTable`. Two values of one table are equal exactly when the ints are.
using Value = int32_t;

inline constexpr Value kFirstVector = 1 << 25;
/// No value: differs from every value.
inline constexpr Value kNoValue = INT32_MIN;

inline bool is_scalar(Value value) { return value < kFirstVector; }

/// Interned vectors. A table may extend a base table, which stays unchanged: queries
/// of one program share its constants and run concurrently.
class ValueTable {
 public:
  explicit ValueTable(const ValueTable* base = nullptr)
      : base_(base),
        first_(base ? base->first_ + static_cast<Value>(base->size()) : kFirstVector) {}

  /// The value with those ints; all of them below `kMaxMagnitude`.
  Value intern(std::span<const int64_t> ints);
  /// The ints of a value. A scalar's int is stored in `scalar`, which must live as
  /// long as the result.
  std::span<const int64_t> view(Value value, int64_t& scalar) const;

  /// The result of a call of the caller's function number `op`, if it is known.
  std::optional<Value> find_call(int32_t op, std::span<const Value> inputs) const;
  void note_call(int32_t op, std::span<const Value> inputs, Value result);

  size_t bytes() const;

 private:
  size_t size() const { return starts_.empty() ? 0 : starts_.size() - 1; }
  std::optional<Value> find(std::span<const int64_t> ints, uint64_t hash) const;
  std::span<const int64_t> vector(size_t index) const {
    return {data_.data() + starts_[index], starts_[index + 1] - starts_[index]};
  }
  void grow();

  const ValueTable* base_;
  Value first_;
  std::vector<int64_t> data_;
  std::vector<size_t> starts_;
  std::vector<uint64_t> hashes_;
  std::vector<int32_t> slots_;  // open addressing; -1 is free
  std::map<std::vector<Value>, Value> calls_;  // op and operands: result
  size_t call_ints_ = 0;
};

}  // namespace litmusfuzz::oracle
