#include "loop.h"

#include <stdexcept>

namespace litmusfuzz::control {

Loop::Loop(Controller& controller, const LitmusFuzzProgram* program, uint32_t executors)
    : controller_(controller), program_(program), executors_(executors) {
  if (program->version != LITMUSFUZZ_CONTROL_VERSION) {
    throw std::invalid_argument("the library in the runtime is of another version");
  }
}

void Loop::execute() {
  broken_ = !program_->initialize(program_->program);
  if (broken_) return;
  controller_.begin();
  controller_.expect(0);
  controller_.proceed_when_begun(executors_);
  broken_ = !program_->race(program_->program);
  controller_.end();
}

bool Loop::run(executor::Scheduler& scheduler, uint64_t executions) {
  controller_.set_execution([this] { execute(); });
  for (; executions > 0; --executions) {
    ++begun_;
    const bool chosen = controller_.run(scheduler);
    if (broken_) return false;
    if (!chosen) continue;
    const int64_t outcome = program_->read(program_->program);
    if (outcome < 0) return false;
    if (static_cast<size_t>(outcome) >= seen_.size()) seen_.resize(outcome + 1);
    Seen& seen = seen_[outcome];
    if (seen.executions++ == 0) seen.first = controller_.chosen();
  }
  return true;
}

bool Loop::explore(executor::Exhaustive& search, uint64_t executions) {
  for (complete_ = false; executions > 0 && !complete_; --executions) {
    if (!run(search, 1)) return false;
    complete_ = !search.next();
  }
  return true;
}

void Loop::forget() {
  begun_ = 0;
  for (Seen& each : seen_) each = {};
}

}  // namespace litmusfuzz::control
