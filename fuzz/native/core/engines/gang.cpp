#include "engines/gang.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "engines/monitor.h"
#include "engines/work_scope.h"

namespace litmusfuzz::engines {
namespace {

class GangRun;

/// Barrier that releases all threads at the same time, as far as there are cores.
class StartBarrier {
 public:
  explicit StartBarrier(size_t threads) : missing_(static_cast<uint32_t>(threads)) {}

  void arrive() {
    // Relaxed: the barrier synchronizes time, not memory.
    if (missing_.fetch_sub(1, std::memory_order_relaxed) == 1) {
      moment_.store((Clock::now() + kNotice).time_since_epoch().count(), std::memory_order_relaxed);
      moment_.notify_all();
    }
    const auto end = Clock::now() + kSpin;
    while (moment_.load(std::memory_order_relaxed) == 0) {
      if (Clock::now() > end) moment_.wait(0, std::memory_order_relaxed);
    }
    // The threads start by the clock: the last to arrive would otherwise lead by some
    // hundred cycles in each run, the latency of a notification.
    const Clock::duration moment(moment_.load(std::memory_order_relaxed));
    while (Clock::now().time_since_epoch() < moment) {
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::nanoseconds kNotice{500};
  static constexpr std::chrono::microseconds kSpin{50};  // afterwards it blocks

  std::atomic<uint32_t> missing_;
  std::atomic<Clock::rep> moment_{0};
};

/// Closures of one run, assigned to one thread.
struct Assignment {
  GangRun* run = nullptr;
  std::shared_ptr<StartBarrier> barrier;  // null if the run has started before
  std::vector<Closure> closures;  // in reverse order
};

/// One lock guards everything; a thread takes it when its assignment is done.
class Gang final : public Engine {
 public:
  explicit Gang(EngineOptions options);
  ~Gang() override;
  std::unique_ptr<RunState> start_run(uint64_t) override;

 private:
  friend class GangRun;
  using Lock = Monitor::Lock;

  void work();
  /// Assigns the closures of all runs that have not started to the idle threads; returns
  /// the caller's assignment, which is of `run`.
  Assignment assign(GangRun& run);
  /// Runs the closures of the assignment, and all that they schedule, on this thread. The
  /// caller counts the thread as working.
  void execute(Assignment assignment, Lock& lock);

  const uint32_t limit_;
  Monitor monitor_;
  uint32_t working_ = 0;  // threads with an assignment, or about to take one
  uint32_t idle_;         // threads of ours that are not: as many as there are in
                   // `work` and not in `execute`, less one for each in `assigned_`
  std::vector<Assignment> assigned_;  // not yet fetched by their threads
  std::vector<GangRun*> runs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

class GangRun final : public RunState {
 public:
  explicit GangRun(Gang& gang) : gang_(gang) {}
  ~GangRun() override {
    const auto lock = gang_.monitor_.enter();
    std::erase(gang_.runs_, this);
  }

  void schedule(Closure closure) override {
    if (WorkScope* const here = WorkScope::of(*this)) return here->local.push_back(closure);
    const auto lock = gang_.monitor_.enter();
    roots_.push_back(closure);
    gang_.monitor_.wake_all();
  }

  void wait() override {
    auto lock = gang_.monitor_.enter();
    const bool nested = WorkScope::inside(gang_);
    while (!roots_.empty() || assignments_) {
      if (roots_.empty() || (!nested && gang_.working_ == gang_.limit_)) {
        gang_.monitor_.sleep(lock);
        continue;
      }
      gang_.working_ += !nested;
      gang_.execute(started_ ? take() : gang_.assign(*this), lock);
      gang_.working_ -= !nested;
      gang_.monitor_.wake_all();
    }
    started_ = false;
    ending_.rethrow();
  }

  void cancel() override { ending_.cancel(); }

 private:
  friend class Gang;

  /// Takes all root closures as one more assignment.
  Assignment take() {
    ++assignments_;
    started_ = true;
    Assignment assignment{this, nullptr, std::exchange(roots_, {})};
    std::reverse(assignment.closures.begin(), assignment.closures.end());
    return assignment;
  }

  Gang& gang_;
  Ending ending_;
  // Guarded by the gang's lock.
  std::vector<Closure> roots_;  // scheduled from outside this run
  size_t assignments_ = 0;  // assignments in progress
  bool started_ = false;  // later closures need no common start
};

Gang::Gang(EngineOptions options) : limit_(std::max(1u, options.threads)), idle_(limit_ - 1) {
  // The waiting thread is one of them.
  for (uint32_t i = 1; i < limit_; ++i) threads_.emplace_back([this] { work(); });
}

Gang::~Gang() {
  {
    const auto lock = monitor_.enter();
    stopping_ = true;
    monitor_.wake_all();
  }
  for (std::thread& each : threads_) each.join();
}

std::unique_ptr<RunState> Gang::start_run(uint64_t) {
  auto run = std::make_unique<GangRun>(*this);
  const auto lock = monitor_.enter();
  runs_.push_back(run.get());
  return run;
}

void Gang::work() {
  auto lock = monitor_.enter();
  while (!stopping_) {
    Assignment assignment;
    if (!assigned_.empty()) {
      assignment = std::move(assigned_.back());
      assigned_.pop_back();
    } else if (working_ < limit_) {
      // A run that has started may have got more closures from outside.
      const auto late = std::find_if(runs_.begin(), runs_.end(), [](const GangRun* each) {
        return each->started_ && !each->roots_.empty();
      });
      if (late != runs_.end()) {
        --idle_;
        ++working_;
        assignment = (*late)->take();
      }
    }
    if (!assignment.run) {
      monitor_.sleep(lock);
      continue;
    }
    execute(std::move(assignment), lock);
    ++idle_;
    --working_;
    monitor_.wake_all();
  }
}

Assignment Gang::assign(GangRun& run) {
  std::vector<GangRun*> starting{&run};
  for (GangRun* const each : runs_) {
    if (each != &run && !each->started_ && !each->roots_.empty()) starting.push_back(each);
  }
  // Round-robin, so that each run gets a thread before any gets a second one.
  std::vector<size_t> shares(starting.size());
  const size_t threads = size_t{1} + std::min(idle_, limit_ - working_);
  size_t taken = 0;
  for (bool more = true; more && taken < threads;) {
    more = false;
    for (size_t i = 0; i < starting.size() && taken < threads; ++i) {
      if (shares[i] == starting[i]->roots_.size()) continue;
      ++shares[i];
      ++taken;
      more = true;
    }
  }
  const auto barrier = std::make_shared<StartBarrier>(taken);
  std::vector<Assignment> assignments;
  for (size_t i = 0; i < starting.size() && shares[i]; ++i) {
    GangRun& each = *starting[i];
    const size_t first = assignments.size();
    for (size_t share = 0; share < shares[i]; ++share) {
      assignments.push_back({&each, barrier, {}});
      // Capacity for scheduled closures, to avoid allocations during the run.
      assignments.back().closures.reserve(64 + 2 * each.roots_.size());
    }
    for (size_t root = each.roots_.size(); root--;) {
      assignments[first + root % shares[i]].closures.push_back(each.roots_[root]);
    }
    each.roots_.clear();
    each.assignments_ += shares[i];
    each.started_ = true;
  }
  idle_ -= static_cast<uint32_t>(taken - 1);
  working_ += static_cast<uint32_t>(taken - 1);
  std::move(assignments.begin() + 1, assignments.end(), std::back_inserter(assigned_));
  monitor_.wake_all();
  return std::move(assignments.front());
}

void Gang::execute(Assignment assignment, Lock& lock) {
  GangRun& run = *assignment.run;
  lock.unlock();
  if (assignment.barrier) assignment.barrier->arrive();
  {
    WorkScope scope(*this, run);
    scope.local = std::move(assignment.closures);
    while (!scope.local.empty()) {
      const Closure next = scope.local.back();
      scope.local.pop_back();
      run.ending_.run(next);
    }
  }
  lock.lock();
  if (--run.assignments_ == 0) monitor_.wake_all();
}

}  // namespace

std::unique_ptr<Engine> make_gang(EngineOptions options) { return std::make_unique<Gang>(options); }

}  // namespace litmusfuzz::engines
