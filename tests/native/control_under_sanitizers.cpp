// The controller under sanitizers, with a stand-in for TensorFlow's executor: threads of its
// own start the runs, some ops come back from other threads, and some never do.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "check.h"
#include "control/controller.h"
#include "controlled.h"
#include "exhaustive.h"
#include "schedulers/table.h"

namespace litmusfuzz::control {
namespace {

using executor::Exhaustive;
using executor::Forced;
using executor::make_scheduler;

constexpr uint64_t kMutex = 1, kLock = 2;
constexpr int64_t kEarlier = 2;  // the number of no run of an execution

/// A system whose runs post closures and events.
class System {
 public:
  virtual ~System() = default;
  Controller& controller() { return controller_; }

 protected:
  using Function = std::function<void()>;
  static void call(void* data) {
    const std::unique_ptr<Function> function(static_cast<Function*>(data));
    (*function)();
  }
  const LitmusFuzzHooks& hooks() const { return *controller_.hooks(); }
  void post(int64_t run, Function function) {
    auto* const made = new Function(std::move(function));
    if (!hooks().post(hooks().controller, run, call, made)) call(made);
  }
  void decide(int64_t run, const char* node, const char* resource, bool reads,
              LitmusFuzzEffect effect, Function function) {
    const LitmusFuzzEvent event{run, node,  0,      0,      "begin", &resource,
                                1,   reads, effect, kMutex, false};
    auto* const made = new Function(std::move(function));
    if (!hooks().decide(hooks().controller, &event, call, made)) call(made);
  }
  /// Executes two runs, each begun by a thread of its own.
  Standing race(const std::function<void(int64_t)>& begin) {
    controller_.begin();
    std::vector<std::thread> runs;
    for (uint32_t run = 0; run < 2; ++run) {
      controller_.expect(run);
      runs.emplace_back([&begin, run] { begin(run); });
      controller_.wait_for(run + 1);
    }
    // What an earlier execution has let go comes back: nothing waits for it, and nothing less for
    // what is outside now.
    hooks().outside(hooks().controller, kEarlier, -1);
    const Standing standing = controller_.proceed(false);
    controller_.end();
    for (auto& each : runs) each.join();
    return standing;
  }

  Controller controller_;
};

/// Two runs of one op, which adds 1 to a variable: it reads it and writes it, each under a
/// lock that the thread waits for inside the op.
class Increments final : public System {
 public:
  Increments() {
    controller_.set_inside(true);
    controller_.set_execution([this] {
      contents_ = 0;
      CHECK(race([this](int64_t run) { begin(run); }) == Standing::kOver);
      CHECK(!held_);
    });
  }
  int contents() const { return contents_; }

 private:
  void begin(int64_t run) {
    CHECK(hooks().arrive(hooks().controller, run));
    post(run, [this, run] {
      decide(run, "add", "X", false, LITMUSFUZZ_NONE, [this, run] {
        acquire(run);
        const int seen = contents_;
        release();
        acquire(run);
        contents_ = seen + 1;
        release();
        post(run, [this, run] { hooks().ended(hooks().controller, run); });
      });
    });
    hooks().begun(hooks().controller, run);
  }
  void acquire(int64_t run) {
    const char* const resources[] = {"lock of X", "X"};
    const LitmusFuzzEvent event{
        run, "add", 0, 0, "lock of X", resources, 2, false, LITMUSFUZZ_ACQUIRES, kLock, false};
    CHECK(hooks().stop(hooks().controller, &event));
    CHECK(!held_);
    held_ = true;
  }
  void release() {
    held_ = false;
    hooks().released(hooks().controller, kLock);
  }

  int contents_ = 0;
  bool held_ = false;
};

/// Two runs of two ops each: a write of one variable, then a read of the other. Each run
/// holds a mutex all the while, or none; the reads come back from another thread.
class StandIn final : public System {
 public:
  explicit StandIn(bool locks) : locks_(locks) {
    controller_.set_execution([this] { execute(); });
  }

