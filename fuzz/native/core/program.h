// A lowered test, the input of the executor (fuzz/executors/native/lowering.py): numbers
// in place of names, nodes in bodies, edges through slots.
//
// A *slot* becomes ready once in each frame, and may then hold a value. A body's first
// slots are its arguments; then each node has one, ready when the node is done. A node
// with bodies has more: one for each result, then one that is ready when all instances
// inside are done. Its own slot is ready with its results; of a call, with all instances. A
// cluster has one for each value of a member.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "defect.h"
#include "tensor.h"

namespace litmusfuzz::executor {

class Backend;

/// Kind of node, which decides what happens when it is ready. A new kind needs a line
/// here, and a case in `Copy::perform` or `Copy::node_ready`.
enum class Kind : uint8_t {
  kPure,
  kRead,
  kState,  // whether a variable has a value
  kWrite,
  kUpdate,  // one event: reads and writes its variables
  kSplitUpdate,  // an event for each read, then one for each write
  kCluster,  // a snapshot of `resources`, then a write-back of `written`
  kAcquire,
  kRelease,
  kEnqueue,
  kDequeue,
  kSize,
  kClose,
  kApply,  // adds a gradient to an accumulator, unless it is stale
  kTakeSum,  // joins the accumulator's line, then takes the sum once there is enough
  kCount,
  kSetStep,
  kSend,  // to the other process; to another device of this one it is an Identity
  kRecv,
  kIf,
  kWhile,
  kCall,
};

/// Computation of a node. The names are TensorFlow's, without "Resource" and "Op".
enum class Op : uint8_t {
  kNoOp,
  kConst,
  kIdentity,
  kNeg,
  kRelu,
  kAddV2,
  kSub,
  kMul,
  kMaximum,
  kMinimum,
  kLess,
  kEqual,
  kSelect,
  kReluGrad,
  kMatMul,
  kAssignAdd,
  kAssignSub,
  kGradientDescent,
  kMomentum,
  kKerasMomentum,
  kScatterUpdate,
  kScatterAdd,
  kScatterSub,
  kScatterMul,
  kScatterMin,
  kScatterMax,
};

/// Type of a value: its elements, and the number of ints that the model sees. The lanes
/// of one int are adjacent.
struct Type {
  DType dtype = DType::kInt32;
  uint32_t elements = 1;
  uint32_t ints = 1;

  size_t bytes() const { return elements * item_size(dtype); }
};

struct Node {
  Kind kind = Kind::kPure;
  Op op = Op::kNoOp;
  Type type;  // of the result; for an update, of its variables
  DType operand_dtype = DType::kInt32;
  std::vector<uint32_t> waits;  // slots that must be ready, all of earlier nodes
  std::vector<uint32_t> inputs;  // slots with operands, in order; `waits` ensures them
  std::vector<uint32_t> arguments;  // slots passed to the bodies one by one
  std::vector<uint32_t> input_sizes;  // elements of each operand
  std::vector<uint32_t> resources;  // numbers in `Program::resources`, in the roles' order
  int32_t handle = kNoHandle;  // slot with the number of the one that it works on
  uint32_t offset = 0;  // mutants only: added to that number
  std::vector<uint32_t> written;  // the same, for variables that a cluster may write
  uint32_t slot = 0;
  uint32_t device = 0;
  uint32_t slot_there = 0;  // Send: slot of its value in the other process, in the same run

  std::vector<int32_t> rows;  // rows that a gather or scatter touches
  bool gathers_rows = false;
  uint32_t row_elements = 1;  // elements in one row
  uint32_t inner = 0;  // MatMul: columns of the first operand
  uint32_t columns = 0;  // MatMul: of the result
  bool nesterov = false;
  uint32_t parts = 1;  // elements that a queue op moves
  bool many = false;
  Tensor constant;

  // For a node with bodies. If: then, else. While: condition, body. Call: body.
  std::vector<uint32_t> bodies;
  uint32_t results = 0;  // for a cluster, too
  uint32_t carried = 0;
  uint32_t parallel = 0;  // largest number of iterations at once
  uint32_t bound = 0;  // largest number of iterations
  bool gathers = false;  // begins only when all arguments are ready
  bool late = false;  // returns results only when every instance is done

  uint32_t call = 0;  // number of the backend's function for it

  // Set by `Program::link`.
  bool last = false;  // has no successor in the body
  uint32_t state = 0;  // index among the body's nodes with the same sort of state
  uint64_t first_event = 0;  // numbers of its events, in the frame
  Backend* backend = nullptr;  // backend of its device
  Backend* source = nullptr;  // Recv: backend of the device that its value comes from

  static constexpr int32_t kNoHandle = -1;

