// Inside TensorFlow: an executor type whose runs the controller schedules.
//
// The executor is TensorFlow's own (`NewLocalExecutor`). It gets a runner of ours, so that its
// closures come to the controller. A kernel that takes a resource is wrapped in an asynchronous
// one, which hands the op to the controller and returns; the controller has it computed when it
// chooses it. So an op on a resource may begin at any time after it is ready, as TensorFlow's
// threads could have it, and no thread waits for that.
//
// Where pages decide, the executor's device is one of ours around TensorFlow's: tensors that are
// large enough get pages of their own (pages.h). The first touch of a page of a variable's tensor
// is an event, and the handler of the fault waits for it. Where touches decide, smaller tensors get
// pages of their own, too: each instruction that touches a variable's is an event. So is it that an
// op has given back a variable's lock.
//
// Where ops have threads inside, the pool that a kernel gets is one of ours: a part of the op's
// work is a task of the controller's, and its locks and pages are events. The kernel's wait for its
// parts is a wait in the controller.
//
// Functions that kernels call have such executors too: the executor's library of functions is one
// of ours around TensorFlow's, and asks for them.
//
// A run that begins while the controller is not at work is TensorFlow's own in all respects.
//
// Compiled by `fuzz.executors.tensorflow.control` against the headers of the TensorFlow that is
// installed.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hooks.h"
#include "locks.h"
#include "pages.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/common_runtime/renamed_device.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/lib/core/threadpool_interface.h"

