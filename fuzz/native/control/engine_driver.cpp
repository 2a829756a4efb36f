#include "control/engine_driver.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace litmusfuzz::control {
namespace {

/// What this thread does for an engine.
struct Doing {
  /// Whose closure it runs; null if none.
  EngineDriver* inside = nullptr;
  const Work* work = nullptr;
  /// What it waits for; null if nothing. Then it may run closures of that alone (ENGINES, 3).
  const Work* waits_for = nullptr;
  /// The part of an op that it does; -1 if none.
  int part = -1;
};
thread_local Doing doing;

/// The engine has lost closures, so that a run would never end.
[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "litmusfuzz: the engine %s\n", what.c_str());
  std::abort();
}

}  // namespace

/// A thread that runs a closure. It counts once, however many closures are around.
class EngineDriver::Inside {
 public:
  Inside(EngineDriver& driver, const Work& work, bool reserved = false)
      : driver_(driver), before_(doing), reserved_(reserved) {
    if (before_.waits_for && before_.waits_for != &work) {
      driver.blame("has a thread that waits for one run work on another");
    }
    doing = {&driver, &work, nullptr, -1};
    if (counts()) driver.enter(reserved_);
  }
  ~Inside() {
    if (counts()) driver_.leave(reserved_);
    doing = before_;
  }
  Inside(const Inside&) = delete;
  void operator=(const Inside&) = delete;

 private:
  bool counts() const { return before_.inside != &driver_; }

  EngineDriver& driver_;
  const Doing before_;
  const bool reserved_;
};

/// A thread that waits for a run, in a closure perhaps. Then it does not count meanwhile, except
/// for what it runs.
class EngineDriver::Outside {
 public:
  explicit Outside(const Work& work) : before_(doing) {
    doing = {nullptr, nullptr, &work, -1};
    if (before_.inside) before_.inside->leave(false);
  }
  ~Outside() {
    if (before_.inside) before_.inside->enter(false);
    doing = before_;
  }
  Outside(const Outside&) = delete;
  void operator=(const Outside&) = delete;

 private:
  const Doing before_;
};

/// A run of the other runtime.
///
/// It has more closures when its last has run: an op may wait for another run, and come back
/// later. So the caller waits for the engine, then for more closures, until the run has ended.
class DrivenRun final : public Work {
 public:
  DrivenRun(EngineDriver& driver, std::unique_ptr<RunState> state, uint32_t executors)
      : driver_(driver), state_(std::move(state)), executors_(executors) {}

  EngineDriver& driver() const { return driver_; }
  uint64_t closures() const { return performed_.load(std::memory_order_relaxed); }
  uint64_t by_caller() const { return by_caller_; }

