// A frame: one instance of a body, with its slots and the state of its nodes.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "litmusfuzz/engine.h"
#include "program.h"

namespace litmusfuzz::executor {

class Control;
class Copy;
struct Frame;

/// One atomic step of one op instance that is ready.
struct Event {
  Frame* frame = nullptr;
  uint32_t node = 0;
  uint32_t step = 0;
};

/// State of an instance with several events.
struct InstanceState {
  /// Events of the current group that are not done. The last one acquires the others'
  /// effects.
  std::atomic<uint32_t> left{0};
  /// Values that a split update read, then writes; elements that a dequeue took.
  Tensor values[2];
  /// Values of a cluster's snapshot; elements that a dequeue took from a backend.
  std::vector<Tensor> several;
  std::vector<std::shared_ptr<Tensor>> aliases;  // mutants only: where a snapshot saw it
};

struct Frame final : Work {
  Frame(Copy& copy, const Program& program, uint32_t body, uint32_t run, uint64_t first_event);
  ~Frame();

  /// Resets the frame. Only while no thread works on it.
  void reset();

  /// An event of the frame as a closure for an engine.
  Closure closure(uint32_t node, uint32_t step) { return {this, uint64_t{node} << 32 | step}; }
  void perform(uint64_t part) override;

  const Node& node(uint32_t number) const { return body.nodes[number]; }
  /// Index, among the node's resources, of the one that its handle stands for; 0 without one.
  uint32_t chosen(const Node& node) const;
  /// Resources that an event of a node touches.
  std::span<const uint32_t> touched(const Node& node, uint32_t step) const {
    return node.touched(step, chosen(node));
  }

  Copy& copy;
  const Program& program;
  const Body& body;
  const uint32_t run;
  const uint64_t first_event;  // number of its first event
  Control* around = nullptr;   // the enclosing conditional or loop; null for a run
  uint32_t iteration = 0;      // of the enclosing loop
  uint32_t which = 0;          // index among the enclosing node's bodies

  /// Written before `pending` of the waiting nodes is counted down, read after.
  std::vector<Tensor> slots;
  /// By node: slots that it still waits for; unused for a single slot. The thread that
  /// counts to zero continues with the node, and acquires the others' effects.
  std::unique_ptr<std::atomic<uint32_t>[]> pending;
  std::unique_ptr<InstanceState[]> states;
  std::vector<std::unique_ptr<Control>> controls;
  /// Nodes without successors in the frame that are not done, plus one until all have
  /// been started.
  std::atomic<uint32_t> unfinished{0};
};

/// Follow-up work on the current thread's list. The list avoids recursion, and locks
/// within locks.
struct Task {
  enum class Sort : uint8_t {
    kStart,   // of a frame
    kArrive,  // a slot becomes ready, with `value`
    kFinish,  // one more node that `Body::last` counts is done
  };
  Sort sort;
  Frame* frame;
  uint32_t slot = 0;
  Tensor value = {};
};

/// A stack of tasks. The first few need no allocation, which suffices for nearly every
/// event.
class Tasks {
 public:
  Tasks() {}
  Tasks(const Tasks&) = delete;
  ~Tasks() {
    while (!empty()) pop();
  }

  bool empty() const { return count_ == 0; }
  void push(Task task) {
    if (count_++ < kInline) {
      new (inline_task(count_ - 1)) Task(std::move(task));
    } else {
      overflow_.push_back(std::move(task));
    }
  }
  Task pop() {
    Task task = std::move(count_ > kInline ? overflow_.back() : *inline_task(count_ - 1));
    if (count_ > kInline) {
      overflow_.pop_back();
    } else {
      inline_task(count_ - 1)->~Task();
    }
    --count_;
    return task;
  }

 private:
  static constexpr size_t kInline = 6;

  Task* inline_task(size_t place) { return reinterpret_cast<Task*>(storage_) + place; }

  size_t count_ = 0;
  alignas(Task) std::byte storage_[kInline * sizeof(Task)];
  std::vector<Task> overflow_;
};

}  // namespace litmusfuzz::executor