namespace {

using tensorflow::AsyncOpKernel;
using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using Status = absl::Status;
using Function = std::function<void()>;

const LitmusFuzzHooks* hooks = nullptr;
uint32_t executors_made = 0;

void call_and_delete(void* data) {
  const std::unique_ptr<Function> function(static_cast<Function*>(data));
  (*function)();
}

constexpr char kCompile[] = "_XlaCompile";
constexpr char kRun[] = "_XlaRun";

/// Whether XLA compiles the function that a node calls: its kernel computes all of it at once, and
/// holds the locks of the variables meanwhile.
bool is_region(const tensorflow::AttrSlice& attributes) {
  bool must = false;
  return tensorflow::TryGetNodeAttr(attributes, "_XlaMustCompile", &must) && must;
}

/// Ops that look at a resource, and do not change it. `_XlaCompile` takes a snapshot of the
/// cluster's variables; `_XlaRun` computes with that, and writes them.
bool reads_only(const std::string& type) {
  static const char* const types[] = {
      "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp",
      "VariableShape",  "QueueSizeV2",    "QueueIsClosedV2",  "ResourceAccumulatorNumAccumulated",
      kCompile};
  for (const char* each : types) {
    if (type == each) return true;
  }
  return false;
}

/// Ops that may wait for another op of the graph, which calls them back; or that look at what such
/// ops use. All other asynchronous ops come back by themselves.
bool may_wait(const std::string& type) {
  return type.find("Queue") != std::string::npos || type.find("Accumulator") != std::string::npos ||
         type.find("Recv") != std::string::npos || type.find("Unstage") != std::string::npos ||
         type.find("Barrier") != std::string::npos;
}

/// Ops that are handed a resource, and neither look at it nor change it.
bool hands_on(const std::string& type) {
  static const char* const types[] = {
      "Identity",  "IdentityN", "Switch",        "RefSwitch",     "Merge",        "_XlaMerge",
      "Enter",     "Exit",      "NextIteration", "LoopCond",      "_Send",        "_Recv",
      "_HostSend", "_HostRecv", "_Retval",       "_Arg",          "StopGradient", "_SwitchN",
      "Pack",      "Select",    "SelectV2",      "_DeviceRetval", "NoOp",         "_DeviceArg"};
  for (const char* each : types) {
    if (type == each) return true;
  }
  return false;
}

/// Ops whose kernels call functions. The ops in these decide, not the call.
bool calls(const std::string& type) {
  static const char* const types[] = {
      "PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "While", "StatelessWhile"};
  for (const char* each : types) {
    if (type == each) return true;
  }
  return false;
}

/// Where kernels are computed, and functions called.
struct Place {
  int64_t step_id;  // of the run; that of a function is another one
  std::string around;  // the names of all calls around it, each with a slash behind it
};

/// The functions that are called, by call frame.
class Functions {
 public:
  void begin(const void* frame, const Place& called_from) {
    const std::lock_guard<std::mutex> guard(lock_);
    places_[frame] = called_from;
  }
  void end(const void* frame) {
    const std::lock_guard<std::mutex> guard(lock_);
    places_.erase(frame);
  }
  Place place(OpKernelContext* context) {
    const std::lock_guard<std::mutex> guard(lock_);
    const auto found = places_.find(context->call_frame());
    return found == places_.end() ? Place{context->step_id(), ""} : found->second;
  }

 private:
  std::mutex lock_;
  std::map<const void*, Place> places_;
};

Functions& functions() {
  static Functions* const made = new Functions;
  return *made;
}

/// Where this thread calls functions from.
thread_local const Place* calling = nullptr;

/// As long as it lives, this thread calls functions from there.
class Calling {
 public:
  explicit Calling(const Place* from) : before_(std::exchange(calling, from)) {}
  ~Calling() { calling = before_; }
  Calling(const Calling&) = delete;
  void operator=(const Calling&) = delete;

 private:
  const Place* const before_;
};

/// Whether it is decided when a cluster is compiled that the compiler works on in the background.
/// It has been all the time: what its kernel says is what decides.
bool compilation_decides = false;
constexpr char kCompiler[] = "compiler";

/// The clusters that are compiled by now in the runs of an execution, by their kernels.
class Compiled {
 public:
  void begin(uint64_t execution) {
    const std::lock_guard<std::mutex> guard(lock_);
    if (std::exchange(execution_, execution) != execution) compiled_.clear();
  }
  void add(int64_t step_id, const std::string& kernel) {
    const std::lock_guard<std::mutex> guard(lock_);
    compiled_.emplace(step_id, kernel);
  }
  bool has(int64_t step_id, const std::string& kernel) {
    const std::lock_guard<std::mutex> guard(lock_);
    return compiled_.count({step_id, kernel}) > 0;
  }

 private:
  std::mutex lock_;
  uint64_t execution_ = 0;
  std::set<std::pair<int64_t, std::string>> compiled_;
};

Compiled& compiled() {
  static Compiled* const made = new Compiled;
  return *made;
}

/// The locks that are held, by the tensor that stands for each: MutexLock makes it,
/// ConsumeMutexLock takes it.
class Locks {
 public:
  void take(const void* tensor, const std::string& mutex) {
    const std::lock_guard<std::mutex> guard(lock_);
    held_[tensor] = mutex;
  }
  std::string give(const void* tensor) {
    const std::lock_guard<std::mutex> guard(lock_);
    const auto found = held_.find(tensor);
    if (found == held_.end()) return "";
    std::string mutex = std::move(found->second);
    held_.erase(found);
    return mutex;
  }

 private:
  std::mutex lock_;
  std::map<const void*, std::string> held_;
};

Locks& locks() {
  static Locks* const made = new Locks;
  return *made;
}

/// Where the tensor of a lock is: copies of it share that.
const void* address(const tensorflow::Tensor& tensor) {
  return tensor.flat<tensorflow::Variant>().data();
}

class Decided;

/// An op whose kernel is computed, while the locks that it takes decide.
struct Op {
  int64_t step_id;
  std::string node;
  tensorflow::FrameAndIter at;
  std::vector<std::string> resources;
  bool reads_only;
  /// Only locks of variables decide, and others that another op holds: XLA's kernels take a dozen
  /// of its own, and an op that is one event has no events inside. Nor has it parts.
  bool has_silent_locks;
  const Decided* kernel;  // null if it comes back by itself
  /// The mutexes of the resources that were there when the op began, by name.
  std::vector<std::pair<const void*, std::string>> mutexes;
  std::optional<size_t> tensors;  // that it goes through at once, where pages decide
};

/// What a thread computes of an op: the kernel itself, or a part that this has given away.
struct Inside {
  explicit Inside(std::shared_ptr<const Op> its)
      : op(std::move(its)), step_id(op->step_id), node(op->node) {}

  const std::shared_ptr<const Op> op;
  const int64_t step_id;
  std::string node;  // the op's, or that of the part
  uint32_t parts = 0;  // that were given away here
  /// Where pages decide.
  std::optional<litmusfuzz::pages::Window> window;
};
thread_local Inside* inside = nullptr;
bool locks_decide = false;
bool pages_decide = false;
bool touches_decide = false;  // then pages do, too
int threads_for_parts = 1;  // 1 if an op does all its work itself

/// The variables of an execution, of which pages decide, by name.
class Variables {
 public:
  void begin(uint64_t execution) {
    const std::lock_guard<std::mutex> guard(lock_);
    if (execution == execution_) return;
    execution_ = execution;
    found_.clear();
    litmusfuzz::pages::forget_owners();
  }
  void add(const std::string& name, tensorflow::core::RefCountPtr<tensorflow::Var> variable) {
    const std::lock_guard<std::mutex> guard(lock_);
    found_[name] = std::move(variable);
  }
  /// Tells whose the tensors are now. Nobody changes them: one kernel computes at a time, and has
  /// stopped.
  void mark() {
    const std::lock_guard<std::mutex> guard(lock_);
    for (const auto& [name, variable] : found_) {
      const tensorflow::Tensor& tensor = *variable->tensor();
      // What strings have elsewhere has no pages of its own.
      if (!tensor.IsInitialized() || !tensorflow::DataTypeCanUseMemcpy(tensor.dtype())) continue;
      litmusfuzz::pages::own(tensor.data(), name);
    }
  }
  /// Size of an element of a variable.
  size_t element(const std::string& name) {
    const std::lock_guard<std::mutex> guard(lock_);
    const auto found = found_.find(name);
    return found == found_.end() ? 1 : tensorflow::DataTypeSize(found->second->tensor()->dtype());
  }

 private:
  std::mutex lock_;
  uint64_t execution_ = 0;
  std::map<std::string, tensorflow::core::RefCountPtr<tensorflow::Var>> found_;
};

Variables& variables() {
  static Variables* const made = new Variables;
  return *made;
}

/// Before anything but a kernel that decides.
void open_pages() {
  if (pages_decide) litmusfuzz::pages::open();
}

/// As long as it lives, what a kernel does decides; or nothing does (null).
class Deciding {
 public:
  explicit Deciding(Inside* kernel) : before_(inside) { turn_to(kernel); }
  ~Deciding() { turn_to(before_); }
  Deciding(const Deciding&) = delete;
  void operator=(const Deciding&) = delete;

 private:
  static void turn_to(Inside* kernel) {
    if (std::exchange(inside, kernel) == kernel || !pages_decide) return;
    if (inside == nullptr || !inside->window) return litmusfuzz::pages::leave();
    variables().mark();
    litmusfuzz::pages::enter(&*inside->window);
  }

  Inside* const before_;
};

/// What all events inside a kernel have.
LitmusFuzzEvent event_in(const Inside& kernel) {
  LitmusFuzzEvent event{};
  event.step_id = kernel.step_id;
  event.node = kernel.node.c_str();
  event.frame = kernel.op->at.frame_id;
  event.iteration = kernel.op->at.iter_id;
  return event;
}

/// Until its next event a kernel may look at, or change, what its op does.
void add_resources(const Inside& kernel, std::vector<const char*>* to) {
  for (const std::string& each : kernel.op->resources) to->push_back(each.c_str());
}

/// What the kernel that a thread computes is inside of; see `Decided::AsAsync`.
thread_local const Decided* computed = nullptr;

/// Waits until the controller chooses an event inside a kernel, unless it need not.
void stop_at(const LitmusFuzzEvent& event, Inside* kernel) {
  // Meanwhile this thread may compute other kernels.
  const Decided* const around = std::exchange(computed, nullptr);
  const bool chosen = hooks != nullptr && hooks->stop(hooks->controller, &event);
  computed = around;
  // Others may be at work once the controller has let the run go: nothing is closed to them.
  if (!chosen) {
    kernel->window.reset();
    open_pages();
  }
}

/// Whose the memory is that a kernel has allocated.
void tell_owners() { variables().mark(); }

/// Before a kernel touches a page.
void decide_page(const litmusfuzz::pages::Touch& touch) {
  Inside* const here = inside;
  const Deciding nothing(nullptr);
  std::vector<const char*> resources;
  add_resources(*here, &resources);
  // By the name that the op has for it, if several variables have one tensor.
  const std::string* of = &touch.owners.front();
  for (const std::string& each : touch.owners) {
    const auto& names = here->op->resources;
    if (std::find(names.begin(), names.end(), each) != names.end()) {
      of = &each;
    } else {
      resources.push_back(each.c_str());
    }
  }
  const std::string kind = touch.writes ? "write" : "read";
  const std::string place =
      touch.is_each ? " at element " + std::to_string(touch.offset / variables().element(*of))
                    : " of page " + std::to_string(touch.page);
  const std::string point = kind + place + " of " + *of;
  LitmusFuzzEvent event = event_in(*here);
  event.point = point.c_str();
  event.resources = resources.data();
  event.resource_count = static_cast<uint32_t>(resources.size());
  event.reads_only = here->op->reads_only && !touch.writes;
  stop_at(event, here);
}

constexpr char kOther[] = "other";

/// The resource whose mutex this is; `kOther` for all the others, such as the manager's.
std::string name_of(const Inside& here, const void* mutex) {
  for (const auto& [each, name] : here.op->mutexes) {
    if (each == mutex) return name;
  }
  return kOther;
}

/// Before a lock inside a kernel, which is free once this returns, if the controller decides.
void decide_lock(void* mutex, bool shared) {
  Inside* const here = inside;
  if (here == nullptr) return;
  const Deciding nothing(nullptr);
  const std::string name = name_of(*here, mutex);
  const auto id = reinterpret_cast<uint64_t>(mutex);
  if (here->op->has_silent_locks && name == kOther && hooks != nullptr &&
      hooks->acquire(hooks->controller, here->step_id, id, shared)) {
    return;
  }
  const std::string point = (shared ? "shared lock of " : "lock of ") + name;
  const char* const lock = point.c_str() + (shared ? std::strlen("shared ") : 0);
  std::vector<const char*> resources{lock};
  add_resources(*here, &resources);
  LitmusFuzzEvent event = event_in(*here);
  event.point = point.c_str();
  event.resources = resources.data();
  event.resource_count = static_cast<uint32_t>(resources.size());
  event.reads_only = here->op->reads_only && shared;
  event.effect = LITMUSFUZZ_ACQUIRES;
  event.mutex = id;
  event.shared = shared;
  stop_at(event, here);
}

void after_unlock(void* mutex, bool shared) {
  Inside* const here = inside;
  if (here == nullptr || hooks == nullptr) return;
  hooks->released(hooks->controller, reinterpret_cast<uint64_t>(mutex));
  const std::string name = touches_decide ? name_of(*here, mutex) : kOther;
  if (name == kOther) return;
  // What follows may use what it has found under the lock; another op may come before that.
  const Deciding nothing(nullptr);
  const std::string point = (shared ? "after shared unlock of " : "after unlock of ") + name;
  std::vector<const char*> resources;
  add_resources(*here, &resources);
  LitmusFuzzEvent event = event_in(*here);
  event.point = point.c_str();
  event.resources = resources.data();
  event.resource_count = static_cast<uint32_t>(resources.size());
  event.reads_only = here->op->reads_only;
  stop_at(event, here);
}

/// Whether a kernel that is about to wait for a condition has parts, for which it waits.
bool has_parts() {
  const Inside* const here = inside;
  return here != nullptr && hooks != nullptr && hooks->has_parts(hooks->controller, here->step_id);
}

/// Waits until they have ended. Whatever they were to bring about, they have.
void join_parts() {
  Inside* const here = inside;
  if (here == nullptr) return;
  const Deciding nothing(nullptr);
  std::vector<const char*> resources;
  add_resources(*here, &resources);
  LitmusFuzzEvent event = event_in(*here);
  event.point = "after parts";
  event.resources = resources.data();
  event.resource_count = static_cast<uint32_t>(resources.size());
  event.reads_only = here->op->reads_only;
  const Decided* const around = std::exchange(computed, nullptr);
  if (hooks != nullptr) hooks->join(hooks->controller, &event);
  computed = around;
}

/// The pool of threads inside ops, whatever the process has: TensorFlow's is the first session's,
/// and its threads would do what nobody decides. A part of an op's work is a task of the
/// controller's if there are several threads, and locks decide inside the op. All others are done
/// at once, where they are given away.
class Parts : public tensorflow::thread::ThreadPoolInterface {
 public:
  static Parts* get() {
    static Parts* const made = new Parts;
    return made;
  }

  void Schedule(Function part) override {
    Inside* const here = inside;
    if (threads_for_parts == 1 || here == nullptr || hooks == nullptr ||
        here->op->has_silent_locks) {
      return part();
    }
    const std::string node = here->node + "/part " + std::to_string(++here->parts);
    std::vector<const char*> resources;
    add_resources(*here, &resources);
    LitmusFuzzEvent event = event_in(*here);
    event.node = node.c_str();
    event.point = "begin";
    event.resources = resources.data();
    event.resource_count = static_cast<uint32_t>(resources.size());
    event.reads_only = here->op->reads_only;
    const auto shared = std::make_shared<Function>(std::move(part));
    auto* const perform = new Function([op = here->op, node, shared] { Do(op, node, *shared); });
    if (hooks->share(hooks->controller, &event, call_and_delete, perform)) return;
    delete perform;
    (*shared)();
  }
  int NumThreads() const override { return threads_for_parts; }
  int CurrentThreadId() const override {
    return inside == nullptr || hooks == nullptr ? -1 : hooks->thread(hooks->controller);
  }

 private:
  static void Do(const std::shared_ptr<const Op>& op, const std::string& node,
                 const Function& part) {
    Inside here(op);
    here.node = node;
    if (op->tensors) here.window.emplace(*op->tensors);
    const Decided* const around = std::exchange(computed, op->kernel);
    {
      const Deciding deciding(&here);
      part();
    }
    open_pages();
    computed = around;
  }
};

/// A kernel that is computed when the controller chooses it.
class Decided : public AsyncOpKernel {
 public:
  Decided(tensorflow::OpKernelConstruction* made, OpKernel* inner, tensorflow::Device* device,
          std::string called, const tensorflow::NodeDef& node)
      : AsyncOpKernel(made),
        inner_(inner),
        device_(device),
        called_(std::move(called)),
        is_region_(is_region(tensorflow::AttrSlice(node))),
        is_cluster_(is_region_ || type_string() == kCompile || type_string() == kRun),
        calls_(!is_region_ && calls(type_string()) && inner->AsAsync() != nullptr),
        compiled_late_(type_string() == kCompile && !node.attr().at("must_compile").b()),
        reads_only_(reads_only(type_string())),
        acquires_(type_string() == "MutexLock"),
        releases_(type_string() == "ConsumeMutexLock"),
        is_whole_(acquires_ || releases_ || may_wait(type_string())) {}

  OpKernel* inner() const { return inner_; }
  /// While an op of a synchronous kernel is computed, it is one: OP_REQUIRES looks.
  AsyncOpKernel* AsAsync() override { return computed == this ? nullptr : this; }
  bool IsExpensive() override { return true; }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    const Place place = functions().place(context);
    const int64_t step_id = place.step_id;
    const std::string name = place.around + called_;
    if (calls_) return Call(context, step_id, name, done);
    std::vector<std::string> names;
    for (int i = 0; i < context->num_inputs(); ++i) {
      if (context->input_dtype(i) != tensorflow::DT_RESOURCE) continue;
      const tensorflow::Tensor& handles = context->input(i);
      for (int64_t k = 0; k < handles.NumElements(); ++k) {
        names.push_back(handles.flat<tensorflow::ResourceHandle>()(k).name());
      }
    }
    if (compilation_decides && compiled_late_) names.push_back(kCompiler);
    if (releases_) names.push_back(locks().give(address(context->input(0))));
    std::vector<const char*> resources;
    for (const std::string& each : names) resources.push_back(each.c_str());
    LitmusFuzzEvent event{};
    event.step_id = step_id;
    event.node = name.c_str();
    event.frame = context->frame_iter().frame_id;
    event.iteration = context->frame_iter().iter_id;
    event.point = "begin";
    event.resources = resources.data();
    event.resource_count = static_cast<uint32_t>(resources.size());
    event.reads_only = ReadsOnly(context);
    event.effect = acquires_   ? LITMUSFUZZ_ACQUIRES
                   : releases_ ? LITMUSFUZZ_RELEASES
                               : LITMUSFUZZ_NONE;
    if (event.effect != LITMUSFUZZ_NONE) event.mutex = std::hash<std::string>()(names.front());
    auto* perform = new Function([=] { Perform(context, step_id, name, names, true, done); });
    const LitmusFuzzHooks* const asked = hooks;
    if (asked == nullptr || !asked->decide(asked->controller, &event, call_and_delete, perform)) {
      delete perform;
      Perform(context, step_id, name, names, false, done);
    }
  }

 private:
  /// An op that calls functions: nothing waits for it but what needs its results.
  void Call(OpKernelContext* context, int64_t step_id, const std::string& name,
            const DoneCallback& done) {
    Place inside{step_id, name};
    const auto& at = context->frame_iter();
    if (at.frame_id != 0 || at.iter_id != 0) {
      inside.around += "@" + std::to_string(at.frame_id) + "." + std::to_string(at.iter_id);
    }
    inside.around += "/";
    const Calling from(&inside);
    device_->ComputeAsync(inner_->AsAsync(), context, [=] {
      Fail(context, step_id);
      done();
    });
  }

  void Perform(OpKernelContext* context, int64_t step_id, const std::string& name,
               const std::vector<std::string>& names, bool controlled, const DoneCallback& done) {
    if (controlled && compilation_decides && compiled_late_ && !compiled().has(step_id, called_)) {
      NotCompiled(context);
      done();
      return;
    }
    AsyncOpKernel* const inner = inner_->AsAsync();
    std::optional<Inside> here;
    if (controlled && locks_decide) {
      const bool has_silent_locks = is_cluster_ || is_whole_;
      const Decided* const kernel = inner == nullptr ? this : nullptr;
      const auto op = std::make_shared<Op>(Op{step_id,
                                              name,
                                              context->frame_iter(),
                                              names,
                                              reads_only_,
                                              has_silent_locks,
                                              kernel,
                                              {},
                                              {}});
      if (!is_whole_) Find(context, op.get());
      here.emplace(op);
      if (op->tensors) here->window.emplace(*op->tensors);
    }
    if (is_whole_) open_pages();
    Inside* const decides = here ? &*here : nullptr;
    if (inner == nullptr) {
      const Decided* const around = std::exchange(computed, this);
      {
        const Deciding deciding(decides);
        device_->Compute(inner_, context);
      }
      open_pages();
      computed = around;
      Fail(context, step_id);
      done();
      return;
    }
    // An op that comes back by itself, perhaps from another thread, is waited for: but not while it
    // has stopped at a lock. `stage` is 0, 1 once the kernel has returned, 2 once the op is done.
    const auto stage = std::make_shared<std::atomic<int>>(0);
    const LitmusFuzzHooks* const asked = hooks;
    const bool comes_back = asked != nullptr && !may_wait(type_string());
    const bool acquires = acquires_;
    const std::string mutex = acquires ? names.front() : "";
    std::optional<Deciding> deciding(std::in_place, decides);
    device_->ComputeAsync(inner, context, [=] {
      // Called inside another kernel, perhaps: what follows here is the executor's.
      const Deciding nothing(nullptr);
      open_pages();
      Fail(context, step_id);
      if (acquires && context->status().ok()) {
        locks().take(address(*context->mutable_output(0)), mutex);
      }
      done();  // posts what follows
      if (stage->exchange(2) == 1 && comes_back) asked->outside(asked->controller, step_id, -1);
    });
    const bool in_part = decides != nullptr && has_parts();  // comes back in one: that is chosen
    deciding.reset();
    open_pages();
    if (comes_back && !in_part && stage->exchange(1) == 0) {
      asked->outside(asked->controller, step_id, 1);
    }
  }

  /// Finds the mutexes and the pages of the variables that the op has.
  static void Find(OpKernelContext* context, Op* here) {
    size_t tensors = 0;
    for (int i = 0; i < context->num_inputs(); ++i) {
      if (context->input_dtype(i) != tensorflow::DT_RESOURCE) {
        // It may share the memory of a variable that it was read from, or assigned to.
        const tensorflow::Tensor* const input =
            context->has_input(i) ? &context->input(i) : nullptr;
        tensors += input != nullptr && input->IsInitialized() &&
                   litmusfuzz::pages::is_owned(input->data());
        continue;
      }
      ++tensors;
      const auto& handle = context->input(i).flat<tensorflow::ResourceHandle>()(0);
      tensorflow::core::RefCountPtr<tensorflow::Var> variable;
      if (handle.maybe_type_name().find("Var") == std::string::npos) continue;
      if (!tensorflow::LookupResource(context, handle, &variable).ok()) continue;
      here->mutexes.emplace_back(variable->mu(), handle.name());
      if (pages_decide) variables().add(handle.name(), std::move(variable));
    }
    if (pages_decide) here->tensors = tensors;
  }

  /// What the kernel returns while the cluster is compiled in the background.
  static void NotCompiled(OpKernelContext* context) {
    context->set_output(0, tensorflow::Tensor(tensorflow::DT_STRING, tensorflow::TensorShape({})));
    tensorflow::Tensor is_compiled(tensorflow::DT_BOOL, tensorflow::TensorShape({}));
    is_compiled.scalar<bool>()() = false;
    context->set_output(1, is_compiled);
  }

  /// A snapshot makes the variables that are not there yet.
  bool ReadsOnly(OpKernelContext* context) const {
    if (type_string() != kCompile) return reads_only_;
    for (int i = 0; i < context->num_inputs(); ++i) {
      if (context->input_dtype(i) != tensorflow::DT_RESOURCE) continue;
      const auto& handle = context->input(i).flat<tensorflow::ResourceHandle>()(0);
      tensorflow::core::RefCountPtr<tensorflow::Var> variable;
      if (!tensorflow::LookupResource(context, handle, &variable).ok()) return false;
    }
    return true;
  }

  static void Fail(OpKernelContext* context, int64_t step_id) {
    const LitmusFuzzHooks* const asked = hooks;
    if (asked != nullptr && !context->status().ok()) asked->failed(asked->controller, step_id);
  }

  OpKernel* const inner_;  // its owner is the session
  tensorflow::Device* const device_;
  const std::string called_;
  const bool is_region_, is_cluster_, calls_, compiled_late_;
  const bool reads_only_, acquires_, releases_;
  /// It is one event at all levels: no page decides, nor a lock that is free.
  const bool is_whole_;
};

bool decides(const OpKernel& kernel) {
  const std::string& type = kernel.type_string();
  if (type == "ConsumeMutexLock" || calls(type)) return true;
  if (hands_on(type)) return false;
  for (int i = 0; i < kernel.num_inputs(); ++i) {
    if (kernel.input_type(i) == tensorflow::DT_RESOURCE) return true;
  }
  return false;
}

/// What the kernels of the graph's clusters are called: ``.compile/MEMBER`` and ``.run/MEMBER``, or
/// ``.ops/`` and the op, one by one, if the cluster is not compiled yet.
///
/// TensorFlow numbers clusters, and no number comes twice in a process. So a cluster is named by
/// the first of its members, by name, that takes a resource. So is a function with `jit_compile`:
/// ``.launch/MEMBER``, where the member would be beside the call.
class Clusters {
 public:
  Clusters(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryRuntime* library) {
    if (library == nullptr) return;
    for (const tensorflow::Node* node : graph.op_nodes()) {
      const bool launches = is_region(node->attrs());
      if (!launches && node->type_string() != kCompile) continue;
      const tensorflow::AttrValue* const function = node->attrs().Find(launches ? "f" : "function");
      if (function == nullptr) continue;
      const tensorflow::FunctionDef* const body =
          library->GetFunctionLibraryDefinition()->Find(function->func().name());
      if (body == nullptr) continue;
      if (launches) {
        const std::string& name = node->name();
        launched_[name] = ".launch/" + name.substr(0, name.rfind('/') + 1) + first_of(*body);
      } else {
        members_[cluster_of(node->name())] = first_of(*body);
      }
    }
  }

