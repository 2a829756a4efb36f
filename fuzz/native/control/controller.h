// Schedules another runtime's runs: one event at a time, in the order of a scheduler.
//
// The runtime hands over its closures and its events (hooks.h). Closures decide nothing: all of
// them are called before the next choice. An event waits until the scheduler chooses it. All
// that happens is called by the thread that called `proceed`, one thing after the other, so
// that an execution is a function of its choices. Where an event has others inside (a lock in a
// kernel), it is performed on a stack of its own, on which it waits for the next one. So is a part
// of an op that the op has handed to a pool of threads: it is a task of its own, which begins while
// one of the pool's threads is free. The op waits for its parts in the scheduler, too.
//
// No clock says that a run is blocked: it is when nothing is left to be called or chosen.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "../core/scheduling.h"
#include "fiber.h"
#include "hooks.h"

namespace litmusfuzz::control {

using executor::Choices;
using executor::Runtime;
using executor::Scheduler;
using executor::Step;
using executor::Ticket;

/// Where an execution stands when `proceed` returns.
enum class Standing : uint8_t {
  kOver,  // all runs that have begun have ended
  kBlocked,  // a run has not ended, and nothing can go on
  kEnded,  // a run has ended, and others may begin now
};

/// One chosen event of an execution.
struct Chosen {
  uint64_t id;
  uint32_t enabled;  // number of events that were
};

class Controller final : public Runtime {
 public:
  Controller();

  const LitmusFuzzHooks* hooks() const { return &hooks_; }
  /// Only events on these resources are chosen; if there are none, all events are.
  void watch(const std::vector<std::string>& resources);

  /// What starts and ends one execution: it calls `begin`, `expect`, `wait_for`, `proceed`, `end`.
  void set_execution(std::function<void()> execute) { execute_ = std::move(execute); }

  /// True if events stop inside, for which each needs a stack. Ops may then have parts, of which so
  /// many are done at the same time.
  void set_inside(bool inside, uint32_t threads) {
    inside_ = inside;
    busy_.assign(threads, false);
  }

  // --- an execution -----------------------------------------------------------------------

  bool run(Scheduler& scheduler) override;
  Step step(Ticket ticket) const override;
  uint64_t fingerprint(Ticket ticket) const override;

  /// Runs that begin now are controlled.
  void begin();
  /// Makes all choices in the thread in which the last of so many executors begins; `proceed`
  /// need not be called. Only of runs that cannot be blocked: that thread waits for their end.
  void proceed_when_begun(uint32_t executors);
  /// The next run to begin has this number, by which its events are named.
  void expect(uint32_t run);
  /// Waits until so many executors, those of all runs together, have begun; or until that run has
  /// returned.
  void wait_for(uint32_t executors);
  /// A run has returned, perhaps without an executor of its own.
  void returned(uint32_t run);
  /// Makes choices until the execution is over; with `stop`, until a run ends. Once an op has
  /// failed, or the scheduler has abandoned the execution, any choice does.
  Standing proceed(bool stop);
  /// Lets go what is left: nothing is controlled until the next `begin`. Throws what a scheduler
  /// has thrown in a thread of the runtime's.
  void end();

  // --- what has happened ------------------------------------------------------------------

  const std::vector<Chosen>& chosen() const { return chosen_; }
  /// Numbers of the runs that have ended.
  const std::vector<uint32_t>& ended() const { return ended_; }
  bool failed() const { return failed_; }
  bool abandoned() const { return abandoned_; }
  /// Names of the events that were enabled where the scheduler abandoned the execution.
  const std::vector<std::string>& left_at() const { return where_; }
  const std::string& name(uint64_t id) const { return names_.at(id); }
  /// The number of an event with that name, which may not have happened yet.
  uint64_t number(const std::string& name);
  /// Names of the resources that an event has touched; and whether it only reads them.
  std::vector<std::string> touched(uint64_t id) const;
  bool reads_only(uint64_t id) const { return events_.at(id).reads_only; }

