// A backend that calls Python: what the executor `jax` computes with.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "backend.h"

namespace litmusfuzz::bindings {

using executor::ClusterResult;
using executor::Node;
using executor::Operands;
using executor::Tensor;
using executor::Type;

/// Its values are Python objects, and a Tensor holds the pointer. Whatever an execution
/// makes is kept until the next one begins, so that the core need not count references;
/// a program's constants and initial contents are kept as long as the backend.
class PythonBackend final : public executor::Backend {
 public:
  /// `calls` are (function, more arguments, flagged), by `Node::call`: the function is
  /// called with a node's operands, of an update or cluster after what it saw, and then
  /// the more arguments. That of an update returns the new contents as a tuple; that of a
  /// cluster its outputs, what it leaves in each variable that it may write, and for each
  /// of those that `flagged` names, by place, whether it did. `helpers` has the other
  /// methods.
  PythonBackend(const nanobind::list& calls, nanobind::object helpers);
  ~PythonBackend() override;

  /// For a value that stands in the program.
  Tensor keep(nanobind::object value);

  void begin() override;
  Tensor compute(const Node& node, const Operands& operands) override;
  Tensor gathered(const Node& node, const Tensor& contents) override;
  void apply_update(const Node& node, Tensor* contents, const Operands& operands) override;
  ClusterResult apply_cluster(const Node& node, std::span<const Tensor> snapshot,
                              std::span<const Tensor* const> arguments) override;
  Tensor element(const Node& node, const Tensor& many, uint32_t part) override;
  Tensor stacked(const Node& node, std::span<const Tensor> elements) override;
  Tensor number(const Node& node, int32_t value) override;
  Tensor moved(const Node& node, const Tensor& value) override;
  bool truth(const Tensor& value) override;
  Tensor read(const Tensor& value, const Type& type) override;

 private:
  struct Call {
    nanobind::object function;
    std::vector<nanobind::object> bound;
    std::vector<uint32_t> flagged;
  };
  using Arguments = std::vector<PyObject*>;

  nanobind::object call(const Call& call, Arguments& arguments) const;
  Tensor hold(nanobind::object value);

  std::vector<Call> calls_;
  nanobind::object element_, stacked_, number_, moved_, truth_, read_;
  // Guarded by the GIL.
  std::vector<nanobind::object> made_, kept_;
};

void bind_backend(nanobind::module_& m);

}  // namespace litmusfuzz::bindings
