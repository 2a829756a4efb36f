// A program that passes a value back and forth between two devices, or two processes.
#pragma once

#include <algorithm>
#include <vector>

#include "check.h"
#include "copy.h"
#include "gpu/gpu.h"
#include "outcome.h"

namespace litmusfuzz::executor {

inline constexpr uint32_t kLanes = 64;
inline constexpr int32_t kHops = 6;
inline constexpr Type kWide{DType::kInt32, kLanes, 1};

inline Tensor all(int32_t value, gpu::Gpu* gpu) {
  Tensor made = Tensor::of_size(kWide.bytes());
  std::fill_n(made.as<int32_t>(), kLanes, value);
  return gpu ? gpu->keep(made) : made;
}

struct Writer {
  Body body;

  uint32_t add(Kind kind, uint32_t device, std::vector<uint32_t> inputs,
               std::vector<uint32_t> resources = {}, Op op = Op::kNoOp) {
    Node node;
    node.kind = kind;
    node.op = op;
    node.type = kWide;
    node.device = device;
    node.input_sizes.assign(inputs.size(), kLanes);
    node.inputs = node.waits = std::move(inputs);
    node.resources = std::move(resources);
    node.slot = body.slot_count++;
    body.nodes.push_back(std::move(node));
    return body.nodes.back().slot;
  }
  uint32_t one(uint32_t device, gpu::Gpu* gpu) {
    const uint32_t slot = add(Kind::kPure, device, {}, {}, Op::kConst);
    body.nodes.back().constant = all(1, gpu);
    return slot;
  }
};

/// One device increments the value and sends it to the other, and so on; each writes it.
/// `process` is 2 for one process with two devices, the second perhaps a GPU.
inline Program hops(uint32_t process, gpu::Gpu* gpu = nullptr) {
  const bool whole = process == 2;
  Program program;
  program.devices = whole ? 2 : 1;
  program.processes = whole ? 1 : 2;
  program.resources = {{Resource::Sort::kVariable, kWide, {all(0, nullptr)}},
                       {Resource::Sort::kVariable, kWide, {all(0, gpu)}, 0, whole ? 1u : 0u}};
  if (gpu) program.backends = {nullptr, gpu};
  Writer w;
  if (!whole) w.body.arguments = w.body.slot_count = kHops / 2;
  const std::vector<uint32_t> ones = {w.one(0, nullptr), w.one(whole ? 1 : 0, gpu)};
  uint32_t value = ones[0];
  for (uint32_t hop = 0; hop < kHops; ++hop) {
    const uint32_t on = hop % 2;
    const uint32_t device = whole ? on : 0;
    if (!whole && on != process) continue;
    if (hop > 0) {
      // The k-th value from the other process: an argument.
      value = w.add(Kind::kRecv, device, {whole ? value : (hop - 1) / 2});
    }
    value = w.add(Kind::kPure, device, {value, ones[on]}, {}, Op::kAddV2);
    const uint32_t written = w.add(Kind::kWrite, device, {value}, {on});
    if (hop + 1 == kHops) continue;
    value = w.add(whole ? Kind::kPure : Kind::kSend, device, {value}, {}, Op::kIdentity);
    w.body.nodes.back().waits.push_back(written);  // one write after another
    w.body.nodes.back().slot_there = hop / 2;
  }
  program.bodies.push_back(std::move(w.body));
  // The second run starts only after the first has ended in both processes.
  program.runs = {{0, {}}, {0, {0}}};
  program.link();
  return program;
}

inline void check_row(const Row& row, bool first, bool second) {
  CHECK(row[0] == static_cast<int64_t>(Status::kCompleted));
  if (first) CHECK(row[1] == 1 && row[2] == kHops);
  if (second) CHECK(row[3] == 1 && row[4] == kHops + 1);
}

}  // namespace litmusfuzz::executor
