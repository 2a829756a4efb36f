// Random numbers that are the same everywhere: std's distributions are not.
#pragma once

#include <cstdint>

namespace litmusfuzz::executor {

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) { next(); }

  uint64_t next() {
    const uint64_t drawn = next_;
    // One ahead, so that nobody waits for the multiplications.
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    next_ = mixed ^ mixed >> 31;
    return drawn;
  }
  /// Below `count`, which is not 0; each number too often or too seldom by at
  /// most one part in 2^32 / count.
  uint32_t below(uint32_t count) { return static_cast<uint32_t>((next() >> 32) * count >> 32); }
  /// At least 0, below 1.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
  uint64_t next_ = 0;
};

}  // namespace litmusfuzz::executor
