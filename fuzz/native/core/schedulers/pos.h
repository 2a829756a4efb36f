// Partial order sampling: random scores, drawn again after each race.
//
// Each event gets a score when its turn comes; of those that may come next the
// best is performed, and then every pending event that depends on it (the same
// resource, one of the two not only looking) gets a new score. So of two racing
// events each comes first with the same odds, however the rest went.
//
// Reference: Yuan, Yang and Gu, "Partial Order Aware Concurrency Sampling", CAV 2018.
#pragma once

#include "schedulers/heap.h"
#include "schedulers/random.h"

namespace litmusfuzz::executor {

class Pos final : public Scheduler {
 public:
  Pos(const Program& program, uint64_t seed);
  void begin() override;
  void ready(Event event, Ticket ticket) override;
  void enabled(Ticket ticket) override { heap_.push(ticket); }
  std::optional<size_t> choose(const Choices& choices) override;

 private:
  /// Where the event stands in `touching_`, once for each resource that it touches.
  struct Place {
    uint32_t list;
    uint32_t place;
  };

  void insert(Ticket ticket, const Step& step);
  void remove(Ticket ticket);
  void draw_again(const Choices& choices, uint32_t list);

  Random random_;
  ScoreHeap heap_;
  /// Pending events: for each resource those that change it, then those that only look.
  std::vector<std::vector<Ticket>> touching_;
  std::vector<std::vector<Place>> places_;  // by ticket
};

}  // namespace litmusfuzz::executor