  std::string name_of(const OpKernel& kernel) const {
    if (const auto call = launched_.find(kernel.name()); call != launched_.end()) {
      return call->second;
    }
    const auto found = members_.find(cluster_of(kernel.name()));
    if (found == members_.end()) return kernel.name();
    if (kernel.type_string() == kCompile) return ".compile/" + found->second;
    if (kernel.type_string() == kRun) return ".run/" + found->second;
    if (calls(kernel.type_string())) return ".ops";  // of a cluster that is not compiled
    return kernel.name();
  }
  std::vector<std::string> members() const {
    std::vector<std::string> found;
    for (const auto& [cluster, member] : members_) found.push_back(member);
    return found;
  }

 private:
  static std::string cluster_of(const std::string& node) { return node.substr(0, node.rfind('/')); }

  static std::string first_of(const tensorflow::FunctionDef& body) {
    std::string first, first_call;  // a function may have nothing but loops and calls
    const auto take = [](const std::string& name, std::string* least) {
      if (least->empty() || name < *least) *least = name;
    };
    for (const tensorflow::NodeDef& node : body.node_def()) {
      const tensorflow::OpDef* op = nullptr;
      if (!tensorflow::OpRegistry::Global()->LookUpOpDef(node.op(), &op).ok()) continue;
      const bool takes =
          std::any_of(op->input_arg().begin(), op->input_arg().end(),
                      [](auto& each) { return each.type() == tensorflow::DT_RESOURCE; });
      if (takes) take(node.name(), &first);
      if (calls(node.op())) take(node.name(), &first_call);
    }
    return first.empty() ? first_call : first;
  }

