// Selectively uniform random walk: the events on one variable come in an order
// that is uniform among all their orders, the others in between at random.
//
// For each execution one of the contended resources is drawn. Then, again and
// again, one pending event is drawn with odds proportional to the events on that
// resource that it leads to; other events on the resource are held back until the
// first of those has been performed. All that is not held back goes on at random,
// each event with the same odds.
//
// Uniform where the counts of `Profile` are exact and nothing blocks: see urw.h.
// Where everything that may come next is held back, since the event drawn has to
// wait, one of those goes first after all.
//
// Reference: Zhao, Wolff, Mathur and Roychoudhury, "Selectively Uniform Concurrency
// Testing", ASPLOS 2025, for threads.
#pragma once

#include "schedulers/profile.h"
#include "schedulers/random.h"
#include "schedulers/weights.h"

namespace litmusfuzz::executor {

class Surw final : public Scheduler {
 public:
  Surw(const Program& program, uint64_t seed) : random_(seed), profile_(program) {}
  void begin() override;
  void ready(Event event, Ticket ticket) override;
  void enabled(Ticket ticket) override;
  std::optional<size_t> choose(const Choices& choices) override;

 private:
  static constexpr Ticket kNone = UINT32_MAX;
  static constexpr uint32_t kNothing = UINT32_MAX;

  void intend(Ticket ticket, const Choices& choices);
  Ticket draw(const Choices& choices);
  void perform(Ticket ticket);

  Random random_;
  Profile profile_;
  uint32_t resource_ = kNothing;   // whose events come in uniform order
  std::vector<uint8_t> selected_;  // by ticket: whether it is such an event
  Weights leading_;                // pending events: how many of those they lead to
  Weights going_;                  // events that need not be held back, one each
  Ticket intended_ = kNone;        // the way to the next event on the resource
  /// The event on that way has just been performed: what follows it, with counts.
  bool passing_ = false;
  std::vector<std::pair<Ticket, uint32_t>> followers_;
};

}  // namespace litmusfuzz::executor
