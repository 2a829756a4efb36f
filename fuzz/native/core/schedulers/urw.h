// Uniform random walk: an event comes next with odds proportional to the number of
// events that it leads to, itself included.
//
// Of independent chains, and of forests, all orders are equally likely then (for
// forests by the hook length formula; Knuth, "The Art of Computer Programming" 3,
// 5.1.4, exercise 20). The counts are those of `Profile`: exact in both cases, an
// estimate where chains join, where something blocks, and where what is executed
// depends on data.
//
// Reference: Zhao, Wolff, Mathur and Roychoudhury, "Selectively Uniform Concurrency
// Testing", ASPLOS 2025, for threads; there, too, a thread counts those it starts.
#pragma once

#include "schedulers/profile.h"
#include "schedulers/random.h"
#include "schedulers/weights.h"

namespace litmusfuzz::executor {

class Urw final : public Scheduler {
 public:
  Urw(const Program& program, uint64_t seed) : random_(seed), profile_(program) {}
  void begin() override { weights_.clear(); }
  void ready(Event event, Ticket ticket) override;
  void enabled(Ticket ticket) override { weights_.set(ticket, led_to_[ticket]); }
  std::optional<size_t> choose(const Choices& choices) override;

 private:
  Random random_;
  Profile profile_;
  std::vector<uint32_t> led_to_;  // by ticket
  Weights weights_;
};

}  // namespace litmusfuzz::executor
