// Thread-local record of the run and engine whose closures the thread is running.
#pragma once

#include <vector>

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

/// Lives on the stack of a working thread. Scopes nest if a closure waits for another run.
class WorkScope {
 public:
  WorkScope(const Engine& engine, const RunState& run)
      : engine_(engine), run_(run), around_(innermost_) {
    innermost_ = this;
  }
  ~WorkScope() { innermost_ = around_; }
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;

  /// True if this thread already counts as working for `engine`: a nested `wait` then
  /// does not count it twice.
  static bool inside(const Engine& engine) {
    for (const WorkScope* each = innermost_; each; each = each->around_) {
      if (&each->engine_ == &engine) return true;
    }
    return false;
  }

  /// The current scope if a closure of `run` is running on this thread, or null.
  static WorkScope* of(const RunState& run) {
    return innermost_ && &innermost_->run_ == &run ? innermost_ : nullptr;
  }

  /// Closures that this thread runs next, the next one last. No other thread uses it.
  std::vector<Closure> local;

 private:
  const Engine& engine_;
  const RunState& run_;
  WorkScope* const around_;
  // Initial-exec avoids a call; see event_counter.h.
  static inline constinit thread_local WorkScope* innermost_ [[gnu::tls_model("initial-exec")]] =
      nullptr;
};

}  // namespace litmusfuzz::engines
