// What every engine must do (litmusfuzz/engine.h). Arguments: its name, threads.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "engines/table.h"

using litmusfuzz::Closure;
using litmusfuzz::Engine;
using litmusfuzz::RunState;

namespace {

/// Closures that count, and know how many of them run at this moment.
struct Meter {
  std::atomic<uint32_t> running{0}, most{0};

  void enter() {
    const uint32_t now = running.fetch_add(1) + 1;
    for (uint32_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
  }
  void leave() { running.fetch_sub(1); }
};

/// A run of closures that schedule others: a tree of them, `depth` high.
struct Tree {
  Meter* meter;
  RunState* state = nullptr;
  std::vector<std::atomic<uint32_t>> times;

  Tree(Meter& its_meter, uint32_t depth) : meter(&its_meter), times(size_t{1} << depth) {}

  static void visit(void* object, uint64_t number) {
    Tree& tree = *static_cast<Tree*>(object);
    tree.meter->enter();
    tree.times[number].fetch_add(1);
    for (const uint64_t child : {2 * number, 2 * number + 1}) {
      if (child < tree.times.size()) tree.state->schedule({&visit, &tree, child});
    }
    tree.meter->leave();
  }

  void run(Engine& engine, uint64_t seed) {
    const auto mine = engine.start_run(seed);
    state = mine.get();
    state->schedule({&visit, this, 1});
    state->wait();
    for (size_t i = 1; i < times.size(); ++i) CHECK(times[i].load() == 1);
  }
};

void each_closure_runs_once_and_the_limit_holds(Engine& engine, uint32_t limit) {
  Meter meter;
  std::vector<std::thread> clients;
  for (uint64_t c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (uint64_t i = 0; i < 20; ++i) Tree(meter, 8).run(engine, 100 * c + i);
    });
  }
  for (std::thread& each : clients) each.join();
  CHECK(meter.most <= limit);
}

void an_empty_run_ends(Engine& engine) {
  engine.start_run(0)->wait();
  const auto idle = engine.start_run(0);
}

/// A closure that waits for a run of its own, which holds its thread.
struct Nested {
  Engine* engine;
  std::atomic<uint32_t> done{0};

  static void visit(void* object, uint64_t depth) {
    Nested& self = *static_cast<Nested*>(object);
    if (depth > 0) {
      const auto inner = self.engine->start_run(depth);
      for (int i = 0; i < 2; ++i) inner->schedule({&visit, object, depth - 1});
      inner->wait();
    }
    self.done.fetch_add(1);
  }
};

void nested_runs_do_not_deadlock(Engine& engine) {
  Nested nested{.engine = &engine};
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c) {
    clients.emplace_back([&] {
      const auto outer = engine.start_run(0);
      outer->schedule({&Nested::visit, &nested, 5});
      outer->wait();
    });
  }
  for (std::thread& each : clients) each.join();
  CHECK(nested.done == 3 * 63);
}

/// A thread that waits for one run must not be caught in a closure of another.
void a_waiting_thread_runs_only_its_own_runs_closures(Engine& engine) {
  struct Mine {
    std::thread::id other;
    std::atomic<uint32_t> wrong{0};
  } first, second;
  const auto look = [](void* object, uint64_t) {
    Mine& mine = *static_cast<Mine*>(object);
    std::this_thread::yield();
    if (std::this_thread::get_id() == mine.other) mine.wrong.fetch_add(1);
  };
  std::atomic<int> ready{0};
  const auto client = [&](Mine& mine, Mine& theirs) {
    theirs.other = std::this_thread::get_id();
    ready.fetch_add(1);
    while (ready < 2) std::this_thread::yield();
    const auto run = engine.start_run(0);
    for (uint64_t i = 0; i < 500; ++i) run->schedule({look, &mine, i});
    run->wait();
  };
  std::thread one([&] { client(first, second); });
  std::thread two([&] { client(second, first); });
  one.join();
  two.join();
  CHECK(first.wrong == 0);
  CHECK(second.wrong == 0);
}

/// Closures of one run schedule into another, whose waiter must come round again.
void a_run_may_schedule_into_another(Engine& engine) {
  struct Pair {
    std::unique_ptr<RunState> states[2];
    std::atomic<uint32_t> done{0};

    static void bounce(void* object, uint64_t left) {
      Pair& pair = *static_cast<Pair*>(object);
      pair.done.fetch_add(1);
      if (left) pair.states[left % 2]->schedule({&bounce, object, left - 1});
    }
  } pair;
  for (auto& each : pair.states) each = engine.start_run(1);
  pair.states[0]->schedule({&Pair::bounce, &pair, 1000});
  while (pair.done < 1001) {
    for (auto& each : pair.states) each->wait();
  }
  for (auto& each : pair.states) each->wait();
}

}  // namespace

int main(int count, char** arguments) {
  CHECK(count == 3);
  const auto threads = static_cast<uint32_t>(std::stoul(arguments[2]));
  for (int again = 0; again < 3; ++again) {
    const auto engine = litmusfuzz::engines::make(arguments[1], {.threads = threads});
    an_empty_run_ends(*engine);
    each_closure_runs_once_and_the_limit_holds(*engine, threads);
    nested_runs_do_not_deadlock(*engine);
    a_waiting_thread_runs_only_its_own_runs_closures(*engine);
    a_run_may_schedule_into_another(*engine);
  }
  std::puts("ok");
}
