// That this thread is running closures of a run now, and for which engine.
#pragma once

#include <vector>

#include "litmusfuzz/engine.h"

namespace litmusfuzz::engines {

/// Lives on the stack of the thread that works; one inside another where a closure
/// waits for a run of its own.
class Stint {
 public:
  Stint(const Engine& engine, const RunState& run)
      : engine_(engine), run_(run), around_(innermost_) {
    innermost_ = this;
  }
  ~Stint() { innermost_ = around_; }
  Stint(const Stint&) = delete;
  Stint& operator=(const Stint&) = delete;

  /// Whether this thread has a place among those that work for `engine`: in a `wait`
  /// inside it works on, and does not count twice.
  static bool inside(const Engine& engine) {
    for (const Stint* each = innermost_; each; each = each->around_) {
      if (&each->engine_ == &engine) return true;
    }
    return false;
  }

  /// The one in which a closure of `run` called us, or null.
  static Stint* of(const RunState& run) {
    return innermost_ && &innermost_->run_ == &run ? innermost_ : nullptr;
  }

  /// What its thread is going to run, the next one last. No other thread knows of it.
  std::vector<Closure> mine;

 private:
  const Engine& engine_;
  const RunState& run_;
  Stint* const around_;
  // Initial-exec: found without a call; see Tally.
  static inline constinit thread_local Stint* innermost_ [[gnu::tls_model("initial-exec")]] =
      nullptr;
};

}  // namespace litmusfuzz::engines
