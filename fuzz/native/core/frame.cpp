#include "frame.h"

#include "control.h"

namespace litmusfuzz::executor {

Frame::Frame(Copy& its_copy, const Program& program, uint32_t number, uint32_t its_run,
             uint64_t first)
    : copy(its_copy),
      body(program.bodies[number]),
      run(its_run),
      first_event(first),
      slots(body.slot_count),
      pending(new std::atomic<uint32_t>[body.nodes.size()]),
      states(new InstanceState[body.instance_states]),
      controls(body.controls) {
  for (uint32_t n = 0; n < body.nodes.size(); ++n) {
    const Node& node = body.nodes[n];
    pending[n].store(static_cast<uint32_t>(node.waits.size()), std::memory_order_relaxed);
    if (!node.bodies.empty()) controls[node.state] = Control::make(program, *this, n);
  }
  unfinished.store(static_cast<uint32_t>(body.nodes.size()) + 1, std::memory_order_relaxed);
}

Frame::~Frame() = default;

}  // namespace litmusfuzz::executor
