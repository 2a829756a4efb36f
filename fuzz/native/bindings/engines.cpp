#include "engines.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>

#include "engines/table.h"
#include "engines/thread_limit.h"
#include "engines/work_scope.h"

namespace nb = nanobind;

namespace litmusfuzz::bindings {
namespace {

using namespace litmusfuzz::engines;

/// Closures shared by the threads of a Python executor and the waiting thread. Outlives its
/// run, as long as a thread may still ask for a closure.
class Work {
 public:
  Work(std::shared_ptr<ThreadLimit> thread_limit, const Engine& engine, const RunState& run)
      : thread_limit_(std::move(thread_limit)), engine_(engine), run_(run) {}

  void add(Closure closure) {
    {
      const std::lock_guard guard(lock_);
      ready_.push_back(closure);
      ++outstanding_;
    }
    changed_.notify_all();
  }

  /// Called by the Python executor once for each closure: runs one, unless the waiting
  /// thread has run it.
  void run_one() {
    const nb::gil_scoped_release release;
    std::unique_lock lock(lock_);
    if (!ready_.empty()) run_oldest(lock);
  }

  void wait() {
    std::unique_lock lock(lock_);
    while (outstanding_) {
      if (ready_.empty()) {
        changed_.wait(lock);
      } else {
        run_oldest(lock);
      }
    }
  }

  Ending ending;

 private:
  void run_oldest(std::unique_lock<std::mutex>& lock) {
    const Closure oldest = ready_.front();
    ready_.pop_front();
    lock.unlock();
    {
      const ThreadSlot slot(*thread_limit_);
      const WorkScope scope(engine_, run_);
      ending.run(oldest);
    }
    lock.lock();
    if (--outstanding_ == 0) changed_.notify_all();
  }

  const std::shared_ptr<ThreadLimit> thread_limit_;
  // Only their addresses are used, and only while a closure is left to run.
  const Engine& engine_;
  const RunState& run_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Closure> ready_;
  size_t outstanding_ = 0;  // ready or running
};

/// Engine over the method `submit` of a Python object, as of concurrent.futures.
class PythonEngine final : public Engine {
 public:
  PythonEngine(nb::object submit, uint32_t threads)
      : submit(std::move(submit)), thread_limit(std::make_shared<ThreadLimit>(threads)) {}
  std::unique_ptr<RunState> start_run(uint64_t) override;

  const nb::object submit;
  const std::shared_ptr<ThreadLimit> thread_limit;
};

class PythonRun final : public RunState {
 public:
  explicit PythonRun(PythonEngine& engine)
      : engine_(engine), work_(std::make_shared<Work>(engine.thread_limit, engine, *this)) {}

  void schedule(Closure closure) override {
    work_->add(closure);
    const nb::gil_scoped_acquire acquire;
    try {
      engine_.submit(work_);
    } catch (const nb::python_error& error) {
      throw std::runtime_error(
          "the engine's submit: " + nb::cast<std::string>(nb::type_name(error.type())) + ": " +
          nb::cast<std::string>(nb::str(error.value())));
    }
  }

  void wait() override {
    {
      const ReleasedSlot released(*engine_.thread_limit, WorkScope::inside(engine_));
      work_->wait();
    }
    work_->ending.rethrow();
  }

  void cancel() override { work_->ending.cancel(); }

 private:
  PythonEngine& engine_;
  const std::shared_ptr<Work> work_;
};

std::unique_ptr<RunState> PythonEngine::start_run(uint64_t) {
  return std::make_unique<PythonRun>(*this);
}

}  // namespace

void bind_engines(nb::module_& m) {
  nb::class_<Work>(m, "Work").def("__call__", &Work::run_one);
  nb::class_<Engine>(m, "Engine")
      // For C++ built separately, such as the conformance tests.
      .def_prop_ro("address", [](Engine& engine) { return reinterpret_cast<uintptr_t>(&engine); });
  nb::class_<PythonEngine, Engine>(m, "PythonEngine")
      .def(nb::init<nb::object, uint32_t>(), nb::arg("submit"), nb::arg("threads"));
  m.def(
      "engine",
      [](const std::string& name, uint32_t threads) { return make(name, {.threads = threads}); },
      nb::arg("name"), nb::arg("threads"));
}

}  // namespace litmusfuzz::bindings
