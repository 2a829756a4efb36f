// Between a driver of an engine, which is a part of this package, and the library inside
// TensorFlow. C types only; see hooks.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hooks.h"

#define LITMUSFUZZ_ENGINE_VERSION 1

/// What the driver gives the library. All may be called from any thread.
struct LitmusFuzzEngineHooks {
  uint32_t version;
  void* driver;
  /// Threads inside an op: 1 if the op does all its work in its own thread.
  uint32_t intra_op_threads;
  /// A run begins, on so many executors. Null if the engine has started none; `fault` says why.
  void* (*begin)(void* driver, uint32_t executors);
  /// A closure of the run; called once, by a thread that the run may use.
  void (*schedule)(void* run, LitmusFuzzCall call, void* data);
  /// One of the run's executors has ended; the last thing that its last closure does.
  void (*ended)(void* run);
  /// Works on closures of the run, and returns when all its executors have ended, and all its
  /// closures. Then the run is gone.
  void (*finish)(void* run);
  /// What the engine has done wrong first; "" if nothing.
  const char* (*fault)(void* driver);
  /// A part of an op's work, which the op waits for. False if no thread is free for it: the caller
  /// has to do it.
  int (*share)(void* driver, LitmusFuzzCall call, void* data);
  /// The number of the part that this thread does now, below `intra_op_threads`; -1 if it does
  /// none.
  int (*part)(void* driver);
};
