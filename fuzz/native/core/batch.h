// Concurrent copies of a test on the threads of an engine.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "copy.h"
#include "devices.h"
#include "event_counter.h"
#include "litmusfuzz/engine.h"
#include "outcome.h"
#include "perturbation.h"
#include "transfer_delay.h"

namespace litmusfuzz::executor {

/// Executes all copies together. Each run of the test is one run of the engine of each
/// device, shared by all copies, which gives several threads enough to do.
class Batch final : public EventRunner {
 public:
  /// `engines` has one engine for each device; others may use them at the same time.
  Batch(const Program& program, Engines engines, uint32_t copies);

  /// Sets the noise of later runs. Not during a run.
  void perturb(const Noise& noise);
  /// Delays transfers of later runs by random times up to this bound.
  void set_transfer_delay(uint32_t delay_us_max) { transfer_delay_us_max_ = delay_us_max; }

  /// Executes all copies once and counts their outcomes. Blocked copies are detected
  /// exactly: nothing runs, nothing is ready, something is not done. Throws the
  /// exceptions of the engine and of events; may be called again then.
  void run(uint64_t seed, bool shuffle, Histogram& seen);

  /// Events performed so far by each thread, the caller of `run` included.
  const EventCounter& performed() const { return performed_; }

 private:
  void execute(uint64_t seed, bool shuffle);
  void ready(Event event) override;
  void schedule(Event event);
  void perform(Event event) override;
  void transfer(Event event) override;
  /// Drops an execution in any state.
  void abandon();
  bool quiet() const;

  const Program& program_;
  std::deque<Copy> copies_;  // never moved
  DeviceRuns runs_;
  TransferDelay transfer_delay_;
  uint32_t transfer_delay_us_max_ = 0;
  std::vector<Event> first_;  // first events, until all copies have started
  bool starting_ = false;     // written while no other thread works here
  /// For a test with several runs or devices; a single run state knows when it is done.
  std::atomic<uint64_t> scheduled_{0}, done_{0};
  std::unique_ptr<Perturbation> perturbation_;  // null without noise
  Row row_;
  EventCounter performed_;
};

}  // namespace litmusfuzz::executor
