#include "transfer_delay.h"

#include <bit>
#include <utility>

namespace litmusfuzz::executor {

TransferDelay::TransferDelay(std::function<void(Event)> deliver) : deliver_(std::move(deliver)) {}

TransferDelay::~TransferDelay() {
  {
    const std::lock_guard guard(lock_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TransferDelay::set(uint32_t delay_us_max, uint64_t seed) {
  const std::lock_guard guard(lock_);
  random_.seed(static_cast<uint32_t>(seed ^ seed >> 32));
  const int halvings = std::bit_width(delay_us_max);
  bound_us_ = delay_us_max >> std::uniform_int_distribution<int>(0, halvings)(random_);
}

void TransferDelay::hold(Event event) {
  {
    const std::lock_guard guard(lock_);
    const auto delay = std::uniform_int_distribution<uint32_t>(0, bound_us_)(random_);
    ++count_;
    held_.push({Clock::now() + std::chrono::microseconds(delay), event});
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  }
  changed_.notify_all();
}

void TransferDelay::wait() {
  std::unique_lock lock(lock_);
  changed_.wait(lock, [this] { return count_ == 0; });
}

void TransferDelay::work() {
  std::unique_lock lock(lock_);
  while (!stopping_) {
    if (held_.empty()) {
      changed_.wait(lock);
    } else if (Clock::now() < held_.top().until) {
      const auto until = held_.top().until;  // the queue may move what it holds
      changed_.wait_until(lock, until);
    } else {
      const Event event = held_.top().event;
      held_.pop();
      lock.unlock();
      deliver_(event);
      lock.lock();
      if (--count_ == 0) changed_.notify_all();
    }
  }
}

}  // namespace litmusfuzz::executor
