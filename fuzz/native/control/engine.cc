// Inside TensorFlow: executor types whose runs an engine of engine.h executes.
//
// The executor is TensorFlow's own (`NewLocalExecutor`). It gets a runner of ours, which hands its
// closures to the engine, and the thread that has called `Session::Run` works on them until the
// run has ended. So no thread of TensorFlow's pools runs an op.
//
// Each engine is an executor type, which only the sessions of its configuration ask for. Partial
// runs (`PRunSetup`) of sessions with several devices do not work: their caller does not wait.
//
// Compiled with tensorflow.cc.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "engine_hooks.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/lib/core/threadpool_interface.h"

namespace {

using tensorflow::Executor;
using Status = absl::Status;
using Closure = std::function<void()>;

void call_and_delete(void* data) {
  const std::unique_ptr<Closure> closure(static_cast<Closure*>(data));
  (*closure)();
}

/// The executors of one callable: one for each device. `Session::Run` begins them one after the
/// other, in one thread.
class Group {
 public:
  /// The group of the executors that are made for the same functions: each callable has its own.
  static std::shared_ptr<Group> of(const void* functions) {
    static auto* const lock = new std::mutex;
    static auto* const groups = new std::map<const void*, std::weak_ptr<Group>>;
    const std::lock_guard<std::mutex> guard(*lock);
    for (auto each = groups->begin(); each != groups->end();) {
      each = each->second.expired() ? groups->erase(each) : std::next(each);
    }
    std::shared_ptr<Group> group = (*groups)[functions].lock();
    if (group == nullptr) (*groups)[functions] = group = std::make_shared<Group>();
    const std::lock_guard<std::mutex> also(group->lock_);
    ++group->executors_;
    return group;
  }

  bool one() const { return executors_ == 1; }

  /// The run of a step, and whether this executor is the last to begin it; null as `begin` is.
  std::pair<void*, bool> arrive(const LitmusFuzzEngineHooks& hooks, int64_t step_id) {
    const std::lock_guard<std::mutex> guard(lock_);
    Begun& begun = steps_[step_id];
    if (begun.arrived++ == 0) begun.run = hooks.begin(hooks.driver, executors_);
    const std::pair<void*, bool> found(begun.run, begun.arrived == executors_);
    if (found.second) steps_.erase(step_id);
    return found;
  }

 private:
  struct Begun {
    void* run = nullptr;
    uint32_t arrived = 0;
  };

  std::mutex lock_;
  uint32_t executors_ = 0;
  std::map<int64_t, Begun> steps_;  // that some executors have begun, and others not yet
};

/// Has parts of an op's work done by the engine's threads.
class Parts : public tensorflow::thread::ThreadPoolInterface {
 public:
  explicit Parts(const LitmusFuzzEngineHooks& hooks) : hooks_(hooks) {}

  void Schedule(Closure part) override {
    auto* const kept = new Closure(std::move(part));
    if (!hooks_.share(hooks_.driver, call_and_delete, kept)) call_and_delete(kept);
  }
  int NumThreads() const override { return static_cast<int>(hooks_.intra_op_threads); }
  int CurrentThreadId() const override { return hooks_.part(hooks_.driver); }

 private:
  const LitmusFuzzEngineHooks& hooks_;
};

class EngineExecutor : public Executor {
 public:
  static Status Make(const LitmusFuzzEngineHooks& hooks,
                     const tensorflow::LocalExecutorParams& params, const tensorflow::Graph& graph,
                     std::unique_ptr<Executor>* made) {
    Executor* inner = nullptr;
    Status status = tensorflow::NewLocalExecutor(params, graph, &inner);
    if (!status.ok()) return status;
    auto group = Group::of(params.function_library->GetFunctionLibraryDefinition());
    made->reset(new EngineExecutor(hooks, std::move(group), inner));
    return status;
  }

  /// A run on one device.
  Status Run(const Args& args) override {
    void* const run = hooks_.begin(hooks_.driver, 1);
    if (run == nullptr) return NotStarted();
    Status result;  // written by a closure of the run, which `finish` waits for
    Begin(args, run, [&result](const Status& status) { result = status; });
    hooks_.finish(run);
    return result;
  }

 private:
  EngineExecutor(const LitmusFuzzEngineHooks& hooks, std::shared_ptr<Group> group, Executor* inner)
      : hooks_(hooks), group_(std::move(group)), parts_(hooks), inner_(inner) {}

  void RunAsyncInternal(const Args& args, DoneCallback done) override {
    // A caller with a deadline waits for that as well, and one with a single executor has something
    // else to do, or it would have called `Run`. Another thread works for it.
    const bool in_its_place = args.deadline.has_value() || group_->one();
    const auto [run, last] = group_->arrive(hooks_, args.step_id);
    if (run == nullptr) return done(NotStarted());
    Begin(args, run, std::move(done));
    if (!last) return;
    if (in_its_place) {
      std::thread([finish = hooks_.finish, run = run] { finish(run); }).detach();
    } else {
      hooks_.finish(run);
    }
  }

  void Begin(const Args& args, void* run, DoneCallback done) {
    const LitmusFuzzEngineHooks& hooks = hooks_;
    Args ours = args;
    ours.run_all_kernels_inline = false;
    ours.runner = [&hooks, run](Closure closure) {
      hooks.schedule(run, call_and_delete, new Closure(std::move(closure)));
    };
    if (hooks.intra_op_threads > 1) ours.user_intra_op_threadpool = &parts_;
    inner_->RunAsync(ours, [&hooks, run, done = std::move(done)](const Status& status) {
      done(status);
      hooks.ended(run);
    });
  }

  Status NotStarted() const {
    return absl::InternalError(std::string("the engine: ") + hooks_.fault(hooks_.driver));
  }

  const LitmusFuzzEngineHooks& hooks_;
  const std::shared_ptr<Group> group_;
  Parts parts_;
  const std::unique_ptr<Executor> inner_;
};

/// Of one executor type. TensorFlow keeps it for ever.
class Factory : public tensorflow::ExecutorFactory {
 public:
  const LitmusFuzzEngineHooks* hooks = nullptr;

 private:
  Status NewExecutor(const tensorflow::LocalExecutorParams& params, const tensorflow::Graph& graph,
                     std::unique_ptr<Executor>* made) override {
    if (hooks == nullptr) return absl::FailedPreconditionError("the engine has been closed");
    return EngineExecutor::Make(*hooks, params, graph, made);
  }
};

}  // namespace

extern "C" {

/// Connects a driver with an executor type, or none; 0 if it is of another version. No session may
/// have the type then.
__attribute__((visibility("default"))) int litmusfuzz_drive(const char* executor_type,
                                                            const LitmusFuzzEngineHooks* theirs) {
  static auto* const lock = new std::mutex;
  static auto* const factories = new std::map<std::string, Factory*>;
  if (theirs != nullptr && theirs->version != LITMUSFUZZ_ENGINE_VERSION) return 0;
  const std::lock_guard<std::mutex> guard(*lock);
  Factory*& factory = (*factories)[executor_type];
  if (factory == nullptr) {
    factory = new Factory;
    tensorflow::ExecutorFactory::Register(executor_type, factory);
  }
  factory->hooks = theirs;
  return 1;
}
}
