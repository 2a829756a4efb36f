// One instance of a body: its slots, and how far each of its nodes is.
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

/// One atomic step of one op instance, whose turn has come.
struct Event {
  Frame* frame = nullptr;
  uint32_t node = 0;
  uint32_t step = 0;
};

/// What an instance of several events keeps between them.
struct InstanceState {
  /// Events of the current group that are not done. The last one acquires what
  /// the others released.
  std::atomic<uint32_t> left{0};
  /// What a split update read, then what it writes; what a dequeue has taken.
  Tensor values[2];
  /// What a cluster's snapshot saw; what a dequeue has taken, if a backend has it.
  std::vector<Tensor> several;
  std::vector<std::shared_ptr<Tensor>> aliases;  // mutants only: where a snapshot saw it
};

struct Frame final : Work {
  Frame(Copy& copy, const Program& program, uint32_t body, uint32_t run, uint64_t first_event);
  ~Frame();

  /// As if it were new. Only while no thread works on it.
  void reset();

  /// An event in it, as a closure of an engine.
  Closure closure(uint32_t node, uint32_t step) { return {this, uint64_t{node} << 32 | step}; }
  void perform(uint64_t part) override;

  const Node& node(uint32_t number) const { return body.nodes[number]; }

  Copy& copy;
  const Program& program;
  const Body& body;
  const uint32_t run;
  const uint64_t first_event;  // number of the first event in it
  Control* around = nullptr;   // the node instance that it is inside of; none for a run's
  uint32_t iteration = 0;      // of a loop
  uint32_t which = 0;          // of the node's bodies

  /// Written before `pending` of what waits for it is counted down, read after.
  std::vector<Tensor> slots;
  /// By node: slots that it still waits for; not counted where there is but one.
  /// Who counts to zero goes on with the node, and acquires what all others released.
  std::unique_ptr<std::atomic<uint32_t>[]> pending;
  std::unique_ptr<InstanceState[]> states;
  std::vector<std::unique_ptr<Control>> controls;
  /// Nodes that nothing else in it waits for and that are not done, and one more until
  /// all have been started.
  std::atomic<uint32_t> unfinished{0};
};

/// What is to be done next by the thread that has it on its list; a list of its
/// own, so that nothing recurses and no lock is held while another is taken.
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

/// Tasks, the newest first. The first few need no allocation, which is as many as
/// nearly every event leads to.
class Tasks {
 public:
  Tasks() {}
  Tasks(const Tasks&) = delete;
  ~Tasks() {
    while (!empty()) pop();
  }

  bool empty() const { return count_ == 0; }
  void push(Task task) {
    if (count_++ < kNear) {
      new (near(count_ - 1)) Task(std::move(task));
    } else {
      far_.push_back(std::move(task));
    }
  }
  Task pop() {
    Task task = std::move(count_ > kNear ? far_.back() : *near(count_ - 1));
    if (count_ > kNear) {
      far_.pop_back();
    } else {
      near(count_ - 1)->~Task();
    }
    --count_;
    return task;
  }

 private:
  static constexpr size_t kNear = 6;

  Task* near(size_t place) { return reinterpret_cast<Task*>(room_) + place; }

  size_t count_ = 0;
  alignas(Task) std::byte room_[kNear * sizeof(Task)];
  std::vector<Task> far_;
};

}  // namespace litmusfuzz::executor