  std::map<std::string, std::string> members_, launched_;
};

/// Hands out memory of which touches can be seen.
class PagedAllocator : public tensorflow::Allocator {
 public:
  static PagedAllocator* get() {
    static PagedAllocator* const made = new PagedAllocator;  // outlives all tensors
    return made;
  }
  std::string Name() override { return "litmusfuzz_pages"; }
  void* AllocateRaw(size_t alignment, size_t bytes) override {
    const bool is_small = bytes < kPaged;
    if (bytes == 0 || (is_small && !touches_decide)) {
      return tensorflow::cpu_allocator()->AllocateRaw(alignment, bytes);
    }
    return litmusfuzz::pages::allocate(bytes, is_small);
  }
  void DeallocateRaw(void* address) override {
    if (!litmusfuzz::pages::release(address)) tensorflow::cpu_allocator()->DeallocateRaw(address);
  }

 private:
  /// Of a smaller tensor each touch decides, if anything does: of a larger one they are too many.
  static constexpr size_t kPaged = 8192;
};

/// TensorFlow's device, with another allocator.
class PagedDevice : public tensorflow::Device {
 public:
  explicit PagedDevice(tensorflow::Device* device)
      : Device(device->env(), device->attributes()), device_(device) {}

  tensorflow::Allocator* GetAllocator(tensorflow::AllocatorAttributes) override {
    return PagedAllocator::get();
  }
  Status MakeTensorFromProto(const tensorflow::TensorProto& proto,
                             const tensorflow::AllocatorAttributes,
                             tensorflow::Tensor* tensor) override {
    tensorflow::Tensor made;
    if (!made.FromProto(PagedAllocator::get(), proto)) {
      return absl::InvalidArgumentError("a tensor that cannot be parsed");
    }
    *tensor = std::move(made);
    return absl::OkStatus();
  }

