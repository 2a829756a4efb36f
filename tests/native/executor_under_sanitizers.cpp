// Every kind of node on real threads, for ThreadSanitizer and AddressSanitizer. Other tests
// check the outcomes; these check invariants only.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "backend.h"
#include "batch.h"
#include "check.h"
#include "exhaustive.h"
#include "schedulers/bounded.h"
#include "schedulers/table.h"
#include "test_engines.h"

using namespace litmusfuzz::executor;

namespace {

constexpr uint32_t kLanes = 512;

/// Builds a program node by node.
class Writer {
 public:
  Program program;

  uint32_t variable(uint32_t lanes = 1) {
    const std::vector<int32_t> zeros(lanes);
    return resource({Resource::Sort::kVariable,
                     {DType::kInt32, lanes, 1},
                     {Tensor::copy_of(zeros.data(), 4 * lanes)},
                     0});
  }
  uint32_t queue(uint32_t capacity) {
    return resource({Resource::Sort::kQueue, {DType::kInt32, 1, 1}, {}, capacity});
  }
  uint32_t mutex() { return resource({Resource::Sort::kMutex, {}, {}, 0}); }

  uint32_t resource(Resource made) {
    program.resources.push_back(std::move(made));
    return static_cast<uint32_t>(program.resources.size()) - 1;
  }

  void begin(uint32_t arguments = 0) {
    body = {};
    body.arguments = body.slot_count = arguments;
  }
  uint32_t end(std::vector<uint32_t> results = {}) {
    body.results = std::move(results);
    program.bodies.push_back(std::move(body));
    return static_cast<uint32_t>(program.bodies.size()) - 1;
  }

  uint32_t add(Node node, uint32_t slots = 1) {
    node.slot = body.slot_count;
    body.slot_count += slots;
    body.nodes.push_back(std::move(node));
    return body.nodes.back().slot;
  }
  uint32_t constant(int32_t value, uint32_t lanes = 1) {
    const std::vector<int32_t> all(lanes, value);
    Node node;
    node.op = Op::kConst;
    node.type = {DType::kInt32, lanes, 1};
    node.constant = Tensor::copy_of(all.data(), 4 * lanes);
    return add(std::move(node));
  }
  uint32_t pure(Op op, std::vector<uint32_t> inputs, DType result = DType::kInt32) {
    Node node;
    node.op = op;
    node.type = {result, 1, 1};
    node.input_sizes.assign(inputs.size(), 1);
    node.inputs = node.waits = std::move(inputs);
    return add(std::move(node));
  }
  uint32_t effect(Kind kind, uint32_t on, std::vector<uint32_t> inputs = {},
                  std::vector<uint32_t> after = {}, Op op = Op::kNoOp) {
    Node node;
    node.kind = kind;
    node.op = op;
    node.type = program.resources[on].type;
    node.waits = inputs;
    node.waits.insert(node.waits.end(), after.begin(), after.end());
    node.input_sizes.assign(inputs.size(), node.type.elements);
    node.inputs = std::move(inputs);
    node.resources = {on};
    return add(std::move(node));
  }

