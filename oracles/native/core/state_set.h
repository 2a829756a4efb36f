// A set of states, each a row of a fixed number of 32-bit words.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace litmusfuzz::oracle {

/// Hash set with open addressing over contiguous rows. Rows are numbered in the
/// order of their insertion.
class StateSet {
 public:
  /// `slots` is a power of two: twice the number of rows that it holds before it grows.
  explicit StateSet(size_t stride, size_t slots = 64) : stride_(stride), slots_(slots) {}

  /// Returns false if the row was in the set.
  bool insert(const uint32_t* row) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    const uint64_t hash = hash_of(row);
    size_t slot = hash & (slots_.size() - 1);
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (; slots_[slot].number; slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot].tag == tag && equal(slots_[slot].number - 1, row)) return false;
    }
    slots_[slot] = {tag, ++size_};
    rows_.insert(rows_.end(), row, row + stride_);
    return true;
  }

  bool contains(const uint32_t* row) const {
    const uint64_t hash = hash_of(row);
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t slot = hash & (slots_.size() - 1); slots_[slot].number;
         slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot].tag == tag && equal(slots_[slot].number - 1, row)) return true;
    }
    return false;
  }

  const uint32_t* row(size_t number) const { return rows_.data() + number * stride_; }
  size_t size() const { return size_; }
  /// Bytes needed to insert one more row, including the old copy of a growing array.
  size_t needed() const {
    size_t words = rows_.capacity(), slots = slots_.size();
    if (rows_.size() + stride_ > words) words *= 3;
    if (2 * (size_ + size_t{1}) > slots) slots *= 3;
    return words * sizeof(uint32_t) + slots * sizeof(Slot);
  }

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t number = 0;  // of the row, counted from 1; 0 is free
  };

  bool equal(size_t number, const uint32_t* other) const {
    return std::memcmp(row(number), other, stride_ * sizeof(uint32_t)) == 0;
  }

  uint64_t hash_of(const uint32_t* words) const {
    uint64_t hash = 0x9E3779B97F4A7C15u;
    size_t i = 0;
    for (; i + 2 <= stride_; i += 2) {
      uint64_t pair;
      std::memcpy(&pair, words + i, sizeof pair);
      hash = scramble(hash ^ pair);
    }
    if (i < stride_) hash = scramble(hash ^ words[i]);
    return hash ^ hash >> 29;
  }

  static uint64_t scramble(uint64_t x) {
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
  }

  void grow() {
    std::vector<Slot> larger(2 * slots_.size());
    for (uint32_t number = 0; number < size_; ++number) {
      const uint64_t hash = hash_of(row(number));
      size_t slot = hash & (larger.size() - 1);
      while (larger[slot].number) slot = (slot + 1) & (larger.size() - 1);
      larger[slot] = {static_cast<uint32_t>(hash >> 32), number + 1};
    }
    slots_ = std::move(larger);
  }

  size_t stride_;
  uint32_t size_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint32_t> rows_;
};

}  // namespace litmusfuzz::oracle