  const DeviceBase* UnderlyingDevice() const override { return device_->UnderlyingDevice(); }
  DeviceBase* UnderlyingDevice() override { return device_->UnderlyingDevice(); }
  const CpuWorkerThreads* tensorflow_cpu_worker_threads() const override {
    return device_->tensorflow_cpu_worker_threads();
  }
  const AcceleratorDeviceInfo* tensorflow_accelerator_device_info() const override {
    return device_->tensorflow_accelerator_device_info();
  }
  tsl::thread::ThreadPool* tensorflow_device_thread_pool() override {
    return device_->tensorflow_device_thread_pool();
  }
  tensorflow::Allocator* GetScopedAllocator(tensorflow::AllocatorAttributes attributes,
                                            int64_t step_id) override {
    return device_->GetScopedAllocator(attributes, step_id);
  }
  tensorflow::ScopedAllocatorMgr* GetScopedAllocatorMgr() const override {
    return device_->GetScopedAllocatorMgr();
  }
  bool has_eigen_cpu_device() const override { return device_->has_eigen_cpu_device(); }
  const Eigen::ThreadPoolDevice* eigen_cpu_device() override { return device_->eigen_cpu_device(); }
  void CopyTensorInSameDevice(const tensorflow::Tensor* from, tensorflow::Tensor* to,
                              const tensorflow::DeviceContext* context,
                              tensorflow::StatusCallback done) override {
    device_->CopyTensorInSameDevice(from, to, context, std::move(done));
  }
  void Compute(OpKernel* kernel, OpKernelContext* context) override {
    device_->Compute(kernel, context);
  }
  void ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context,
                    AsyncOpKernel::DoneCallback done) override {
    device_->ComputeAsync(kernel, context, std::move(done));
  }
  Status Sync() override { return device_->Sync(); }
  Status TryGetDeviceContext(tensorflow::DeviceContext** context) override {
    return device_->TryGetDeviceContext(context);
  }
  tensorflow::ResourceMgr* resource_manager() override { return device_->resource_manager(); }
  bool IsLocal() const override { return device_->IsLocal(); }
  bool IsRemoteCallAllowed() const override { return device_->IsRemoteCallAllowed(); }

