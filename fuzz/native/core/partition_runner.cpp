#include "partition_runner.h"

#include <cstring>
#include <utility>

namespace litmusfuzz::executor {
namespace {

/// Header of a record in a message; the tensor's bytes follow.
struct Head {
  static constexpr uint32_t kEnded = UINT32_MAX;  // in place of a slot: the run has ended

  uint32_t copy;
  uint32_t run;
  uint32_t slot;
  uint32_t bytes;
};

}  // namespace

PartitionRunner::PartitionRunner(const Program& program, Engines engines, uint32_t copies,
                                 bool first)
    : program_(program),
      first_(first),
      runs_(program, std::move(engines)),
      transfer_delay_([this](Event event) { runs_.schedule(event); }) {
  for (uint32_t i = 0; i < copies; ++i) copies_.emplace_back(program, *this, i);
  thread_ = std::thread([this] { work(); });
}

PartitionRunner::~PartitionRunner() {
  close();
  thread_.join();
}

void PartitionRunner::begin(const ExecutionSettings& settings) {
  {
    const std::lock_guard guard(lock_);
    add_active();
    next_ = settings;
    beginning_ = true;
    if (first_) {
      announced_ = settings;
    } else {
      ++arrived_;
    }
  }
  changed_.notify_all();
}

std::optional<PartitionRunner::Outgoing> PartitionRunner::take() {
  std::unique_lock lock(lock_);
  const auto idle = [this] {
    return !first_ && reported_ != arrived_ && active_.load(std::memory_order_acquire) == 0;
  };
  changed_.wait(lock, [&] { return closed_ || announced_ || !outgoing_.empty() || idle(); });
  if (closed_) return std::nullopt;
  if (announced_) {
    ++handed_out_;
    return *std::exchange(announced_, std::nullopt);
  }
  if (!outgoing_.empty()) {
    ++handed_out_;
    return std::exchange(outgoing_, {});
  }
  reported_ = arrived_;
  return Idle{arrived_};
}

void PartitionRunner::deliver(const Message& message) {
  {
    std::unique_lock lock(lock_);
    changed_.wait(lock, [this] { return closed_ || !beginning_; });
    if (closed_) return;
    ++arrived_;
    add_active();
  }
  changed_.notify_all();  // the working thread may get closures soon
  for (size_t at = 0; at < message.size();) {
    Head head;
    std::memcpy(&head, message.data() + at, sizeof head);
    at += sizeof head;
    Copy& copy = copies_[head.copy];
    if (head.slot == Head::kEnded) {
      copy.ended_elsewhere(head.run);
    } else {
      copy.arrived(head.run, head.slot, Tensor::copy_of(message.data() + at, head.bytes));
    }
    at += head.bytes;
  }
  remove_active();
}

void PartitionRunner::peer_idle(uint64_t arrived) {
  {
    const std::lock_guard guard(lock_);
    peer_arrived_ = arrived;
  }
  changed_.notify_all();
}

bool PartitionRunner::wait() {
  std::unique_lock lock(lock_);
  changed_.wait(lock, [this] {
    return closed_ || (!announced_ && outgoing_.empty() && peer_arrived_ == handed_out_ &&
                       active_.load(std::memory_order_acquire) == 0);
  });
  return !closed_;
}

std::vector<std::pair<Row, std::vector<bool>>> PartitionRunner::rows() const {
  std::vector<std::pair<Row, std::vector<bool>>> all;
  (void)active_.load(std::memory_order_acquire);  // pairs with the last count to zero
  for (const Copy& each : copies_) {
    auto& [row, over] = all.emplace_back(outcome_of(program_, each), program_.runs.size());
    for (uint32_t r = 0; r < over.size(); ++r) over[r] = each.ended(r);
  }
  return all;
}

void PartitionRunner::close() {
  {
    const std::lock_guard guard(lock_);
    closed_ = true;
  }
  changed_.notify_all();
}

// --- execution ---------------------------------------------------------------------

void PartitionRunner::work() {
  std::unique_lock lock(lock_);
  while (!closed_) {
    if (next_) {
      const ExecutionSettings settings = *std::exchange(next_, std::nullopt);
      lock.unlock();
      execute(settings);
      lock.lock();
    } else if (active_.load(std::memory_order_relaxed)) {
      lock.unlock();
      runs_.wait();
      transfer_delay_.wait();
      lock.lock();
    } else {
      changed_.wait(lock);
    }
  }
  const uint64_t not_begun = next_ ? 1 : 0;
  lock.unlock();
  while (active_.load(std::memory_order_acquire) > not_begun) {
    runs_.wait();
    transfer_delay_.wait();
  }
  runs_.wait();  // no closure outlives its frame
  runs_.end();
}

void PartitionRunner::execute(const ExecutionSettings& settings) {
  runs_.wait();  // until the engines have finished the last closures
  runs_.end();
  std::mt19937_64 random(settings.seed);
  runs_.start(random);
  transfer_delay_.set(settings.transfer_delay_us_max, random());
  for (Copy& each : copies_) each.reset();
  for (Copy& each : copies_) each.start();
  {
    const std::lock_guard guard(lock_);
    beginning_ = false;
  }
  changed_.notify_all();
  remove_active();
}

void PartitionRunner::ready(Event event) {
  add_active();
  runs_.schedule(event);
}

void PartitionRunner::transfer(Event event) {
  if (!transfer_delay_.slow()) return ready(event);
  add_active();
  transfer_delay_.hold(event);
}

void PartitionRunner::perform(Event event) {
  event.frame->copy.perform(event);
  remove_active();
}

void PartitionRunner::remove_active() {
  if (active_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // Under the lock, so that no thread misses the wake-up.
  {
    const std::lock_guard guard(lock_);
  }
  changed_.notify_all();
}

void PartitionRunner::put(const Copy& copy, uint32_t run, uint32_t slot, const void* data,
                          size_t bytes) {
  const Head head{copy.number(), run, slot, static_cast<uint32_t>(bytes)};
  {
    const std::lock_guard guard(lock_);
    outgoing_.append(reinterpret_cast<const char*>(&head), sizeof head);
    outgoing_.append(static_cast<const char*>(data), bytes);
  }
  changed_.notify_all();
}

void PartitionRunner::send(const Frame& frame, const Node& node, const Tensor& value) {
  put(frame.copy, frame.run, node.slot_there, value.bytes(), node.type.bytes());
}

void PartitionRunner::ended(const Copy& copy, uint32_t run) { put(copy, run, Head::kEnded, "", 0); }

}  // namespace litmusfuzz::executor
