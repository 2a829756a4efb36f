#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LITMUSFUZZ_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define LITMUSFUZZ_TSAN 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define LITMUSFUZZ_ASAN 1
#endif
#ifdef __SANITIZE_THREAD__
#define LITMUSFUZZ_TSAN 1
#endif
#ifdef LITMUSFUZZ_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef LITMUSFUZZ_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace litmusfuzz::control {
namespace {

/// As much as a thread has; only what is touched takes memory.
constexpr size_t kStack = size_t{8} << 20;

size_t page() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Fiber::Fiber() {
  void* const memory = mmap(nullptr, page() + kStack, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  mprotect(memory_, page(), PROT_NONE);  // an overflow ends the process, and changes nothing
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = memory_ + page();
  inside_.uc_stack.ss_size = kStack;
  inside_.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);  // makecontext passes ints only
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned int>(self >> 32), static_cast<unsigned int>(self));
#ifdef LITMUSFUZZ_TSAN
  own_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef LITMUSFUZZ_TSAN
  __tsan_destroy_fiber(own_);
#endif
  munmap(memory_, page() + kStack);
}

void Fiber::begin(void (*call)(void*), void* data) {
  call_ = call;
  data_ = data;
  over_ = false;
}

void Fiber::enter(unsigned int high, unsigned int low) {
  reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low)->compute();
}

void Fiber::compute() {
  arrived();
  for (;;) {
    call_(data_);
    over_ = true;
    leave();
  }
}

bool Fiber::resume() {
#ifdef LITMUSFUZZ_ASAN
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, memory_ + page(), kStack);
#endif
#ifdef LITMUSFUZZ_TSAN
  resumer_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_, 0);
#endif
  swapcontext(&outside_, &inside_);
#ifdef LITMUSFUZZ_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  return over_;
}

void Fiber::leave() {
#ifdef LITMUSFUZZ_ASAN
  __sanitizer_start_switch_fiber(&own_, resumer_stack_, resumer_bytes_);
#endif
#ifdef LITMUSFUZZ_TSAN
  __tsan_switch_to_fiber(resumer_, 0);
#endif
  swapcontext(&inside_, &outside_);
  arrived();
}

void Fiber::arrived() {
#ifdef LITMUSFUZZ_ASAN
  __sanitizer_finish_switch_fiber(own_, &resumer_stack_, &resumer_bytes_);
#endif
}

}  // namespace litmusfuzz::control
