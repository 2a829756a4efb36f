#include "program.h"

namespace litmusfuzz::executor {

uint64_t event_count(const Program& program, const Node& node) {
  switch (node.kind) {
    case Kind::kPure: return 0;
    case Kind::kSplitUpdate: return 2 * node.resources.size();
    case Kind::kEnqueue:
    case Kind::kDequeue: return node.parts;
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
  const uint64_t first = program.bodies[node.bodies[0]].events;
  const uint64_t both = first + program.bodies[node.bodies[1]].events;
  return iteration * both + (which ? first : 0);
}

namespace {

void link_node(const Program& program, Body& body, uint32_t number) {
  Node& node = body.nodes[number];
  for (const uint32_t slot : node.waits) {
    body.slots[slot].edges.push_back({number, Edge::kWaits});
  }
  for (size_t k = 0; k < node.arguments.size(); ++k) {
    body.slots[node.arguments[k]].edges.push_back({number, static_cast<int32_t>(k)});
  }
  if (node.waits.empty()) body.at_once.push_back(number);
  node.first_event = body.events;
  body.events += event_count(program, node);
  if (!node.bodies.empty()) {
    node.state = body.controls++;
  } else if (node.kind == Kind::kSplitUpdate || node.many) {
    node.state = body.instance_states++;
  }
}

}  // namespace

void Program::link() {
  for (Body& body : bodies) {
    body.slots.resize(body.slot_count);
    for (uint32_t n = 0; n < body.nodes.size(); ++n) link_node(*this, body, n);
    for (uint32_t k = 0; k < body.results.size(); ++k) {
      body.slots[body.results[k]].results.push_back(k);
    }
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
