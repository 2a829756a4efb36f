#include "batch.h"

#include <algorithm>
#include <random>

namespace litmusfuzz::executor {

Batch::Batch(const Program& program, Engines engines, uint32_t copies)
    : program_(program),
      runs_(program, std::move(engines)),
      transfer_delay_([this](Event event) { runs_.schedule(event); }) {
  for (uint32_t i = 0; i < copies; ++i) copies_.emplace_back(program, *this, i);
}

void Batch::perturb(const Noise& noise) {
  perturbation_.reset();  // first: it unpins the threads
  perturbation_ = std::make_unique<Perturbation>(noise);
}

void Batch::run(uint64_t seed, bool shuffle, Histogram& seen) {
  try {
    execute(seed, shuffle);
  } catch (...) {
    abandon();
    throw;
  }
  runs_.end();
  for (Copy& each : copies_) {
    if (kMutants) each.flush_stores();
    read_outcome(program_, each, row_);
    ++seen[row_];
  }
}

void Batch::execute(uint64_t seed, bool shuffle) {
  std::minstd_rand random(static_cast<uint32_t>(seed ^ seed >> 32));
  runs_.start(random);
  transfer_delay_.set(transfer_delay_us_max_, random());
  program_.begin_execution();
  starting_ = true;
  for (Copy& each : copies_) {
    each.reset();
    each.start();
  }
  starting_ = false;
  if (perturbation_) perturbation_->begin(random(), first_);
  if (shuffle) std::shuffle(first_.begin(), first_.end(), random);
  for (const Event& each : first_) {
    if (transfer_delay_.slow() && each.frame->node(each.node).kind == Kind::kRecv) {
      transfer(each);
    } else {
      schedule(each);
    }
  }
  first_.clear();
  if (perturbation_) perturbation_->go();
  // A run may get new work from another run after `wait` returned.
  while (!quiet()) {
    runs_.wait();
    transfer_delay_.wait();
  }
  runs_.wait();  // until the engine has finished the last closures
}

void Batch::abandon() {
  runs_.cancel();
  if (perturbation_) perturbation_->go();
  // Twice: the last closures end in the first round, and may have scheduled into runs
  // that had finished; nothing new can start.
  for (int round = 0; round < 2; ++round) {
    transfer_delay_.wait();
    runs_.wait_quietly();
  }
  runs_.end();
  first_.clear();
  starting_ = false;
  scheduled_.store(0, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
}

void Batch::ready(Event event) {
  if (starting_) {
    first_.push_back(event);
  } else {
    schedule(event);
  }
}

void Batch::transfer(Event event) {
  // No event may be performed while copies start.
  if (starting_ || !transfer_delay_.slow()) return ready(event);
  scheduled_.fetch_add(1, std::memory_order_relaxed);  // as in `schedule`
  transfer_delay_.hold(event);
}

void Batch::schedule(Event event) {
  // Relaxed: the closure that counts here counts itself done, with release, only
  // afterwards.
  if (runs_.several()) scheduled_.fetch_add(1, std::memory_order_relaxed);
  runs_.schedule(event);
}

void Batch::perform(Event event) {
  Copy& copy = event.frame->copy;
  if (perturbation_) perturbation_->before(event, copy.number());
  copy.perform(event);
  performed_.add();
  // Release: its partner is in `quiet`.
  if (runs_.several()) done_.fetch_add(1, std::memory_order_release);
}

bool Batch::quiet() const {
  // In this order: if the number done equals the number scheduled a moment later, no
  // closure was left that could schedule another.
  const uint64_t done = done_.load(std::memory_order_acquire);
  return done == scheduled_.load(std::memory_order_relaxed);
}

}  // namespace litmusfuzz::executor