 private:
  tensorflow::Device* const device_;
};

constexpr char kExecutor[] = "LITMUSFUZZ_CONTROLLED";
constexpr char kExecutorInside[] = "LITMUSFUZZ_CONTROLLED_INSIDE";

/// TensorFlow's library of functions; executors of functions are ours.
class ControlledLibrary : public tensorflow::FunctionLibraryRuntime {
 public:
  explicit ControlledLibrary(FunctionLibraryRuntime* library) : library_(library) {}

  Status Instantiate(const std::string& name, tensorflow::AttrSlice attrs,
                     const InstantiateOptions& options, Handle* handle) override {
    InstantiateOptions ours = options;
    if (ExecutorType(options, attrs).empty()) ours.executor_type = kExecutorInside;
    return library_->Instantiate(name, attrs, ours, handle);
  }

  Status ReleaseHandle(Handle handle) override { return library_->ReleaseHandle(handle); }
  const tensorflow::FunctionBody* GetFunctionBody(Handle handle) override {
    return library_->GetFunctionBody(handle);
  }
  Status GetRetTypes(Handle handle, tensorflow::DataTypeVector* types) override {
    return library_->GetRetTypes(handle, types);
  }
  void Run(const Options& options, Handle handle, absl::Span<const tensorflow::Tensor> given,
           std::vector<tensorflow::Tensor>* returned, DoneCallback done) override {
    library_->Run(options, handle, given, returned, std::move(done));
  }
  void Run(const Options& options, Handle handle, tensorflow::CallFrameInterface* frame,
           DoneCallback done) override {
    library_->Run(options, handle, frame, std::move(done));
  }
  Status RunSync(Options options, Handle handle, absl::Span<const tensorflow::Tensor> given,
                 std::vector<tensorflow::Tensor>* returned) override {
    return library_->RunSync(std::move(options), handle, given, returned);
  }
  Status RunSync(Options options, Handle handle, tensorflow::CallFrameInterface* frame) override {
    return library_->RunSync(std::move(options), handle, frame);
  }
  Status CreateKernel(const std::shared_ptr<const tensorflow::NodeProperties>& properties,
                      OpKernel** kernel) override {
    return library_->CreateKernel(properties, kernel);
  }
  bool IsStateful(const std::string& name) const override { return library_->IsStateful(name); }
  tensorflow::Device* device() override { return library_->device(); }
  const tensorflow::Device* device() const override {
    return static_cast<const FunctionLibraryRuntime*>(library_)->device();
  }
  std::function<void(std::function<void()>)>* runner() override { return library_->runner(); }
  const tensorflow::DeviceMgr* device_mgr() const override { return library_->device_mgr(); }
  const tensorflow::FunctionLibraryDefinition* GetFunctionLibraryDefinition() const override {
    return library_->GetFunctionLibraryDefinition();
  }
  tensorflow::Env* env() override { return library_->env(); }
  const tensorflow::ConfigProto* const config_proto() override { return library_->config_proto(); }
  std::string DebugString(Handle handle) override { return library_->DebugString(handle); }
  int graph_def_version() const override { return library_->graph_def_version(); }
  Status Clone(std::unique_ptr<tensorflow::FunctionLibraryDefinition>* definition,
               std::unique_ptr<tensorflow::ProcessFunctionLibraryRuntime>* process,
               FunctionLibraryRuntime** library, bool skip_flib_def) override {
    return library_->Clone(definition, process, library, skip_flib_def);
  }

