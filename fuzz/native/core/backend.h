// Who computes in place of the core: see kernels.h for what the core does itself.
#pragma once

#include <span>
#include <stdexcept>
#include <vector>

#include "kernels.h"

namespace litmusfuzz::executor {

/// What an instance of a cluster makes of its snapshot.
struct ClusterResult {
  std::vector<Tensor> outputs;  // `Node::results` values
  std::vector<Tensor> finals;   // by `Node::written`; none for what was not written on this path
};

/// Values of its own kind, on devices of its own. To the core a value is then a word
/// that only the backend understands, and a Tensor holds that word: the core moves and
/// copies it, and asks here for all else. Order, locks and waiting stay the core's.
///
/// Its methods are called by any thread. No lock of a variable is held meanwhile, but
/// for `apply_update` of an indivisible update; they must not wait for another one.
class Backend {
 public:
  virtual ~Backend() = default;

  /// A node of the program is on a device of its: it may set `Node::call`.
  virtual void prepare(Node&) {}
  /// A new execution: no value that the last one made is used any more. Values that
  /// stand in the program are kept. One execution at a time.
  virtual void begin() = 0;

  /// Of a pure node with operands.
  virtual Tensor compute(const Node& node, const Operands& operands) = 0;
  virtual Tensor gathered(const Node& node, const Tensor& contents) = 0;
  virtual void apply_update(const Node& node, Tensor* contents, const Operands& operands) = 0;
  /// `snapshot` in the order of `Node::resources`, `arguments` in that of `Node::inputs`.
  virtual ClusterResult apply_cluster(const Node& node, std::span<const Tensor> snapshot,
                                      std::span<const Tensor* const> arguments) = 0;
  /// Of what an enqueue-many is given, one element; and what a dequeue-many returns.
  virtual Tensor element(const Node& node, const Tensor& many, uint32_t part) = 0;
  virtual Tensor stacked(const Node& node, std::span<const Tensor> elements) = 0;
  /// What a Size returns.
  virtual Tensor number(const Node& node, int32_t value) = 0;
  /// What a Recv returns, on its device, of what another device of this backend has.
  virtual Tensor moved(const Node& node, const Tensor& value) = 0;
  /// The same of what the core has, or another backend, which was asked to `read` it.
  virtual Tensor entered(const Tensor&) {
    throw std::logic_error("a backend beside others, and takes nothing from them");
  }
  /// Of a predicate: its first element.
  virtual bool truth(const Tensor& value) = 0;
  /// The value's elements as the core would hold them, for the outcome.
  virtual Tensor read(const Tensor& value, const Type& type) = 0;
};

}  // namespace litmusfuzz::executor
