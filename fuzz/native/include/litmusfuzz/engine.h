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

#include <cstdint>
#include <memory>

namespace litmusfuzz {

/// Of this header. Both sides of a shared library must have been built with
/// the same one.
inline constexpr uint32_t kEngineInterface = 1;

/// Work to be done once. Trivially copyable, so that no engine allocates for it.
struct Closure {
  void (*run)(void* object, uint64_t argument);
  void* object;
  uint64_t argument;

  void operator()() const { run(object, argument); }
};

/// Where the closures of one run go. Made when the run starts (ENGINES, 1).
class RunState {
 public:
  virtual ~RunState() = default;

  /// Runs `closure` once, later, on a thread that this run may use (ENGINES, 2).
  /// Called from any thread, closures of this or another run included.
  virtual void schedule(Closure closure) = 0;

  /// Returns at a moment when all closures scheduled so far have run. The
  /// caller's thread works meanwhile, on closures of this run alone (ENGINES, 3).
  /// May be called again, if another run has scheduled something since.
  virtual void wait() = 0;
};

struct EngineOptions {
  /// Closures that run at the same moment, at most: a hard limit over all
  /// concurrent runs, threads in `wait` included. At least 1.
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
#define LITMUSFUZZ_ENGINE(make)                                                       \
  extern "C" uint32_t litmusfuzz_engine_interface() {                                 \
    return litmusfuzz::kEngineInterface;                                              \
  }                                                                                   \
  extern "C" litmusfuzz::Engine* litmusfuzz_make_engine(                              \
      const litmusfuzz::EngineOptions* options) {                                     \
    return make(*options).release();                                                  \
  }
