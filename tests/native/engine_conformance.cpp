// Conformance test of engines (litmusfuzz/engine.h): a library for engines made by Python,
// and a program whose arguments are an engine's name and its threads.
#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "litmusfuzz/engine.h"

using litmusfuzz::Engine;
using litmusfuzz::RunState;
using litmusfuzz::Work;

namespace {

/// Closures that count executions, and how many run at the same time.
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
struct Tree final : Work {
  Meter* meter;
  RunState* state = nullptr;
  std::vector<std::atomic<uint32_t>> times;

  Tree(Meter& its_meter, uint32_t depth) : meter(&its_meter), times(size_t{1} << depth) {}

  void perform(uint64_t number) override {
    meter->enter();
    times[number].fetch_add(1);
    // Lets other threads in. Few times: beside busy processes, each may take 30 ms.
    if (number % 64 == 0) std::this_thread::yield();
    for (const uint64_t child : {2 * number, 2 * number + 1}) {
      if (child < times.size()) state->schedule({this, child});
    }
    meter->leave();
  }

  void run(Engine& engine, uint64_t seed) {
    const auto mine = engine.start_run(seed);
    state = mine.get();
    state->schedule({this, 1});
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

/// A closure that waits for another run.
struct Nested final : Work {
  explicit Nested(Engine& its_engine) : engine(&its_engine) {}

  Engine* engine;
  Meter meter = {};
  std::atomic<uint32_t> done{0};

  void perform(uint64_t depth) override {
    meter.enter();
    if (depth > 0) {
      const auto inner = engine->start_run(depth);
      for (int i = 0; i < 2; ++i) inner->schedule({this, depth - 1});
      meter.leave();
      inner->wait();
      meter.enter();
    }
    done.fetch_add(1);
    meter.leave();
  }
};

void nested_runs_do_not_deadlock(Engine& engine, uint32_t limit) {
  Nested nested(engine);
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c) {
    clients.emplace_back([&] {
      const auto outer = engine.start_run(0);
      outer->schedule({&nested, 5});
      outer->wait();
    });
  }
  for (std::thread& each : clients) each.join();
  CHECK(nested.done == 3 * 63);
  CHECK(nested.meter.most <= limit);
}

/// A thread that waits for one run must not run a closure of another.
void a_waiting_thread_runs_only_its_own_runs_closures(Engine& engine) {
  struct Mine final : Work {
    std::thread::id other;
    std::atomic<uint32_t> wrong{0};

    void perform(uint64_t number) override {
      if (number % 32 == 0) std::this_thread::yield();
      if (std::this_thread::get_id() == other) wrong.fetch_add(1);
    }
  } first, second;
  std::latch ready(2), over(2);
  const auto client = [&](Mine& mine, Mine& theirs) {
    theirs.other = std::this_thread::get_id();
    ready.arrive_and_wait();
    const auto run = engine.start_run(0);
    for (uint64_t i = 0; i < 500; ++i) run->schedule({&mine, i});
    run->wait();
    over.arrive_and_wait();  // keeps both threads alive, so that their numbers differ
  };
  std::thread one([&] { client(first, second); });
  std::thread two([&] { client(second, first); });
  one.join();
  two.join();
  CHECK(first.wrong == 0);
  CHECK(second.wrong == 0);
}

/// Closures of one run schedule into another, whose waiting thread must run them.
void a_run_may_schedule_into_another(Engine& engine) {
  struct Pair final : Work {
    std::unique_ptr<RunState> states[2];
    std::atomic<uint32_t> done{0};

    void perform(uint64_t left) override {
      done.fetch_add(1);
      if (left) states[left % 2]->schedule({this, left - 1});
    }
  } pair;
  for (auto& each : pair.states) each = engine.start_run(1);
  pair.states[0]->schedule({&pair, 1000});
  while (pair.done < 1001) {
    for (auto& each : pair.states) each->wait();
  }
  for (auto& each : pair.states) each->wait();
}

/// A closure that schedules a hundred others, and then cancels their run.
struct Ended final : Work {
  enum : uint64_t { kCounts, kCancels, kThrows };  // plus a number

  explicit Ended(RunState& its_state) : state(&its_state) {}

  RunState* state;
  std::atomic<uint32_t> done{0};

