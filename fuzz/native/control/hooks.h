// Between the controller, which is a part of this package, and the library inside TensorFlow,
// which is compiled where TensorFlow is: against its headers, at first use. C types only, since
// the two may be compiled to different standards of C++.
#pragma once

#include <stdint.h>

#define LITMUSFUZZ_CONTROL_VERSION 7

/// What an event does to its mutex; one that acquires none is never disabled.
enum LitmusFuzzEffect {
  LITMUSFUZZ_NONE = 0,
  LITMUSFUZZ_ACQUIRES = 1,
  LITMUSFUZZ_RELEASES = 2,
};

/// An event that is ready: what it is called, and what it touches.
///
/// The name is made of the run, the node, the frame and iteration of a loop that the node's
/// instance is in, and the point in it. It is the same in all executions.
struct LitmusFuzzEvent {
  int64_t step_id;
  const char* node;
  uint64_t frame;
  int64_t iteration;
  const char* point;
  const char* const* resources;
  uint32_t resource_count;
  int reads_only;
  int effect;      // of LitmusFuzzEffect, on `mutex`
  uint64_t mutex;  // identifies it in this execution
  int shared;      // acquired together with others that share it
};

typedef void (*LitmusFuzzCall)(void* data);

/// What the controller gives the library. All may be called from any thread.
struct LitmusFuzzHooks {
  uint32_t version;
  void* controller;
  /// An executor of a run begins: the number of the execution that the run is a part of; 0 if it
  /// is not controlled.
  uint64_t (*arrive)(void* controller, int64_t step_id);
  /// All its first closures have been posted.
  void (*begun)(void* controller, int64_t step_id);
  /// It has ended.
  void (*ended)(void* controller, int64_t step_id);
  /// A closure of a controlled run; the controller calls it, before its next choice. False if
  /// the controller has let the run go: the caller has to call it.
  int (*post)(void* controller, int64_t step_id, LitmusFuzzCall call, void* data);
  /// An event of a controlled run; the controller performs it when it is chosen. False as
  /// above.
  int (*decide)(void* controller, const LitmusFuzzEvent* event, LitmusFuzzCall call, void* data);
  /// An event inside a kernel: the thread waits here until the controller chooses it. False if it
  /// need not wait: the thread is not the controller's, or the controller has let the run go.
  int (*stop)(void* controller, const LitmusFuzzEvent* event);
  /// A mutex inside a kernel that decides nothing. True if it is free, and held from now on; if it
  /// is not, the thread has to stop at it.
  int (*acquire)(void* controller, int64_t step_id, uint64_t mutex, int shared);
  /// A mutex of such an event has been released.
  void (*released)(void* controller, uint64_t mutex);
  /// An event that is being performed goes on outside of all controlled threads, and (with -1)
  /// has come back.
  void (*outside)(void* controller, int64_t step_id, int change);
  /// An op has failed.
  void (*failed)(void* controller, int64_t step_id);
  /// A part of the op that is performed in this thread: an event of its own, which begins when it
  /// is chosen, and while one of the threads for parts is free. False if nobody decides that here:
  /// the caller has to do it.
  int (*share)(void* controller, const LitmusFuzzEvent* event, LitmusFuzzCall call, void* data);
  /// Whether parts that were begun in this op or part, or in parts of it, have not ended.
  int (*has_parts)(void* controller, int64_t step_id);
  /// Waits until all of those have ended, then as `stop` does. False if there are none.
  int (*join)(void* controller, const LitmusFuzzEvent* event);
  /// The number of the thread for parts that does the one which is performed; -1 if none is.
  int (*thread)(void* controller);
};

/// What the library gives the controller: one execution's runs, each called by one thread.
struct LitmusFuzzProgram {
  uint32_t version;
  void* program;
  /// Sets all resources; false if the runtime has an error.
  int (*initialize)(void* program);
  /// Executes the test. Its only run decides, while the controller is at work.
  int (*race)(void* program);
  /// Reads what has become of the resources: the number of the outcome, one for all executions in
  /// which the same was fetched; -1 if the runtime has an error.
  int64_t (*read)(void* program);
};
