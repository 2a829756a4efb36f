// Selectively uniform random walk (SURW): the order of the events on one resource is
// uniform among all their orders; other events fall between them at random.
//
// Each execution picks a random contended resource. Repeatedly it picks a pending event,
// with weight proportional to the number of events on that resource that the event leads
// to; other events on the resource are held back until the first of those was performed.
// Events that are not held back are performed at random with equal weights.
//
// The order is uniform if `EventCounts` is exact and nothing blocks: see urw.h. If all
// enabled events are held back because the picked event is blocked, one of them is
// performed anyway.
//
// Reference: Zhao, Wolff, Mathur and Roychoudhury, "Selectively Uniform Concurrency
// Testing", ASPLOS 2025, for threads.
#pragma once

#include "schedulers/event_counts.h"
#include "schedulers/random.h"
#include "schedulers/weights.h"

namespace litmusfuzz::executor {

class Surw final : public Scheduler {
 public:
  Surw(Runtime& runtime, uint64_t seed) : random_(seed), counts_(runtime) {}
  void begin(const Runtime& runtime) override;
  void ready(Ticket ticket) override;
  void enabled(Ticket ticket) override;
  std::optional<size_t> choose(const Choices& choices) override;

 private:
  static constexpr Ticket kNone = UINT32_MAX;
  static constexpr uint32_t kNothing = UINT32_MAX;

  void intend(Ticket ticket, const Choices& choices);
  Ticket sample(const Choices& choices);
  void perform(Ticket ticket);

  Random random_;
  EventCounts counts_;
  const Runtime* runtime_ = nullptr;
  uint32_t resource_ = kNothing;   // the resource of this execution
  std::vector<uint8_t> selected_;  // by ticket: true for an event on the resource
  Weights leading_;                // pending events, by the number of events they lead to
  Weights going_;                  // events that are not held back, with equal weights
  Ticket intended_ = kNone;        // leads to the next event on the resource
  /// True after `intended_` was performed, if it is not on the resource: its followers,
  /// with counts, continue the path.
  bool passing_ = false;
  std::vector<std::pair<Ticket, uint32_t>> followers_;
};

}  // namespace litmusfuzz::executor
