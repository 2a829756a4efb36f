#include "engines/gang.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "engines/monitor.h"
#include "engines/stint.h"

namespace litmusfuzz::engines {
namespace {

class GangRun;

/// The threads of a gang leave it together, as far as there are cores for them.
class Start {
 public:
  explicit Start(size_t threads) : missing_(static_cast<uint32_t>(threads)) {}

  void arrive() {
    // Relaxed: a start orders nothing, it is there for the time that it takes.
    if (missing_.fetch_sub(1, std::memory_order_relaxed) == 1) {
      moment_.store((Clock::now() + kNotice).time_since_epoch().count(), std::memory_order_relaxed);
      moment_.notify_all();
    }
    const auto end = Clock::now() + kSpin;
    while (moment_.load(std::memory_order_relaxed) == 0) {
      if (Clock::now() > end) moment_.wait(0, std::memory_order_relaxed);
    }
    // By the clock: whoever is last would be some hundred cycles ahead of those
    // that must first hear of it, in each run, and they would never catch up.
    const Clock::duration moment(moment_.load(std::memory_order_relaxed));
    while (Clock::now().time_since_epoch() < moment) {
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::nanoseconds kNotice{500};
  static constexpr std::chrono::microseconds kSpin{50};  // then it blocks

  std::atomic<uint32_t> missing_;
  std::atomic<Clock::rep> moment_{0};
};

/// What one thread is going to do for one run.
struct Hand {
  GangRun* run = nullptr;
  std::shared_ptr<Start> start;  // none where the run has started before
  std::vector<Closure> closures;  // the first one last
};

/// All is guarded by one lock, which a thread takes when it has run all that it has.
class Gang final : public Engine {
 public:
  explicit Gang(EngineOptions options);
  ~Gang() override;
  std::unique_ptr<RunState> start_run(uint64_t) override;

 private:
  friend class GangRun;
  using Lock = Monitor::Lock;

  void work();
  /// Deals the closures of all runs that have not started over the threads that
  /// are idle now; the first hand, of `run`, is the caller's.
  Hand deal(GangRun& run);
  /// Runs what is in the hand and all that this leads to on this thread. Its place
  /// among those that work is the caller's matter.
  void play(Hand hand, Lock& lock);

  const uint32_t limit_;
  Monitor monitor_;
  uint32_t working_ = 0;  // threads that have a hand, or are about to take one
  uint32_t idle_;         // threads of ours that are not: as many as there are in
                   // `work` and not in `play`, less one for each hand dealt
  std::vector<Hand> dealt_;  // to threads of ours that have not come for them yet
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
    if (Stint* const here = Stint::of(*this)) return here->mine.push_back(closure);
    const auto lock = gang_.monitor_.enter();
    roots_.push_back(closure);
    gang_.monitor_.wake_all();
  }

  void wait() override {
    auto lock = gang_.monitor_.enter();
    const bool nested = Stint::inside(gang_);
    while (!roots_.empty() || hands_) {
      if (roots_.empty() || (!nested && gang_.working_ == gang_.limit_)) {
        gang_.monitor_.sleep(lock);
        continue;
      }
      gang_.working_ += !nested;
      gang_.play(started_ ? take() : gang_.deal(*this), lock);
      gang_.working_ -= !nested;
      gang_.monitor_.wake_all();
    }
    started_ = false;
    ending_.rethrow();
  }

  void cancel() override { ending_.cancel(); }

 private:
  friend class Gang;

  /// One more hand, of all that there is.
  Hand take() {
    ++hands_;
    started_ = true;
    Hand hand{this, nullptr, std::exchange(roots_, {})};
    std::reverse(hand.closures.begin(), hand.closures.end());
    return hand;
  }

  Gang& gang_;
  Ending ending_;
  // All guarded by the gang's lock.
  std::vector<Closure> roots_;  // that no closure of this run scheduled
  size_t hands_ = 0;  // that are not played to their end
  bool started_ = false;  // what comes later needs no common start
};

Gang::Gang(EngineOptions options) : limit_(std::max(1u, options.threads)), idle_(limit_ - 1) {
  // The thread that waits is one of them.
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
    Hand hand;
    if (!dealt_.empty()) {
      hand = std::move(dealt_.back());
      dealt_.pop_back();
    } else if (working_ < limit_) {
      // No hand waits for us, so that we are idle; a run that has started may have
      // been given more from outside.
      const auto late = std::find_if(runs_.begin(), runs_.end(), [](const GangRun* each) {
        return each->started_ && !each->roots_.empty();
      });
      if (late != runs_.end()) {
        --idle_;
        ++working_;
        hand = (*late)->take();
      }
    }
    if (!hand.run) {
      monitor_.sleep(lock);
      continue;
    }
    play(std::move(hand), lock);
    ++idle_;
    --working_;
    monitor_.wake_all();
  }
}

Hand Gang::deal(GangRun& run) {
  std::vector<GangRun*> starting{&run};
  for (GangRun* const each : runs_) {
    if (each != &run && !each->started_ && !each->roots_.empty()) starting.push_back(each);
  }
  // In turn, so that runs side by side get threads before one run gets a second.
  std::vector<size_t> seats(starting.size());
  const size_t threads = size_t{1} + std::min(idle_, limit_ - working_);
  size_t taken = 0;
  for (bool more = true; more && taken < threads;) {
    more = false;
    for (size_t i = 0; i < starting.size() && taken < threads; ++i) {
      if (seats[i] == starting[i]->roots_.size()) continue;
      ++seats[i];
      ++taken;
      more = true;
    }
  }
  const auto start = std::make_shared<Start>(taken);
  std::vector<Hand> hands;
  for (size_t i = 0; i < starting.size() && seats[i]; ++i) {
    GangRun& each = *starting[i];
    const size_t first = hands.size();
    for (size_t seat = 0; seat < seats[i]; ++seat) {
      hands.push_back({&each, start, {}});
      // Room for what roots lead to: no allocation on the way, as a rule.
      hands.back().closures.reserve(64 + 2 * each.roots_.size());
    }
    for (size_t root = each.roots_.size(); root--;) {
      hands[first + root % seats[i]].closures.push_back(each.roots_[root]);
    }
    each.roots_.clear();
    each.hands_ += seats[i];
    each.started_ = true;
  }
  idle_ -= static_cast<uint32_t>(taken - 1);
  working_ += static_cast<uint32_t>(taken - 1);
  std::move(hands.begin() + 1, hands.end(), std::back_inserter(dealt_));
  monitor_.wake_all();
  return std::move(hands.front());
}

void Gang::play(Hand hand, Lock& lock) {
  GangRun& run = *hand.run;
  lock.unlock();
  if (hand.start) hand.start->arrive();
  {
    Stint stint(*this, run);
    stint.mine = std::move(hand.closures);
    while (!stint.mine.empty()) {
      const Closure next = stint.mine.back();
      stint.mine.pop_back();
      run.ending_.run(next);
    }
  }
  lock.lock();
  if (--run.hands_ == 0) monitor_.wake_all();
}

}  // namespace

std::unique_ptr<Engine> make_gang(EngineOptions options) { return std::make_unique<Gang>(options); }

}  // namespace litmusfuzz::engines
