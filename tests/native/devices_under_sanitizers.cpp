// Transfers between two devices, and between two partition runners, for ThreadSanitizer and
// AddressSanitizer. Two threads pass the messages here, in place of sockets.
#include <string>
#include <thread>
#include <vector>

#include "batch.h"
#include "check.h"
#include "hops.h"
#include "partition_runner.h"
#include "test_engines.h"

using namespace litmusfuzz::executor;

namespace {

constexpr uint32_t kCopies = 8;

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

/// Passes the messages of one runner to the other.
void carry(PartitionRunner& from, PartitionRunner& to) {
  while (const auto outgoing = from.take()) {
    if (const auto* settings = std::get_if<ExecutionSettings>(&*outgoing)) {
      to.begin(*settings);
    } else if (const auto* message = std::get_if<PartitionRunner::Message>(&*outgoing)) {
      to.deliver(*message);
    } else {
      to.peer_idle(std::get<PartitionRunner::Idle>(*outgoing).arrived);
    }
  }
}

void two_stations(const std::string& engine, uint32_t threads, uint32_t delay_us) {
  const Program programs[] = {hops(0), hops(1)};
  const SomeEngines one(programs[0], engine, {.threads = threads});
  const SomeEngines other(programs[1], engine, {.threads = threads});
  PartitionRunner first(programs[0], one.all(), kCopies, true);
  PartitionRunner second(programs[1], other.all(), kCopies, false);
  std::thread there([&] { carry(first, second); }), back([&] { carry(second, first); });
  for (uint64_t seed = 0; seed < 30; ++seed) {
    first.begin({seed, delay_us});
    CHECK(first.wait());
    for (const auto& [row, over] : first.rows()) check_row(row, true, false);
    for (const auto& [row, over] : second.rows()) check_row(row, false, true);
  }
  // Closed in the middle of an execution: no thread waits forever.
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
