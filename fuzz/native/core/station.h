// One of two processes in which a test is executed: its part of the copies, and what
// goes to the other and comes from it.
//
// A station moves no bytes. It hands out what is to be sent (`take`) and is given
// what has arrived (`deliver`); whoever carries it keeps the order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <variant>

#include "copy.h"
#include "devices.h"
#include "link.h"
#include "outcome.h"

namespace litmusfuzz::executor {

/// What one process does in one execution of all copies.
struct Setting {
  uint64_t seed = 0;
  uint32_t transfer_delay_us_max = 0;
};

/// How it is known that all is done. The first station counts what it has handed out
/// for the second; the second, whenever it is idle and has nothing to hand out, says
/// how much of that it has got (`Idle`). Order is kept, so when the first learns of
/// it, it has got all that the second sent before. If then the first is idle, and the
/// second has got everything, nothing is under way, and nobody is there to send more.
/// No time limit is needed.
class Station final : public EventRunner {
 public:
  /// Records, ready to be sent.
  using Parcel = std::string;
  /// From the second: how many settings and parcels have arrived, now that it is idle.
  struct Idle {
    uint64_t arrived;
  };
  /// A setting from the first: the second is to begin as well.
  using Outgoing = std::variant<Setting, Parcel, Idle>;

  /// `first` is true in one of the two.
  Station(const Program& program, Engines engines, uint32_t copies, bool first);
  ~Station() override;

  /// Begins an execution of all copies: at the first station when the one before is
  /// over, at the second when the first says so.
  void begin(const Setting& setting);
  /// What is to be sent next; waits for it. Nothing after `close`.
  std::optional<Outgoing> take();
  /// A parcel of the other station has arrived, which began before it sent it.
  void deliver(const Parcel& parcel);
  /// The second station is idle: see `Idle`.
  void peer_idle(uint64_t arrived);
  /// At the first station: returns true when all is done, false if it was closed.
  bool wait();
  /// For each copy what it shows of this part, then for each run whether it has ended
  /// here. When all is done.
  std::vector<std::pair<Row, std::vector<bool>>> rows() const;
  /// Ends what waits in `take` and `wait`.
  void close();

 private:
  void ready(Event event) override;
  void transfer(Event event) override;
  void send(const Frame& frame, const Node& node, const Tensor& value) override;
  void ended(const Copy& copy, uint32_t run) override;

  void perform(Event event) override;
  void work();
  void execute(const Setting& setting);
  void add_active() { active_.fetch_add(1, std::memory_order_relaxed); }
  void remove_active();
  void put(const Copy& copy, uint32_t run, uint32_t slot, const void* data, size_t bytes);

  const Program& program_;
  const bool first_;
  DeviceRuns runs_;
  std::deque<Copy> copies_;  // never moved
  Link link_;

  /// Closures that are scheduled, held or running, parcels that are being delivered,
  /// an execution that is being started. Who counts it up from zero holds the lock;
  /// who counts it up from more is counted itself (hence relaxed). Counting down
  /// releases what was done; its partner is whoever reads zero.
  std::atomic<uint64_t> active_{0};
  std::mutex lock_;
  std::condition_variable changed_;
  // All guarded by the lock.
  Parcel outgoing_;
  std::optional<Setting> next_;       // of the execution that is to begin here
  std::optional<Setting> announced_;  // likewise, at the other station
  bool beginning_ = false;
  uint64_t handed_out_ = 0;  // settings and parcels
  uint64_t arrived_ = 0;     // likewise
  uint64_t told_ = 0;        // the last `Idle`
  uint64_t peer_arrived_ = 0;
  bool closed_ = false;
  std::thread thread_;  // works on the closures, like a caller that waits
};

}  // namespace litmusfuzz::executor
