#include "orders.h"

#include <bitset>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace litmusfuzz::oracle {
namespace {

size_t bytes_of(int32_t events) { return (static_cast<size_t>(events) + 63) / 64 * 8; }

template <size_t N>
std::bitset<N> set_of(std::string_view bits, int32_t events) {
  std::bitset<N> found;
  for (int32_t i = 0; i < events; ++i) {
    const auto byte = static_cast<unsigned char>(bits[static_cast<size_t>(i) / 8]);
    found[static_cast<size_t>(i)] = byte >> (i % 8) & 1;
  }
  return found;
}

template <>
std::bitset<64> set_of<64>(std::string_view bits, int32_t) {
  uint64_t word;
  std::memcpy(&word, bits.data(), sizeof word);
  return word;
}

template <size_t N>
struct Waiting {
  bool takes;
  int64_t held;
  int64_t capacity;
  std::bitset<N> more, fewer, closed;

  bool open(const std::bitset<N>& done) const {
    const auto now = held + static_cast<int64_t>((done & more).count()) -
                     static_cast<int64_t>((done & fewer).count());
    return takes ? now > 0 || (done & closed).any() : now < capacity;
  }
};

template <size_t N>
uint64_t count(int32_t events, std::string_view above_bits, const std::vector<Gate>& gates,
               uint64_t limit) {
  using Set = std::bitset<N>;
  const size_t bytes = bytes_of(events);
  const auto number = static_cast<size_t>(events);
  std::vector<Set> above(number);
  for (size_t i = 0; i < number; ++i) {
    above[i] = set_of<N>(above_bits.substr(i * bytes, bytes), events);
  }
  std::vector<Waiting<N>> waiting;
  std::vector<const Waiting<N>*> gate_of(number, nullptr);
  waiting.reserve(gates.size());
  for (const Gate& gate : gates) {
    waiting.push_back({gate.takes, gate.held, gate.capacity, set_of<N>(gate.more, events),
                       set_of<N>(gate.fewer, events), set_of<N>(gate.closed, events)});
    gate_of[static_cast<size_t>(gate.event)] = &waiting.back();
  }
  uint64_t total = 0;
  std::unordered_map<Set, uint64_t> ways{{Set(), 1}};
  std::unordered_map<Set, uint64_t> larger;
  while (!ways.empty()) {
    larger.clear();
    uint64_t sum = 0;
    for (const auto& [done, orders] : ways) {
      bool stuck = true;
      for (size_t i = 0; i < number; ++i) {
        if (done[i] || (above[i] & ~done).any()) continue;
        if (gate_of[i] && !gate_of[i]->open(done)) continue;
        stuck = false;
        Set next = done;
        next.set(i);
        larger[next] += orders;
        sum += orders;
      }
      if (stuck) total += orders;
    }
    // Every order of a prefix extends to at least one of the whole.
    if (total + sum >= limit) return limit;
    std::swap(ways, larger);
  }
  return total;
}

}  // namespace

uint64_t count_orders(int32_t events, std::string_view above, const std::vector<Gate>& gates,
                      uint64_t limit) {
  if (events < 0 || above.size() != static_cast<size_t>(events) * bytes_of(events)) {
    throw std::invalid_argument("a set for each event");
  }
  for (const Gate& gate : gates) {
    const bool sets = gate.more.size() == bytes_of(events) &&
                      gate.fewer.size() == bytes_of(events) &&
                      gate.closed.size() == bytes_of(events);
    if (gate.event < 0 || gate.event >= events || !sets) {
      throw std::invalid_argument("a gate of an event, with a bit for each event");
    }
  }
  if (events <= 64) return count<64>(events, above, gates, limit);
  if (events <= 256) return count<256>(events, above, gates, limit);
  if (events <= kMostEvents) return count<kMostEvents>(events, above, gates, limit);
  throw std::length_error(std::to_string(events) + " events");
}

}  // namespace litmusfuzz::oracle
