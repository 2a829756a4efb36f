#include "batch.h"

#include <algorithm>
#include <random>

namespace litmusfuzz::executor {

Batch::Batch(const Program& program, Engine& engine, uint32_t copies)
    : program_(program), engine_(engine) {
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
  states_.clear();
  for (Copy& each : copies_) {
    if (kMutants) each.settle();
    read_outcome(program_, each, row_);
    ++seen[row_];
  }
}

void Batch::execute(uint64_t seed, bool shuffle) {
  std::minstd_rand random(static_cast<uint32_t>(seed ^ seed >> 32));
  for (size_t r = 0; r < program_.runs.size(); ++r) states_.push_back(engine_.start_run(random()));
  starting_ = true;
  for (Copy& each : copies_) {
    each.reset();
    each.start();
  }
  starting_ = false;
  if (perturbation_) perturbation_->begin(random(), first_);
  if (shuffle) std::shuffle(first_.begin(), first_.end(), random);
  for (const Event& each : first_) schedule(each);
  first_.clear();
  if (perturbation_) perturbation_->go();
  // A run may get new work from another one after it was waited for.
  while (!quiet()) wait();
  wait();  // until the engine, too, has done with the last closures
}

void Batch::wait() {
  for (const auto& each : states_) each->wait();
}

void Batch::abandon() {
  for (const auto& each : states_) each->cancel();
  if (perturbation_) perturbation_->go();
  // Twice: in the first round the last closures end, which may have scheduled into
  // runs that were waited for; nothing new can start.
  for (size_t i = 0; i < 2 * states_.size(); ++i) {
    try {
      states_[i % states_.size()]->wait();
    } catch (...) {  // one exception is told, and it is on its way
    }
  }
  states_.clear();
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

void Batch::schedule(Event event) {
  // Relaxed: the closure that counts it here counts itself done, with release,
  // only afterwards.
  if (states_.size() > 1) scheduled_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t packed = uint64_t{event.node} << 32 | event.step;
  states_[event.frame->run]->schedule({&Batch::perform, event.frame, packed});
}

void Batch::perform(void* object, uint64_t packed) {
  auto* const frame = static_cast<Frame*>(object);
  auto& batch = static_cast<Batch&>(frame->copy.scheduler());
  const Event event{frame, static_cast<uint32_t>(packed >> 32), static_cast<uint32_t>(packed)};
  if (batch.perturbation_) batch.perturbation_->before(event, frame->copy.number());
  frame->copy.perform(event);
  batch.performed_.add();
  // Release: its partner is in `quiet`.
  if (batch.states_.size() > 1) batch.done_.fetch_add(1, std::memory_order_release);
}

bool Batch::quiet() const {
  // In this order: if as many are done as were scheduled a moment later, then
  // none was left, and nobody was there to schedule another.
  const uint64_t done = done_.load(std::memory_order_acquire);
  return done == scheduled_.load(std::memory_order_relaxed);
}

}  // namespace litmusfuzz::executor