  void schedule(Task task) {
    // A thread that runs a closure of this run keeps it; another one does it by `entered_`.
    const bool from_outside = doing.work != this;
    if (from_outside) entered_.fetch_add(1, std::memory_order_relaxed);
    auto* const made = new Scheduled{task};
    try {
      state_->schedule({this, reinterpret_cast<uint64_t>(made)});
      made->release();
    } catch (const std::exception& error) {
      driver_.blame(error.what());
      const std::lock_guard guard(lock_);
      doubtful_.push_back(made);
    }
    // After that, so that the caller never waits for what the engine has not got yet. Both
    // sequentially consistent: either the caller sees the count, or this thread that it sleeps.
    scheduled_.fetch_add(1, std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst)) wake();
    // Release, whose partner is the acquire in `finish`: nothing of the run is used afterwards.
    if (from_outside) entered_.fetch_sub(1, std::memory_order_release);
  }

  void ended() {
    // As in `schedule`. The closure that calls this is one of the run's, which therefore stays.
    if (executors_.fetch_sub(1, std::memory_order_seq_cst) > 1) return;
    if (asleep_.load(std::memory_order_seq_cst)) wake();
  }

  void finish() {
    const EngineDriver::Outside outside(*this);
    for (;;) {
      const bool last = executors_.load(std::memory_order_seq_cst) == 0;
      const uint64_t seen = scheduled_.load(std::memory_order_seq_cst);
      wait(seen);
      if (last) break;
      std::unique_lock lock(lock_);
      asleep_.store(true, std::memory_order_seq_cst);
      changed_.wait(lock, [&] {
        return scheduled_.load(std::memory_order_seq_cst) != seen ||
               executors_.load(std::memory_order_seq_cst) == 0;
      });
      asleep_.store(false, std::memory_order_relaxed);
    }
    while (entered_.load(std::memory_order_acquire)) std::this_thread::yield();
  }

  /// Called by the engine.
  void perform(uint64_t part) override {
    auto* const made = reinterpret_cast<Scheduled*>(part);
    if (made->take()) run(*made);
    made->release();
    // Relaxed: the engine's `wait` synchronizes the threads.
    performed_.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  /// A closure, kept by the engine and by the call that schedules it. If that call throws, it is
  /// not known whether the engine has got the closure.
  struct Scheduled {
    const Task task;
    std::atomic<bool> taken{false};
    std::atomic<uint32_t> keepers{2};

    // Relaxed: the closure's contents come with the engine's own order.
    bool take() { return !taken.exchange(true, std::memory_order_relaxed); }
    void release() {
      if (keepers.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }
  };

  void run(const Scheduled& made) {
    if (doing.waits_for == this) ++by_caller_;  // one thread waits for a run
    const EngineDriver::Inside inside(driver_, *this);
    made.task.call(made.task.data);
  }

  /// Returns when the first so many closures have run.
  void wait(uint64_t seen) {
    try {
      state_->wait();
    } catch (const std::exception& error) {
      give_up(std::string("has thrown in `wait`: ") + error.what());
    }
    std::vector<Scheduled*> doubtful;
    {
      const std::lock_guard guard(lock_);
      doubtful.swap(doubtful_);
    }
    for (Scheduled* const each : doubtful) {
      if (each->take()) run(*each);
      lost_ += 1;
      each->release();
    }
    const uint64_t done = performed_.load(std::memory_order_relaxed) + lost_;
    if (done < seen) {
      give_up("has returned from `wait`, with closures left: " + std::to_string(seen - done));
    }
  }

  void wake() {
    const std::lock_guard guard(lock_);
    changed_.notify_all();
  }

  EngineDriver& driver_;
  const std::unique_ptr<RunState> state_;
  std::atomic<uint32_t> executors_;  // that have not ended
  std::atomic<uint64_t> scheduled_{0}, performed_{0};
  std::atomic<uint32_t> entered_{0};  // threads in `schedule` that nothing else keeps the run for
  std::atomic<bool> asleep_{false};  // the caller
  uint64_t by_caller_ = 0;
  uint64_t lost_ = 0;  // closures that the engine has thrown for
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<Scheduled*> doubtful_;
};

/// Threads that have parts of ops done: each part is a run of its own, which one of them waits
/// for. The engine lets them work when its limit permits.
///
/// An op that has shared a part waits for it, and its thread with it. So a part is shared only if
/// a thread is left for it: then not all threads can be waiting. For the last of them to share
/// has found one that was not, and parts wait for nothing.
class EngineDriver::Helpers final : public Work {
 public:
  Helpers(EngineDriver& driver, uint32_t threads) : driver_(driver), slots_(threads) {
    for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this, i] { help(i); });
  }
  ~Helpers() {
    {
      const std::lock_guard guard(lock_);
      stopping_ = true;
    }
    news_.notify_all();
    for (std::thread& each : threads_) each.join();
  }

  void add(Task part) {
    {
      const std::lock_guard guard(lock_);
      ready_.push_back(part);
    }
    news_.notify_one();
  }

  /// Called by the engine.
  void perform(uint64_t helper) override {
    Slot& slot = slots_[helper];
    if (slot.done.exchange(true, std::memory_order_relaxed)) return;
    const Inside inside(driver_, *this, true);
    doing.part = static_cast<int>(helper);  // no other part has the same number now
    slot.part.call(slot.part.data);
    driver_.shared_.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  /// Of one helper. Relaxed: the engine synchronizes the threads.
  struct Slot {
    Task part{};
    std::atomic<bool> done{true};
  };

  void help(uint32_t number) {
    std::unique_lock lock(lock_);
    for (;;) {
      news_.wait(lock, [&] { return stopping_ || !ready_.empty(); });
      if (stopping_) return;
      slots_[number].part = ready_.front();
      ready_.pop_front();
      lock.unlock();
      slots_[number].done.store(false, std::memory_order_relaxed);
      {
        const Outside outside(*this);
        try {
          const auto run = driver_.engine_.start_run(driver_.next_seed());
          run->schedule({this, number});
          run->wait();
        } catch (const std::exception& error) {
          driver_.blame(error.what());
        }
        // The op waits for it, whatever the engine does.
        perform(number);
      }
      driver_.busy_.fetch_sub(1, std::memory_order_relaxed);
      lock.lock();
    }
  }

  EngineDriver& driver_;
  std::mutex lock_;
  std::condition_variable news_;
  std::deque<Task> ready_;
  std::vector<Slot> slots_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

namespace {

EngineDriver& of(void* driver) { return *static_cast<EngineDriver*>(driver); }
DrivenRun& run_of(void* run) { return *static_cast<DrivenRun*>(run); }

}  // namespace

EngineDriver::EngineDriver(Engine& engine, uint32_t threads, uint32_t intra_op_threads)
    : engine_(engine),
      threads_(std::max(1u, threads)),
      hooks_{LITMUSFUZZ_ENGINE_VERSION,
             this,
             std::min(threads_, std::max(1u, intra_op_threads)),
             [](void* self, uint32_t executors) -> void* { return of(self).begin(executors); },
             [](void* run, LitmusFuzzCall call, void* data) { run_of(run).schedule({call, data}); },
             [](void* run) { run_of(run).ended(); },
             [](void* run) { run_of(run).driver().finish(&run_of(run)); },
             [](void* self) { return of(self).fault(); },
             [](void* self, LitmusFuzzCall call, void* data) -> int {
               return of(self).share({call, data});
             },
             [](void*) { return doing.part; }} {
  if (hooks_.intra_op_threads > 1) {
    helpers_ = std::make_unique<Helpers>(*this, hooks_.intra_op_threads - 1);
  }
}

EngineDriver::~EngineDriver() {
  std::unique_lock lock(lock_);
  gone_.wait(lock, [this] { return runs_ == 0; });
}

uint64_t EngineDriver::next_seed() { return begun_.fetch_add(1, std::memory_order_relaxed); }

DrivenRun* EngineDriver::begin(uint32_t executors) {
  std::unique_ptr<RunState> state;
  try {
    state = engine_.start_run(next_seed());
  } catch (const std::exception& error) {
    blame(error.what());
  }
  if (!state) return nullptr;
  const std::lock_guard guard(lock_);
  ++runs_;
  return new DrivenRun(*this, std::move(state), executors);
}

void EngineDriver::finish(DrivenRun* run) {
  run->finish();
  closures_.fetch_add(run->closures(), std::memory_order_relaxed);
  by_caller_.fetch_add(run->by_caller(), std::memory_order_relaxed);
  delete run;
  const std::lock_guard guard(lock_);
  --runs_;
  gone_.notify_all();
}

bool EngineDriver::share(Task part) {
  if (!helpers_) return false;
  uint32_t seen = busy_.load(std::memory_order_relaxed);
  do {
    if (seen >= threads_) return false;
  } while (!busy_.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed));
  helpers_->add(part);
  return true;
}

void EngineDriver::enter(bool reserved) {
  if (helpers_ && !reserved) busy_.fetch_add(1, std::memory_order_relaxed);
  const uint32_t now = running_.fetch_add(1, std::memory_order_relaxed) + 1;
  uint32_t most = most_.load(std::memory_order_relaxed);
  while (most < now && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
  if (now > threads_) {
    blame("runs closures in " + std::to_string(now) + " threads; its limit is " +
          std::to_string(threads_));
  }
}

void EngineDriver::leave(bool reserved) {
  running_.fetch_sub(1, std::memory_order_relaxed);
  if (helpers_ && !reserved) busy_.fetch_sub(1, std::memory_order_relaxed);
}

void EngineDriver::blame(const std::string& what) {
  const std::lock_guard guard(lock_);
  if (!said_.empty()) return;
  said_ = what.empty() ? "has thrown" : what;
  fault_.store(said_.c_str(), std::memory_order_release);
}

}  // namespace litmusfuzz::control
