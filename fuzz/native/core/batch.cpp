#include "batch.h"

#include <algorithm>
#include <random>

namespace litmusfuzz::executor {

Batch::Batch(const Program& program, Engines engines, uint32_t copies)
    : program_(program),
      runs_(program, std::move(engines)),
      link_([this](Event event) { runs_.schedule(event); }) {
  for (uint32_t i = 0; i < copies; ++i) copies_.emplace_back(program, *this, i);
}

void Batch::perturb(const Noise& noise) {
  perturbation_.reset();  // first: it gives threads back the cores that the new one finds
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
    if (kMutants) each.settle();
    read_outcome(program_, each, row_);
    ++seen[row_];
  }
}

void Batch::execute(uint64_t seed, bool shuffle) {
  std::minstd_rand random(static_cast<uint32_t>(seed ^ seed >> 32));
  runs_.start(random);
  link_.set(transfer_delay_us_max_, random());
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
    if (link_.slow() && each.frame->node(each.node).kind == Kind::kRecv) {
      transfer(each);
    } else {
      schedule(each);
    }
  }
  first_.clear();
  if (perturbation_) perturbation_->go();
  // A run may get new work from another one after it was waited for.
  while (!quiet()) {
    runs_.wait();
    link_.wait();
  }
  runs_.wait();  // until the engine, too, has done with the last closures
}

void Batch::abandon() {
  runs_.cancel();
  if (perturbation_) perturbation_->go();
  // Twice: in the first round the last closures end, which may have scheduled into
  // runs that were waited for; nothing new can start.
  for (int round = 0; round < 2; ++round) {
    link_.wait();
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
  // While copies start, nothing may be performed.
  if (starting_ || !link_.slow()) return ready(event);
  scheduled_.fetch_add(1, std::memory_order_relaxed);  // as in `schedule`
  link_.hold(event);
}

void Batch::schedule(Event event) {
  // Relaxed: the closure that counts it here counts itself done, with release,
  // only afterwards.
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
  // In this order: if as many are done as were scheduled a moment later, then
  // none was left, and nobody was there to schedule another.
  const uint64_t done = done_.load(std::memory_order_acquire);
  return done == scheduled_.load(std::memory_order_relaxed);
}

}  // namespace litmusfuzz::executor
