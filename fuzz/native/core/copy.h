// One copy of a test in execution: its resources, and a frame for each run.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "backend.h"
#include "frame.h"
#include "mutants/store_buffers.h"
#include "spin_lock.h"

namespace litmusfuzz::executor {

/// Receives events when they become ready, and performs them then or later.
class EventRunner {
 public:
  virtual ~EventRunner() = default;
  /// An event is ready. Called from any thread that performs events.
  virtual void ready(Event event) = 0;
  /// The value of a Recv is there; a Recv is not an event.
  virtual void transfer(Event event) = 0;
  /// A Send passes its value to the other process.
  virtual void send(const Frame&, const Node&, const Tensor&) {}
  /// The closure of an event runs.
  virtual void perform(Event event) = 0;
  /// This process has done its part of the run. Only called with several processes.
  virtual void ended(const Copy&, uint32_t /*run*/) {}
};

/// A variable, a queue, a mutex or an accumulator. The lock guards all members; an event holds it.
struct Cell {
  /// Buffers of this copy, so that copies do not share reference counts.
  std::vector<Tensor> initial;
  SpinLock lock;
  Tensor value;                  // variable; the sum of an accumulator
  std::deque<Tensor> elements;   // queue
  bool closed = false;           // queue
  bool held = false;             // mutex
  int32_t count = 0;             // accumulator: gradients in the sum
  int64_t step = 0;              // accumulator
  /// Accumulator: the takes that have joined and not yet taken, as frame and node.
  std::deque<std::pair<const Frame*, uint32_t>> line;
  std::vector<Event> waiting;    // events that found it empty, full, held or too little
  Tensor cached;                 // mutants only: what a read saw
  /// Mutants only: contents that updates change in place.
  std::shared_ptr<Tensor> buffer;
};

enum class Status : uint8_t { kCompleted, kBlocked, kFailed };

class Copy {
 public:
  /// `number` identifies the copies of one runner.
  Copy(const Program& program, EventRunner& runner, uint32_t number = 0);

  /// Restores the initial contents. Only while no thread works on the copy.
  void reset();
  /// Starts the runs without predecessors.
  void start();

  /// Performs the event, or parks it at its resource until another event may have made
  /// it possible; that event reports it as ready again.
  void perform(Event event);
  /// True if `perform` would not park it. Only while no thread works on the copy.
  bool possible(const Event& event) const;

  /// A value from the other process arrived.
  void arrived(uint32_t run, uint32_t slot, Tensor value);
  /// The other process is done with its part of the run.
  void ended_elsewhere(uint32_t run);

  EventRunner& runner() { return runner_; }
  uint32_t number() const { return number_; }

  /// Mutants: writes all threads' buffered stores to memory. After the last event.
  void flush_stores();

  // Parts of the outcome, after the last event.
  Status status() const;
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  bool ended(uint32_t run) const { return over_[run]; }
  const Tensor& slot(uint32_t run, uint32_t number) const { return roots_[run]->slots[number]; }
  const Cell& cell(uint32_t resource) const { return cells_[resource]; }

 private:
  void work_off(Tasks& tasks);
  void start_frame(Frame& frame, Tasks& tasks);
  void arrive(Frame& frame, uint32_t slot, Tensor&& value, Tasks& tasks);
  void finish_node(Frame& frame, Tasks& tasks);
  void end_run(uint32_t run, Tasks& tasks);
  /// A run has ended in one more process.
  void start_later_runs(uint32_t run, Tasks& tasks);
  /// All that the node waits for is there.
  void node_ready(Frame& frame, uint32_t number, Tasks& tasks);
  /// The op instance is done, with this result.
  void complete(Frame& frame, const Node& node, Tensor&& value, Tasks& tasks);
  /// The same for an instance without an event. Its successors are deferred, since
  /// pure nodes form long chains.
  void complete_later(Frame& frame, const Node& node, Tensor&& value, Tasks& tasks);

  void read(Event event, Tasks& tasks);
  void state(Event event, Tasks& tasks);
  void write(Event event, Tasks& tasks);
  void update(Event event, Tasks& tasks);
  void split_update(Event event, Tasks& tasks);
  void cluster(Event event, Tasks& tasks);
  void enqueue(Event event, Tasks& tasks);
  void dequeue(Event event, Tasks& tasks);
  void apply(Event event, Tasks& tasks);
  void take_sum(Event event, Tasks& tasks);
  void count(Event event, Tasks& tasks);
  void set_step(Event event, Tasks& tasks);
  void size(Event event, Tasks& tasks);
  void close(Event event, Tasks& tasks);
  void acquire(Event event, Tasks& tasks);
  void release(Event event, Tasks& tasks);
  void receive(Event event, Tasks& tasks);
  /// Mutants: a value that a cell may change in place.
  Tensor owned(const Tensor& value) const;
  /// Mutants: replacements of a read or write; false if there is none.
  bool read_wrongly(const Node& node, Tensor& seen);
  bool write_wrongly(const Node& node, Tensor& value);
  /// Mutants: the cell has a new value, in the same buffer or a new one.
  static void keep_buffer(Cell& cell, bool in_place);
  bool cluster_wrongly(Event event, Tasks& tasks);
  /// Mutants: writes this thread's buffered stores to memory.
  void drain();
  void take_snapshot(Frame& frame, const Node& node);
  void end_snapshot(Event event, Tasks& tasks);
  /// Computes the cluster from its snapshot; `end_cluster` publishes the values.
  ClusterResult result_of_cluster(Frame& frame, const Node& node);
  void end_cluster(Frame& frame, const Node& node, std::vector<Tensor> outputs, Tasks& tasks);
  void next_part(Event event, Tensor&& result, Tasks& tasks);
  void wake(std::vector<Event> events);

  const Program& program_;
  EventRunner& runner_;
  const uint32_t number_;
  std::vector<Cell> cells_;
  std::vector<std::unique_ptr<Frame>> roots_;  // by run
  /// By run: predecessors that have not ended, counted in each process.
  std::unique_ptr<std::atomic<uint32_t>[]> runs_before_;
  std::vector<uint8_t> over_;  // by run; read after the last event
  /// Relaxed: events after a failure have no visible effect.
  std::atomic<bool> failed_{false};
  std::unique_ptr<StoreBuffers> stores_;  // mutants only
};

}  // namespace litmusfuzz::executor
