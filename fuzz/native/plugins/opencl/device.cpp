// OpenCL implementation of gpu/device.h.
//
// The order of commands is kept by OpenCL's events: a command waits for those that wrote what it
// reads, and the first that writes into a reused buffer waits for all that used it before. In-order
// queues make waits for commands of the same queue unnecessary.
#include "gpu/device.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "opencl/platform.h"
#include "opencl/sources.h"

namespace litmusfuzz::executor::opencl {
namespace {

using gpu::Call;

bool broken(const gpu::Settings& settings, Defect which) {
  return kMutants && settings.defect == which;
}

// --- kernels ---------------------------------------------------------------------------

constexpr size_t kGroup = 64;  // work-items of a group, of which those that are too many return

/// The argument of that name in common.cl.
struct Numbers {
  cl_ulong at[8];
  cl_uint op, threads, nesterov, row_count, row_elements, inner, columns;
  cl_uint wide[3];
};

constexpr std::pair<const char*, Op> kOps[] = {
    {"kNoOp", Op::kNoOp},
    {"kConst", Op::kConst},
    {"kIdentity", Op::kIdentity},
    {"kNeg", Op::kNeg},
    {"kRelu", Op::kRelu},
    {"kAddV2", Op::kAddV2},
    {"kSub", Op::kSub},
    {"kMul", Op::kMul},
    {"kMaximum", Op::kMaximum},
    {"kMinimum", Op::kMinimum},
    {"kLess", Op::kLess},
    {"kEqual", Op::kEqual},
    {"kSelect", Op::kSelect},
    {"kReluGrad", Op::kReluGrad},
    {"kMatMul", Op::kMatMul},
    {"kAssignAdd", Op::kAssignAdd},
    {"kAssignSub", Op::kAssignSub},
    {"kGradientDescent", Op::kGradientDescent},
    {"kMomentum", Op::kMomentum},
    {"kKerasMomentum", Op::kKerasMomentum},
    {"kScatterUpdate", Op::kScatterUpdate},
    {"kScatterAdd", Op::kScatterAdd},
    {"kScatterSub", Op::kScatterSub},
    {"kScatterMul", Op::kScatterMul},
    {"kScatterMin", Op::kScatterMin},
    {"kScatterMax", Op::kScatterMax},
};

/// An operand type: T, U, and whether it is a float.
struct Operand {
  DType dtype;
  const char* t;
  const char* u;
  bool real = false;
};
constexpr Operand kOperands[] = {
    {DType::kInt32, "int", "uint"},
    {DType::kInt64, "long", "ulong"},
    {DType::kFloat32, "float", "float", true},
    {DType::kFloat64, "double", "double", true},
    {DType::kBool, "uchar", "uint"},
};
constexpr size_t kDTypes = std::size(kOperands);

// No streams: where a compiler links the standard library into each plug-in, those of the second
// plug-in of a process have no locale, and crash.
std::string source(bool doubles) {
  std::string made = kCommonSource;
  for (const auto& [name, op] : kOps) {
    made += "#define " + std::string(name) + ' ' + std::to_string(static_cast<int>(op)) + '\n';
  }
  for (const Operand& each : kOperands) {
    if (each.dtype == DType::kFloat64 && !doubles) continue;
    const std::string t = each.t;
    made += "#define T " + t + "\n#define U " + each.u + "\n#define FN(name) name##_" + t + '\n';
    if (each.real) made += "#define REAL\n";
    made += kKernelsSource;
    made += "#undef T\n#undef U\n#undef FN\n#undef REAL\n";
  }
  return made;
}

/// A context of one device, and the kernels compiled for it. A process compiles once for a
/// device, since a test has a `Device` of its own, and compiling takes longer than the test.
struct Compiled {
  cl_device_id device;
  Context context;
  Program program;
  bool doubles = false;
};

std::shared_ptr<Compiled> compile(const gpu::Settings& settings) {
  auto made = std::make_shared<Compiled>();
  made->device = chosen(settings);
  cl_device_fp_config real = 0;
  clGetDeviceInfo(made->device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof real, &real, nullptr);
  made->doubles = real != 0;
  cl_int error = 0;
  made->context = Context(clCreateContext(nullptr, 1, &made->device, nullptr, nullptr, &error));
  check(error, "clCreateContext");
  std::string options = "-cl-std=CL1.2";
  if (broken(settings, Defect::kContraction)) options += " -DCONTRACTION";
  if (broken(settings, Defect::kBrokenSource)) options += " -Dcontents=";
  made->program = built(made->context, made->device, source(made->doubles), options);
  return made;
}

using Key = std::tuple<std::string, uint32_t, uint32_t, Defect>;

/// What this process has compiled. Never destroyed, as in devices.cpp.
struct Cache {
  std::mutex lock;
  std::map<Key, std::shared_ptr<Compiled>> compiled;
};
Cache& cache() {
  static Cache& made = *new Cache;
  return made;
}

Key key_of(const gpu::Settings& settings) {
  return {settings.platform, settings.sub_devices, settings.number, settings.defect};
}

std::shared_ptr<Compiled> compiled(const gpu::Settings& settings) {
  const std::lock_guard guard(cache().lock);
  auto& found = cache().compiled[key_of(settings)];
  if (!found) found = compile(settings);
  return found;
}

// --- commands ---------------------------------------------------------------------------

struct Command;
using CommandPtr = std::shared_ptr<Command>;
using Commands = std::vector<CommandPtr>;

/// A command in a queue.
struct Command {
  EventHandle event;
  EventHandle gate;  // holds it back, in a gated device
  uint32_t queue = 0;
  Commands waits;  // until it is released

