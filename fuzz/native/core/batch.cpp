#include "batch.h"

#include <algorithm>
#include <random>

namespace litmusfuzz::executor {

Batch::Batch(const Program& program, Engine& engine, uint32_t copies)
    : program_(program), engine_(engine) {
  for (uint32_t i = 0; i < copies; ++i) copies_.emplace_back(program, *this);
}

void Batch::run(uint64_t seed, bool shuffle, uint32_t together, Histogram& seen) {
  std::minstd_rand random(static_cast<uint32_t>(seed ^ seed >> 32));
  for (size_t r = 0; r < program_.runs.size(); ++r) states_.push_back(engine_.start_run(random()));
  starting_ = true;
  for (Copy& each : copies_) {
    each.reset();
    each.start();
  }
  starting_ = false;
  meetings_ = seed;
  if (together) appoint(together);
  if (shuffle) std::shuffle(first_.begin(), first_.end(), random);
  for (const Event& each : first_) schedule(each);
  first_.clear();
  // A run may get new work from another one after it was waited for.
  while (!quiet()) wait();
  wait();  // until the engine, too, has done with the last closures
  states_.clear();
  for (Copy& each : copies_) {
    if (kMutants) each.settle();
    read_outcome(program_, each, row_);
    ++seen[row_];
  }
}

/// Marks the first events of each copy, as many as are to meet.
void Batch::appoint(uint32_t together) {
  for (Event& each : first_) {
    std::atomic<uint32_t>& awaited = each.frame->copy.awaited;
    // Relaxed: no thread works here yet.
    const uint32_t others = awaited.load(std::memory_order_relaxed);
    if (others == together) continue;
    awaited.store(others + 1, std::memory_order_relaxed);
    each.step |= kMeets;
  }
}

/// Waits until all have come, or too long: the others may have no thread. Then a little
/// more, since who comes last learns it first: by up to some hundred nanoseconds, which
/// is what it takes a core to tell another.
void Batch::meet(std::atomic<uint32_t>& awaited, uint64_t event) {
  // Relaxed, all of it: who meets here must not see more of each other's memory
  // than he would without.
  const uint32_t before = awaited.fetch_sub(1, std::memory_order_relaxed);
  for (int patience = 4000; patience && awaited.load(std::memory_order_relaxed); --patience) {
  }
  const uint64_t hash = (meetings_ + before + event) * 0x9e3779b97f4a7c15u;
  for (uint64_t left = hash >> 56; left; --left) awaited.load(std::memory_order_relaxed);
}

void Batch::wait() {
  for (const auto& each : states_) each->wait();
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
  const Event event{frame, static_cast<uint32_t>(packed >> 32),
                    static_cast<uint32_t>(packed) & ~kMeets};
  if (packed & kMeets) batch.meet(frame->copy.awaited, packed);
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