  /// What the two reads have returned: 0 to 3.
  int outcome() const { return seen_[0] * 2 + seen_[1]; }
  bool over() const { return over_; }

 private:
  void begin(int64_t run) {
    CHECK(hooks().arrive(hooks().controller, run));
    post(run, [this, run] {
      if (!locks_) return write(run);
      decide(run, "lock", "M", false, LITMUSFUZZ_ACQUIRES, [this, run] { write(run); });
    });
    hooks().begun(hooks().controller, run);
  }
  void write(int64_t run) {
    decide(run, "write", run == 0 ? "X" : "Y", false, LITMUSFUZZ_NONE, [this, run] {
      contents_[run] = 1;
      post(run, [this, run] { read(run); });
    });
  }
  void read(int64_t run) {
    decide(run, "read", run == 0 ? "Y" : "X", true, LITMUSFUZZ_NONE, [this, run] {
      hooks().outside(hooks().controller, run, 1);
      others_.emplace_back([this, run] {
        seen_[run] = contents_[1 - run];
        post(run, [this, run] { done(run); });
        hooks().outside(hooks().controller, run, -1);
      });
    });
  }
  void done(int64_t run) {
    if (!locks_) return hooks().ended(hooks().controller, run);
    decide(run, "unlock", "M", false, LITMUSFUZZ_RELEASES,
           [this, run] { hooks().ended(hooks().controller, run); });
  }

  void execute() {
    contents_[0] = contents_[1] = 0;
    over_ = race([this](int64_t run) { begin(run); }) == Standing::kOver;
    for (auto& each : others_) each.join();
    others_.clear();
  }

  bool locks_;
  int contents_[2] = {};
  int seen_[2] = {};
  bool over_ = false;
  std::vector<std::thread> others_;
};

std::map<int, int> exhausted(StandIn& system) {
  std::map<int, int> seen;
  Exhaustive search;
  do {
    if (!system.controller().run(search)) continue;
    CHECK(system.over());
    ++seen[system.outcome()];
  } while (search.next());
  return seen;
}

void all_orders() {
  StandIn racing(false), locked(true);
  CHECK((exhausted(racing) == std::map<int, int>{{1, 1}, {2, 1}, {3, 1}}));
  CHECK((exhausted(locked) == std::map<int, int>{{1, 1}, {2, 1}}));
}

void all_orders_inside() {
  Increments system;
  std::map<int, int> seen;
  Exhaustive search;
  do {
    if (system.controller().run(search)) ++seen[system.contents()];
  } while (search.next());
  // One add after the other, or both read 0.
  CHECK(seen.size() == 2 && seen.contains(1) && seen.contains(2));
}

void all_schedulers() {
  for (const char* name : {"random", "pct", "pos", "urw", "surw"}) {
    StandIn system(false);
    const auto scheduler = make_scheduler(name, 3, system.controller(), 1);
    std::map<int, int> seen;
    for (int i = 0; i < 50; ++i) {
      CHECK(system.controller().run(*scheduler));
      ++seen[system.outcome()];
    }
    CHECK(!seen.contains(0));
    CHECK(seen.size() == 3);
  }
}

void forced() {
  StandIn system(false);
  Controller& controller = system.controller();
  Exhaustive first;
  CHECK(controller.run(first));
  std::vector<uint64_t> order;
  for (const Chosen& each : controller.chosen()) order.push_back(each.id);
  const int outcome = system.outcome();
  Forced again(order);
  CHECK(controller.run(again) && again.made() == 4 && system.outcome() == outcome);
  std::swap(order.front(), order.back());  // a read before its write
  Forced impossible(order);
  CHECK(!controller.run(impossible) && impossible.made() == 0);
  CHECK(controller.left_at().size() == 2);
  CHECK(system.over());  // the execution goes on without the order
}

}  // namespace
}  // namespace litmusfuzz::control

int main() {
  litmusfuzz::control::all_orders();
  litmusfuzz::control::all_orders_inside();
  litmusfuzz::control::all_schedulers();
  litmusfuzz::control::forced();
}