  Body body;
};

/// Indivisible and split updates, reads and writes of wide values.
Program wide_values() {
  Writer w;
  const uint32_t x = w.variable(kLanes), y = w.variable(kLanes);
  w.begin();
  const uint32_t one = w.constant(1, kLanes);
  for (int i = 0; i < 3; ++i) {
    w.effect(Kind::kUpdate, x, {one}, {}, Op::kAssignAdd);
    w.effect(Kind::kSplitUpdate, y, {one}, {}, Op::kAssignAdd);
    const uint32_t read = w.effect(Kind::kRead, x);
    w.effect(Kind::kWrite, y, {read});
  }
  w.program.runs.push_back({w.end()});
  return std::move(w.program);
}

/// Sections on one mutex, and a queue of capacity 1 between two runs and a third.
Program blocking() {
  Writer w;
  const uint32_t x = w.variable(), q = w.queue(1), m = w.mutex();
  const auto graph = [&](bool puts) {
    w.begin();
    const uint32_t one = w.constant(1);
    for (int i = 0; i < 3; ++i) {
      const uint32_t acquire = w.effect(Kind::kAcquire, m);
      const uint32_t read = w.effect(Kind::kRead, x, {}, {acquire});
      const uint32_t write = w.effect(Kind::kWrite, x, {w.pure(Op::kAddV2, {read, one})});
      w.effect(Kind::kRelease, m, {}, {write});
      if (puts) {
        w.effect(Kind::kEnqueue, q, {one});
      } else {
        w.effect(Kind::kDequeue, q);
      }
    }
    return w.end();
  };
  w.program.runs.push_back({graph(true)});
  w.program.runs.push_back({graph(false)});
  w.begin();
  w.effect(Kind::kRead, x);
  w.program.runs.push_back({w.end(), {0, 1}});
  return std::move(w.program);
}

/// A loop with a conditional in its body, concurrent with a write.
Program bodies(uint32_t parallel, bool strict) {
  Writer w;
  const uint32_t x = w.variable(), y = w.variable();
  enum : uint32_t { kCounter, kLast, kLimit, kStep, kArguments };
  w.begin(kArguments);
  const uint32_t condition = w.end({w.pure(Op::kLess, {kCounter, kLimit}, DType::kBool)});
  w.begin(1);
  w.effect(Kind::kUpdate, x, {0}, {}, Op::kAssignAdd);
  const uint32_t then = w.end({0});
  w.begin(1);
  const uint32_t other = w.end({w.effect(Kind::kRead, x)});

  w.begin(kArguments);
  const uint32_t seen = w.effect(Kind::kRead, y);
  const uint32_t flag = w.pure(Op::kLess, {seen, kStep}, DType::kBool);
  Node branch;
  branch.kind = Kind::kIf;
  branch.inputs = branch.waits = {flag};
  branch.arguments = {kStep};
  branch.bodies = {then, other};
  branch.results = 1;
  branch.late = strict;
  const uint32_t chosen = w.add(std::move(branch), 3) + 1;
  const uint32_t body = w.end({w.pure(Op::kAddV2, {kCounter, kStep}), chosen});

  w.begin();
  const uint32_t zero = w.constant(0), one = w.constant(1), limit = w.constant(8);
  Node loop;
  loop.kind = Kind::kWhile;
  loop.arguments = {zero, zero, limit, one};
  loop.bodies = {condition, body};
  loop.results = loop.carried = 2;
  loop.parallel = parallel;
  loop.bound = 8;
  loop.gathers = loop.late = strict;
  const uint32_t results = w.add(std::move(loop), 4) + 1;
  w.effect(Kind::kWrite, y, {one});
  w.effect(Kind::kWrite, y, {results + 1});
  w.program.runs.push_back({w.end()});
  return std::move(w.program);
}

void run(Program program, const std::string& name, uint32_t threads, bool noisy = false) {
  program.link();
  const SomeEngines engines(program, name, {.threads = threads});
  Histogram seen;
  Batch batch(program, engines.all(), 8);
  if (noisy) {
    batch.perturb(
        {.barrier = true, .pinned = true, .delay_us_max = 5, .yield_percent = 20, .together = 2});
  }
  for (uint64_t seed = 0; seed < 60; ++seed) batch.run(seed, true, seen);
  for (const auto& [row, count] : seen) {
    CHECK(count > 0);
    CHECK(row[0] == static_cast<int64_t>(Status::kCompleted));
    for (size_t i = 1; i < row.size(); i += 2) CHECK(row[i] == 1);  // nothing is torn
  }
}

void run_all(const std::string& engine, uint32_t threads) {
  run(wide_values(), engine, threads);
  run(wide_values(), engine, threads, true);
  for (const uint32_t parallel : {1, 2, 10}) {
    run(bodies(parallel, false), engine, threads);
    run(bodies(parallel, true), engine, threads);
  }
}

/// All executions complete, with each section indivisible.
void blocking_everywhere() {
  Program program = blocking();
  program.link();
  for (const char* name : {"inline", "pool", "fifo", "stealing", "gang"}) {
    const SomeEngines engines(program, name, {.threads = 4});
    Histogram seen;
    Batch batch(program, engines.all(), 8);
    for (uint64_t seed = 0; seed < 60; ++seed) batch.run(seed, true, seen);
    CHECK(seen.size() == 1);
    CHECK((seen.begin()->first == Row{0, 1, 6, 1, 0}));
  }
  const Exhausted found = exhaust(program, 2000);
  CHECK(found.outcomes.size() == 1);
  CHECK((found.outcomes.begin()->first == Row{0, 1, 6, 1, 0}));
}

/// No event comes before the barrier opens.
void the_barrier_holds() {
  Program program = wide_values();
  program.link();
  struct Nobody final : EventRunner {
    void ready(Event) override {}
    void transfer(Event) override {}
    void perform(Event) override {}
  } nobody;
  Copy copy(program, nobody);
  Frame frame(copy, program, program.runs[0].body, 0, 0);
  Perturbation perturbation({.barrier = true});
  perturbation.begin(0, {});
  std::atomic<bool> there{false}, over{false};
  std::thread thread([&] {
    there = true;
    perturbation.before({&frame, 0, 0}, 0);
    over = true;
  });
  while (!there) std::this_thread::yield();
  for (int i = 0; i < 200; ++i) {
    std::this_thread::yield();
    CHECK(!over);
  }
  perturbation.go();
  thread.join();
  CHECK(over);
}

/// Each scheduler, with a replay of each recorded execution. Covers reused tickets, lazy
/// deletion and growing tables.
void schedulers() {
  for (Program program : {wide_values(), blocking(), bodies(2, false), bodies(10, true)}) {
    program.link();
    Controlled controlled(program);
    for (const char* name : {"random", "pct", "pos", "urw", "surw"}) {
      const auto scheduler = make_scheduler(name, 3, program, 1);
      Recorder recorder(*scheduler);
      for (int i = 0; i < 60; ++i) {
        CHECK(controlled.run(recorder));
        const Row row = controlled.outcome();
        CHECK(row[0] == static_cast<int64_t>(Status::kCompleted));
        Replay replay(recorder.choices());
        CHECK(controlled.run(replay));
        CHECK(replay.made() == recorder.choices().size());
        CHECK(controlled.outcome() == row);
      }
    }
    for (const Measure measure : {Measure::kPreemptions, Measure::kDelays}) {
      CHECK(!search(program, measure, 2, 300).outcomes.empty());
    }
  }
  Program program = blocking();
  program.link();
  Controlled controlled(program);
  const auto uniform = make_scheduler("uniform", 0, program, 1);
  for (int i = 0; i < 60; ++i) CHECK(controlled.run(*uniform));
  CHECK((controlled.outcome() == Row{0, 1, 6, 1, 0}));
}

/// A backend with the core's values; a cluster moves one from its second variable to its
/// first, and returns their sum.
class Moving final : public Backend {
 public:
  void begin() override {}
  Tensor compute(const Node& node, const Operands& operands) override {
    return litmusfuzz::executor::compute(node, operands);
  }
  Tensor gathered(const Node& node, const Tensor& contents) override {
    return litmusfuzz::executor::gathered(node, contents);
  }
  void apply_update(const Node& node, Tensor* contents, const Operands& operands) override {
    litmusfuzz::executor::apply_update(node, contents, operands);
  }
  ClusterResult apply_cluster(const Node&, std::span<const Tensor> snapshot,
                              std::span<const Tensor* const>) override {
    const int32_t first = *snapshot[0].as<int32_t>(), second = *snapshot[1].as<int32_t>();
    return {{Tensor::scalar(first + second)},
            {Tensor::scalar(first + 1), Tensor::scalar(second - 1)}};
  }
  Tensor element(const Node&, const Tensor& many, uint32_t) override { return many; }
  Tensor stacked(const Node&, std::span<const Tensor> elements) override { return elements[0]; }
  Tensor number(const Node&, int32_t value) override { return Tensor::scalar(value); }
  Tensor moved(const Node&, const Tensor& value) override { return value; }
  bool truth(const Tensor& value) override { return *value.as<uint8_t>(); }
  Tensor read(const Tensor& value, const Type&) override { return value; }
};

/// Four clusters on two variables, two of them ordered. Each sees a consistent state: the
/// sum of the variables stays 0.
void clusters_are_atomic(const std::string& engine, uint32_t threads) {
  Moving moving;
  Writer w;
  const uint32_t x = w.variable(), y = w.variable();
  w.begin();
  std::vector<uint32_t> slots;
  for (int i = 0; i < 4; ++i) {
    Node node;
    node.kind = Kind::kCluster;
    // In different orders: the executor takes the locks in one order.
    node.resources = node.written = i % 2 ? std::vector{x, y} : std::vector{y, x};
    node.results = 1;
    if (i == 3) node.waits = {slots[0]};
    slots.push_back(w.add(std::move(node), 2));
  }
  const uint32_t body = w.end();
  w.program.runs = {{body}, {body, {0}}};
  for (const uint32_t slot : slots) {
    for (uint32_t r = 0; r < 2; ++r) w.program.observed.push_back({r, slot + 1, {}, 0});
  }
  w.program.backends = {&moving};
  Program program = std::move(w.program);
  program.link();
  const SomeEngines engines(program, engine, {.threads = threads});
  Batch batch(program, engines.all(), 32);
  Histogram seen;
  for (uint64_t seed = 0; seed < 30; ++seed) batch.run(seed, true, seen);
  for (const auto& [row, count] : seen) {
    CHECK(row[0] == static_cast<int64_t>(Status::kCompleted));
    for (size_t i = 0; i < 8; ++i) CHECK(row[2 + 2 * i] == 0);
    CHECK(row[18] == -row[20]);
  }
}

}  // namespace

int main() {
  the_barrier_holds();
  for (const char* engine : {"inline", "pool", "fifo", "stealing", "gang"}) {
    for (const uint32_t threads : {2u, 4u}) {
      run_all(engine, threads);
      clusters_are_atomic(engine, threads);
    }
  }
  blocking_everywhere();
  schedulers();
  std::puts("ok");
}
