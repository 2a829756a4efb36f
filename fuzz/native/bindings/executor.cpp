// Python bindings of the executor: convert, release the GIL, translate errors.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <random>
#include <unordered_map>

#include "batch.h"
#include "controlled.h"
#include "engines.h"
#include "exhaustive.h"
#include "gpu/comparison.h"
#include "gpu/emulated.h"
#include "gpu/gpu.h"
#include "gpu/plugin.h"
#include "partition_runner.h"
#include "python_backend.h"
#include "schedulers/bounded.h"
#include "schedulers/table.h"

#ifdef LITMUSFUZZ_MUTANTS
#define LITMUSFUZZ_MODULE _mutants
#else
#define LITMUSFUZZ_MODULE _executor
#endif

namespace nb = nanobind;
using namespace litmusfuzz::executor;
using litmusfuzz::bindings::PythonBackend;

namespace {

template <typename T>
T field(nb::handle object, const char* name) {
  return nb::cast<T>(object.attr(name));
}

template <typename E>
E named(const std::unordered_map<std::string, E>& names, const std::string& name) {
  const auto found = names.find(name);
  if (found == names.end()) throw nb::value_error(("no such name: " + name).c_str());
  return found->second;
}

DType dtype_named(const std::string& name) {
  static const std::unordered_map<std::string, DType> names{{"int32", DType::kInt32},
                                                            {"int64", DType::kInt64},
                                                            {"float32", DType::kFloat32},
                                                            {"float64", DType::kFloat64},
                                                            {"bool", DType::kBool}};
  return named(names, name);
}

Kind kind_named(const std::string& name) {
  static const std::unordered_map<std::string, Kind> names{
      {"pure", Kind::kPure},       {"read", Kind::kRead},
      {"state", Kind::kState},     {"write", Kind::kWrite},
      {"update", Kind::kUpdate},   {"split update", Kind::kSplitUpdate},
      {"acquire", Kind::kAcquire}, {"release", Kind::kRelease},
      {"enqueue", Kind::kEnqueue}, {"dequeue", Kind::kDequeue},
      {"size", Kind::kSize},       {"close", Kind::kClose},
      {"apply", Kind::kApply},     {"take sum", Kind::kTakeSum},
      {"count", Kind::kCount},     {"set step", Kind::kSetStep},
      {"send", Kind::kSend},       {"recv", Kind::kRecv},
      {"cluster", Kind::kCluster}, {"call", Kind::kCall},
      {"if", Kind::kIf},           {"while", Kind::kWhile}};
  return named(names, name);
}

// A handle is in the memory of the host, also for ops on another device, as in TensorFlow.
constexpr const char* kHandleOp = "VarHandleOp";

Op op_named(const std::string& name) {
  static const std::unordered_map<std::string, Op> names{
      {"NoOp", Op::kNoOp},
      {"Const", Op::kConst},
      {kHandleOp, Op::kConst},
      {"Identity", Op::kIdentity},
      {"Neg", Op::kNeg},
      {"Relu", Op::kRelu},
      {"AddV2", Op::kAddV2},
      {"Sub", Op::kSub},
      {"Mul", Op::kMul},
      {"Maximum", Op::kMaximum},
      {"Minimum", Op::kMinimum},
      {"Less", Op::kLess},
      {"Equal", Op::kEqual},
      {"Select", Op::kSelect},
      {"ReluGrad", Op::kReluGrad},
      {"MatMul", Op::kMatMul},
      {"AssignAddVariableOp", Op::kAssignAdd},
      {"AssignSubVariableOp", Op::kAssignSub},
      {"ResourceApplyGradientDescent", Op::kGradientDescent},
      {"ResourceApplyMomentum", Op::kMomentum},
      {"ResourceApplyKerasMomentum", Op::kKerasMomentum},
      {"ResourceScatterUpdate", Op::kScatterUpdate},
      {"ResourceScatterNdUpdate", Op::kScatterUpdate},
      {"ResourceStridedSliceAssign", Op::kScatterUpdate},
      {"ResourceScatterAdd", Op::kScatterAdd},
      {"ResourceScatterNdAdd", Op::kScatterAdd},
      {"ResourceScatterSub", Op::kScatterSub},
      {"ResourceScatterNdSub", Op::kScatterSub},
      {"ResourceScatterMul", Op::kScatterMul},
      {"ResourceScatterMin", Op::kScatterMin},
      {"ResourceScatterMax", Op::kScatterMax}};
  return named(names, name);
}

Resource::Sort sort_named(const std::string& name) {
  static const std::unordered_map<std::string, Resource::Sort> names{
      {"variable", Resource::Sort::kVariable},
      {"queue", Resource::Sort::kQueue},
      {"mutex", Resource::Sort::kMutex},
      {"accumulator", Resource::Sort::kAccumulator}};
  return named(names, name);
}

Type read_type(nb::handle object) {
  return {dtype_named(field<std::string>(object, "dtype")), field<uint32_t>(object, "elements"),
          field<uint32_t>(object, "ints")};
}

using Backends = std::vector<Backend*>;

/// Converts a tensor: bytes, in GPU memory for a GPU; a Python object for a Python backend.
Tensor read_tensor(nb::handle object, const Type& type, Backend* backend) {
  if (auto* const python = dynamic_cast<PythonBackend*>(backend)) {
    return python->keep(nb::borrow(object));
  }
  const nb::bytes bytes = nb::cast<nb::bytes>(object);
  if (bytes.size() != type.bytes()) throw nb::value_error("a tensor of another size");
  const Tensor made = Tensor::copy_of(bytes.c_str(), bytes.size());
  auto* const gpu = dynamic_cast<gpu::Gpu*>(backend);
  return gpu ? gpu->keep(made) : made;
}

using Numbers = std::vector<uint32_t>;

Node read_node(nb::handle from, const Backends& backends) {
  Node node;
  node.kind = kind_named(field<std::string>(from, "kind"));
  if (node.kind == Kind::kPure || node.kind == Kind::kUpdate || node.kind == Kind::kSplitUpdate ||
      node.kind == Kind::kApply) {
    node.op = op_named(field<std::string>(from, "op"));
  }
  node.type = read_type(from.attr("type"));
  node.operand_dtype = dtype_named(field<std::string>(from, "operand_dtype"));
  node.waits = field<Numbers>(from, "waits");
  node.inputs = field<Numbers>(from, "inputs");
  node.arguments = field<Numbers>(from, "arguments");
  node.input_sizes = field<Numbers>(from, "input_sizes");
  node.resources = field<Numbers>(from, "resources");
  node.handle = field<int32_t>(from, "handle");
  node.slot = field<uint32_t>(from, "slot");
  node.device = field<uint32_t>(from, "device");
  node.slot_there = field<uint32_t>(from, "slot_there");
  node.rows = field<std::vector<int32_t>>(from, "rows");
  node.gathers_rows = node.kind == Kind::kRead && !node.rows.empty();
  node.row_elements = field<uint32_t>(from, "row_elements");
  node.inner = field<uint32_t>(from, "inner");
  node.columns = field<uint32_t>(from, "columns");
  node.nesterov = field<bool>(from, "nesterov");
  node.parts = field<uint32_t>(from, "parts");
  node.many = field<bool>(from, "many");
  Backend* const backend = backends.empty() ? nullptr : backends.at(node.device);
  if (node.op == Op::kConst) {
    const bool handle = field<std::string>(from, "op") == kHandleOp;
    node.constant = read_tensor(from.attr("constant"), node.type, handle ? nullptr : backend);
  }
  node.bodies = field<Numbers>(from, "bodies");
  node.results = field<uint32_t>(from, "results");
  node.carried = field<uint32_t>(from, "carried");
  node.parallel = field<uint32_t>(from, "parallel");
  node.bound = field<uint32_t>(from, "bound");
  node.gathers = field<bool>(from, "gathers");
  node.late = field<bool>(from, "late");
  node.written = field<Numbers>(from, "written");
  node.call = field<uint32_t>(from, "call");
  if (node.kind == Kind::kCluster && !backend) throw nb::value_error("a cluster, and no backend");
  return node;
}

Body read_body(nb::handle from, const Backends& backends) {
  Body body;
  for (nb::handle each : from.attr("nodes")) body.nodes.push_back(read_node(each, backends));
  body.arguments = field<uint32_t>(from, "arguments");
  body.results = field<Numbers>(from, "results");
  body.slot_count = field<uint32_t>(from, "slots");
  return body;
}

Resource read_resource(nb::handle from, const Backends& backends) {
  Resource resource;
  resource.sort = sort_named(field<std::string>(from, "sort"));
  resource.type = read_type(from.attr("type"));
  resource.capacity = field<uint32_t>(from, "capacity");
  resource.device = field<uint32_t>(from, "device");
  Backend* const backend = backends.empty() ? nullptr : backends.at(resource.device);
  for (nb::handle each : from.attr("initial")) {
    resource.initial.push_back(read_tensor(each, resource.type, backend));
  }
  return resource;
}

/// Converts a fuzz.executors.native.lowering.Program. `backends` is empty, or has for each
/// device a backend, or None where the core computes.
Program read_program(nb::handle from, const Backends& backends, Defect defect = Defect::kNone) {
  Program program;
  program.defect = defect;
  program.backends = backends;
  for (nb::handle each : from.attr("bodies")) {
    program.bodies.push_back(read_body(each, backends));
  }
  for (nb::handle each : from.attr("resources")) {
    program.resources.push_back(read_resource(each, backends));
  }
  for (nb::handle each : from.attr("runs")) {
    program.runs.push_back({field<uint32_t>(each, "body"), field<Numbers>(each, "after")});
  }
  for (nb::handle each : from.attr("observed")) {
    program.observed.push_back({field<uint32_t>(each, "run"), field<uint32_t>(each, "slot"),
                                read_type(each.attr("type")), field<uint32_t>(each, "device")});
  }
  program.devices = field<uint32_t>(from, "devices");
  program.processes = field<uint32_t>(from, "processes");
  program.link();
  return program;
}

nb::list counted(const Histogram& histogram) {
  nb::list rows;
  for (const auto& [row, count] : histogram) rows.append(nb::make_tuple(row, count));
  return rows;
}

nb::list walked(const Program& program, const std::string& name, uint32_t depth, uint64_t count,
                uint64_t seed) {
  Histogram seen;
  {
    nb::gil_scoped_release release;
    seen = walk(program, *make_scheduler(name, depth, program, seed), count);
  }
  return counted(seen);
}

nb::tuple exhausted(const Program& program, uint64_t limit, std::optional<uint32_t> preemptions,
                    bool reduced) {
  Exhausted found;
  {
    nb::gil_scoped_release release;
    found = exhaust(program, limit,
                    Exhaustive(preemptions, reduced ? Reduction::kRaces : Reduction::kNone));
  }
  return nb::make_tuple(counted(found.outcomes), found.traces, found.executions, found.complete,
                        found.whole);
}

Measure measure_named(const std::string& name) {
  static const std::unordered_map<std::string, Measure> names{
      {"preemptions", Measure::kPreemptions}, {"delays", Measure::kDelays}};
  return named(names, name);
}

nb::tuple searched(const Program& program, const std::string& measure, uint32_t bound,
                   uint64_t limit) {
  const Measure which = measure_named(measure);
  Searched found;
  {
    nb::gil_scoped_release release;
    found = search(program, which, bound, limit);
  }
  return nb::make_tuple(counted(found.outcomes), found.executions, found.complete, found.whole);
}

using RawChoice = std::tuple<uint32_t, uint32_t, uint64_t>;

nb::tuple record(const Program& program, const std::string& name, uint32_t depth, uint64_t seed) {
  Controlled controlled(program);
  const auto scheduler = make_scheduler(name, depth, program, seed);
  Recorder recorder(*scheduler);
  controlled.run(recorder);
  std::vector<RawChoice> choices;
  for (const Choice& each : recorder.choices()) {
    choices.emplace_back(each.index, each.count, each.digest);
  }
  return nb::make_tuple(controlled.outcome(), choices);
}

/// The outcome, or None, and the number of choices made.
template <typename S>
nb::tuple follow(const Program& program, S scheduler, size_t wanted) {
  Controlled controlled(program);
  const bool followed = controlled.run(scheduler) && scheduler.made() == wanted;
  return nb::make_tuple(followed ? nb::cast(controlled.outcome()) : nb::none(), scheduler.made());
}

nb::tuple replay(const Program& program, const std::vector<RawChoice>& raw) {
  std::vector<Choice> choices;
  for (const auto& [index, count, digest] : raw) choices.push_back({index, count, digest});
  return follow(program, Replay(std::move(choices)), raw.size());
}

/// The number of an event, from the frames around it: node, body number, iteration.
uint64_t event_number(const Program& program, uint32_t run,
                      const std::vector<std::tuple<uint32_t, uint32_t, uint32_t>>& frames,
                      uint32_t number, uint32_t step) {
  const Body* body = &program.bodies.at(program.runs.at(run).body);
  uint64_t event = program.runs[run].first_event;
  for (const auto& [around, which, iteration] : frames) {
    const Node& node = body->nodes.at(around);
    event += node.first_event + first_event_of(program, node, which, iteration);
    body = &program.bodies.at(node.bodies.at(which));
  }
  return event + body->nodes.at(number).first_event + step;
}

/// A forced order with a time limit.
class Timed final : public Scheduler {
 public:
  Timed(std::vector<uint64_t> order, double timeout_s)
      : order_(std::move(order)),
        end_(std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                 std::chrono::duration<double>(timeout_s))) {}
  void begin(const Runtime& runtime) override { order_.begin(runtime); }
  std::optional<size_t> choose(const Choices& choices) override {
    late_ = std::chrono::steady_clock::now() >= end_;
    return late_ ? std::nullopt : order_.choose(choices);
  }
  size_t made() const { return order_.made(); }
  bool late() const { return late_; }