 private:
  struct Known {  // an event of some execution
    const std::vector<uint32_t>* resources = nullptr;  // one of `sets_`
    uint64_t task = 0;  // the number of its op instance's name
    bool reads_only = false;
    bool acquires = false;
  };
  struct Called {
    LitmusFuzzCall call = nullptr;
    void* data = nullptr;
  };
  struct Stack;
  struct Task;
  struct Waiting {
    uint64_t id;
    Called called;
    Stack* stopped = nullptr;  // what waits at the event, if it is inside another one
    LitmusFuzzEffect effect = LITMUSFUZZ_NONE;
    uint64_t mutex = 0;
    bool shared = false;
    std::shared_ptr<Task> part;  // that begins, if one does
  };
  /// An op that is performed, or a part of one.
  struct Task {
    std::shared_ptr<Task> of;  // what has begun the part; null for an op
    size_t thread = 0;  // that does the part
    uint32_t parts = 0;  // of it and of its parts, that have not ended
    std::optional<Waiting> joins;  // its event, while it waits for them
  };
  struct Stack {
    Fiber fiber;
    std::shared_ptr<Task> task;
  };
  static thread_local Stack* current;  // that this thread computes on
  struct Execution {  // a run, by the number of its step in the runtime
    int64_t step_id;
    uint32_t number;
    uint32_t executors = 0;
  };

  uint64_t arrive(int64_t step_id);
  void begun();
  void run_ended(int64_t step_id);
  bool post(int64_t step_id, Called called);
  bool decide(const LitmusFuzzEvent& event, Called called);
  bool stop(const LitmusFuzzEvent& event);
  bool acquire(int64_t step_id, uint64_t mutex, bool shared);
  void release(uint64_t mutex);
  bool share(const LitmusFuzzEvent& event, Called called);
  bool has_parts(int64_t step_id);
  bool join(const LitmusFuzzEvent& event);
  /// The event as it will be announced; nothing if it decides nothing. `of_part`: it begins a part
  /// of an op, or is inside one.
  std::optional<Waiting> read(uint32_t run, const LitmusFuzzEvent& event, bool of_part);
  /// Performs an event, or goes on with it, until it is over or stops again.
  void resume(const Waiting& event, std::unique_lock<std::mutex>& guard);
  /// A task has ended: perhaps nothing is left that an op waits for.
  void over(const Task& task);
  /// How many tasks it is within, itself included.
  static size_t depth(const Task* task);
  void outside(int64_t step_id, int change);
  void fail(int64_t step_id);

  std::vector<std::string> enabled() const;
  Execution* run_of(int64_t step_id);
  uint32_t resource(const std::string& name);
  bool possible(const Waiting& event) const;
  /// Calls closures until there are none, and none is outside.
  void settle(std::unique_lock<std::mutex>& guard);
  /// Announces the events that have become ready, and those that are enabled again.
  void announce();
  void perform(size_t place, std::unique_lock<std::mutex>& guard);
  void let_go(std::unique_lock<std::mutex>& guard);

  LitmusFuzzHooks hooks_;
  std::function<void()> execute_;
  Scheduler* scheduler_ = nullptr;

  // What is the same in all executions.
  std::unordered_map<std::string, uint64_t> numbers_;
  std::deque<std::string> names_;  // by number of the event
  std::vector<Known> events_;  // likewise
  std::set<std::vector<uint32_t>> sets_;  // sets of resources; steps refer to them
  std::unordered_map<std::string, uint32_t> resources_;
  std::vector<std::string> resource_names_;
  std::vector<bool> watched_;  // by resource; empty if all are

  // The current execution.
  uint64_t execution_ = 0;  // its number, from 1
  std::mutex lock_;
  std::string name_;  // of the event that is being read
  std::vector<uint32_t> touched_;  // by it
  std::condition_variable changed_;
  bool active_ = false;
  std::exception_ptr error_;
  bool failed_ = false;
  bool abandoned_ = false;
  bool news_ = false;  // a run has ended since `proceed` returned
  std::vector<uint32_t> ended_;  // numbers of the runs that have
  bool scheduled_ = false;  // the scheduler has not heard of the end yet
  int outside_ = 0;
  uint32_t arrived_ = 0;  // executors that have begun
  uint32_t expected_ = 0;  // number of the next run
  uint32_t awaited_ = 0;  // executors after which the last one proceeds; 0 if none does
  std::vector<uint32_t> returned_;
  std::vector<Execution> runs_;
  std::deque<Called> closures_;
  std::vector<Waiting> fresh_;  // events not yet announced
  std::vector<Waiting> waiting_;  // by ticket
  std::vector<Ticket> free_;
  std::vector<Ticket> contenders_;  // announced events that may be disabled
  /// By mutex: -1, or the number of those that share it.
  std::unordered_map<uint64_t, int> held_;
  bool inside_ = false;
  std::vector<std::unique_ptr<Stack>> stacks_;
  std::vector<Stack*> idle_;
  std::vector<bool> busy_;  // by thread for parts: it does one
  std::vector<uint32_t> times_;  // by event: how often it has come
  Choices choices_;
  std::vector<Chosen> chosen_;
  std::vector<std::string> where_;
};

}  // namespace litmusfuzz::control
