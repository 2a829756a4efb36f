#include "frame.h"

#include <algorithm>

#include "control.h"
#include "copy.h"

namespace litmusfuzz::executor {

Frame::Frame(Copy& its_copy, const Program& its_program, uint32_t number, uint32_t its_run,
             uint64_t first)
    : copy(its_copy),
      program(its_program),
      body(its_program.bodies[number]),
      run(its_run),
      first_event(first),
      slots(body.slot_count),
      pending(new std::atomic<uint32_t>[body.nodes.size()]),
      states(new InstanceState[body.instance_states]),
      controls(body.controls) {
  for (const uint32_t n : body.preset) {
    // A buffer of the frame's own, so that copies do not share its count.
    const Tensor& constant = body.nodes[n].constant;
    slots[body.nodes[n].slot] = Tensor::copy_of(constant.bytes(), constant.size_bytes());
  }
  reset();
}

Frame::~Frame() = default;

void Frame::perform(uint64_t part) {
  copy.runner().perform({this, static_cast<uint32_t>(part >> 32), static_cast<uint32_t>(part)});
}

uint32_t Frame::chosen(const Node& node) const {
  if (node.handle == Node::kNoHandle) return 0;
  const auto wanted =
      static_cast<uint32_t>(*slots[static_cast<size_t>(node.handle)].as<int32_t>()) + node.offset;
  const auto found = std::find(node.resources.begin(), node.resources.end(), wanted);
  return static_cast<uint32_t>(found - node.resources.begin());
}

void Frame::reset() {
  for (const uint32_t n : body.counted) {
    pending[n].store(body.pending[n], std::memory_order_relaxed);
  }
  for (const uint32_t n : body.compound) {
    controls[body.nodes[n].state] = Control::make(program, *this, n);
  }
  // What is left in slots and states is overwritten before it is read.
  unfinished.store(body.last + 1, std::memory_order_relaxed);
  const bool of_run = &body == &program.bodies[program.runs[run].body];
  if (program.broken(Defect::kEarlySink) && of_run && body.last) {
    unfinished.store(body.last, std::memory_order_relaxed);
  }
}

}  // namespace litmusfuzz::executor
