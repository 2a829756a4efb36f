// The controller under sanitizers, with a stand-in for TensorFlow's executor: threads of its
// own start the runs, some ops come back from other threads, and some never do.
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
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
using executor::Reduction;

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
    controller_.set_inside(true, 0);
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

/// A run of an op that reads a variable in parts, beside one that writes it twice. Where it is
/// `nested`, the first part has a part of its own, for which it waits.
class Sharing final : public System {
 public:
  Sharing(uint32_t threads, bool nested) : threads_(threads), nested_(nested) {
    controller_.set_inside(true, threads);
    controller_.set_execution([this] {
      contents_ = running_ = 0;
      seen_ = {};
      let_go_ = false;
      ended_ = 0;
      over_ = race([this](int64_t run) { begin(run); }) == Standing::kOver;
      CHECK(let_go_ != over_ && running_ == 0 && ended_ == 2);
    });
  }
  bool over() const { return over_; }
  /// What the op itself and its parts have seen.
  const std::vector<int>& seen() const { return seen_; }

 private:
  void begin(int64_t run) {
    CHECK(hooks().arrive(hooks().controller, run));
    post(run, [this, run] {
      decide(run, run == 0 ? "read" : "write", "X", run == 0, LITMUSFUZZ_NONE, [this, run] {
        if (run == 0) {
          read();
        } else {
          write();
        }
        ++ended_;
        post(run, [this, run] { hooks().ended(hooks().controller, run); });
      });
    });
    hooks().begun(hooks().controller, run);
  }
  void write() {
    contents_ = 1;
    CHECK(hooks().stop(hooks().controller, &event(1, "write", "between", false)));
    contents_ = 2;
  }
  void read() {
    CHECK(!hooks().has_parts(hooks().controller, 0));
    CHECK(!hooks().join(hooks().controller, &event(0, "read", "after parts", true)));
    CHECK(hooks().thread(hooks().controller) == -1);
    share("read/part 1", 1);
    share("read/part 2", 2);
    look(0);
    join("read");
  }
  void share(const char* node, size_t place) {
    auto* const made = new Function([this, node, place] {
      const int thread = hooks().thread(hooks().controller);
      ++running_;
      if (thread == -1) {
        let_go_ = true;
      } else {
        CHECK(thread < static_cast<int>(threads_) && running_ <= static_cast<int>(threads_));
      }
      if (nested_ && place == 1) share("read/part 1/part 1", 3);
      if (hooks().stop(hooks().controller, &event(0, node, "in between", true))) {
        CHECK(hooks().thread(hooks().controller) == thread);
      }
      look(place);
      if (nested_ && place == 1) join(node);
      --running_;
    });
    CHECK(hooks().share(hooks().controller, &event(0, node, "begin", true), call, made));
  }
  void look(size_t place) {
    if (seen_.size() <= place) seen_.resize(place + 1);
    seen_[place] = contents_;
  }
  void join(const char* node) {
    if (!hooks().has_parts(hooks().controller, 0)) return;  // they have ended
    CHECK(hooks().join(hooks().controller, &event(0, node, "after parts", true)));
    CHECK(!hooks().has_parts(hooks().controller, 0));
  }
  LitmusFuzzEvent& event(int64_t run, const char* node, const char* point, bool reads) {
    event_ = {run, node, 0, 0, point, &resource_, 1, reads, LITMUSFUZZ_NONE, 0, false};
    return event_;
  }

  const uint32_t threads_;
  const bool nested_;
  const char* const resource_ = "X";
  LitmusFuzzEvent event_ = {};
  int contents_ = 0, running_ = 0, ended_ = 0;
  std::vector<int> seen_;
  bool over_ = false, let_go_ = false;
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

/// What the parts of an op see in all schedules; with or without partial-order reduction.
std::set<std::vector<int>> seen_in_parts(uint32_t threads, bool nested, Reduction reduction,
                                         std::optional<uint32_t> preemptions = {}) {
  Sharing system(threads, nested);
  std::set<std::vector<int>> seen;
  Exhaustive search(preemptions, reduction);
  do {
    if (!system.controller().run(search)) continue;
    CHECK(system.over());
    seen.insert(system.seen());
  } while (search.next());
  return seen;
}

void all_orders_of_parts() {
  for (const bool nested : {false, true}) {
    for (const uint32_t threads : {1u, 2u, 3u}) {
      if (nested && threads == 1) continue;  // below
      const auto seen = seen_in_parts(threads, nested, Reduction::kRaces);
      CHECK(seen == seen_in_parts(threads, nested, Reduction::kNone));
      for (const uint32_t bound : {0u, 1u, 2u}) {
        CHECK(seen_in_parts(threads, nested, Reduction::kRaces, bound) ==
              seen_in_parts(threads, nested, Reduction::kNone, bound));
      }
      // A later part before an earlier one, and the other way round.
      const auto has = [&](int first, int second) {
        return std::any_of(seen.begin(), seen.end(), [&](const std::vector<int>& each) {
          return each[1] == first && each[2] == second;
        });
      };
      for (int first = 0; first <= 2; ++first) {
        for (int second = 0; second <= 2; ++second) CHECK(has(first, second));
      }
    }
  }
}

/// A part that waits for its own part has the only thread.
void blocked_parts() {
  Sharing system(1, true);
  Exhaustive search;
  size_t blocked = 0;
  do {
    if (system.controller().run(search)) blocked += !system.over();
  } while (search.next());
  CHECK(blocked > 0);
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
  litmusfuzz::control::all_orders_of_parts();
  litmusfuzz::control::blocked_parts();
  litmusfuzz::control::all_schedulers();
  litmusfuzz::control::forced();
}
