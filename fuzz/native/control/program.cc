// Inside TensorFlow: the runs of one execution, for a loop that has no Python in it.
//
// A session that is asked for under the name `kTarget` is TensorFlow's own, like one that is asked
// for without a name; only that the library knows it then. Its callables are made from the same
// options as Python's.
//
// Compiled with tensorflow.cc.
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hooks.h"
#include "tensorflow/core/common_runtime/session_factory.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/public/session_options.h"

namespace {

using tensorflow::Session;
using tensorflow::SessionFactory;
using tensorflow::SessionOptions;
using tensorflow::Tensor;
using Status = absl::Status;

constexpr char kTarget[] = "litmusfuzz";
Session* last_made = nullptr;

class Factory : public SessionFactory {
  bool AcceptsOptions(const SessionOptions& options) override { return options.target == kTarget; }

  Status NewSession(const SessionOptions& options, Session** made) override {
    SessionOptions local = options;
    local.target.clear();
    SessionFactory* factory = nullptr;
    Status status = GetFactory(local, &factory);
    if (status.ok()) status = factory->NewSession(local, made);
    last_made = status.ok() ? *made : nullptr;
    return status;
  }
};

const struct Registered {
  Registered() { SessionFactory::Register("LITMUSFUZZ", new Factory); }
} registered;

/// The callables of a session, and what they have returned.
class Program {
 public:
  explicit Program(Session* session)
      : session_(session),
        calls_{LITMUSFUZZ_CONTROL_VERSION, this,
               [](void* self) { return static_cast<Program*>(self)->Initialize(); },
               [](void* self) { return static_cast<Program*>(self)->Race(); },
               [](void* self) { return static_cast<Program*>(self)->Read(); }} {}

  /// The next callable: the first initializes, the second races, the third reads.
  int Add(const void* options, size_t bytes) {
    tensorflow::CallableOptions parsed;
    if (!parsed.ParseFromArray(options, static_cast<int>(bytes))) {
      return Fail(absl::InvalidArgumentError("options of a callable"));
    }
    return Fail(session_->MakeCallable(parsed, &handles_.emplace_back()));
  }

  const LitmusFuzzProgram* calls() const { return &calls_; }
  const std::vector<Tensor>& outcome(size_t number) const { return outcomes_[number]; }
  const Status& failure() const { return failure_; }

 private:
  int Initialize() { return Call(0, nullptr); }

  int Race() {
    raced_.clear();
    return Call(1, &raced_);
  }

  int64_t Read() {
    read_.clear();
    if (!Call(2, &read_)) return -1;
    std::string key;
    for (const auto* fetched : {&raced_, &read_}) {
      for (const Tensor& each : *fetched) {
        const auto bytes = each.tensor_data();
        key.append(std::to_string(bytes.size())).append(":").append(bytes.data(), bytes.size());
      }
    }
    const auto [found, is_new] = numbers_.try_emplace(std::move(key), outcomes_.size());
    if (is_new) {
      std::vector<Tensor>& kept = outcomes_.emplace_back();
      for (const auto* fetched : {&raced_, &read_}) {
        // A copy: what was fetched may share memory with a variable.
        for (const Tensor& each : *fetched) {
          Tensor own(each.dtype(), each.shape());
          const auto bytes = each.tensor_data();
          std::memcpy(const_cast<char*>(own.tensor_data().data()), bytes.data(), bytes.size());
          kept.push_back(std::move(own));
        }
      }
    }
    return static_cast<int64_t>(found->second);
  }

  int Call(size_t which, std::vector<Tensor>* fetched) {
    static const std::vector<Tensor> kNothing;
    std::vector<Tensor> none;
    tensorflow::RunMetadata metadata;
    return Fail(session_->RunCallable(handles_[which], kNothing,
                                      fetched == nullptr ? &none : fetched, &metadata));
  }

  /// Keeps an error; true if it is none.
  int Fail(Status status) {
    if (status.ok()) return 1;
    failure_ = std::move(status);
    return 0;
  }

  Session* const session_;  // its callables end with it
  const LitmusFuzzProgram calls_;
  std::vector<Session::CallableHandle> handles_;
  std::vector<Tensor> raced_, read_;
  std::unordered_map<std::string, size_t> numbers_;  // by the bytes of all that was fetched
  std::vector<std::vector<Tensor>> outcomes_;
  Status failure_;
};

Program& of(void* program) { return *static_cast<Program*>(program); }

}  // namespace

#define LITMUSFUZZ_EXPORT __attribute__((visibility("default")))

extern "C" {

/// The name for which sessions are known here.
LITMUSFUZZ_EXPORT const char* litmusfuzz_target() { return kTarget; }

/// A program for the session that was made last under that name.
LITMUSFUZZ_EXPORT void* litmusfuzz_program() {
  return last_made == nullptr ? nullptr : new Program(last_made);
}

LITMUSFUZZ_EXPORT void litmusfuzz_program_delete(void* program) {
  delete static_cast<Program*>(program);
}

/// Adds a callable, from serialized CallableOptions; false if TensorFlow refuses it.
LITMUSFUZZ_EXPORT int litmusfuzz_program_add(void* program, const void* options, size_t bytes) {
  return of(program).Add(options, bytes);
}

/// Executes once, without control: some ops take other locks when they first run, and XLA compiles.
/// False if TensorFlow has an error.
LITMUSFUZZ_EXPORT int litmusfuzz_program_warm_up(void* program) {
  Program& warmed = of(program);
  const LitmusFuzzProgram* const calls = warmed.calls();
  return calls->initialize(program) && calls->race(program) && calls->read(program) >= 0;
}

LITMUSFUZZ_EXPORT const LitmusFuzzProgram* litmusfuzz_program_calls(void* program) {
  return of(program).calls();
}

/// The code of the error that has ended a call, and its message.
LITMUSFUZZ_EXPORT int litmusfuzz_program_failure(void* program, const char** message,
                                                 size_t* length) {
  const Status& failure = of(program).failure();
  *message = failure.message().data();
  *length = failure.message().size();
  return static_cast<int>(failure.code());
}

/// The number of tensors of an outcome.
LITMUSFUZZ_EXPORT uint32_t litmusfuzz_program_fetched(void* program, uint64_t outcome) {
  return static_cast<uint32_t>(of(program).outcome(outcome).size());
}

/// One tensor of an outcome: its bytes; the number of its dimensions, its dtype, and its shape.
LITMUSFUZZ_EXPORT const char* litmusfuzz_program_tensor(void* program, uint64_t outcome,
                                                        uint32_t place, size_t* bytes, int* dtype,
                                                        uint32_t* rank, int64_t* shape) {
  const Tensor& tensor = of(program).outcome(outcome)[place];
  *bytes = tensor.tensor_data().size();
  *dtype = tensor.dtype();
  *rank = static_cast<uint32_t>(tensor.dims());
  for (int i = 0; i < tensor.dims(); ++i) shape[i] = tensor.dim_size(i);
  return tensor.tensor_data().data();
}
}
