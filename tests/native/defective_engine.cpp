// An engine of two threads beside those that wait, with one defect: LITMUSFUZZ_DEFECT names it.
#include <litmusfuzz/engine.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using litmusfuzz::Closure;
using litmusfuzz::EngineOptions;

class Run;

class Defective final : public litmusfuzz::Engine {
 public:
  explicit Defective(EngineOptions options)
      : defect_(std::getenv("LITMUSFUZZ_DEFECT")), limit_(options.threads) {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Defective() override {
    {
      const std::lock_guard guard(lock_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& each : threads_) each.join();
  }
  std::unique_ptr<litmusfuzz::RunState> start_run(uint64_t) override;

 private:
  friend class Run;
  struct Ready {
    Run* run;
    Closure closure;
  };

  bool is(const char* defect) const { return defect_ == defect; }
  /// "exceeds": no thread heeds the limit.
  bool may_work() const { return working_ < limit_ || is("exceeds"); }
  void work();
  void perform(std::deque<Ready>::iterator which, std::unique_lock<std::mutex>& lock);

  const std::string defect_;
  const uint32_t limit_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Ready> ready_;
  uint32_t working_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

class Run final : public litmusfuzz::RunState {
 public:
  explicit Run(Defective& engine) : engine_(engine) {}

  void schedule(Closure closure) override {
    bool refuses = false;
    {
      const std::lock_guard guard(engine_.lock_);
      engine_.ready_.push_back({this, closure});
      ++outstanding_;
      refuses = engine_.is("refuses") && ++scheduled_ % 3 == 0;
    }
    engine_.changed_.notify_all();
    if (refuses) throw std::runtime_error("has had enough");  // and has the closure all the same
  }

  void wait() override {
    std::unique_lock lock(engine_.lock_);
    while (outstanding_) {
      auto which = engine_.ready_.begin();
      // "strays": a thread that waits works for whichever run there is.
      while (which != engine_.ready_.end() && which->run != this && !engine_.is("strays")) ++which;
      if (which == engine_.ready_.end() || !engine_.may_work()) {
        engine_.changed_.wait(lock);
      } else {
        engine_.perform(which, lock);
      }
    }
  }

  void cancel() override {}

 private:
  friend class Defective;
  Defective& engine_;
  size_t outstanding_ = 0;
  size_t scheduled_ = 0;
};

void Defective::perform(std::deque<Ready>::iterator which, std::unique_lock<std::mutex>& lock) {
  const Ready chosen = *which;
  ready_.erase(which);
  ++working_;
  lock.unlock();
  chosen.closure();
  lock.lock();
  --working_;
  --chosen.run->outstanding_;
  changed_.notify_all();
}

void Defective::work() {
  std::unique_lock lock(lock_);
  while (!stopping_) {
    if (ready_.empty() || !may_work() || is("strays")) {
      changed_.wait(lock);
    } else {
      perform(ready_.begin(), lock);
    }
  }
}

std::unique_ptr<litmusfuzz::RunState> Defective::start_run(uint64_t) {
  if (is("starts nothing")) throw std::runtime_error("starts nothing");
  return std::make_unique<Run>(*this);
}

std::unique_ptr<litmusfuzz::Engine> make(EngineOptions options) {
  return std::make_unique<Defective>(options);
}

}  // namespace

LITMUSFUZZ_ENGINE(make)