  bool done() const {
    cl_int status = CL_QUEUED;
    check(clGetEventInfo(event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                         nullptr),
          "clGetEventInfo");
    if (status < 0) throw std::runtime_error("OpenCL: a command failed: " + name_of(status));
    return status == CL_COMPLETE;
  }
  void wait() const {
    const cl_event object = event.get();
    const cl_int error = clWaitForEvents(1, &object);
    done();  // throws the error of the command, which says more
    check(error, "clWaitForEvents");
  }
};

/// Adds a command; forgets some that are done, so that a value that is often read, as a constant
/// is, does not keep all its readers.
void remember(Commands& commands, const CommandPtr& command) {
  constexpr size_t kMany = 16;
  if (commands.size() >= kMany) {
    std::erase_if(commands, [](const CommandPtr& each) { return each->done(); });
  }
  commands.push_back(command);
}

/// Memory of the device, used for one value after another.
struct Buffer {
  Memory memory;
  size_t capacity = 0;
  Commands before;  // that used it for earlier values, or filled it since
  Commands writes, reads;
  bool mapped = false;  // a map has been enqueued, and its unmap has not
  CommandPtr unmap = {};  // the last one
};

// --- the device -------------------------------------------------------------------------

class OpenCl final : public gpu::Device {
 public:
  explicit OpenCl(const gpu::Settings& settings)
      : settings_(settings), compiled_(compiled(settings)) {
    cl_int error = 0;
    const cl_command_queue_properties order =
        settings.out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0;
    for (uint32_t q = 0; q < settings.queues; ++q) {
      queues_.emplace_back(
          clCreateCommandQueue(compiled_->context.get(), compiled_->device, order, &error));
      check(error, "clCreateCommandQueue");
    }
    last_.resize(settings.queues);
    for (size_t k = 0; k < kDTypes; ++k) {
      if (!computes(kOperands[k].dtype)) continue;
      const std::string name = std::string("element_") + kOperands[k].t;
      kernels_[k] = Kernel(clCreateKernel(compiled_->program.get(), name.c_str(), &error));
      check(error, "clCreateKernel");
    }
  }
  ~OpenCl() override {
    for (const CommandPtr& each : held_) open(*each);
    for (const Queue& each : queues_) clFinish(each.get());
  }
  OpenCl(const OpenCl&) = delete;

  void* allocate(size_t bytes) override {
    const std::lock_guard guard(lock_);
    const size_t capacity = std::bit_ceil(std::max<size_t>(bytes, 64));
    std::vector<uintptr_t>& free = free_[capacity];
    uintptr_t start;
    if (free.empty()) {
      cl_int error = 0;
      Memory memory(
          clCreateBuffer(compiled_->context.get(), CL_MEM_READ_WRITE, capacity, nullptr, &error));
      check(error, "clCreateBuffer");
      start = next_address_;
      next_address_ += capacity;
      buffers_.emplace(start, Buffer{std::move(memory), capacity, {}, {}, {}});
    } else {
      start = free.back();
      free.pop_back();
      if (settings_.gated) spoil(buffers_.at(start));
    }
    return reinterpret_cast<void*>(start);
  }

