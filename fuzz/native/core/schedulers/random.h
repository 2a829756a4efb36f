// Random numbers that are the same on every platform, unlike std's distributions.
#pragma once

#include <cstdint>

namespace litmusfuzz::executor {

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) { next(); }

  uint64_t next() {
    const uint64_t result = next_;
    // Computed one ahead, to hide the latency of the multiplications.
    uint64_t hash = state_ += 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    next_ = hash ^ hash >> 31;
    return result;
  }
  /// A number below `count`, which is not 0; each has a relative bias of at most
  /// count / 2^32.
  uint32_t below(uint32_t count) { return static_cast<uint32_t>((next() >> 32) * count >> 32); }
  /// A number in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
  uint64_t next_ = 0;
};

}  // namespace litmusfuzz::executor