 private:
  FunctionLibraryRuntime* const library_;
};

/// Wraps the kernels that decide. They stay the session's, which keeps the stateful ones for all
/// its executors.
tensorflow::LocalExecutorParams wrapping(tensorflow::LocalExecutorParams params,
                                         const tensorflow::Graph& graph,
                                         tensorflow::FunctionLibraryRuntime* library,
                                         const Clusters& clusters) {
  const int version = graph.versions().producer();
  const auto create = params.create_kernel;
  const auto destroy = params.delete_kernel;
  tensorflow::Device* const device = params.device;
  params.create_kernel = [create, device, version, clusters, library](
                             const std::shared_ptr<const tensorflow::NodeProperties>& properties,
                             OpKernel** kernel) -> Status {
    OpKernel* inner = nullptr;
    // A constant makes its tensor itself, and a variable may take it over. No session keeps it.
    const bool is_paged = pages_decide && properties->node_def.op() == "Const";
    Status status =
        is_paged ? tensorflow::CreateNonCachedKernel(device, library, properties, version, &inner)
                 : create(properties, &inner);
    *kernel = inner;
    if (!status.ok() || !decides(*inner)) return status;
    tensorflow::OpKernelConstruction construction(
        tensorflow::DeviceType(device->device_type()), device, nullptr, library,
        device->resource_manager(), properties, inner->input_memory_types(),
        inner->output_memory_types(), version, &status);
    *kernel =
        new Decided(&construction, inner, device, clusters.name_of(*inner), properties->node_def);
    return status;
  };
  params.delete_kernel = [destroy](OpKernel* kernel) {
    if (auto* const decided = dynamic_cast<Decided*>(kernel)) {
      destroy(decided->inner());
      delete decided;
    } else {
      destroy(kernel);
    }
  };
  return params;
}

class ControlledExecutor : public tensorflow::Executor {
  /// Each is of the one before; the last one is the executor's.
  using Devices = std::vector<std::unique_ptr<tensorflow::Device>>;

 public:
  /// That of a function if it is `inside` of another one.
  static Status Make(const tensorflow::LocalExecutorParams& params, const tensorflow::Graph& graph,
                     bool inside, std::unique_ptr<tensorflow::Executor>* made) {
    Devices devices;
    // As an executor does for each run that has its own threads.
    devices.push_back(tensorflow::RenamedDevice::NewRenamedDevice(
        params.device->name(), params.device, false, false, Parts::get()));
    if (pages_decide) devices.push_back(std::make_unique<PagedDevice>(devices.back().get()));
    tensorflow::core::RefCountPtr<ControlledLibrary> library;
    tensorflow::LocalExecutorParams ours = params;
    ours.device = devices.back().get();
    if (params.function_library != nullptr) {
      library.reset(new ControlledLibrary(params.function_library));
      ours.function_library = library.get();
    }
    const Clusters clusters(graph, params.function_library);
    tensorflow::Executor* inner = nullptr;
    Status status = tensorflow::NewLocalExecutor(
        wrapping(std::move(ours), graph, params.function_library, clusters), graph, &inner);
    if (status.ok()) {
      made->reset(new ControlledExecutor(std::move(devices), std::move(library), inner, inside,
                                         clusters.members()));
    }
    if (!inside) ++executors_made;
    return status;
  }

 private:
  ControlledExecutor(Devices devices, tensorflow::core::RefCountPtr<ControlledLibrary> library,
                     tensorflow::Executor* inner, bool inside, std::vector<std::string> clusters)
      : devices_(std::move(devices)),
        library_(std::move(library)),
        inside_(inside),
        clusters_(std::move(clusters)),
        inner_(inner) {}

