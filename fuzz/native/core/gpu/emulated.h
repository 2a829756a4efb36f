// Emulated GPU: a host thread that executes a stream. Operations are asynchronous as on a
// GPU, so that the core must synchronize in the same places; sanitizers see everything.
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
  /// Finishes pending operations first.
  ~Emulated() override;

  void* allocate(size_t bytes) override;
  void free(void* there) noexcept override;
  std::byte* allocate_here(size_t bytes) override;
  void free_here(std::byte* here) noexcept override;
  void copy_in(void* there, const std::byte* here, size_t bytes) override;
  void copy_out(std::byte* here, const void* there, size_t bytes) override;
  void launch(const Call& call) override;
  void wait() override;

  /// Adds an operation to the stream.
  void ask(std::function<void()> job);

 private:
  void work();

  std::mutex lock_;
  std::condition_variable asked_something_, done_something_;
  // Guarded by the lock.
  std::vector<std::function<void()>> jobs_;
  uint64_t asked_ = 0, done_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace litmusfuzz::executor::gpu