 private:
  Forced order_;
  std::chrono::steady_clock::time_point end_;
  bool late_ = false;
};

/// The outcome, or None; the number of events performed; true if the time limit passed.
nb::tuple force(const Program& program, const std::vector<uint64_t>& order, double timeout_s) {
  Timed scheduler(order, timeout_s);
  Controlled controlled(program);
  const bool followed = controlled.run(scheduler) && scheduler.made() == order.size();
  return nb::make_tuple(followed ? nb::cast(controlled.outcome()) : nb::none(), scheduler.made(),
                        scheduler.late());
}

/// A test on the threads of engines, with one engine for each device.
class Threads {
 public:
  Threads(const Program& program, Engines engines, uint32_t copies)
      : copies_(copies), batch_(program, std::move(engines), copies) {}

  void perturb(bool barrier, bool pinned, uint32_t delay_us_max, uint32_t yield_percent,
               uint32_t together) {
    batch_.perturb({barrier, pinned, delay_us_max, yield_percent, together});
  }

  /// The histogram, and the numbers of events performed on this thread and on others.
  nb::tuple run(uint64_t count, bool shuffle, uint32_t transfer_delay_us_max, uint64_t seed) {
    Histogram seen;
    batch_.set_transfer_delay(transfer_delay_us_max);
    const uint64_t here = batch_.performed().of_this_thread(), all = batch_.performed().sum();
    {
      nb::gil_scoped_release release;
      std::mt19937_64 seeds(seed);
      for (uint64_t done = 0; done < count; done += copies_) batch_.run(seeds(), shuffle, seen);
    }
    const uint64_t by_caller = batch_.performed().of_this_thread() - here;
    return nb::make_tuple(counted(seen), by_caller, batch_.performed().sum() - all - by_caller);
  }

