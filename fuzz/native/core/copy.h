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

/// Who is told that an event's turn has come, and performs it then or later.
class EventRunner {
 public:
  virtual ~EventRunner() = default;
  /// From any thread that performs events.
  virtual void ready(Event event) = 0;
  /// Likewise of a Recv, which is no event: its value is there.
  virtual void transfer(Event event) = 0;
  /// A Send gives its value to the other process.
  virtual void send(const Frame&, const Node&, const Tensor&) {}
  /// Its closure has come to run.
  virtual void perform(Event event) = 0;
  /// All of the run that this process executes is done; told if there is another one.
  virtual void ended(const Copy&, uint32_t /*run*/) {}
};

/// A variable, a queue or a mutex. All is guarded by the lock, which is held
/// for the time of one event.
struct Cell {
  /// A copy's own buffers, so that copies do not share their counts.
  std::vector<Tensor> initial;
  SpinLock lock;
  Tensor value;                  // of a variable
  std::deque<Tensor> elements;   // of a queue
  bool closed = false;           // a queue
  bool held = false;             // a mutex
  std::vector<Event> waiting;    // events that found it empty, full or held
  Tensor cached;                 // mutants only: what a read saw
  /// Mutants only: contents that updates change where they lie.
  std::shared_ptr<Tensor> buffer;
};

enum class Status : uint8_t { kCompleted, kBlocked, kFailed };

class Copy {
 public:
  /// `number` tells copies of one runner apart.
  Copy(const Program& program, EventRunner& runner, uint32_t number = 0);

  /// Back to the initial contents. Only while no thread works on it.
  void reset();
  /// Starts the runs that come after none.
  void start();

  /// Performs the event, or leaves it with its resource until another event
  /// may have made it possible; that one then reports it as ready again.
  void perform(Event event);
  /// Whether `perform` would not leave it. Only while no thread works on it.
  bool possible(const Event& event) const;

  /// What the other process sent.
  void arrived(uint32_t run, uint32_t slot, Tensor value);
  /// The other process is done with its part of the run.
  void ended_elsewhere(uint32_t run);

  EventRunner& runner() { return runner_; }
  uint32_t number() const { return number_; }

  /// Mutants: memory gets what all threads have stored. When nothing is left to perform.
  void settle();

  // Of the outcome, when nothing is left to perform.
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
  /// A run is over in one more process.
  void start_later_runs(uint32_t run, Tasks& tasks);
  /// All that the node waits for is there.
  void node_ready(Frame& frame, uint32_t number, Tasks& tasks);
  /// The op instance is done, with that result.
  void complete(Frame& frame, const Node& node, Tensor&& value, Tasks& tasks);
  /// The same, for one without an event; what follows is put off, since pure
  /// nodes come in long chains.
  void complete_later(Frame& frame, const Node& node, Tensor&& value, Tasks& tasks);

  void read(Event event, Tasks& tasks);
  void write(Event event, Tasks& tasks);
  void update(Event event, Tasks& tasks);
  void split_update(Event event, Tasks& tasks);
  void cluster(Event event, Tasks& tasks);
  void enqueue(Event event, Tasks& tasks);
  void dequeue(Event event, Tasks& tasks);
  void size(Event event, Tasks& tasks);
  void close(Event event, Tasks& tasks);
  void acquire(Event event, Tasks& tasks);
  void release(Event event, Tasks& tasks);
  void receive(Event event, Tasks& tasks);
  /// Mutants: a value that a cell may change where it lies.
  Tensor owned(const Tensor& value) const;
  /// Mutants: what they do in place of a read or write; false if nothing.
  bool read_wrongly(const Node& node, Tensor& seen);
  bool write_wrongly(const Node& node, Tensor& value);
  /// Mutants: the cell has a new value, where the last one was or elsewhere.
  static void keep_buffer(Cell& cell, bool in_place);
  bool cluster_wrongly(Event event, Tasks& tasks);
  /// Mutants: memory gets what this thread has stored.
  void drain();
  void take_snapshot(Frame& frame, const Node& node);
  void end_snapshot(Event event, Tasks& tasks);
  /// What the cluster makes of its snapshot; its values leave with `end_cluster`.
  ClusterResult result_of_cluster(Frame& frame, const Node& node);
  void end_cluster(Frame& frame, const Node& node, std::vector<Tensor> outputs, Tasks& tasks);
  void next_part(Event event, Tensor&& result, Tasks& tasks);
  void wake(std::vector<Event> events);

  const Program& program_;
  EventRunner& runner_;
  const uint32_t number_;
  std::vector<Cell> cells_;
  std::vector<std::unique_ptr<Frame>> roots_;  // by run
  /// By run: runs that have not ended, counted in each process.
  std::unique_ptr<std::atomic<uint32_t>[]> runs_before_;
  std::vector<uint8_t> over_;  // by run; read when all is quiet
  /// Relaxed: what is performed after a failure is looked at by nobody.
  std::atomic<bool> failed_{false};
  std::unique_ptr<StoreBuffers> stores_;  // mutants only
};

}  // namespace litmusfuzz::executor
