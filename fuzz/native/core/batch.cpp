#include "batch.h"

#include <algorithm>
#include <random>

namespace litmusfuzz::executor {

Batch::Batch(const Program& program, Engines& engines, uint32_t copies)
    : program_(program), runs_(program, engines), link_([this](Event event) {
        runs_.schedule(event, &Batch::perform);
      }) {
  for (uint32_t i = 0; i < copies; ++i) copies_.emplace_back(program, *this);
}

void Batch::run(uint64_t seed, bool shuffle, Histogram& seen) {
  std::minstd_rand random(static_cast<uint32_t>(seed ^ seed >> 32));
  runs_.start(random);
  link_.set(transfer_delay_us_max_, random());
  starting_ = true;
  for (Copy& each : copies_) {
    each.reset();
    each.start();
  }
  starting_ = false;
  if (shuffle) std::shuffle(first_.begin(), first_.end(), random);
  for (const Event& each : first_) {
    if (link_.slow() && each.frame->node(each.node).kind == Kind::kRecv) {
      transfer(each);
    } else {
      schedule(each);
    }
  }
  first_.clear();
  // A run may get new work from another one after it was waited for.
  while (!quiet()) {
    runs_.wait();
    link_.wait();
  }
  runs_.wait();  // until the engine, too, has done with the last closures
  runs_.end();
  for (const Copy& each : copies_) {
    read_outcome(program_, each, row_);
    ++seen[row_];
  }
}

void Batch::ready(Event event) {
  if (starting_) {
    first_.push_back(event);
  } else {
    schedule(event);
  }
}

void Batch::transfer(Event event) {
  // While copies start, nothing may be performed.
  if (starting_ || !link_.slow()) return ready(event);
  scheduled_.fetch_add(1, std::memory_order_relaxed);  // as in `schedule`
  link_.hold(event);
}

void Batch::schedule(Event event) {
  // Relaxed: the closure that counts it here counts itself done, with release,
  // only afterwards.
  if (runs_.several()) scheduled_.fetch_add(1, std::memory_order_relaxed);
  runs_.schedule(event, &Batch::perform);
}

void Batch::perform(void* object, uint64_t packed) {
  const Event event = DeviceRuns::unpacked(object, packed);
  auto& batch = static_cast<Batch&>(event.frame->copy.scheduler());
  event.frame->copy.perform(event);
  batch.performed_.add();
  // Release: its partner is in `quiet`.
  if (batch.runs_.several()) batch.done_.fetch_add(1, std::memory_order_release);
}

bool Batch::quiet() const {
  // In this order: if as many are done as were scheduled a moment later, then
  // none was left, and nobody was there to schedule another.
  const uint64_t done = done_.load(std::memory_order_acquire);
  return done == scheduled_.load(std::memory_order_relaxed);
}

}  // namespace litmusfuzz::executor
