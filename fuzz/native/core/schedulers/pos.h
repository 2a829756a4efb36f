// Partial order sampling (POS): random scores, resampled after each race.
//
// Each event gets a random score when it becomes ready. The enabled event of highest score
// is performed, and then every pending event that conflicts with it (same resource, one
// of the two a write) gets a new score. So of two racing events each comes first with
// equal probability, whatever happened before.
//
// Reference: Yuan, Yang and Gu, "Partial Order Aware Concurrency Sampling", CAV 2018.
#pragma once

#include "schedulers/heap.h"
#include "schedulers/random.h"

namespace litmusfuzz::executor {

class Pos final : public Scheduler {
 public:
  explicit Pos(uint64_t seed) : random_(seed) {}
  void begin(const Runtime& runtime) override;
  void ready(Ticket ticket) override;
  void enabled(Ticket ticket) override { heap_.push(ticket); }
  std::optional<size_t> choose(const Choices& choices) override;

 private:
  /// Position of an event in `touching_`, one for each resource that it touches.
  struct Place {
    uint32_t list;
    uint32_t place;
  };

  void insert(Ticket ticket, const Step& step);
  void remove(Ticket ticket);
  void resample(const Choices& choices, uint32_t list);

  Random random_;
  const Runtime* runtime_ = nullptr;
  ScoreHeap heap_;
  /// Pending events: for each resource its writers, then its readers.
  std::vector<std::vector<Ticket>> touching_;
  std::vector<std::vector<Place>> places_;  // by ticket
};

}  // namespace litmusfuzz::executor