 private:
  uint32_t copies_;
  Batch batch_;
};

/// The next message of a partition runner: (seed, delay), bytes, or a number; None after
/// `close`.
nb::object take(PartitionRunner& station) {
  std::optional<PartitionRunner::Outgoing> next;
  {
    nb::gil_scoped_release release;
    next = station.take();
  }
  if (!next) return nb::none();
  if (const auto* settings = std::get_if<ExecutionSettings>(&*next)) {
    return nb::make_tuple(settings->seed, settings->transfer_delay_us_max);
  }
  if (const auto* message = std::get_if<PartitionRunner::Message>(&*next)) {
    return nb::bytes(message->data(), message->size());
  }
  return nb::cast(std::get<PartitionRunner::Idle>(*next).arrived);
}

void deliver(PartitionRunner& station, const nb::bytes& bytes) {
  const PartitionRunner::Message message(bytes.c_str(), bytes.size());
  nb::gil_scoped_release release;
  station.deliver(message);
}

std::unique_ptr<gpu::Gpu> over(std::unique_ptr<gpu::Device> device) {
  return std::make_unique<gpu::Gpu>(std::move(device));
}

Defect defect_named(const std::string& name) {
  static const std::unordered_map<std::string, Defect> names{
      {"", Defect::kNone},
#ifdef LITMUSFUZZ_MUTANTS
      {"relaxed atomics", Defect::kRelaxedAtomics},
      {"store buffers", Defect::kStoreBuffers},
      {"stale cache", Defect::kStaleCache},
      {"torn write", Defect::kTornWrite},
      {"in-place update", Defect::kInPlaceUpdate},
      {"always initialized", Defect::kAlwaysInitialized},
      {"zero for no value", Defect::kZeroForNoValue},
      {"dropped control edge", Defect::kDroppedControlEdge},
      {"early sink", Defect::kEarlySink},
      {"one run waited for", Defect::kOneRunWaitedFor},
      {"early transfer", Defect::kEarlyTransfer},
      {"copied variables", Defect::kCopiedVariables},
      {"unawaited operand", Defect::kUnawaitedOperand},
      {"event of wrong queue", Defect::kEventOfWrongQueue},
      {"early reuse", Defect::kEarlyReuse},
      {"unawaited upload", Defect::kUnawaitedUpload},
      {"unawaited download", Defect::kUnawaitedDownload},
      {"stale map", Defect::kStaleMap},
      {"contraction", Defect::kContraction},
      {"broken source", Defect::kBrokenSource},
      {"lost device", Defect::kLostDevice},
      {"two holders", Defect::kTwoHolders},
      {"early release", Defect::kEarlyRelease},
      {"last in, first out", Defect::kLastInFirstOut},
      {"over capacity", Defect::kOverCapacity},
      {"lost wake-up", Defect::kLostWakeUp},
      {"stale gradient", Defect::kStaleGradient},
      {"gradient twice", Defect::kGradientTwice},
      {"too few gradients", Defect::kTooFewGradients},
      {"kept sum", Defect::kKeptSum},
      {"old step", Defect::kOldStep},
      {"old frame", Defect::kOldFrame},
      {"early body", Defect::kEarlyBody},
      {"no window", Defect::kNoWindow},
      {"early return", Defect::kEarlyReturn},
      {"pruned call", Defect::kPrunedCall},
      {"missed alias", Defect::kMissedAlias},
      {"split snapshot", Defect::kSplitSnapshot},
      {"split write-back", Defect::kSplitWriteBack},
      {"aliased snapshot", Defect::kAliasedSnapshot},
      {"early snapshot", Defect::kEarlySnapshot},
#endif
  };
  return named(names, name);
}

