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
// is an event, and the handler of the fault waits for it.
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
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/graph/graph.h"

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

/// Ops that look at a resource, and do not change it.
bool reads_only(const std::string& type) {
  static const char* const types[] = {
      "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp",
      "VariableShape",  "QueueSizeV2",    "QueueIsClosedV2",  "ResourceAccumulatorNumAccumulated"};
  for (const char* each : types) {
    if (type == each) return true;
  }
  return false;
}

/// Asynchronous ops that may wait for another op of the graph. All others come back by
/// themselves.
bool may_wait(const std::string& type) {
  return type.find("Queue") != std::string::npos || type.find("Accumulator") != std::string::npos ||
         type.find("Recv") != std::string::npos || type.find("Unstage") != std::string::npos ||
         type.find("Barrier") != std::string::npos;
}

/// Ops that are handed a resource, and neither look at it nor change it.
bool hands_on(const std::string& type) {
  static const char* const types[] = {
      "Identity",  "IdentityN",     "Switch",        "RefSwitch",    "Merge",     "Enter",
      "Exit",      "NextIteration", "LoopCond",      "_Send",        "_Recv",     "_HostSend",
      "_HostRecv", "_Retval",       "_Arg",          "StopGradient", "_SwitchN",  "Pack",
      "Select",    "SelectV2",      "_DeviceRetval", "NoOp",         "_DeviceArg"};
  for (const char* each : types) {
    if (type == each) return true;
  }
  return false;
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

/// What a thread computes, while the locks that it takes decide.
struct Inside {
  const OpKernel* kernel;
  OpKernelContext* context;
  const std::vector<std::string>* resources;
  bool reads_only;
  /// The mutexes of the resources that were there when the op began, by name.
  std::vector<std::pair<const void*, std::string>> mutexes;
  /// Where pages decide.
  std::optional<litmusfuzz::pages::Window> window;
};
thread_local Inside* inside = nullptr;
bool locks_decide = false;
bool pages_decide = false;

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
  /// Tells whose the tensors are now. Nobody changes them: one kernel computes at a time.
  void mark() {
    const std::lock_guard<std::mutex> guard(lock_);
    for (const auto& [name, variable] : found_) {
      const tensorflow::Tensor& tensor = *variable->tensor();
      // What strings have elsewhere has no pages of its own.
      if (!tensor.IsInitialized() || !tensorflow::DataTypeCanUseMemcpy(tensor.dtype())) continue;
      litmusfuzz::pages::own(tensor.data(), name);
    }
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
  event.step_id = kernel.context->step_id();
  event.node = kernel.kernel->name().c_str();
  event.frame = kernel.context->frame_iter().frame_id;
  event.iteration = kernel.context->frame_iter().iter_id;
  return event;
}

/// What the kernel that a thread computes is inside of; see `Decided::AsAsync`.
class Decided;
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

/// Before a kernel touches a page.
void decide_page(const litmusfuzz::pages::Touch& touch) {
  Inside* const here = inside;
  const Deciding nothing(nullptr);
  std::vector<const char*> resources;
  // Until its next event the kernel may look at, or change, what its op does.
  for (const std::string& each : *here->resources) resources.push_back(each.c_str());
  // By the name that the op has for it, if several variables have one tensor.
  const std::string* of = &touch.owners.front();
  for (const std::string& each : touch.owners) {
    const auto& names = *here->resources;
    if (std::find(names.begin(), names.end(), each) != names.end()) {
      of = &each;
    } else {
      resources.push_back(each.c_str());
    }
  }
  const std::string point = (touch.writes ? "write of page " : "read of page ") +
                            std::to_string(touch.page) + " of " + *of;
  LitmusFuzzEvent event = event_in(*here);
  event.point = point.c_str();
  event.resources = resources.data();
  event.resource_count = static_cast<uint32_t>(resources.size());
  event.reads_only = here->reads_only && !touch.writes;
  stop_at(event, here);
}

/// The resource whose mutex this is; "other" for all the others, such as the manager's.
std::string name_of(const Inside& here, const void* mutex) {
  for (const auto& [each, name] : here.mutexes) {
    if (each == mutex) return name;
  }
  return "other";
}

/// Before a lock inside a kernel, which is free once this returns, if the controller decides.
void decide_lock(void* mutex, bool shared) {
  Inside* const here = inside;
  if (here == nullptr) return;
  const Deciding nothing(nullptr);
  const std::string point = (shared ? "shared lock of " : "lock of ") + name_of(*here, mutex);
  const char* const lock = point.c_str() + (shared ? std::strlen("shared ") : 0);
  std::vector<const char*> resources{lock};
  // Until its next event the kernel may look at, or change, what its op does.
  for (const std::string& each : *here->resources) resources.push_back(each.c_str());
  LitmusFuzzEvent event = event_in(*here);
  event.point = point.c_str();
  event.resources = resources.data();
  event.resource_count = static_cast<uint32_t>(resources.size());
  event.reads_only = here->reads_only && shared;
  event.effect = LITMUSFUZZ_ACQUIRES;
  event.mutex = reinterpret_cast<uint64_t>(mutex);
  event.shared = shared;
  stop_at(event, here);
}

void after_unlock(void* mutex, bool) {
  if (inside != nullptr && hooks != nullptr) {
    hooks->released(hooks->controller, reinterpret_cast<uint64_t>(mutex));
  }
}

/// A kernel that is computed when the controller chooses it.
class Decided : public AsyncOpKernel {
 public:
  Decided(tensorflow::OpKernelConstruction* made, OpKernel* inner, tensorflow::Device* device)
      : AsyncOpKernel(made),
        inner_(inner),
        device_(device),
        reads_only_(reads_only(type_string())),
        acquires_(type_string() == "MutexLock"),
        releases_(type_string() == "ConsumeMutexLock") {}

  OpKernel* inner() const { return inner_; }
  /// While an op of a synchronous kernel is computed, it is one: OP_REQUIRES looks.
  AsyncOpKernel* AsAsync() override { return computed == this ? nullptr : this; }
  bool IsExpensive() override { return true; }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    std::vector<std::string> names;
    for (int i = 0; i < context->num_inputs(); ++i) {
      if (context->input_dtype(i) != tensorflow::DT_RESOURCE) continue;
      const tensorflow::Tensor& handles = context->input(i);
      for (int64_t k = 0; k < handles.NumElements(); ++k) {
        names.push_back(handles.flat<tensorflow::ResourceHandle>()(k).name());
      }
    }
    if (releases_) names.push_back(locks().give(address(context->input(0))));
    std::vector<const char*> resources;
    for (const std::string& each : names) resources.push_back(each.c_str());
    LitmusFuzzEvent event{};
    event.step_id = context->step_id();
    event.node = name().c_str();
    event.frame = context->frame_iter().frame_id;
    event.iteration = context->frame_iter().iter_id;
    event.point = "begin";
    event.resources = resources.data();
    event.resource_count = static_cast<uint32_t>(resources.size());
    event.reads_only = reads_only_;
    event.effect = acquires_   ? LITMUSFUZZ_ACQUIRES
                   : releases_ ? LITMUSFUZZ_RELEASES
                               : LITMUSFUZZ_NONE;
    if (event.effect != LITMUSFUZZ_NONE) event.mutex = std::hash<std::string>()(names.front());
    auto* perform = new Function([=] { Perform(context, names, true, done); });
    const LitmusFuzzHooks* const asked = hooks;
    if (asked == nullptr || !asked->decide(asked->controller, &event, call_and_delete, perform)) {
      delete perform;
      Perform(context, names, false, done);
    }
  }

 private:
  void Perform(OpKernelContext* context, const std::vector<std::string>& names, bool controlled,
               const DoneCallback& done) {
    const int64_t step_id = context->step_id();
    Inside here{inner_, context, &names, reads_only_, {}, {}};
    Inside* const decides = controlled && locks_decide ? &here : nullptr;
    if (decides != nullptr) Find(context, decides);
    AsyncOpKernel* const inner = inner_->AsAsync();
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
      if (stage->exchange(2) == 1 && comes_back) asked->outside(asked->controller, -1);
    });
    deciding.reset();
    open_pages();
    if (comes_back && stage->exchange(1) == 0) asked->outside(asked->controller, 1);
  }

  /// Finds the mutexes and the pages of the variables that the op has.
  static void Find(OpKernelContext* context, Inside* here) {
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
    if (pages_decide) here->window.emplace(tensors);
  }

  static void Fail(OpKernelContext* context, int64_t step_id) {
    const LitmusFuzzHooks* const asked = hooks;
    if (asked != nullptr && !context->status().ok()) asked->failed(asked->controller, step_id);
  }

  OpKernel* const inner_;  // its owner is the session
  tensorflow::Device* const device_;
  const bool reads_only_, acquires_, releases_;
};

