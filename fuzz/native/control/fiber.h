// A computation with a stack of its own, which can stop anywhere and be resumed.
//
// A kernel that has stopped at a lock waits in here. With threads each stop would cost two switches
// of the operating system, which is many times what the kernel itself costs.
#pragma once

#include <ucontext.h>

#include <cstddef>

namespace litmusfuzz::control {

class Fiber {
 public:
  /// Throws std::bad_alloc if there is no memory for a stack.
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// What the next `resume` begins with. The last computation must be over.
  void begin(void (*call)(void*), void* data);
  /// Computes, in the calling thread, until the computation is over or stops; true if it is over.
  /// One computation must be resumed by one thread only.
  bool resume();
  /// Stops the computation, which calls it, until it is resumed.
  void stop() { leave(); }

 private:
  static void enter(unsigned int high, unsigned int low);
  void compute();
  /// Back to `resume`, until the next one.
  void leave();
  void arrived();

  std::byte* memory_;  // a page that nobody may touch, then the stack
  ucontext_t inside_, outside_;
  void (*call_)(void*) = nullptr;
  void* data_ = nullptr;
  bool over_ = true;
  // For sanitizers.
  [[maybe_unused]] void* own_ = nullptr;
  [[maybe_unused]] void* resumer_ = nullptr;
  [[maybe_unused]] const void* resumer_stack_ = nullptr;
  [[maybe_unused]] size_t resumer_bytes_ = 0;
};

}  // namespace litmusfuzz::control