  void free(void* there) noexcept override {
    const std::lock_guard guard(lock_);
    const auto start = reinterpret_cast<uintptr_t>(there);
    Buffer& buffer = buffers_.at(start);
    // Each write waits for what was before, and each read for the writes.
    if (!buffer.writes.empty()) buffer.before.clear();
    for (Commands* each : {&buffer.writes, &buffer.reads}) {
      buffer.before.insert(buffer.before.end(), each->begin(), each->end());
      each->clear();
    }
    free_[buffer.capacity].push_back(start);
  }

  std::byte* allocate_here(size_t bytes) override { return new std::byte[bytes]; }
  void free_here(std::byte* here) noexcept override { delete[] here; }

  void copy_in(void* there, const std::byte* here, size_t bytes) override {
    const std::lock_guard guard(lock_);
    const auto [buffer, at] = find(there);
    if (++transfers_ % 2 == 0) return map_in(*buffer, at, here, bytes);
    const CommandPtr copy =
        submit("clEnqueueWriteBuffer", waits_of_write(*buffer), [&](auto queue, auto... waits) {
          return clEnqueueWriteBuffer(queue, buffer->memory.get(), CL_FALSE, at, bytes, here,
                                      waits...);
        });
    if (!broken(settings_, Defect::kUnawaitedUpload)) buffer->writes.push_back(copy);
    copies_.push_back(copy);
  }

  void copy_out(std::byte* here, const void* there, size_t bytes) override {
    std::unique_lock guard(lock_);
    const auto [buffer, at] = find(there);
    // Not what the last execution left there, which may be the same.
    if (broken(settings_, Defect::kUnawaitedDownload)) std::memset(here, kSpoilt & 0xFF, bytes);
    if (++transfers_ % 2 == 0 && !buffer->mapped) return map_out(*buffer, at, here, bytes, guard);
    const CommandPtr copy =
        submit("clEnqueueReadBuffer", buffer->writes, [&](auto queue, auto... waits) {
          return clEnqueueReadBuffer(queue, buffer->memory.get(), CL_FALSE, at, bytes, here,
                                     waits...);
        });
    remember(buffer->reads, copy);
    if (broken(settings_, Defect::kUnawaitedDownload)) return copies_.push_back(copy);
    finish(copy, guard);
  }

  void launch(const Call& call) override {
    if (call.threads == 0) return;
    const std::lock_guard guard(lock_);
    size_t index = 0;
    while (kOperands[index].dtype != call.dtype) ++index;
    if (!computes(call.dtype)) throw std::runtime_error("OpenCL: the device has no float64");
    const Kernel& kernel = kernels_[index];

    Numbers numbers{{},
                    static_cast<cl_uint>(call.op),
                    call.threads,
                    call.nesterov,
                    call.row_count,
                    call.row_elements,
                    call.inner,
                    call.columns,
                    {call.wide[0], call.wide[1], call.wide[2]}};
    const void* const operands[] = {call.out[0], call.out[1], call.contents[0], call.contents[1],
                                    call.in[0],  call.in[1],  call.in[2],       call.rows};
    constexpr size_t kFirstRead = 2, kFirstOperand = 4;
    Commands waits;
    std::vector<Buffer*> used(std::size(operands));
    for (cl_uint k = 0; k < std::size(operands); ++k) {
      cl_mem memory = nullptr;
      if (operands[k]) {
        const auto [buffer, at] = find(operands[k]);
        used[k] = buffer;
        numbers.at[k] = at;
        memory = buffer->memory.get();
        const Commands needed = k < kFirstRead ? waits_of_write(*buffer) : buffer->writes;
        const bool forgotten = broken(settings_, Defect::kUnawaitedOperand) && k >= kFirstOperand;
        if (!forgotten) waits.insert(waits.end(), needed.begin(), needed.end());
      }
      check(clSetKernelArg(kernel.get(), k + 1, sizeof memory, &memory), "clSetKernelArg");
    }
    check(clSetKernelArg(kernel.get(), 0, sizeof numbers, &numbers), "clSetKernelArg");
    const size_t items = (call.threads + kGroup - 1) / kGroup * kGroup;
    const CommandPtr command =
        submit("clEnqueueNDRangeKernel", waits, [&](auto queue, auto... events) {
          return clEnqueueNDRangeKernel(queue, kernel.get(), 1, nullptr, &items, &kGroup,
                                        events...);
        });
    for (size_t k = 0; k < used.size(); ++k) {
      if (!used[k]) continue;
      remember(k < kFirstRead ? used[k]->writes : used[k]->reads, command);
    }
  }