bool decides(const OpKernel& kernel) {
  const std::string& type = kernel.type_string();
  if (type == "ConsumeMutexLock") return true;
  if (hands_on(type)) return false;
  for (int i = 0; i < kernel.num_inputs(); ++i) {
    if (kernel.input_type(i) == tensorflow::DT_RESOURCE) return true;
  }
  return false;
}

/// Hands out memory of which touches can be seen, for tensors that are large enough.
class PagedAllocator : public tensorflow::Allocator {
 public:
  static PagedAllocator* get() {
    static PagedAllocator* const made = new PagedAllocator;  // outlives all tensors
    return made;
  }
  std::string Name() override { return "litmusfuzz_pages"; }
  void* AllocateRaw(size_t alignment, size_t bytes) override {
    if (bytes < kLeast) return tensorflow::cpu_allocator()->AllocateRaw(alignment, bytes);
    return litmusfuzz::pages::allocate(bytes);
  }
  void DeallocateRaw(void* address) override {
    if (!litmusfuzz::pages::release(address)) tensorflow::cpu_allocator()->DeallocateRaw(address);
  }

 private:
  static constexpr size_t kLeast = 8192;
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

/// Wraps the kernels that decide. They stay the session's, which keeps the stateful ones for all
/// its executors.
tensorflow::LocalExecutorParams wrapping(tensorflow::LocalExecutorParams params, int version) {
  const auto create = params.create_kernel;
  const auto destroy = params.delete_kernel;
  tensorflow::Device* const device = params.device;
  params.create_kernel = [create, device, version, library = params.function_library](
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
    *kernel = new Decided(&construction, inner, device);
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
 public:
  static Status Make(const tensorflow::LocalExecutorParams& params, const tensorflow::Graph& graph,
                     std::unique_ptr<tensorflow::Executor>* made) {
    std::unique_ptr<PagedDevice> device;
    if (pages_decide) device = std::make_unique<PagedDevice>(params.device);
    tensorflow::LocalExecutorParams ours = params;
    if (device) ours.device = device.get();
    tensorflow::Executor* inner = nullptr;
    Status status = tensorflow::NewLocalExecutor(
        wrapping(std::move(ours), graph.versions().producer()), graph, &inner);
    if (status.ok()) made->reset(new ControlledExecutor(std::move(device), inner));
    ++executors_made;
    return status;
  }

 private:
  ControlledExecutor(std::unique_ptr<PagedDevice> device, tensorflow::Executor* inner)
      : device_(std::move(device)), inner_(inner) {}

  void RunAsyncInternal(const Args& args, DoneCallback done) override {
    const int64_t step_id = args.step_id;
    // What belongs to this run asks the controller that it began with, also once it is detached.
    const LitmusFuzzHooks* const asked = hooks;
    const uint64_t execution = asked == nullptr ? 0 : asked->arrive(asked->controller, step_id);
    if (execution == 0) {
      inner_->RunAsync(args, std::move(done));
      return;
    }
    if (pages_decide) variables().begin(execution);
    Args ours = args;
    ours.runner = [asked, step_id, theirs = args.runner](Args::Closure closure) {
      // A kernel may wait at a page, in this thread even.
      auto* const function = new Function([closure = std::move(closure)] {
        open_pages();
        closure();
      });
      if (asked->post(asked->controller, step_id, call_and_delete, function)) return;
      const std::unique_ptr<Function> back(function);
      theirs(std::move(*back));
    };
    inner_->RunAsync(ours, [asked, step_id, done = std::move(done)](const Status& status) {
      if (!status.ok()) asked->failed(asked->controller, step_id);
      asked->ended(asked->controller, step_id);
      done(status);
    });
    asked->begun(asked->controller, step_id);
  }

  const std::unique_ptr<PagedDevice> device_;  // null where pages do not decide
  const std::unique_ptr<tensorflow::Executor> inner_;
};

class Factory : public tensorflow::ExecutorFactory {
  Status NewExecutor(const tensorflow::LocalExecutorParams& params, const tensorflow::Graph& graph,
                     std::unique_ptr<tensorflow::Executor>* made) override {
    return ControlledExecutor::Make(params, graph, made);
  }
};

const struct Registered {
  Registered() { tensorflow::ExecutorFactory::Register("LITMUSFUZZ_CONTROLLED", new Factory); }
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
  if (decide) why = litmusfuzz::locks::interpose({decide_lock, after_unlock});
  locks_decide = decide && why.empty();
  return why.c_str();
}

/// Whether pages of variables' tensors decide, in sessions that are made from now on. Locks then
/// decide too.
__attribute__((visibility("default"))) void litmusfuzz_decide_pages(int decide) {
  pages_decide = decide;
  if (decide) {
    litmusfuzz::pages::start(decide_page);
  } else {
    variables().begin(0);
    litmusfuzz::pages::stop();
  }
}

/// Number of executors that sessions have made: one for each device that a callable runs on.
__attribute__((visibility("default"))) uint32_t litmusfuzz_executors_made() {
  return executors_made;
}
}