  void perform(uint64_t part) override {
    if (part == kCounts) {
      done.fetch_add(1);
      return;
    }
    for (uint64_t i = 0; i < 100; ++i) state->schedule({this, kCounts});
    if (part >= kThrows) throw std::runtime_error("number " + std::to_string(part - kThrows));
    state->cancel();
  }
};

/// Message of the exception that `wait` throws; empty if none.
std::string thrown_by(RunState& run) {
  try {
    run.wait();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

void what_a_closure_throws_ends_its_run(Engine& engine, uint32_t limit) {
  const auto run = engine.start_run(0);
  Ended ended(*run);
  run->schedule({&ended, Ended::kThrows + 7});
  CHECK(thrown_by(*run) == "number 7");
  const uint32_t done = ended.done;
  CHECK(limit > 1 || done == 0);  // with one thread none has started
  run->schedule({&ended, Ended::kCounts});
  CHECK(thrown_by(*run) == "number 7");
  CHECK(ended.done == done);
  // One of several exceptions arrives, and none in another run.
  const auto second = engine.start_run(0), third = engine.start_run(0);
  Ended many(*second);
  for (uint64_t i = 0; i < 4; ++i) second->schedule({&many, Ended::kThrows + i});
  Ended other(*third);
  for (uint64_t i = 0; i < 50; ++i) third->schedule({&other, Ended::kCounts});
  CHECK(thrown_by(*third).empty());
  CHECK(other.done == 50);
  CHECK(thrown_by(*second).starts_with("number "));
}

void a_cancelled_run_ends(Engine& engine, uint32_t limit) {
  {
    const auto run = engine.start_run(0);
    Ended ended(*run);
    run->schedule({&ended, Ended::kCancels});
    run->wait();
    const uint32_t done = ended.done;
    CHECK(limit > 1 || done == 0);
    run->schedule({&ended, Ended::kCounts});
    run->wait();
    CHECK(ended.done == done);
  }
  // Cancelled from outside: a run that would never end.
  struct Endless final : Work {
    explicit Endless(RunState& its_state) : state(&its_state) {}

    RunState* state;
    std::atomic<bool> begun{false};

    void perform(uint64_t number) override {
      if (!begun.exchange(true)) begun.notify_one();
      state->schedule({this, number});
    }
  };
  const auto run = engine.start_run(0);
  Endless endless(*run);
  for (uint64_t i = 0; i < 8; ++i) run->schedule({&endless, i});
  std::thread other([&] {
    endless.begun.wait(false);
    run->cancel();
  });
  run->wait();
  other.join();
}

/// The innermost of several nested runs throws; each enclosing `wait` rethrows.
void what_is_thrown_goes_through_nested_runs(Engine& engine, uint32_t limit) {
  struct Deep final : Work {
    explicit Deep(Engine& its_engine) : engine(&its_engine) {}

    Engine* engine;

    void perform(uint64_t depth) override {
      if (depth == 0) throw std::runtime_error("innermost");
      const auto inner = engine->start_run(depth);
      for (int i = 0; i < 2; ++i) inner->schedule({this, depth - 1});
      inner->wait();
    }
  } deep(engine);
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c) {
    clients.emplace_back([&] {
      const auto outer = engine.start_run(0);
      outer->schedule({&deep, 4});
      CHECK(thrown_by(*outer) == "innermost");
    });
  }
  for (std::thread& each : clients) each.join();
  // All threads are free again.
  Meter meter;
  Tree(meter, 8).run(engine, 0);
  CHECK(meter.most <= limit);
}

/// For `gang` only: root closures run at the same time, and closures that they schedule stay
/// on their thread.
void a_gang_starts_together_and_keeps_its_chains(Engine& engine, uint32_t threads) {
  struct Chain final : Work {
    Chain(RunState& its_state, std::latch& all_of_them) : state(&its_state), all(&all_of_them) {}

    RunState* state;
    std::latch* all;
    std::thread::id mine = {};
    uint32_t wrong = 0, done = 0;

    void perform(uint64_t left) override {
      ++done;
      if (mine == std::thread::id{}) {
        mine = std::this_thread::get_id();
        all->arrive_and_wait();
      }
      wrong += mine != std::this_thread::get_id();
      if (left) state->schedule({this, left - 1});
    }
  };
  const auto run = engine.start_run(0);
  std::latch all(threads);
  std::vector<Chain> chains(threads, Chain(*run, all));
  for (Chain& each : chains) run->schedule({&each, 100});
  run->wait();
  for (const Chain& each : chains) {
    CHECK(each.done == 101);
    CHECK(each.wrong == 0);
  }
}

void conform(Engine& engine, uint32_t threads) {
  an_empty_run_ends(engine);
  each_closure_runs_once_and_the_limit_holds(engine, threads);
  nested_runs_do_not_deadlock(engine, threads);
  a_waiting_thread_runs_only_its_own_runs_closures(engine);
  a_run_may_schedule_into_another(engine);
  what_a_closure_throws_ends_its_run(engine, threads);
  a_cancelled_run_ends(engine, threads);
  what_is_thrown_goes_through_nested_runs(engine, threads);
}

}  // namespace

extern "C" void litmusfuzz_conform(Engine* engine, uint32_t threads, bool gang) {
  conform(*engine, threads);
  if (gang) a_gang_starts_together_and_keeps_its_chains(*engine, threads);
}

#ifndef LITMUSFUZZ_LIBRARY
#include "engines/table.h"

int main(int count, char** arguments) {
  CHECK(count == 3);
  const std::string name = arguments[1];
  const auto threads = static_cast<uint32_t>(std::stoul(arguments[2]));
  for (int again = 0; again < 3; ++again) {
    const auto engine = litmusfuzz::engines::make(name, {.threads = threads});
    litmusfuzz_conform(engine.get(), threads, name == "gang");
  }
  std::puts("ok");
}
#endif
