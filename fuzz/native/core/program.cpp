#include "program.h"

#include <algorithm>

#include "backend.h"
#include "mutants/rewrite.h"

namespace litmusfuzz::executor {

uint64_t event_count(const Program& program, const Node& node) {
  switch (node.kind) {
    case Kind::kPure:
    case Kind::kSend:
    case Kind::kRecv: return 0;
    case Kind::kSplitUpdate: return 2 * node.variables();
    case Kind::kCluster:
    case Kind::kTakeSum: return 2;
    case Kind::kEnqueue:
    case Kind::kDequeue: return node.parts;
    case Kind::kCall: return program.bodies[node.bodies[0]].events;
    case Kind::kIf:
      return program.bodies[node.bodies[0]].events + program.bodies[node.bodies[1]].events;
    case Kind::kWhile:
      return (program.bodies[node.bodies[0]].events + program.bodies[node.bodies[1]].events) *
             (node.bound + 1);
    default: return 1;
  }
}

uint64_t first_event_of(const Program& program, const Node& node, uint32_t which,
                        uint32_t iteration) {
  if (node.kind == Kind::kCall) return 0;
  const uint64_t first = program.bodies[node.bodies[0]].events;
  const uint64_t both = first + program.bodies[node.bodies[1]].events;
  return iteration * both + (which ? first : 0);
}

namespace {

/// Transitive reduction: removes dependencies that others imply, and duplicates. Each
/// removed edge saves an atomic instruction.
void reduce(Body& body) {
  using Slots = std::vector<bool>;
  std::vector<Slots> before(body.slot_count, Slots(body.slot_count));  // by slot
  for (Node& node : body.nodes) {
    Slots implied(body.slot_count), kept(body.slot_count);
    for (const uint32_t slot : node.waits) {
      for (uint32_t s = 0; s < body.slot_count; ++s) implied[s] = implied[s] || before[slot][s];
    }
    std::erase_if(node.waits, [&](uint32_t slot) {
      const bool needless = implied[slot] || kept[slot];
      kept[slot] = true;
      return needless;
    });
    for (const uint32_t slot : node.waits) implied[slot] = true;
    // None of its slots is ready before the node is.
    for (uint32_t k = 0; k < node.slots(); ++k) before[node.slot + k] = implied;
  }
}

/// Backend of the device of the slot's node; arguments belong to the core.
Backend* backend_of_slot(const Program& program, const Body& body, uint32_t slot) {
  for (const Node& each : body.nodes) {
    if (each.slot <= slot && slot < each.slot + each.slots()) return program.backend(each.device);
  }
  return nullptr;
}

void link_node(const Program& program, Body& body, uint32_t number) {
  Node& node = body.nodes[number];
  node.backend = program.backend(node.device);
  if (node.kind == Kind::kRecv) node.source = backend_of_slot(program, body, node.inputs[0]);
  if (node.backend) node.backend->prepare(node);
  for (const uint32_t slot : node.waits) {
    body.slots[slot].edges.push_back({number, Edge::kWaits});
  }
  for (size_t k = 0; k < node.arguments.size(); ++k) {
    body.slots[node.arguments[k]].edges.push_back({number, static_cast<int32_t>(k)});
  }
  node.first_event = body.events;
  body.events += event_count(program, node);
  if (!node.bodies.empty()) {
    node.state = body.controls++;
  } else if (node.kind == Kind::kSplitUpdate || node.kind == Kind::kCluster || node.many) {
    node.state = body.instance_states++;
  }
}

bool is_preset(const Body& body, const Node& node) {
  const Slot& slot = body.slots[node.slot];
  return node.op == Op::kConst && node.waits.empty() && slot.results.empty() &&
         std::all_of(slot.edges.begin(), slot.edges.end(),
                     [](const Edge& edge) { return edge.argument == Edge::kWaits; });
}

/// A node with bodies always counts: a node that waits for one of its results does not
/// wait for the instances inside, nor does a node that takes one as an argument. A
/// cluster counts because several of its slots may have waiting nodes.
bool is_last(const Body& body, const Node& node) {
  const std::vector<Edge>& edges = body.slots[node.slot].edges;
  return node.slots() > 1 || std::none_of(edges.begin(), edges.end(), [](const Edge& edge) {
           return edge.argument == Edge::kWaits;
         });
}

/// Removes constants from the dependencies.
void preset_constants(Body& body) {
  for (const Node& node : body.nodes) {
    body.pending.push_back(static_cast<uint32_t>(node.waits.size()));
  }
  std::vector<bool> preset;
  for (uint32_t n = 0; n < body.nodes.size(); ++n) {
    const Node& node = body.nodes[n];
    preset.push_back(is_preset(body, node));
    if (!preset.back()) continue;
    body.preset.push_back(n);
    for (const Edge& edge : body.slots[node.slot].edges) --body.pending[edge.node];
    body.slots[node.slot].edges.clear();
  }
  for (uint32_t n = 0; n < body.nodes.size(); ++n) {
    Node& node = body.nodes[n];
    if (preset[n]) continue;
    if (body.pending[n] == 0) body.at_once.push_back(n);
    if (body.pending[n] > 1) body.counted.push_back(n);
    if (!node.bodies.empty()) body.compound.push_back(n);
    node.last = is_last(body, node);
    body.last += node.last;
  }
  for (Slot& slot : body.slots) {
    for (Edge& edge : slot.edges) {
      const Kind kind = body.nodes[edge.node].kind;
      edge.alone = body.pending[edge.node] == 1;
      edge.event = kind != Kind::kPure && kind != Kind::kSplitUpdate && kind != Kind::kCluster &&
                   kind != Kind::kSend && kind != Kind::kRecv && kind != Kind::kIf &&
                   kind != Kind::kWhile && kind != Kind::kCall;
    }
  }
}

}  // namespace

void Program::begin_backends() const {
  for (size_t d = 0; d < backends.size(); ++d) {
    const auto end = backends.begin() + static_cast<std::ptrdiff_t>(d);
    if (backends[d] && std::find(backends.begin(), end, backends[d]) == end) backends[d]->begin();
  }
}

void Program::link() {
  if (kMutants) rewrite(*this);
  for (Body& body : bodies) {
    body.slots.resize(body.slot_count);
    reduce(body);
    for (uint32_t n = 0; n < body.nodes.size(); ++n) link_node(*this, body, n);
    for (uint32_t k = 0; k < body.results.size(); ++k) {
      body.slots[body.results[k]].results.push_back(k);
    }
    preset_constants(body);
  }
  uint64_t events = 0;
  for (uint32_t r = 0; r < runs.size(); ++r) {
    runs[r].first_event = events;
    events += bodies[runs[r].body].events;
    for (const uint32_t earlier : runs[r].after) runs[earlier].before.push_back(r);
  }
  for (const Resource& each : resources) blocks |= each.sort != Resource::Sort::kVariable;
}

}  // namespace litmusfuzz::executor