/// Opens a device through a plug-in; the defect is one of the OpenCL plug-in of the mutants.
std::unique_ptr<gpu::Gpu> plugin_gpu(const std::string& path, const std::string& platform,
                                     uint32_t number, uint32_t sub_devices, uint32_t queues,
                                     bool out_of_order, bool gated, const std::string& defect) {
  return over(gpu::load(
      path, {platform, number, sub_devices, queues, out_of_order, gated, defect_named(defect)}));
}

}  // namespace

#ifdef LITMUSFUZZ_MUTANTS
Program read_mutant(nb::handle from, const std::string& defect, const Backends& backends) {
  return read_program(from, backends, defect_named(defect));
}
#endif

NB_MODULE(LITMUSFUZZ_MODULE, m) {
  m.doc() = "The native executor's core; see fuzz.executors.native.";
  nb::class_<Program>(m, "Program")
      .def("walk", &walked)
      .def("exhaust", &exhausted, nb::arg("limit"), nb::arg("preemptions") = nb::none(),
           nb::arg("reduced") = true)
      .def("search", &searched)
      .def("record", &record)
      .def("replay", &replay)
      .def("force", &force)
      .def("event", &event_number);
  nb::class_<Threads>(m, "Threads")
      // The program and the engines must live as long.
      .def(nb::init<const Program&, Engines, uint32_t>(), nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>())
      .def("perturb", &Threads::perturb, nb::kw_only(), nb::arg("barrier"), nb::arg("pinned"),
           nb::arg("delay_us_max"), nb::arg("yield_percent"), nb::arg("together"))
      .def("run", &Threads::run);
  nb::class_<PartitionRunner>(m, "PartitionRunner")
      .def(nb::init<const Program&, Engines, uint32_t, bool>(), nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>())
      .def("begin",
           [](PartitionRunner& self, uint64_t seed, uint32_t transfer_delay_us_max) {
             self.begin({seed, transfer_delay_us_max});
           })
      .def("take", &take)
      .def("deliver", &deliver)
      .def("peer_idle", &PartitionRunner::peer_idle)
      .def("wait", &PartitionRunner::wait, nb::call_guard<nb::gil_scoped_release>())
      .def("rows", &PartitionRunner::rows)
      .def("close", &PartitionRunner::close);
  nb::class_<Backend>(m, "Backend");
  nb::class_<gpu::Gpu, Backend>(m, "Gpu")
      .def(
          "reseed", [](gpu::Gpu& self, uint64_t seed) { self.device().reseed(seed); },
          nb::call_guard<nb::gil_scoped_release>())
      .def("usage",
           [](gpu::Gpu& self) {
             const gpu::Usage usage = self.device().usage();
             return nb::make_tuple(usage.buffers, usage.events);
           })
      .def("kernel_differences", &gpu::kernel_differences, nb::arg("sizes"),
           nb::call_guard<nb::gil_scoped_release>());
  m.def("emulated_gpu", [] { return over(std::make_unique<gpu::Emulated>()); });
  m.def("plugin_gpu", &plugin_gpu, nb::arg("path"), nb::kw_only(), nb::arg("platform") = "",
        nb::arg("number") = 0, nb::arg("sub_devices") = 1, nb::arg("queues") = 1,
        nb::arg("out_of_order") = false, nb::arg("gated") = false, nb::arg("defect") = "");
  m.def(
      "plugin_devices",
      [](const std::string& path, const std::string& platform, uint32_t sub_devices) {
        return gpu::list(path, {.platform = platform, .sub_devices = sub_devices});
      },
      nb::arg("path"), nb::kw_only(), nb::arg("platform") = "", nb::arg("sub_devices") = 1);
  m.def(
      "plugin_race",
      [](const std::string& path, const std::string& source, const std::vector<uint32_t>& items,
         const std::vector<int32_t>& initial, uint32_t observed, uint32_t instances, uint64_t count,
         uint64_t seed, const std::string& platform, uint32_t number) {
        gpu::RaceHistogram seen;
        {
          nb::gil_scoped_release release;
          seen = gpu::race(path, {.platform = platform, .number = number},
                           {source, static_cast<uint32_t>(items.size()), items, initial, observed,
                            instances, count, seed});
        }
        nb::list rows;
        for (const auto& [row, times] : seen) rows.append(nb::make_tuple(row, times));
        return rows;
      },
      nb::arg("path"), nb::kw_only(), nb::arg("source"), nb::arg("items"), nb::arg("initial"),
      nb::arg("observed"), nb::arg("instances"), nb::arg("count"), nb::arg("seed"),
      nb::arg("platform") = "", nb::arg("number") = 0);
  // The backends must live as long.
#ifdef LITMUSFUZZ_MUTANTS
  m.def("load", &read_mutant, nb::arg("program"), nb::arg("defect"),
        nb::arg("backends") = Backends(), nb::keep_alive<0, 3>());
#else
  m.def(
      "load",
      [](nb::handle from, const Backends& backends) { return read_program(from, backends); },
      nb::arg("program"), nb::arg("backends") = Backends(), nb::keep_alive<0, 2>());
#endif
  litmusfuzz::bindings::bind_backend(m);
  litmusfuzz::bindings::bind_engines(m);
}