  bool computes(DType dtype) const override {
    return dtype != DType::kFloat64 || compiled_->doubles;
  }

  void wait() override {
    std::unique_lock guard(lock_);
    const Commands copies = std::exchange(copies_, {});
    for (const CommandPtr& each : copies) {
      if (settings_.gated) release_until(*each);
    }
    guard.unlock();
    for (const CommandPtr& each : copies) each->wait();
  }

  void reseed(uint64_t seed) override {
    const std::lock_guard guard(lock_);
    while (!held_.empty()) release_one();
    for (const CommandPtr& each : last_) {
      if (each) each->wait();
    }
    random_.seed(seed);
    turn_ = transfers_ = 0;
  }

  gpu::Usage usage() const override { return {Memory::count(), EventHandle::count()}; }

 private:
  struct Place {
    Buffer* buffer;
    size_t at;  // bytes
  };

  /// OpenCL 1.2 has no addresses. Ours are numbers that only this table understands.
  Place find(const void* there) {
    const auto address = reinterpret_cast<uintptr_t>(there);
    const auto next = std::prev(buffers_.upper_bound(address));
    return {&next->second, address - next->first};
  }

  Commands waits_of_write(const Buffer& buffer) const {
    return broken(settings_, Defect::kEarlyReuse) ? Commands() : buffer.before;
  }

  /// Gives a command to the next queue. `enqueue` calls OpenCL with the queue and the last three
  /// arguments of clEnqueue*.
  template <typename F>
  CommandPtr submit(const char* call, Commands waits, F&& enqueue) {
    auto command = std::make_shared<Command>();
    command->queue = turn_++ % queues_.size();
    const cl_command_queue queue = queues_[command->queue].get();
    CommandPtr& last = last_[command->queue];
    if (broken(settings_, Defect::kEventOfWrongQueue)) {
      for (CommandPtr& each : waits) {
        if (each->queue != command->queue) each = last;
      }
      std::erase(waits, nullptr);
    }
    std::vector<cl_event> events;
    for (const CommandPtr& each : waits) {
      if (settings_.out_of_order || each->queue != command->queue) {
        events.push_back(each->event.get());
      }
    }
    cl_int error = 0;
    if (settings_.gated) {
      command->gate = EventHandle(clCreateUserEvent(compiled_->context.get(), &error));
      check(error, "clCreateUserEvent");
      events.push_back(command->gate.get());
      command->waits = std::move(waits);
      if (!settings_.out_of_order && last) command->waits.push_back(last);
    }
    cl_event made = nullptr;
    const auto count = static_cast<cl_uint>(events.size());
    check(enqueue(queue, count, count ? events.data() : nullptr, &made), call);
    command->event = EventHandle(made);
    check(clFlush(queue), "clFlush");  // other queues wait for it
    last = command;
    if (settings_.gated) {
      held_.push_back(command);
      while (held_.size() > kHeld) release_one();
    }
    return command;
  }

  void open(Command& command) {
    const bool lost = broken(settings_, Defect::kLostDevice) && ++opened_ > kOpenedBeforeLoss;
    clSetUserEventStatus(command.gate.get(), lost ? CL_OUT_OF_RESOURCES : CL_COMPLETE);
  }

  /// Lets one of the commands held back go, and waits for it if nothing else holds it: so the
  /// order of the commands is random, and as their waits allow.
  void release_one() {
    std::uniform_int_distribution<size_t> any(0, held_.size() - 1);
    std::swap(held_[any(random_)], held_.back());
    const CommandPtr command = std::move(held_.back());
    held_.pop_back();
    open(*command);
    const Commands waits = std::exchange(command->waits, {});
    const bool ready = std::all_of(waits.begin(), waits.end(),
                                   [](const CommandPtr& each) { return each->done(); });
    if (ready) command->wait();
  }
  void release_until(const Command& command) {
    while (!held_.empty() && !command.done()) release_one();
  }

  /// Waits for a command, without the lock where nobody has to release it.
  void finish(const CommandPtr& command, std::unique_lock<std::mutex>& guard) {
    if (settings_.gated) release_until(*command);
    guard.unlock();
    command->wait();
  }

