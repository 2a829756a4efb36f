// Uniform random walk (URW): an event is next with weight proportional to the number of
// events that it leads to, itself included.
//
// For independent chains, and for forests, all orders are then equally likely (for
// forests by the hook length formula; Knuth, "The Art of Computer Programming" 3, 5.1.4,
// exercise 20). `EventCounts` is exact in both cases, and an estimate where chains join,
// where events block, and where control flow depends on data.
//
// Reference: Zhao, Wolff, Mathur and Roychoudhury, "Selectively Uniform Concurrency
// Testing", ASPLOS 2025, for threads; there, too, a thread counts those it starts.
#pragma once

#include "schedulers/event_counts.h"
#include "schedulers/random.h"
#include "schedulers/weights.h"

namespace litmusfuzz::executor {

class Urw final : public Scheduler {
 public:
  Urw(Runtime& runtime, uint64_t seed) : random_(seed), counts_(runtime) {}
  void begin(const Runtime& runtime) override;
  void ready(Ticket ticket) override;
  void enabled(Ticket ticket) override { weights_.set(ticket, led_to_[ticket]); }
  std::optional<size_t> choose(const Choices& choices) override;

 private:
  Random random_;
  EventCounts counts_;
  const Runtime* runtime_ = nullptr;
  std::vector<uint32_t> led_to_;  // by ticket
  Weights weights_;
};

}  // namespace litmusfuzz::executor
