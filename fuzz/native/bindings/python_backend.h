// Compute backend that calls Python, used by the executor `jax`.
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

/// Values are Python objects, and a Tensor holds the pointer. All values of an execution are
/// kept until the next one begins, so that the core counts no references; a program's
/// constants and initial contents are kept as long as the backend.
class PythonBackend final : public executor::Backend {
 public:
  /// `calls` has (function, bound arguments, flagged) by `Node::call`. A function takes the
  /// values that an update or cluster read, the node's operands, and the bound arguments.
  /// For an update it returns the new contents as a tuple; for a cluster its outputs, the
  /// value of each variable that it may write, and for each index in `flagged` whether it
  /// wrote that variable. `helpers` has the other methods.
  PythonBackend(const nanobind::list& calls, nanobind::object helpers);
  ~PythonBackend() override;

  /// Keeps a constant of the program.
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
