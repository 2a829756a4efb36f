#include "value.h"

#include <algorithm>

namespace litmusfuzz::oracle {
namespace {

uint64_t hash_of(std::span<const int64_t> ints) {
  uint64_t hash = 0x9E3779B97F4A7C15u ^ ints.size();
  for (int64_t each : ints) {
    hash = (hash ^ static_cast<uint64_t>(each)) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

Value ValueTable::intern(std::span<const int64_t> ints) {
  if (ints.size() == 1) return static_cast<Value>(ints[0]);
  const uint64_t hash = hash_of(ints);
  for (const ValueTable* table = this; table; table = table->base_) {
    if (const auto found = table->find(ints, hash)) return *found;
  }
  if (2 * (size() + 1) > slots_.size()) grow();
  if (starts_.empty()) starts_.push_back(0);
  const auto index = static_cast<int32_t>(size());
  data_.insert(data_.end(), ints.begin(), ints.end());
  starts_.push_back(data_.size());
  hashes_.push_back(hash);
  size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = index;
  return first_ + index;
}

std::span<const int64_t> ValueTable::view(Value value, int64_t& scalar) const {
  if (is_scalar(value)) {
    scalar = value;
    return {&scalar, 1};
  }
  const ValueTable* table = this;
  while (value < table->first_) table = table->base_;
  return table->vector(static_cast<size_t>(value - table->first_));
}

std::optional<Value> ValueTable::find_call(int32_t op, std::span<const Value> inputs) const {
  std::vector<Value> key{op};
  key.insert(key.end(), inputs.begin(), inputs.end());
  for (const ValueTable* table = this; table; table = table->base_) {
    const auto found = table->calls_.find(key);
    if (found != table->calls_.end()) return found->second;
  }
  return std::nullopt;
}

void ValueTable::note_call(int32_t op, std::span<const Value> inputs, Value result) {
  std::vector<Value> key{op};
  key.insert(key.end(), inputs.begin(), inputs.end());
  call_ints_ += key.size() + 16;
  calls_.emplace(std::move(key), result);
}

size_t ValueTable::bytes() const {
  return call_ints_ * sizeof(Value) + data_.capacity() * sizeof(int64_t) + starts_.capacity() * 16 +
         slots_.capacity() * 4;
}

std::optional<Value> ValueTable::find(std::span<const int64_t> ints, uint64_t hash) const {
  if (slots_.empty()) return std::nullopt;
  for (size_t slot = hash & (slots_.size() - 1); slots_[slot] >= 0;
       slot = (slot + 1) & (slots_.size() - 1)) {
    const auto index = static_cast<size_t>(slots_[slot]);
    if (hashes_[index] == hash && std::ranges::equal(vector(index), ints)) {
      return first_ + static_cast<Value>(index);
    }
  }
  return std::nullopt;
}

void ValueTable::grow() {
  slots_.assign(std::max<size_t>(16, 2 * slots_.size()), -1);
  for (size_t index = 0; index < size(); ++index) {
    size_t slot = hashes_[index] & (slots_.size() - 1);
    while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<int32_t>(index);
  }
}

}  // namespace litmusfuzz::oracle
