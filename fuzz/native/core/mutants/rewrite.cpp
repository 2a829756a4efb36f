#include "mutants/rewrite.h"

#include <algorithm>

namespace litmusfuzz::executor {
namespace {

bool on_variables(const Node& node) {
  return node.kind == Kind::kRead || node.kind == Kind::kWrite || node.kind == Kind::kUpdate ||
         node.kind == Kind::kSplitUpdate;
}

/// The node whose result a slot holds; null for an argument, or a result of bodies.
Node* maker(Body& body, uint32_t slot) {
  const auto found = std::find_if(body.nodes.begin(), body.nodes.end(),
                                  [&](const Node& each) { return each.slot == slot; });
  return found == body.nodes.end() ? nullptr : &*found;
}

/// True for a control edge between two nodes on variables.
bool is_control_edge(Body& body, uint32_t slot, const Node& to) {
  const Node* const from = maker(body, slot);
  return from && on_variables(*from) && on_variables(to) &&
         std::find(to.inputs.begin(), to.inputs.end(), slot) == to.inputs.end();
}

/// The last control edge between two nodes on variables is dropped.
void drop_control_edge(Body& body) {
  for (auto node = body.nodes.rbegin(); node != body.nodes.rend(); ++node) {
    for (const uint32_t slot : node->waits) {
      if (!is_control_edge(body, slot, *node)) continue;
      std::erase(node->waits, slot);
      return;
    }
  }
}

/// A mutex is released before the last member of its section.
void release_early(Body& body) {
  for (Node& node : body.nodes) {
    if (node.kind == Kind::kRelease && node.waits.size() > 1) node.waits.pop_back();
  }
}

/// A Send for a control edge does not wait for the node at its source.
void send_early(Body& body) {
  for (const Node& node : body.nodes) {
    if (node.kind != Kind::kRecv) continue;
    const Node* const send = maker(body, node.inputs[0]);
    Node* const sent = send ? maker(body, send->inputs[0]) : nullptr;
    if (sent && sent->op == Op::kConst) sent->waits.clear();
  }
}

/// Each device has a copy of each variable, and nodes are spread over the devices.
void copy_variables(Program& program) {
  const auto count = static_cast<uint32_t>(program.resources.size());
  for (uint32_t d = 1; d < program.devices; ++d) {
    for (uint32_t r = 0; r < count; ++r) program.resources.push_back(program.resources[r]);
  }
  uint32_t index = 0;
  for (Body& body : program.bodies) {
    for (Node& node : body.nodes) {
      if (!on_variables(node)) continue;
      node.device = index++ % program.devices;
      for (uint32_t& resource : node.resources) resource += node.device * count;
    }
  }
}

/// What works on a variable through a handle has a copy of it.
void miss_aliases(Program& program) {
  const auto count = static_cast<uint32_t>(program.resources.size());
  for (uint32_t r = 0; r < count; ++r) program.resources.push_back(program.resources[r]);
  for (Body& body : program.bodies) {
    for (Node& node : body.nodes) {
      if (node.handle == Node::kNoHandle) continue;
      node.offset = count;
      for (uint32_t& resource : node.resources) resource += count;
    }
  }
}

}  // namespace

void rewrite(Program& program) {
  for (Body& body : program.bodies) {
    if (program.broken(Defect::kDroppedControlEdge)) drop_control_edge(body);
    if (program.broken(Defect::kEarlyRelease)) release_early(body);
    if (program.broken(Defect::kEarlyTransfer)) send_early(body);
  }
  if (program.broken(Defect::kCopiedVariables)) copy_variables(program);
  if (program.broken(Defect::kMissedAlias)) miss_aliases(program);
}

}  // namespace litmusfuzz::executor
