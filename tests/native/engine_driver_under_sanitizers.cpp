// The driver of engines under sanitizers, with a stand-in for TensorFlow's executor: runs whose
// closures schedule others, some of them from threads that belong to no run, and share their work.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "control/engine_driver.h"
#include "engines/table.h"

namespace litmusfuzz::control {
namespace {

using Function = std::function<void()>;

void call(void* data) {
  const std::unique_ptr<Function> function(static_cast<Function*>(data));
  (*function)();
}

/// A thread that calls functions later, as one that comes back to an op that has waited.
class Elsewhere {
 public:
  Elsewhere() : thread_([this] { work(); }) {}
  ~Elsewhere() {
    later(nullptr);
    thread_.join();
  }
  void later(Function function) {
    {
      const std::lock_guard guard(lock_);
      waiting_.push_back(std::move(function));
    }
    changed_.notify_all();
  }

 private:
  void work() {
    std::unique_lock lock(lock_);
    for (;;) {
      changed_.wait(lock, [this] { return !waiting_.empty(); });
      const Function function = std::move(waiting_.front());
      waiting_.pop_front();
      if (!function) return;
      lock.unlock();
      function();
      lock.lock();
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Function> waiting_;
  std::thread thread_;
};

/// A run: a tree of ops on each of two executors.
class Tree {
 public:
  Tree(const LitmusFuzzEngineHooks& hooks, Elsewhere& elsewhere, uint32_t depth)
      : hooks_(hooks), elsewhere_(elsewhere), times_(size_t{2} << depth), left_(times_.size()) {}

  void execute() {
    run_ = hooks_.begin(hooks_.driver, 2);
    CHECK(run_ != nullptr);
    post([this] { op(2); });
    post([this] { op(3); });
    post([this] {
      hooks_.ended(run_);  // an executor that has less to do than the other
      op(0);
    });
    post([this] { op(1); });
    hooks_.finish(run_);
    for (const auto& each : times_) CHECK(each == 1);
  }

 private:
  void post(Function function) { hooks_.schedule(run_, call, new Function(std::move(function))); }

  void op(size_t number) {
    times_[number].fetch_add(1);
    if (number % 16 == 5) share();
    for (const size_t child : {2 * number, 2 * number + 1}) {
      if (number < 2 || child >= times_.size()) continue;
      const Function next = [this, child] { op(child); };
      if (child % 8 == 3) {
        elsewhere_.later([this, next] { post(next); });
      } else {
        post(next);
      }
    }
    if (left_.fetch_sub(1) == 1) hooks_.ended(run_);
  }

  /// Work of an op that is divided, and waited for.
  void share() {
    std::mutex lock;
    std::condition_variable changed;
    int left = 4;
    for (int i = 0; i < 4; ++i) {
      auto* const part = new Function([&] {
        const std::lock_guard guard(lock);
        if (--left == 0) changed.notify_all();
      });
      if (!hooks_.share(hooks_.driver, call, part)) call(part);
    }
    std::unique_lock guard(lock);
    changed.wait(guard, [&] { return left == 0; });
  }

  const LitmusFuzzEngineHooks& hooks_;
  Elsewhere& elsewhere_;
  void* run_ = nullptr;
  std::vector<std::atomic<int>> times_;
  std::atomic<size_t> left_;
};

void runs_at_once(const std::string& name, uint32_t threads, uint32_t inside) {
  const auto engine = engines::make(name, {.threads = threads});
  EngineDriver driver(*engine, threads, inside);
  {
    Elsewhere elsewhere;
    std::vector<std::thread> clients;
    for (int c = 0; c < 4; ++c) {
      clients.emplace_back([&] {
        for (int i = 0; i < 10; ++i) Tree(*driver.hooks(), elsewhere, 6).execute();
      });
    }
    for (std::thread& each : clients) each.join();
  }
  CHECK(driver.fault() == std::string());
  CHECK(driver.most() <= threads);
  CHECK(driver.closures() == uint64_t{4 * 10} * (size_t{2} << 6));
  CHECK(driver.by_caller() > 0);
  CHECK(threads > 1 || driver.by_caller() == driver.closures());
  CHECK(inside > 1 || driver.shared() == 0);
}

/// A run that begins another in a closure, and works on it.
void a_run_inside_a_run() {
  const auto engine = engines::make("pool", {.threads = 1});
  EngineDriver driver(*engine, 1, 1);
  const LitmusFuzzEngineHooks& hooks = *driver.hooks();
  int done = 0;
  const std::function<void(int)> execute = [&](int depth) {
    void* const run = hooks.begin(hooks.driver, 1);
    hooks.schedule(run, call, new Function([&, depth, run] {
                     if (depth > 0) execute(depth - 1);
                     ++done;
                     hooks.ended(run);
                   }));
    hooks.finish(run);
  };
  execute(3);
  CHECK(done == 4);
  CHECK(driver.fault() == std::string());
  CHECK(driver.most() == 1);
}

/// An engine that drops what it is given would leave its run without an end.
void lost_closures_end_the_process() {
  struct Losing final : Engine {
    struct Run final : RunState {
      void schedule(Closure) override {}
      void wait() override {}
      void cancel() override {}
    };
    std::unique_ptr<RunState> start_run(uint64_t) override { return std::make_unique<Run>(); }
  };
  const pid_t child = fork();
  if (child == 0) {
    Losing engine;
    EngineDriver driver(engine, 1, 1);
    void* const run = driver.begin(1);
    driver.hooks()->schedule(run, call, new Function([] {}));
    driver.hooks()->finish(run);
    std::_Exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

}  // namespace
}  // namespace litmusfuzz::control

int main() {
  using namespace litmusfuzz::control;
  lost_closures_end_the_process();
  a_run_inside_a_run();
  runs_at_once("inline", 1, 1);
  for (const char* name : {"pool", "fifo", "stealing", "gang"}) {
    for (const uint32_t threads : {1u, 2u, 4u}) {
      for (const uint32_t inside : {1u, 4u}) runs_at_once(name, threads, inside);
    }
  }
  std::puts("ok");
}
