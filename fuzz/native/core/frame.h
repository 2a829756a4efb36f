// One instance of a body: its slots, and how far each of its nodes is.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

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
};

struct Frame {
  Frame(Copy& copy, const Program& program, uint32_t body, uint32_t run, uint64_t first_event);
  ~Frame();

  /// As if it were new. Only while no thread works on it.
  void reset();

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
  /// Nodes that are not done, and one more until all have been started.
  std::atomic<uint32_t> unfinished{0};
};

/// What is to be done next by the thread that has it on its list; a list of its
/// own, so that nothing recurses and no lock is held while another is taken.
struct Task {
  enum class Sort : uint8_t {
    kStart,   // of a frame
    kArrive,  // a slot becomes ready, with `value`
    kFinish,  // one more node of the frame is done
  };
  Sort sort;
  Frame* frame;
  uint32_t slot = 0;
  Tensor value = {};
};
using Tasks = std::vector<Task>;

}  // namespace litmusfuzz::executor
