// A thread that plays a GPU: a stream with nothing at the other end but the host. What it
// is asked for it does later, as a GPU would, so that what the core must wait for it must
// wait for here as well; the sanitizers see all of it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/device.h"

namespace litmusfuzz::executor::gpu {

class Emulated final : public Device {
 public:
  Emulated();
  /// Does first what it was asked for.
  ~Emulated() override;

  void* allocate(size_t bytes) override;
  void free(void* there) noexcept override;
  std::byte* allocate_here(size_t bytes) override;
  void free_here(std::byte* here) noexcept override;
  void copy_in(void* there, const std::byte* here, size_t bytes) override;
  void copy_out(std::byte* here, const void* there, size_t bytes) override;
  void launch(const Call& call) override;
  void wait() override;

  /// Anything, in its turn.
  void ask(std::function<void()> job);

 private:
  void work();

  std::mutex lock_;
  std::condition_variable asked_something_, done_something_;
  // All guarded by the lock.
  std::vector<std::function<void()>> jobs_;
  uint64_t asked_ = 0, done_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace litmusfuzz::executor::gpu
