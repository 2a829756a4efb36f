// A test as the executor is given it (fuzz/executors/native/lowering.py):
// names have become numbers, nodes stand in bodies, edges lead through slots.
//
// A *slot* becomes ready once in each frame, and may then hold a value. A body's
// first slots are its arguments; then each node has one, ready when it is done.
// A node with bodies has more: one for each result, then one that is ready when
// all instances inside are done. So has a cluster: one for each value of a member.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "defect.h"
#include "tensor.h"

namespace litmusfuzz::executor {

class Backend;

/// What happens when a node's turn comes. A new kind: a line here, and a case in
/// `Copy::perform` or `Copy::node_ready`.
enum class Kind : uint8_t {
  kPure,
  kRead,
  kWrite,
  kUpdate,       // one event: reads and writes its variables
  kSplitUpdate,  // an event for each read, then one for each write
  kCluster,      // a snapshot of `resources`, then a write-back of `written`
  kAcquire,
  kRelease,
  kEnqueue,
  kDequeue,
  kSize,
  kClose,
  kSend,  // to the other process; to another device of this one it is an Identity
  kRecv,
  kIf,
  kWhile,
};

/// What is computed. The names are TensorFlow's, without "Resource" and "Op".
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

/// Of a value: elements, and how many ints the model sees of them. Lanes of one
/// such int stand side by side.
struct Type {
  DType dtype = DType::kInt32;
  uint32_t elements = 1;
  uint32_t ints = 1;

  size_t bytes() const { return elements * item_size(dtype); }
};

struct Node {
  Kind kind = Kind::kPure;
  Op op = Op::kNoOp;
  Type type;                         // of the result; of an update, of its variables
  DType operand_dtype = DType::kInt32;
  std::vector<uint32_t> waits;       // slots that must be ready, of nodes that stand before it
  std::vector<uint32_t> inputs;      // slots with operands, in order; `waits` ensures them
  std::vector<uint32_t> arguments;   // slots handed on to the bodies one by one
  std::vector<uint32_t> input_sizes;  // elements of each operand
  std::vector<uint32_t> resources;   // numbers in `Program::resources`, in the roles' order
  std::vector<uint32_t> written;     // likewise: what a cluster may write
  uint32_t slot = 0;
  uint32_t device = 0;
  uint32_t slot_there = 0;  // of a Send: where its value arrives, in the same run

  std::vector<int32_t> rows;  // that a gather or scatter touches
  bool gathers_rows = false;
  uint32_t row_elements = 1;  // elements in one row
  uint32_t inner = 0;         // MatMul: columns of the first operand
  uint32_t columns = 0;       // MatMul: of the result
  bool nesterov = false;
  uint32_t parts = 1;  // elements that a queue op moves
  bool many = false;
  Tensor constant;

  // Of a node with bodies. If: then, else. While: condition, body.
  std::vector<uint32_t> bodies;
  uint32_t results = 0;  // a cluster's, too
  uint32_t carried = 0;
  uint32_t parallel = 0;  // iterations at once, at most
  uint32_t bound = 0;     // iterations, at most
  bool gathers = false;   // begins only when all arguments are there
  bool late = false;      // results leave only when every instance is done

  uint32_t call = 0;  // what the backend does, by its own numbering

  // Set by `Program::link`.
  bool last = false;         // nothing else in the body waits for it
  uint32_t state = 0;        // place among the body's nodes of its sort that keep a state
  uint64_t first_event = 0;  // numbers of its events, in the frame
  Backend* backend = nullptr;  // of its device
  Backend* source = nullptr;   // of a Recv: of the device that its value comes from

  /// The steps of a cluster's two events.
  static constexpr uint32_t kSnapshot = 0, kWriteBack = 1;

  /// What its event of that number touches; and whether it leaves that as it is.
  std::span<const uint32_t> touched(uint32_t step) const {
    if (kind == Kind::kSplitUpdate) return {&resources[step % resources.size()], 1};
    if (kind == Kind::kCluster && step == kWriteBack) return written;
    return resources;
  }
  bool looks(uint32_t step) const {
    if (kind == Kind::kSplitUpdate) return step < resources.size();
    if (kind == Kind::kCluster) return step == kSnapshot;
    return kind == Kind::kRead || kind == Kind::kSize;
  }
  /// How many slots it has.
  uint32_t slots() const {
    return kind == Kind::kCluster ? 1 + results : bodies.empty() ? 1 : 2 + results;
  }
};

/// From a slot to a node: one of what it waits for, or one of its arguments.
struct Edge {
  static constexpr int32_t kWaits = -1;
  uint32_t node;
  int32_t argument;
  // Set by `Program::link`, so that the way from event to event leads past no node.
  bool alone = false;  // it waits for nothing else
  bool event = false;  // when its turn has come, so has that of its first event
};

struct Slot {
  std::vector<Edge> edges;
  std::vector<uint32_t> results;  // places among the body's results
};

struct Body {
  std::vector<Node> nodes;
  uint32_t arguments = 0;
  std::vector<uint32_t> results;  // slots
  uint32_t slot_count = 0;

  // Set by `Program::link`.
  std::vector<Slot> slots;
  /// Constants that nothing but operands needs: in their slots for good, done
  /// before the frame starts.
  std::vector<uint32_t> settled;
  std::vector<uint32_t> pending;  // by node: slots that it waits for, settled ones left out
  std::vector<uint32_t> at_once;  // nodes that wait for nothing, and are not settled
  std::vector<uint32_t> counted;  // nodes that wait for several slots
  std::vector<uint32_t> compound;  // nodes with bodies
  /// Nodes that nothing else in it waits for, settled ones left out: when they are
  /// done, all are.
  uint32_t last = 0;
  uint32_t instance_states = 0;   // nodes whose events follow one another
  uint32_t controls = 0;          // nodes with bodies
  uint64_t events = 0;            // in one frame, those inside included: an upper bound
};

struct Resource {
  enum class Sort : uint8_t { kVariable, kQueue, kMutex };
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
  uint64_t first_event = 0;      // likewise
};

struct Observed {
  uint32_t run;
  uint32_t slot;
  Type type;
  uint32_t device;
};

struct Program {
  std::vector<Body> bodies;  // one stands after those inside it
  std::vector<Resource> resources;
  std::vector<Run> runs;
  std::vector<Observed> observed;
  uint32_t devices = 1;
  /// That execute the test, each a part of it: what comes from another one arrives in
  /// arguments of a run's body.
  uint32_t processes = 1;
  bool blocks = false;  // set by `link`: an event may have to wait for others
  /// By device: who computes there, and has the values; null where the core does.
  std::vector<Backend*> backends;
  Defect defect = Defect::kNone;

  bool broken(Defect which) const { return kMutants && defect == which; }
  Backend* backend(uint32_t device) const { return backends.empty() ? nullptr : backends[device]; }
  /// Tells the backends.
  void begin_execution() const {
    if (!backends.empty()) begin_backends();
  }

  /// Sets what follows from the rest. Events get numbers that are the same in
  /// every execution: the k-th of a node in a frame.
  void link();

 private:
  void begin_backends() const;
};

/// How many events an instance of the node has, those inside included.
uint64_t event_count(const Program& program, const Node& node);

/// Number of the first event in one of its frames, counted from its own first.
uint64_t first_event_of(const Program& program, const Node& node, uint32_t which,
                        uint32_t iteration);

}  // namespace litmusfuzz::executor
