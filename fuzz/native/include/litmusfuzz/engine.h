// Interface of a concurrency engine, which decides which thread runs which closure when.
//
// Closures are opaque: an engine knows no graph, op or variable. All dependencies of a
// closure are done when it is scheduled.
//
// To add an engine without changing this project, derive from `RunState` and `Engine`, put
// LITMUSFUZZ_ENGINE at the end of the file, and build a shared library:
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

/// Version of this interface. A shared library must be built with the same version.
inline constexpr uint32_t kEngineInterface = 2;

/// Work that closures perform parts of. Outlives them.
class Work {
 public:
  virtual void perform(uint64_t part) = 0;

 protected:
  ~Work() = default;
};

/// Work to be done once. Trivially copyable, so that no engine allocates for it, and two
/// words long, so that it is passed in registers.
struct Closure {
  Work* work;
  uint64_t part;

  void operator()() const { work->perform(part); }
};

/// State of one run, which receives its closures. Made when the run starts (ENGINES, 1);
/// destroyed after a `wait`, with nothing scheduled since.
///
/// A closure that throws ends its run, as `cancel` does: closures that have not started,
/// and closures scheduled later, are dropped; running closures finish. `Ending`, below,
/// implements this.
class RunState {
 public:
  virtual ~RunState() = default;

  /// Runs `closure` once, later, on a thread that this run may use (ENGINES, 2).
  /// Called from any thread, closures of this or another run included.
  virtual void schedule(Closure closure) = 0;

  /// Returns when all closures scheduled so far have run or were dropped. Meanwhile the
  /// caller's thread runs closures of this run only (ENGINES, 3). May be called again after
  /// another run has scheduled more; by one thread at a time; from a closure of another run,
  /// but not of this one. Throws the first exception of a closure of this run, once none is
  /// running, and again if called again.
  virtual void wait() = 0;

  /// Ends the run early, without waiting. From any thread, its own closures included.
  virtual void cancel() = 0;
};

/// Implements the early end of a run: an engine runs closures through `run`, and calls
/// `rethrow` at the end of `wait`.
class Ending {
 public:
  /// Runs the closure, unless the run has ended. An exception ends the run.
  void run(const Closure& closure) noexcept {
    if (over()) return;
    try {
      closure();
    } catch (...) {
      // Relaxed: the first exception is kept, and not read before `rethrow`.
      if (!thrown_.exchange(true, std::memory_order_relaxed)) first_ = std::current_exception();
      cancel();
    }
  }

  /// Relaxed, here and below: a closure that is about to start may still start.
  void cancel() noexcept { over_.store(true, std::memory_order_relaxed); }
  bool over() const noexcept { return over_.load(std::memory_order_relaxed); }

  /// After all closures of the run; the engine synchronizes the threads.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::atomic<bool> over_{false}, thrown_{false};
  std::exception_ptr first_;
};

struct EngineOptions {
  /// Hard limit on the threads that run closures at the same time, over all concurrent
  /// runs, threads in `wait` included. At least 1. A thread whose closure waits for another
  /// run counts once, or not at all while it only waits.
  uint32_t threads = 1;
};

/// An engine with its threads; outlives its runs.
class Engine {
 public:
  virtual ~Engine() = default;

  /// All random choices of the run come from `seed`.
  virtual std::unique_ptr<RunState> start_run(uint64_t seed) = 0;
};

}  // namespace litmusfuzz

/// Exports an engine from a shared library: `make` takes EngineOptions and returns a
/// std::unique_ptr<litmusfuzz::Engine>. Use it once, outside namespaces.
#define LITMUSFUZZ_ENGINE(make)                                                                 \
  extern "C" __attribute__((visibility("default"))) uint32_t litmusfuzz_engine_interface() {    \
    return litmusfuzz::kEngineInterface;                                                        \
  }                                                                                             \
  extern "C" __attribute__((visibility("default"))) litmusfuzz::Engine* litmusfuzz_make_engine( \
      const litmusfuzz::EngineOptions* options) {                                               \
    return make(*options).release();                                                            \
  }
