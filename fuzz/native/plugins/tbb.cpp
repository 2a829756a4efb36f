// oneTBB: for each run a task_arena, so that its tasks mix with no others, and a
// task_group, which knows when they are done.
//
// Built as a library of its own, as anybody could build one: nothing else of
// LitmusFuzz needs oneTBB.
//
// Reference: ENGINES, Design Proposal, 1 to 3.
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>

#include "engines/places.h"
#include "engines/stint.h"

namespace litmusfuzz::engines {
namespace {

class Tbb final : public Engine {
 public:
  explicit Tbb(EngineOptions options)
      : limit(std::max(1u, options.threads)),
        places(limit),
        workers_(tbb::global_control::max_allowed_parallelism, limit + 1) {}

  std::unique_ptr<RunState> start_run(uint64_t) override;

  const uint32_t limit;
  /// The limit of an arena counts neither other arenas nor all threads that wait.
  Places places;

 private:
  /// More threads than cores, where they are wanted. It bounds nothing of ours: it
  /// is one for the process, and the smallest one counts.
  tbb::global_control workers_;
};

class TbbRun final : public RunState {
 public:
  explicit TbbRun(Tbb& engine) : engine_(engine), arena_(static_cast<int>(engine.limit)) {}
  // A task_group's own may throw, if its tasks were not waited for: ours were.
  ~TbbRun() noexcept override {}

  void schedule(Closure closure) override {
    const auto task = [this, closure] { work(closure); };
    if (Stint::of(*this)) {
      group_.run(task);  // the thread is in the arena
    } else if (!Stint::inside(engine_)) {
      arena_.execute([this, task] { group_.run(task); });
    } else {
      // To enter could mean to wait for somebody to leave, who may need our place.
      arena_.enqueue(group_.defer(task));
    }
  }

  void wait() override {
    {
      const Lent lent(engine_.places, Stint::inside(engine_));
      arena_.execute([this] { group_.wait(); });
    }
    ending_.rethrow();
  }

  void cancel() override { ending_.cancel(); }

 private:
  void work(const Closure& closure) {
    const Place place(engine_.places);
    const Stint stint(engine_, *this);
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
