#include "perturbation.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#ifdef __linux__
#include <sched.h>
#include <unistd.h>
#endif

#include "copy.h"

namespace litmusfuzz::executor {
namespace {

using Clock = std::chrono::steady_clock;

/// splitmix64.
uint64_t scramble(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

void delay(std::chrono::microseconds time) {
  // Sleeping takes tens of microseconds longer; spinning takes a core from others.
  if (time > std::chrono::microseconds(50)) return std::this_thread::sleep_for(time);
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

#ifdef __linux__
cpu_set_t set_of(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
  return set;
}
#endif

/// Relaxed: it counts, and orders nothing.
std::atomic<uint64_t> made{0};

}  // namespace

Perturbation::Perturbation(const Noise& noise)
    : noise_(noise), number_(made.fetch_add(1, std::memory_order_relaxed) + 1) {
  if (!noise.pinned) return;
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &set)) cores_.push_back(core);
  }
#endif
  if (cores_.empty()) throw std::invalid_argument("threads can be pinned to cores on Linux only");
}

Perturbation::~Perturbation() {
#ifdef __linux__
  const cpu_set_t all = set_of(cores_);
  // A thread that has ended is not found, and needs no unpinning.
  for (const int thread : pinned_) sched_setaffinity(thread, sizeof all, &all);
#endif
}

void Perturbation::begin(uint64_t seed, const std::vector<Event>& first) {
  seed_ = seed;
  for (auto& each : awaited_) each.store(0, std::memory_order_relaxed);
  for (const Event& each : first) {
    if (!noise_.together) break;
    const uint32_t copy = each.frame->copy.number();
    while (awaited_.size() <= copy) awaited_.emplace_back(0);
    // Relaxed, here and in `meet`: the meeting must not synchronize memory.
    const uint32_t others = awaited_[copy].load(std::memory_order_relaxed);
    if (others < noise_.together) awaited_[copy].store(others + 1, std::memory_order_relaxed);
  }
  open_.store(!noise_.barrier, std::memory_order_relaxed);
}

void Perturbation::go() {
  open_.store(1, std::memory_order_relaxed);
  open_.notify_all();
}

void Perturbation::before(const Event& event, uint32_t copy) {
  if (noise_.pinned) pin_this_thread();
  if (!open_.load(std::memory_order_relaxed)) {
    const auto end = Clock::now() + std::chrono::microseconds(50);
    while (!open_.load(std::memory_order_relaxed)) {
      if (Clock::now() > end) open_.wait(0, std::memory_order_relaxed);
    }
  }
  const uint64_t number =
      event.frame->first_event + event.frame->node(event.node).first_event + event.step;
  const uint64_t random = scramble(scramble(seed_ + copy) + number);
  if (copy < awaited_.size() && awaited_[copy].load(std::memory_order_relaxed)) {
    meet(awaited_[copy], random);
  }
  // The bias of the remainders is below 2^-20.
  if (random % 100 < noise_.yield_percent) std::this_thread::yield();
  if (noise_.delay_us_max) {
    delay(std::chrono::microseconds((random >> 32) % (uint64_t{noise_.delay_us_max} + 1)));
  }
}

/// Waits until all events have come, for a limited time, since the others may have no
/// thread. Then waits a random moment: the last thread would otherwise lead by some
/// hundred nanoseconds, the latency between two cores.
void Perturbation::meet(std::atomic<uint32_t>& awaited, uint64_t random) {
  // An event that timed out may come together with another: then one too many came.
  if (awaited.fetch_sub(1, std::memory_order_relaxed) == 0) {
    awaited.store(0, std::memory_order_relaxed);
  }
  for (int patience = 4000; patience && awaited.load(std::memory_order_relaxed); --patience) {
  }
  for (uint64_t left = random >> 56; left; --left) awaited.load(std::memory_order_relaxed);
}

void Perturbation::pin_this_thread() {
#ifdef __linux__
  static constinit thread_local uint64_t pinned_by = 0;
  if (pinned_by == number_) return;
  pinned_by = number_;
  const std::lock_guard guard(lock_);
  const cpu_set_t one = set_of({cores_[pinned_.size() % cores_.size()]});
  pinned_.push_back(gettid());
  sched_setaffinity(0, sizeof one, &one);
#endif
}

}  // namespace litmusfuzz::executor
