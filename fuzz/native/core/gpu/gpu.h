// Backend of a device gpu:N: kernel launches and memory management.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "backend.h"
#include "gpu/device.h"

namespace litmusfuzz::executor::gpu {

/// Host staging memory for pending copies, in large pieces, since a real GPU's driver
/// allocates it slowly.
class Staging {
 public:
  explicit Staging(Device& device) : device_(device) {}
  ~Staging();
  Staging(const Staging&) = delete;

  std::byte* take(size_t bytes);
  /// Frees all memory taken.
  void reset() { piece_ = used_ = 0; }

 private:
  static constexpr size_t kPiece = 1 << 16;
  struct Piece {
    std::byte* start;
    size_t bytes;
  };

  Device& device_;
  std::vector<Piece> pieces_;
  size_t piece_ = 0, used_ = 0;  // position of the next allocation
};

/// A Tensor of this backend holds the address of a `Value`. Each op makes a new value and
/// never writes in place. The device keeps the order in which values are made, so that only
/// host reads of values wait: predicates, transfers to other devices, and outcomes.
class Gpu final : public Backend {
 public:
  explicit Gpu(std::unique_ptr<Device> device);
  ~Gpu() override;

  /// Keeps a constant of the program.
  Tensor keep(const Tensor& bytes);

  void prepare(Node& node) override;
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
  Tensor entered(const Tensor& bytes) override;
  bool truth(const Tensor& value) override;
  Tensor read(const Tensor& value, const Type& type) override;

  Device& device() { return *device_; }

 private:
  struct Value {
    std::byte* data = nullptr;
    size_t bytes = 0;
    bool part = false;  // part of another value, which owns the memory
  };
  using Values = std::deque<Value>;  // never moved

  static const Value& value_of(const Tensor& tensor);
  static Tensor tensor_of(const Value& value);
  /// A new value with undefined contents.
  const Value& make(Values& values, size_t bytes);
  const Value& hold(Values& values, const Value& value);
  const Value& copied_in(Values& values, const Tensor& bytes);
  void copy_out(std::byte* here, const Value& value, size_t bytes);
  void give_operands(const Node& node, const Operands& operands, Call& call) const;
  void give_rows(const Node& node, Call& call) const;
  void free(Values& values) noexcept;

  const std::unique_ptr<Device> device_;
  std::mutex lock_;
  // The lock guards their growth.
  Staging staging_;
  Values made_;  // in this execution
  Values kept_;
};

}  // namespace litmusfuzz::executor::gpu
