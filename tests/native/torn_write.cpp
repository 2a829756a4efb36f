// The mutant whose writes tear, on two threads: ThreadSanitizer must report it.
//
// Writer and reader hold a lock only while they look up the buffer, so that nothing orders
// the copies; in one of many executions the engine's own lock does not order them either.
#include "batch.h"
#include "test_engines.h"

using namespace litmusfuzz::executor;

int main() {
  constexpr uint32_t kLanes = 512;
  const std::vector<int32_t> zeros(kLanes);
  const Type type{DType::kInt32, kLanes, 1};
  Program program;
  program.defect = Defect::kTornWrite;
  program.resources.push_back(
      {Resource::Sort::kVariable, type, {Tensor::copy_of(zeros.data(), type.bytes())}, 0});
  Body body;
  Node value;
  value.op = Op::kConst;
  value.type = type;
  value.constant = Tensor::copy_of(zeros.data(), type.bytes());
  body.nodes.push_back(value);
  for (const Kind kind : {Kind::kWrite, Kind::kRead}) {
    Node node;
    node.kind = kind;
    node.type = type;
    node.resources = {0};
    if (kind == Kind::kWrite) node.waits = node.inputs = {0};
    node.slot = static_cast<uint32_t>(body.nodes.size());
    body.nodes.push_back(node);
  }
  body.slot_count = 3;
  program.bodies.push_back(body);
  program.runs.push_back({0});
  program.link();
  const SomeEngines engines(program, "pool", {.threads = 2});
  Batch batch(program, engines.all(), 32);
  Histogram seen;
  for (uint64_t seed = 0; seed < 1000; ++seed) batch.run(seed, true, seen);
}
