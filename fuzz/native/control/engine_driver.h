// Runs of another runtime on an engine of engine.h: each run gets a RunState, and the thread that
// began it works on it. What an engine guarantees is checked meanwhile, outside of the engine.
//
// References: "More Flexible Concurrency" (ENGINES), Design Proposal, 1 to 3.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "control/engine_hooks.h"
#include "litmusfuzz/engine.h"

namespace litmusfuzz::control {

/// A closure of the other runtime.
struct Task {
  LitmusFuzzCall call;
  void* data;
};

class DrivenRun;

/// Drives an engine, which outlives it.
class EngineDriver {
 public:
  /// `threads`: the engine's limit. `intra_op_threads`: threads that do parts of one op at the same
  /// time, at most; these count under the limit, too.
  EngineDriver(Engine& engine, uint32_t threads, uint32_t intra_op_threads);
  /// Waits until all runs are gone.
  ~EngineDriver();
  EngineDriver(const EngineDriver&) = delete;
  void operator=(const EngineDriver&) = delete;

  const LitmusFuzzEngineHooks* hooks() const { return &hooks_; }

  /// Null if the engine has started none.
  DrivenRun* begin(uint32_t executors);
  /// Has a part of an op's work done by another thread; false if none is free for it.
  bool share(Task part);

  /// What the engine has done wrong first; "" if nothing. Lives as long as the driver.
  const char* fault() const { return fault_.load(std::memory_order_acquire); }
  /// Most threads that ran closures at the same time.
  uint32_t most() const { return most_.load(std::memory_order_relaxed); }
  /// Closures of the runs that are gone.
  uint64_t closures() const { return closures_.load(std::memory_order_relaxed); }
  /// Those of them that the thread ran that had begun the run.
  uint64_t by_caller() const { return by_caller_.load(std::memory_order_relaxed); }
  /// Parts of ops that other threads have done.
  uint64_t shared() const { return shared_.load(std::memory_order_relaxed); }

 private:
  friend class DrivenRun;
  class Helpers;
  class Inside;
  class Outside;

  /// A thread begins, or ends, to run closures. `reserved`: it is one that `share` has found free.
  void enter(bool reserved);
  void leave(bool reserved);
  void blame(const std::string& what);
  /// Of the next run of the engine.
  uint64_t next_seed();
  /// The run's caller works until it has ended; then it is gone.
  void finish(DrivenRun* run);

  Engine& engine_;
  const uint32_t threads_;
  const LitmusFuzzEngineHooks hooks_;
  // Relaxed, all of these: figures that are read when nothing runs, and counts whose increments
  // and decrements have one order each.
  std::atomic<uint32_t> running_{0}, most_{0};
  /// Threads that run closures, and parts that a thread is reserved for.
  std::atomic<uint32_t> busy_{0};
  std::atomic<uint64_t> begun_{0}, closures_{0}, by_caller_{0}, shared_{0};
  /// Written once, with `lock_`. Release, whose partner is the acquire of `fault`.
  std::atomic<const char*> fault_{""};
  std::string said_;
  std::mutex lock_;
  std::condition_variable gone_;
  uint32_t runs_ = 0;
  std::unique_ptr<Helpers> helpers_;  // null if ops do all their work in their own threads
};

}  // namespace litmusfuzz::control
