// Values that go to and fro between two devices, and between two stations, for
// ThreadSanitizer and AddressSanitizer. What TCP carries elsewhere two threads do here.
#include <string>
#include <thread>
#include <vector>

#include "batch.h"
#include "check.h"
#include "hops.h"
#include "some_engines.h"
#include "station.h"

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
