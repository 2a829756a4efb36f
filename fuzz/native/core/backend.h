// Interface of a compute backend, which replaces the core's own kernels (kernels.h).
#pragma once

#include <span>
#include <stdexcept>
#include <vector>

#include "kernels.h"

namespace litmusfuzz::executor {

/// Result of one cluster instance.
struct ClusterResult {
  std::vector<Tensor> outputs;  // `Node::results` values
  std::vector<Tensor> finals;  // by `Node::written`; empty for variables not written on this path
};

/// A backend has its own representation of values, on its own devices. To the core such a
/// value is an opaque word in a Tensor: the core moves and copies it, and calls the backend
/// for everything else. Order, locks and waiting stay with the core.
///
/// Any thread may call the methods. The caller holds no lock of a variable, except for
/// `apply_update` of an indivisible update. Methods must not wait for each other.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Prepares a node on one of the backend's devices; may set `Node::call`.
  virtual void prepare(Node&) {}
  /// Begins an execution. Values of the last one are no longer used; constants of the
  /// program stay. There is one execution at a time.
  virtual void begin() = 0;

  /// Result of a pure node with operands.
  virtual Tensor compute(const Node& node, const Operands& operands) = 0;
  virtual Tensor gathered(const Node& node, const Tensor& contents) = 0;
  virtual void apply_update(const Node& node, Tensor* contents, const Operands& operands) = 0;
  /// `snapshot` in the order of `Node::resources`, `arguments` in that of `Node::inputs`.
  virtual ClusterResult apply_cluster(const Node& node, std::span<const Tensor> snapshot,
                                      std::span<const Tensor* const> arguments) = 0;
  /// One element of the operand of an enqueue-many; the result of a dequeue-many.
  virtual Tensor element(const Node& node, const Tensor& many, uint32_t part) = 0;
  virtual Tensor stacked(const Node& node, std::span<const Tensor> elements) = 0;
  /// Result of a Size.
  virtual Tensor number(const Node& node, int32_t value) = 0;
  /// Result of a Recv of a value from another device of this backend.
  virtual Tensor moved(const Node& node, const Tensor& value) = 0;
  /// Result of a Recv of a value from the core, or `read` from another backend; of a
  /// VarIsInitializedOp.
  virtual Tensor entered(const Tensor&) {
    throw std::logic_error("this backend takes no values from other devices");
  }
  /// Value of a predicate: its first element.
  virtual bool truth(const Tensor& value) = 0;
  /// Elements of a value in the core's representation, for the outcome.
  virtual Tensor read(const Tensor& value, const Type& type) = 0;
};

}  // namespace litmusfuzz::executor
