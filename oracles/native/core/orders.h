// The number of total orders of events of which some come before others, and some wait for a
// resource: the downsets of one size, each with the number of its orders, size by size.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace litmusfuzz::oracle {

/// Sets of events are given as little-endian bits, in whole words of 64.
struct Gate {
  int32_t event;  // which waits
  bool takes;  // while nothing is held and it is not closed; else while as much as fits is held
  int32_t held;  // at the beginning
  int32_t capacity;
  std::string_view more;  // events after which one more is held
  std::string_view fewer;  // events after which one less is held
  std::string_view closed;  // events after which nothing waits to take
};

/// At most `limit`. Every maximal order counts: one in which all that is left waits.
/// `above` has a set for each of the events, one after the other.
/// Throws std::length_error for more than `kMostEvents`.
uint64_t count_orders(int32_t events, std::string_view above, const std::vector<Gate>& gates,
                      uint64_t limit);

constexpr int32_t kMostEvents = 4096;

}  // namespace litmusfuzz::oracle
