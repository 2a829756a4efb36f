// Executions of a test one after another, with nothing of the runtime's client between them.
//
// The client (here: Python) costs more than an execution does. So it hands over what begins and
// ends an execution (`LitmusFuzzProgram`), and gets the number of executions with each outcome.
#pragma once

#include <cstdint>
#include <vector>

#include "../core/exhaustive.h"
#include "controller.h"
#include "hooks.h"

namespace litmusfuzz::control {

/// What a loop has seen of one outcome.
struct Seen {
  uint64_t executions = 0;
  std::vector<Chosen> first;  // what was chosen in the first of them
};

class Loop {
 public:
  /// The program's race has one run, which cannot be blocked, and so many executors. Both must
  /// outlive the loop.
  Loop(Controller& controller, const LitmusFuzzProgram* program, uint32_t executors);

  /// Executes so often; false if the runtime has an error. What the scheduler abandons has no
  /// outcome.
  bool run(executor::Scheduler& scheduler, uint64_t executions);
  /// Executes a search's next schedules, so many or until it has no more; false as above.
  bool explore(executor::Exhaustive& search, uint64_t executions);

  /// True if the last search had no more.
  bool complete() const { return complete_; }
  /// Executions that were begun.
  uint64_t begun() const { return begun_; }
  /// By number of the outcome.
  const std::vector<Seen>& seen() const { return seen_; }
  /// Forgets what was seen, and how often; the outcomes keep their numbers.
  void forget();

 private:
  void execute();

  Controller& controller_;
  const LitmusFuzzProgram* const program_;
  const uint32_t executors_;
  std::vector<Seen> seen_;
  uint64_t begun_ = 0;
  bool complete_ = false;
  bool broken_ = false;  // the runtime has an error
};

}  // namespace litmusfuzz::control
