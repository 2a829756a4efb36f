// Engine `tbb`: each run has a oneTBB task_arena, which isolates its tasks, and a
// task_group, which waits for them.
//
// Built as a separate library, like an engine of a user: nothing else of LitmusFuzz needs
// oneTBB.
//
// Reference: ENGINES, Design Proposal, 1 to 3.
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>

#include "engines/thread_limit.h"
#include "engines/work_scope.h"

namespace litmusfuzz::engines {
namespace {

class Tbb final : public Engine {
 public:
  explicit Tbb(EngineOptions options)
      : limit(std::max(1u, options.threads)),
        thread_limit(limit),
        workers_(tbb::global_control::max_allowed_parallelism, limit + 1) {}

  std::unique_ptr<RunState> start_run(uint64_t) override;

  const uint32_t limit;
  /// An arena's own limit ignores other arenas and some waiting threads.
  ThreadLimit thread_limit;

 private:
  /// Allows more threads than cores. It is no limit of ours: the process has one such
  /// setting, and the smallest value counts.
  tbb::global_control workers_;
};

class TbbRun final : public RunState {
 public:
  explicit TbbRun(Tbb& engine) : engine_(engine), arena_(static_cast<int>(engine.limit)) {}
  // A task_group's destructor throws if its tasks were not waited for: ours were.
  ~TbbRun() noexcept override {}

  void schedule(Closure closure) override {
    const auto task = [this, closure] { work(closure); };
    if (WorkScope::of(*this)) {
      group_.run(task);  // the thread is in the arena
    } else if (!WorkScope::inside(engine_)) {
      arena_.execute([this, task] { group_.run(task); });
    } else {
      // Entering the arena could wait for a thread that needs our slot.
      arena_.enqueue(group_.defer(task));
    }
  }

  void wait() override {
    {
      const ReleasedSlot released(engine_.thread_limit, WorkScope::inside(engine_));
      arena_.execute([this] { group_.wait(); });
    }
    ending_.rethrow();
  }

  void cancel() override { ending_.cancel(); }

 private:
  void work(const Closure& closure) {
    const ThreadSlot slot(engine_.thread_limit);
    const WorkScope scope(engine_, *this);
    ending_.run(closure);
  }

  Tbb& engine_;
  Ending ending_;
  tbb::task_arena arena_;
  tbb::task_group group_;
};

std::unique_ptr<RunState> Tbb::start_run(uint64_t) { return std::make_unique<TbbRun>(*this); }

std::unique_ptr<Engine> make_tbb(EngineOptions options) { return std::make_unique<Tbb>(options); }

}  // namespace
}  // namespace litmusfuzz::engines

LITMUSFUZZ_ENGINE(litmusfuzz::engines::make_tbb)