  /// Number of variables that an instance works on.
  uint32_t variables() const {
    return handle == kNoHandle ? static_cast<uint32_t>(resources.size()) : 1;
  }

  /// The steps of a cluster's two events.
  static constexpr uint32_t kSnapshot = 0, kWriteBack = 1;
  /// The steps of a take from an accumulator.
  static constexpr uint32_t kJoin = 0, kTake = 1;

  /// Resources that event number `step` touches; and whether it only reads them. `chosen` is the
  /// index of the one that a handle stands for.
  std::span<const uint32_t> touched(uint32_t step, uint32_t chosen) const {
    if (handle != kNoHandle) return {&resources[chosen], 1};
    if (kind == Kind::kSplitUpdate) return {&resources[step % resources.size()], 1};
    if (kind == Kind::kCluster && step == kWriteBack) return written;
    return resources;
  }
  bool reads_only(uint32_t step) const {
    if (kind == Kind::kSplitUpdate) return step < variables();
    if (kind == Kind::kCluster) return step == kSnapshot;
    return kind == Kind::kRead || kind == Kind::kState || kind == Kind::kSize;
  }
  /// Number of its slots.
  uint32_t slots() const {
    return kind == Kind::kCluster ? 1 + results : bodies.empty() ? 1 : 2 + results;
  }
};

/// Edge from a slot to a node: a dependency, or one of the node's arguments.
struct Edge {
  static constexpr int32_t kWaits = -1;
  uint32_t node;
  int32_t argument;
  // Set by `Program::link`, so that the path from event to event reads no node.
  bool alone = false;  // the node has no other dependency
  bool event = false;  // the node's first event is ready when the node is
};

struct Slot {
  std::vector<Edge> edges;
  std::vector<uint32_t> results;  // indices among the body's results
};

struct Body {
  std::vector<Node> nodes;
  uint32_t arguments = 0;
  std::vector<uint32_t> results;  // slots
  uint32_t slot_count = 0;

  // Set by `Program::link`.
  std::vector<Slot> slots;
  /// Constants used as operands only: their slots are set before the frame starts.
  std::vector<uint32_t> preset;
  std::vector<uint32_t> pending;  // by node: slots that it waits for, without preset ones
  std::vector<uint32_t> at_once;  // nodes without dependencies that are not preset
  std::vector<uint32_t> counted;  // nodes that wait for several slots
  std::vector<uint32_t> compound;  // nodes with bodies
  /// Number of nodes without successors, without preset ones: when they are done, the
  /// frame is done.
  uint32_t last = 0;
  uint32_t instance_states = 0;  // nodes with several events
  uint32_t controls = 0;  // nodes with bodies
  uint64_t events = 0;  // upper bound for one frame, bodies included
};

struct Resource {
  enum class Sort : uint8_t { kVariable, kQueue, kMutex, kAccumulator };
  Sort sort = Sort::kVariable;
  Type type;  // of the value, or of one element
  std::vector<Tensor> initial;
  uint32_t capacity = 0;
  uint32_t device = 0;
};

struct Run {
  uint32_t body = 0;
  std::vector<uint32_t> after = {};
  std::vector<uint32_t> before = {};  // set by `Program::link`
  uint64_t first_event = 0;  // likewise
};

struct Observed {
  uint32_t run;
  uint32_t slot;
  Type type;
  uint32_t device;
};

struct Program {
  std::vector<Body> bodies;  // each after those inside it
  std::vector<Resource> resources;
  std::vector<Run> runs;
  std::vector<Observed> observed;
  uint32_t devices = 1;
  /// Number of processes, each of which executes a part of the test. Values from another
  /// process arrive in arguments of a run's body.
  uint32_t processes = 1;
  bool blocks = false;  // set by `link`: an event may block
  /// Backend of each device; null where the core computes.
  std::vector<Backend*> backends;
  Defect defect = Defect::kNone;

  bool broken(Defect which) const { return kMutants && defect == which; }
  Backend* backend(uint32_t device) const { return backends.empty() ? nullptr : backends[device]; }
  /// Notifies the backends of a new execution.
  void begin_execution() const {
    if (!backends.empty()) begin_backends();
  }

  /// Computes the derived members. Events get numbers that are the same in every
  /// execution: the k-th event of a node in a frame.
  void link();

 private:
  void begin_backends() const;
};

/// Number of events of an instance of the node, bodies included.
uint64_t event_count(const Program& program, const Node& node);

/// Number of the first event in one of its frames, relative to the node's first.
uint64_t first_event_of(const Program& program, const Node& node, uint32_t which,
                        uint32_t iteration);

}  // namespace litmusfuzz::executor
