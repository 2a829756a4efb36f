// Values that go to and fro between two devices, and between two stations, for
// ThreadSanitizer and AddressSanitizer. What TCP carries elsewhere two threads do here.
#include <string>
#include <thread>
#include <vector>

#include "batch.h"
#include "check.h"
#include "some_engines.h"
#include "station.h"

using namespace litmusfuzz::executor;

namespace {

constexpr uint32_t kLanes = 64;
constexpr int32_t kHops = 6;
constexpr uint32_t kCopies = 8;
constexpr Type kWide{DType::kInt32, kLanes, 1};

Resource variable() {
  const std::vector<int32_t> zeros(kLanes);
  return {Resource::Sort::kVariable, kWide, {Tensor::copy_of(zeros.data(), 4 * kLanes)}, 0};
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
  uint32_t one(uint32_t device) {
    const std::vector<int32_t> ones(kLanes, 1);
    const uint32_t slot = add(Kind::kPure, device, {}, {}, Op::kConst);
    body.nodes.back().constant = Tensor::copy_of(ones.data(), 4 * kLanes);
    return slot;
  }
};

/// A value is counted up on one device, sent to the other, and so on; each writes it.
/// `process` is 2 for both in one, which then has two devices.
Program hops(uint32_t process) {
  const bool whole = process == 2;
  Program program;
  program.devices = whole ? 2 : 1;
  program.processes = whole ? 1 : 2;
  program.resources = {variable(), variable()};
  Writer w;
  if (!whole) w.body.arguments = w.body.slot_count = kHops / 2;
  const std::vector<uint32_t> ones = {w.one(0), w.one(whole ? 1 : 0)};
  uint32_t value = ones[0];
  for (uint32_t hop = 0; hop < kHops; ++hop) {
    const uint32_t on = hop % 2;
    const uint32_t device = whole ? on : 0;
    if (!whole && on != process) continue;
    if (hop > 0) {
      // Of the other process the k-th: its argument.
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
  // The second run finds what the first has left to do nowhere.
  program.runs = {{0, {}}, {0, {0}}};
  program.link();
  return program;
}

void check_row(const Row& row, bool first, bool second) {
  CHECK(row[0] == static_cast<int64_t>(Status::kCompleted));
  if (first) CHECK(row[1] == 1 && row[2] == kHops);
  if (second) CHECK(row[3] == 1 && row[4] == kHops + 1);
}

void two_devices(const std::string& engine, uint32_t threads, uint32_t delay_us) {
  const Program program = hops(2);
  const SomeEngines engines(program, engine, {.threads = threads});
  Batch batch(program, engines.all(), kCopies);
  batch.set_transfer_delay(delay_us);
  Histogram seen;
  for (uint64_t seed = 0; seed < 30; ++seed) batch.run(seed, true, seen);
  CHECK(seen.size() == 1);
  check_row(seen.begin()->first, true, true);
}

/// What a station hands out, given to the other one.
void carry(Station& from, Station& to) {
  while (const auto outgoing = from.take()) {
    if (const auto* setting = std::get_if<Setting>(&*outgoing)) {
      to.begin(*setting);
    } else if (const auto* parcel = std::get_if<Station::Parcel>(&*outgoing)) {
      to.deliver(*parcel);
    } else {
      to.peer_idle(std::get<Station::Idle>(*outgoing).arrived);
    }
  }
}

void two_stations(const std::string& engine, uint32_t threads, uint32_t delay_us) {
  const Program programs[] = {hops(0), hops(1)};
  const SomeEngines one(programs[0], engine, {.threads = threads});
  const SomeEngines other(programs[1], engine, {.threads = threads});
  Station first(programs[0], one.all(), kCopies, true);
  Station second(programs[1], other.all(), kCopies, false);
  std::thread there([&] { carry(first, second); }), back([&] { carry(second, first); });
  for (uint64_t seed = 0; seed < 30; ++seed) {
    first.begin({seed, delay_us});
    CHECK(first.wait());
    for (const auto& [row, over] : first.rows()) check_row(row, true, false);
    for (const auto& [row, over] : second.rows()) check_row(row, false, true);
  }
  // Closed in the middle of an execution: nobody waits for ever.
  first.begin({1, delay_us});
  second.close();
  first.close();
  CHECK(!first.wait());
  there.join();
  back.join();
}

}  // namespace

int main() {
  for (const char* engine : {"inline", "pool", "fifo"}) {
    for (const uint32_t threads : {1u, 3u}) {
      for (const uint32_t delay_us : {0u, 40u}) {
        two_devices(engine, threads, delay_us);
        two_stations(engine, threads, delay_us);
      }
    }
  }
  std::puts("ok");
}
