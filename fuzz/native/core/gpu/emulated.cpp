#include "gpu/emulated.h"

#include <cstring>
#include <utility>

#include "gpu/element.h"

namespace litmusfuzz::executor::gpu {
namespace {

void run(const Call& call) {
  with_dtype(call.dtype, [&](auto t) {
    for (uint32_t i = 0; i < call.threads; ++i) element<decltype(t)>(call, i);
  });
}

}  // namespace

Emulated::Emulated() : thread_([this] { work(); }) {}

Emulated::~Emulated() {
  {
    const std::lock_guard guard(lock_);
    stopping_ = true;
  }
  asked_something_.notify_one();
  thread_.join();
}

void* Emulated::allocate(size_t bytes) { return ::operator new(bytes); }

void Emulated::free(void* there) noexcept {
  ask([there] { ::operator delete(there); });
}

std::byte* Emulated::allocate_here(size_t bytes) { return new std::byte[bytes]; }

void Emulated::free_here(std::byte* here) noexcept { delete[] here; }

void Emulated::copy_in(void* there, const std::byte* here, size_t bytes) {
  ask([=] { std::memcpy(there, here, bytes); });
}

void Emulated::copy_out(std::byte* here, const void* there, size_t bytes) {
  ask([=] { std::memcpy(here, there, bytes); });
  wait();
}

void Emulated::launch(const Call& call) {
  ask([call] { run(call); });
}

void Emulated::ask(std::function<void()> job) {
  {
    const std::lock_guard guard(lock_);
    jobs_.push_back(std::move(job));
    ++asked_;
  }
  asked_something_.notify_one();
}

void Emulated::wait() {
  std::unique_lock lock(lock_);
  done_something_.wait(lock, [this, asked = asked_] { return done_ >= asked; });
}

void Emulated::work() {
  std::unique_lock lock(lock_);
  for (;;) {
    asked_something_.wait(lock, [this] { return !jobs_.empty() || stopping_; });
    if (jobs_.empty()) return;
    const std::vector<std::function<void()>> jobs = std::exchange(jobs_, {});
    lock.unlock();
    for (const auto& job : jobs) job();
    lock.lock();
    done_ += jobs.size();
    done_something_.notify_all();
  }
}

}  // namespace litmusfuzz::executor::gpu
