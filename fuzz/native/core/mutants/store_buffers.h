// Mutant: each thread has a store buffer that other threads do not see (TSO).
//
// Reference: Sewell et al., "x86-TSO", CACM 53(7), 2010, section 3.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "event_counter.h"
#include "tensor.h"

namespace litmusfuzz::executor {

/// The store buffers of one copy of a test.
class StoreBuffers {
 public:
  void store(uint32_t resource, Tensor value) {
    const std::lock_guard guard(lock_);
    buffers_[thread_number()].emplace_back(resource, std::move(value));
  }

  /// The newest buffered store of this thread to a variable.
  std::optional<Tensor> newest(uint32_t resource) {
    const std::lock_guard guard(lock_);
    const auto& mine = buffers_[thread_number()];
    for (auto each = mine.rbegin(); each != mine.rend(); ++each) {
      if (each->first == resource) return each->second;
    }
    return std::nullopt;
  }

  /// Calls `write` with the buffered stores of this thread, oldest first.
  template <typename F>
  void drain(F write) {
    const std::lock_guard guard(lock_);
    for (auto& [resource, value] : std::exchange(buffers_[thread_number()], {})) {
      write(resource, std::move(value));
    }
  }
  /// The same for all threads, one after another.
  template <typename F>
  void drain_all(F write) {
    const std::lock_guard guard(lock_);
    for (auto& [thread, stores] : std::exchange(buffers_, {})) {
      for (auto& [resource, value] : stores) write(resource, std::move(value));
    }
  }

 private:
  std::mutex lock_;
  std::map<uint32_t, std::deque<std::pair<uint32_t, Tensor>>> buffers_;  // by thread
};

}  // namespace litmusfuzz::executor
