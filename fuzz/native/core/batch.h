// Copies of a test side by side, on the threads of an engine.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "copy.h"
#include "devices.h"
#include "link.h"
#include "litmusfuzz/engine.h"
#include "outcome.h"
#include "perturbation.h"
#include "tally.h"

namespace litmusfuzz::executor {

/// On each device one run of its engine for each run of the test, all copies together:
/// only then is there enough to do for several threads.
class Batch final : public EventRunner {
 public:
  /// `engines`, one for each device, may have other users meanwhile.
  Batch(const Program& program, Engines engines, uint32_t copies);

  /// From now on. Not while it runs.
  void perturb(const Noise& noise);
  /// From now on transfers are held back for random times, up to that.
  void set_transfer_delay(uint32_t delay_us_max) { transfer_delay_us_max_ = delay_us_max; }

  /// Executes all copies once and counts what they show. It is known exactly
  /// when a copy is blocked: nothing runs, nothing is ready, something is not done.
  /// Throws what the engine, or an event in it, throws; may be called again then.
  void run(uint64_t seed, bool shuffle, Histogram& seen);

  /// Events so far by thread; the thread that called `run` is one of them.
  const Tally& performed() const { return performed_; }

 private:
  void execute(uint64_t seed, bool shuffle);
  void ready(Event event) override;
  void schedule(Event event);
  void perform(Event event) override;
  void transfer(Event event) override;
  /// Nothing of it is left, whatever state it was in.
  void abandon();
  bool quiet() const;

  const Program& program_;
  std::deque<Copy> copies_;  // never moved
  DeviceRuns runs_;
  Link link_;
  uint32_t transfer_delay_us_max_ = 0;
  std::vector<Event> first_;  // of the start, until all copies have started
  bool starting_ = false;     // written while no other thread works here
  /// Of a test with several runs or devices: with one, its state says when all is done.
  std::atomic<uint64_t> scheduled_{0}, done_{0};
  std::unique_ptr<Perturbation> perturbation_;  // none where nothing is to be done
  Row row_;
  Tally performed_;
};

}  // namespace litmusfuzz::executor
