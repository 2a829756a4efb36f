// Execution of one partition of a test: two processes share a test, and each executes its
// part of every copy.
//
// A runner does no I/O. The caller sends the messages that `take` returns, and passes
// received ones to `deliver`, in order.
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
#include "outcome.h"
#include "transfer_delay.h"

namespace litmusfuzz::executor {

/// Settings of one execution of all copies.
struct ExecutionSettings {
  uint64_t seed = 0;
  uint32_t transfer_delay_us_max = 0;
};

/// Termination detection, without a time limit: the first runner counts what it has sent
/// to the second. The second, whenever it is idle and has nothing to send, reports how
/// much of that has arrived (`Idle`). Messages keep their order, so the first has by then
/// received all earlier messages of the second. If the first is idle then, and the second
/// has received everything, no message is under way and no event is left.
class PartitionRunner final : public EventRunner {
 public:
  /// Serialized records.
  using Message = std::string;
  /// From the second runner, when idle: the number of settings and messages received.
  struct Idle {
    uint64_t arrived;
  };
  /// Settings come from the first runner and start the second.
  using Outgoing = std::variant<ExecutionSettings, Message, Idle>;

  /// `first` is true in one of the two.
  PartitionRunner(const Program& program, Engines engines, uint32_t copies, bool first);
  ~PartitionRunner() override;

  /// Begins an execution of all copies: at the first runner when the last execution is
  /// over, at the second when the first's settings arrive.
  void begin(const ExecutionSettings& settings);
  /// Waits for the next message to send; nothing after `close`.
  std::optional<Outgoing> take();
  /// A message of the other runner has arrived.
  void deliver(const Message& message);
  /// The second runner is idle: see `Idle`.
  void peer_idle(uint64_t arrived);
  /// At the first runner: true when the execution is done, false if it was closed.
  bool wait();
  /// For each copy the outcome of this partition, and for each run whether it has ended
  /// here. After the execution.
  std::vector<std::pair<Row, std::vector<bool>>> rows() const;
  /// Wakes callers of `take` and `wait`.
  void close();

 private:
  void ready(Event event) override;
  void transfer(Event event) override;
  void send(const Frame& frame, const Node& node, const Tensor& value) override;
  void ended(const Copy& copy, uint32_t run) override;

  void perform(Event event) override;
  void work();
  void execute(const ExecutionSettings& settings);
  void add_active() { active_.fetch_add(1, std::memory_order_relaxed); }
  void remove_active();
  void put(const Copy& copy, uint32_t run, uint32_t slot, const void* data, size_t bytes);

  const Program& program_;
  const bool first_;
  DeviceRuns runs_;
  std::deque<Copy> copies_;  // never moved
  TransferDelay transfer_delay_;

  /// Number of closures scheduled, held or running, of messages being delivered, and of
  /// executions being started. A thread that counts up from zero holds the lock; a thread
  /// that counts up from more is counted itself, hence relaxed. Counting down releases;
  /// its partner is the thread that reads zero.
  std::atomic<uint64_t> active_{0};
  std::mutex lock_;
  std::condition_variable changed_;
  // Guarded by the lock.
  Message outgoing_;
  std::optional<ExecutionSettings> next_;       // of the next execution here
  std::optional<ExecutionSettings> announced_;  // of the next execution of the other runner
  bool beginning_ = false;
  uint64_t handed_out_ = 0;  // settings and messages sent
  uint64_t arrived_ = 0;     // settings and messages received
  uint64_t reported_ = 0;    // value of the last `Idle`
  uint64_t peer_arrived_ = 0;
  bool closed_ = false;
  std::thread thread_;  // runs closures, like a caller in `wait`
};

}  // namespace litmusfuzz::executor