  void RunAsyncInternal(const Args& args, DoneCallback done) override {
    const int64_t step_id = args.step_id;
    // What belongs to this run asks the controller that it began with, also once it is detached.
    const LitmusFuzzHooks* const asked = hooks;
    if (inside_) return RunFunction(asked, args, std::move(done));
    const uint64_t execution = asked == nullptr ? 0 : asked->arrive(asked->controller, step_id);
    if (execution == 0) {
      inner_->RunAsync(args, std::move(done));
      return;
    }
    if (pages_decide) variables().begin(execution);
    const Args ours = controlled(asked, step_id, args);
    if (compilation_decides) Compile(asked, execution, step_id);
    inner_->RunAsync(ours, [asked, step_id, done = std::move(done)](const Status& status) {
      if (!status.ok()) asked->failed(asked->controller, step_id);
      asked->ended(asked->controller, step_id);
      done(status);
    });
    asked->begun(asked->controller, step_id);
  }

  /// Each cluster is compiled at any time, or when all else is over.
  void Compile(const LitmusFuzzHooks* asked, uint64_t execution, int64_t step_id) {
    compiled().begin(execution);
    for (const std::string& member : clusters_) {
      const std::string node = ".compiled/" + member;
      const char* const resources[] = {kCompiler};
      LitmusFuzzEvent event{};
      event.step_id = step_id;
      event.node = node.c_str();
      event.point = "begin";
      event.resources = resources;
      event.resource_count = 1;
      auto* const compile = new Function([=] { compiled().add(step_id, ".compile/" + member); });
      if (!asked->decide(asked->controller, &event, call_and_delete, compile)) {
        call_and_delete(compile);
      }
    }
  }

  /// The run that calls it has arrived, and ends after it.
  void RunFunction(const LitmusFuzzHooks* asked, const Args& args, DoneCallback done) {
    if (asked == nullptr || calling == nullptr) {
      inner_->RunAsync(args, std::move(done));
      return;
    }
    const Args ours = controlled(asked, calling->step_id, args);
    const void* const frame = args.call_frame;
    functions().begin(frame, *calling);
    inner_->RunAsync(ours, [from = *calling, frame, done = std::move(done)](const Status& status) {
      functions().end(frame);
      const Calling again(&from);  // a loop calls the next function
      done(status);
    });
  }

  static Args controlled(const LitmusFuzzHooks* asked, int64_t step_id, const Args& args) {
    Args ours = args;
    ours.runner = posting(asked, step_id, args);
    return ours;
  }

  /// A runner whose closures come to the controller.
  static Args::Runner posting(const LitmusFuzzHooks* asked, int64_t step_id, const Args& args) {
    return [asked, step_id, theirs = args.runner](Args::Closure closure) {
      // A kernel may wait at a page, in this thread even.
      auto* const function = new Function([closure = std::move(closure)] {
        open_pages();
        closure();
      });
      if (asked->post(asked->controller, step_id, call_and_delete, function)) return;
      const std::unique_ptr<Function> back(function);
      theirs(std::move(*back));
    };
  }

  const Devices devices_;
  const tensorflow::core::RefCountPtr<ControlledLibrary> library_;
  const bool inside_;
  const std::vector<std::string> clusters_;  // the first member of each
  const std::unique_ptr<tensorflow::Executor> inner_;
};

class Factory : public tensorflow::ExecutorFactory {
 public:
  explicit Factory(bool inside) : inside_(inside) {}

 private:
  Status NewExecutor(const tensorflow::LocalExecutorParams& params, const tensorflow::Graph& graph,
                     std::unique_ptr<tensorflow::Executor>* made) override {
    return ControlledExecutor::Make(params, graph, inside_, made);
  }

  const bool inside_;
};

const struct Registered {
  Registered() {
    tensorflow::ExecutorFactory::Register(kExecutor, new Factory(false));
    tensorflow::ExecutorFactory::Register(kExecutorInside, new Factory(true));
  }
} registered;

}  // namespace

extern "C" {

/// Connects the controller, or none; 0 if it is of another version.
__attribute__((visibility("default"))) int litmusfuzz_attach(const LitmusFuzzHooks* theirs) {
  if (theirs != nullptr && theirs->version != LITMUSFUZZ_CONTROL_VERSION) return 0;
  hooks = theirs;
  return 1;
}

/// Whether locks inside kernels decide; "" or why they cannot.
__attribute__((visibility("default"))) const char* litmusfuzz_decide_locks(int decide) {
  static std::string why;
  if (decide) {
    why = litmusfuzz::locks::interpose({decide_lock, after_unlock, has_parts, join_parts});
  }
  locks_decide = decide && why.empty();
  return why.c_str();
}

/// Whether each touch of a variable's tensor can decide, on this processor.
__attribute__((visibility("default"))) int litmusfuzz_sees_touches() {
  return litmusfuzz::pages::kSeesEachTouch;
}

/// Whether pages of variables' tensors decide, or each touch (2), in sessions that are made from
/// now on. Locks then decide too.
__attribute__((visibility("default"))) void litmusfuzz_decide_pages(int decide) {
  pages_decide = decide;
  touches_decide = decide == 2;
  if (decide) {
    litmusfuzz::pages::start(decide_page, tell_owners);
  } else {
    variables().begin(0);
    litmusfuzz::pages::stop();
  }
}

/// In how many threads the ops of sessions that are made from now on do their work: if in more than
/// 1, their parts decide; "" or why they cannot. Locks decide then, before.
__attribute__((visibility("default"))) const char* litmusfuzz_decide_parts(int threads) {
  static std::string why;
  why = threads > 1 ? litmusfuzz::locks::lacking_waits() : "";
  threads_for_parts = why.empty() ? threads : 1;
  return why.c_str();
}

/// Whether it decides when a cluster is compiled, in the background.
__attribute__((visibility("default"))) void litmusfuzz_decide_compilation(int decide) {
  compilation_decides = decide;
}

/// Number of executors that sessions have made: one for each device that a callable runs on.
__attribute__((visibility("default"))) uint32_t litmusfuzz_executors_made() {
  return executors_made;
}
}
