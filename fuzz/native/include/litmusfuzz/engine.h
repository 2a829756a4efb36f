// What a concurrency engine is: it decides which thread runs which closure when.
//
// The closures are opaque: an engine knows no graph, op or variable. What a
// closure needs to have happened before has happened when it is scheduled.
//
// To add one without changing this project: a class for each of `RunState` and
// `Engine`, LITMUSFUZZ_ENGINE at the end of the file, and
//
//     c++ -std=c++20 -shared -fPIC -I fuzz/native/include mine.cpp -o mine.so
//
// tests/native/example_engine.cpp is one.
//
// References: "More Flexible Concurrency" (ENGINES), Design Proposal, 1 to 3.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>

namespace litmusfuzz {

/// Of this header. Both sides of a shared library must have been built with
/// the same one.
inline constexpr uint32_t kEngineInterface = 2;

/// What closures are parts of. Outlives them.
class Work {
 public:
  virtual void perform(uint64_t part) = 0;

 protected:
  ~Work() = default;
};

/// Something to be done once. Trivially copyable, so that no engine allocates for it,
/// and two words, so that it travels in registers.
struct Closure {
  Work* work;
  uint64_t part;

  void operator()() const { work->perform(part); }
};

/// Where the closures of one run go. Made when the run starts (ENGINES, 1); destroyed
/// after a `wait` since which nothing was scheduled.
///
/// A closure that throws ends its run, as `cancel` does: those that have not started
/// by then are dropped, and whatever is scheduled from then on. Those that run now run
/// to their end. `Ending`, below, does all of that.
class RunState {
 public:
  virtual ~RunState() = default;

  /// Runs `closure` once, later, on a thread that this run may use (ENGINES, 2).
  /// Called from any thread, closures of this or another run included.
  virtual void schedule(Closure closure) = 0;

  /// Returns at a moment when all closures scheduled so far have run or were dropped.
  /// The caller's thread works meanwhile, on closures of this run alone (ENGINES, 3).
  /// May be called again, if another run has scheduled something since; by one thread
  /// at a time; from a closure of another run as well, but not of this one. Throws what a closure
  /// of this run threw first, once none is running any more, and again if called again.
  virtual void wait() = 0;

  /// Ends the run early. From any thread, its own closures included; does not wait.
  virtual void cancel() = 0;
};

/// How a run ends before its time: for whoever writes an engine, which then runs
/// closures through `run`, and calls `rethrow` when it has nothing left to wait for.
class Ending {
 public:
  /// Runs the closure, unless the run has ended. What it throws ends the run.
  void run(const Closure& closure) noexcept {
    if (over()) return;
    try {
      closure();
    } catch (...) {
      // Relaxed: who comes first keeps his, and nobody reads it before `rethrow`.
      if (!thrown_.exchange(true, std::memory_order_relaxed)) first_ = std::current_exception();
      cancel();
    }
  }

  /// Relaxed, here and below: a closure that is about to start may well start.
  void cancel() noexcept { over_.store(true, std::memory_order_relaxed); }
  bool over() const noexcept { return over_.load(std::memory_order_relaxed); }

  /// After all closures of the run, as the engine's own locks have it.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::atomic<bool> over_{false}, thrown_{false};
  std::exception_ptr first_;
};

struct EngineOptions {
  /// Threads that run closures at the same moment, at most: a hard limit over all
  /// concurrent runs, threads in `wait` included. At least 1. A thread whose closure
  /// waits for another run counts once, or not at all while it does nothing else.
  uint32_t threads = 1;
};

/// Started with a number of threads; lives longer than its runs.
class Engine {
 public:
  virtual ~Engine() = default;

  /// All random choices of the run come from `seed`.
  virtual std::unique_ptr<RunState> start_run(uint64_t seed) = 0;
};

}  // namespace litmusfuzz

/// Makes a shared library an engine: `make` takes EngineOptions and returns a
/// std::unique_ptr<litmusfuzz::Engine>. Once, outside namespaces.
#define LITMUSFUZZ_ENGINE(make)                                                                 \
  extern "C" __attribute__((visibility("default"))) uint32_t litmusfuzz_engine_interface() {    \
    return litmusfuzz::kEngineInterface;                                                        \
  }                                                                                             \
  extern "C" __attribute__((visibility("default"))) litmusfuzz::Engine* litmusfuzz_make_engine( \
      const litmusfuzz::EngineOptions* options) {                                               \
    return make(*options).release();                                                            \
  }