  /// One map of a buffer ends before the next begins. Two may have one address, and OpenCL does not
  /// say which of them an unmap of that address ends: pocl's ended one that was not executed yet,
  /// and crashed (docs/engines.md).
  void* map(Buffer& buffer, size_t at, size_t bytes, cl_map_flags how, Commands waits,
            CommandPtr& mapped) {
    if (buffer.unmap) waits.push_back(buffer.unmap);
    buffer.mapped = true;
    void* there = nullptr;
    mapped = submit("clEnqueueMapBuffer", std::move(waits), [&](auto queue, auto... events) {
      cl_int error = 0;
      there = clEnqueueMapBuffer(queue, buffer.memory.get(), CL_FALSE, how, at, bytes, events...,
                                 &error);
      return error;
    });
    return there;
  }
  CommandPtr unmap(Buffer& buffer, void* there, const CommandPtr& mapped) {
    buffer.unmap = submit("clEnqueueUnmapMemObject", {mapped}, [&](auto queue, auto... events) {
      return clEnqueueUnmapMemObject(queue, buffer.memory.get(), there, events...);
    });
    buffer.mapped = false;
    return buffer.unmap;
  }

  void map_in(Buffer& buffer, size_t at, const std::byte* here, size_t bytes) {
    CommandPtr mapped;
    void* const there =
        map(buffer, at, bytes, CL_MAP_WRITE_INVALIDATE_REGION, waits_of_write(buffer), mapped);
    if (settings_.gated) release_until(*mapped);
    mapped->wait();  // with the lock: there is nothing that it would hold up for long
    std::memcpy(there, here, bytes);
    buffer.writes.push_back(unmap(buffer, there, mapped));
    copies_.push_back(buffer.writes.back());
  }

  void map_out(Buffer& buffer, size_t at, std::byte* here, size_t bytes,
               std::unique_lock<std::mutex>& guard) {
    CommandPtr mapped;
    const bool stale = broken(settings_, Defect::kStaleMap);
    void* const there =
        map(buffer, at, bytes, CL_MAP_READ, stale ? Commands() : buffer.writes, mapped);
    finish(mapped, guard);
    std::memcpy(here, there, bytes);
    guard.lock();
    remember(buffer.reads, unmap(buffer, there, mapped));
  }

  /// Overwrites what the buffer held, so that a read that comes too early shows.
  void spoil(Buffer& buffer) {
    const CommandPtr fill =
        submit("clEnqueueFillBuffer", waits_of_write(buffer), [&](auto queue, auto... waits) {
          return clEnqueueFillBuffer(queue, buffer.memory.get(), &kSpoilt, sizeof kSpoilt, 0,
                                     buffer.capacity, waits...);
        });
    buffer.before = {fill};
  }

  static constexpr cl_uint kSpoilt = 0xA5A5A5A5;
  static constexpr size_t kHeld = 64;  // commands held back at once
  static constexpr uint64_t kOpenedBeforeLoss = 200;

  const gpu::Settings settings_;
  const std::shared_ptr<Compiled> compiled_;
  std::vector<Queue> queues_;
  Kernel kernels_[kDTypes];
  std::mutex lock_;
  // The lock guards the rest, and the kernels' arguments.
  std::map<uintptr_t, Buffer> buffers_;  // by address
  std::map<size_t, std::vector<uintptr_t>> free_;
  uintptr_t next_address_ = uintptr_t{1} << 32;
  Commands last_;  // by queue
  Commands copies_;  // to the device, since the last `wait`
  Commands held_;
  std::mt19937_64 random_;
  uint64_t turn_ = 0, transfers_ = 0, opened_ = 0;
};

}  // namespace
}  // namespace litmusfuzz::executor::opencl

using litmusfuzz::executor::gpu::Device;
using litmusfuzz::executor::gpu::Settings;
namespace opencl = litmusfuzz::executor::opencl;

extern "C" __attribute__((visibility("default"))) uint32_t litmusfuzz_gpu_interface() {
  return litmusfuzz::executor::gpu::kInterface;
}

/// Returns null, and sets `error`, if there is no such device or its kernels do not compile.
extern "C" __attribute__((visibility("default"))) Device* litmusfuzz_make_gpu(
    const Settings& settings, std::string* error) {
  try {
    return std::make_unique<opencl::OpenCl>(settings).release();
  } catch (const std::exception& thrown) {
    *error = thrown.what();
    return nullptr;
  }
}

extern "C" __attribute__((visibility("default"))) void litmusfuzz_list_gpus(
    const Settings& settings, std::vector<std::string>* lines, std::string* error) {
  try {
    for (const auto& each : opencl::devices(settings.platform, settings.sub_devices)) {
      lines->push_back(each.text);
    }
  } catch (const std::exception& thrown) {
    *error = thrown.what();
  }
}
