#include "station.h"

#include <cstring>
#include <utility>

namespace litmusfuzz::executor {
namespace {

/// Of a record in a parcel; the tensor's bytes follow.
struct Head {
  static constexpr uint32_t kEnded = UINT32_MAX;  // for a slot: the run has ended

  uint32_t copy;
  uint32_t run;
  uint32_t slot;
  uint32_t bytes;
};

}  // namespace

Station::Station(const Program& program, Engines engines, uint32_t copies, bool first)
    : program_(program),
      first_(first),
      runs_(program, std::move(engines)),
      link_([this](Event event) { runs_.schedule(event); }) {
  for (uint32_t i = 0; i < copies; ++i) copies_.emplace_back(program, *this, i);
  thread_ = std::thread([this] { work(); });
}

Station::~Station() {
  close();
  thread_.join();
}

void Station::begin(const Setting& setting) {
  {
    const std::lock_guard guard(lock_);
    add_active();
    next_ = setting;
    beginning_ = true;
    if (first_) {
      announced_ = setting;
    } else {
      ++arrived_;
    }
  }
  changed_.notify_all();
}

std::optional<Station::Outgoing> Station::take() {
  std::unique_lock lock(lock_);
  const auto idle = [this] {
    return !first_ && told_ != arrived_ && active_.load(std::memory_order_acquire) == 0;
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
  told_ = arrived_;
  return Idle{arrived_};
}

void Station::deliver(const Parcel& parcel) {
  {
    std::unique_lock lock(lock_);
    changed_.wait(lock, [this] { return closed_ || !beginning_; });
    if (closed_) return;
    ++arrived_;
    add_active();
  }
  changed_.notify_all();  // the thread that works may find something soon
  for (size_t at = 0; at < parcel.size();) {
    Head head;
    std::memcpy(&head, parcel.data() + at, sizeof head);
    at += sizeof head;
    Copy& copy = copies_[head.copy];
    if (head.slot == Head::kEnded) {
      copy.ended_elsewhere(head.run);
    } else {
      copy.arrived(head.run, head.slot, Tensor::copy_of(parcel.data() + at, head.bytes));
    }
    at += head.bytes;
  }
  remove_active();
}

void Station::peer_idle(uint64_t arrived) {
  {
    const std::lock_guard guard(lock_);
    peer_arrived_ = arrived;
  }
  changed_.notify_all();
}

bool Station::wait() {
  std::unique_lock lock(lock_);
  changed_.wait(lock, [this] {
    return closed_ || (!announced_ && outgoing_.empty() && peer_arrived_ == handed_out_ &&
                       active_.load(std::memory_order_acquire) == 0);
  });
  return !closed_;
}

std::vector<std::pair<Row, std::vector<bool>>> Station::rows() const {
  std::vector<std::pair<Row, std::vector<bool>>> all;
  (void)active_.load(std::memory_order_acquire);  // of what was done before it became zero
  for (const Copy& each : copies_) {
    auto& [row, over] = all.emplace_back(outcome_of(program_, each), program_.runs.size());
    for (uint32_t r = 0; r < over.size(); ++r) over[r] = each.ended(r);
  }
  return all;
}

void Station::close() {
  {
    const std::lock_guard guard(lock_);
    closed_ = true;
  }
  changed_.notify_all();
}

// --- execution ---------------------------------------------------------------------

void Station::work() {
  std::unique_lock lock(lock_);
  while (!closed_) {
    if (next_) {
      const Setting setting = *std::exchange(next_, std::nullopt);
      lock.unlock();
      execute(setting);
      lock.lock();
    } else if (active_.load(std::memory_order_relaxed)) {
      lock.unlock();
      runs_.wait();
      link_.wait();
      lock.lock();
    } else {
      changed_.wait(lock);
    }
  }
  const uint64_t not_begun = next_ ? 1 : 0;
  lock.unlock();
  while (active_.load(std::memory_order_acquire) > not_begun) {
    runs_.wait();
    link_.wait();
  }
  runs_.wait();  // no closure outlives what it works on
  runs_.end();
}

void Station::execute(const Setting& setting) {
  runs_.wait();  // until the engines, too, have done with the last closures
  runs_.end();
  std::mt19937_64 random(setting.seed);
  runs_.start(random);
  link_.set(setting.transfer_delay_us_max, random());
  for (Copy& each : copies_) each.reset();
  for (Copy& each : copies_) each.start();
  {
    const std::lock_guard guard(lock_);
    beginning_ = false;
  }
  changed_.notify_all();
  remove_active();
}

void Station::ready(Event event) {
  add_active();
  runs_.schedule(event);
}

void Station::transfer(Event event) {
  if (!link_.slow()) return ready(event);
  add_active();
  link_.hold(event);
}

void Station::perform(Event event) {
  event.frame->copy.perform(event);
  remove_active();
}

void Station::remove_active() {
  if (active_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // Locked, so that nobody who has just seen more falls asleep over it.
  {
    const std::lock_guard guard(lock_);
  }
  changed_.notify_all();
}

void Station::put(const Copy& copy, uint32_t run, uint32_t slot, const void* data, size_t bytes) {
  const Head head{copy.number(), run, slot, static_cast<uint32_t>(bytes)};
  {
    const std::lock_guard guard(lock_);
    outgoing_.append(reinterpret_cast<const char*>(&head), sizeof head);
    outgoing_.append(static_cast<const char*>(data), bytes);
  }
  changed_.notify_all();
}

void Station::send(const Frame& frame, const Node& node, const Tensor& value) {
  put(frame.copy, frame.run, node.slot_there, value.bytes(), node.type.bytes());
}

void Station::ended(const Copy& copy, uint32_t run) { put(copy, run, Head::kEnded, "", 0); }

}  // namespace litmusfuzz::executor
