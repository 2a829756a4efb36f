#include "gpu/gpu.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>

namespace litmusfuzz::executor::gpu {

Staging::~Staging() {
  for (const Piece& each : pieces_) device_.free_here(each.start);
}

std::byte* Staging::take(size_t bytes) {
  bytes = (bytes + 15) / 16 * 16;
  while (piece_ < pieces_.size() && pieces_[piece_].bytes - used_ < bytes) {
    ++piece_;
    used_ = 0;
  }
  if (piece_ == pieces_.size()) {
    const size_t size = std::max(bytes, kPiece);
    pieces_.push_back({device_.allocate_here(size), size});
  }
  std::byte* const taken = pieces_[piece_].start + used_;
  used_ += bytes;
  return taken;
}

Gpu::Gpu(std::unique_ptr<Device> device) : device_(std::move(device)), staging_(*device_) {}

Gpu::~Gpu() {
  free(made_);
  free(kept_);
  try {
    device_->wait();  // before the sources of copies are freed
  } catch (const std::exception&) {
    // The device has failed; earlier calls reported the error.
  }
}

// --- values ------------------------------------------------------------------------

const Gpu::Value& Gpu::value_of(const Tensor& tensor) { return **tensor.as<const Value*>(); }

Tensor Gpu::tensor_of(const Value& value) { return Tensor::scalar(&value); }

const Gpu::Value& Gpu::hold(Values& values, const Value& value) {
  const std::lock_guard guard(lock_);
  return values.emplace_back(value);
}

const Gpu::Value& Gpu::make(Values& values, size_t bytes) {
  return hold(values, {static_cast<std::byte*>(device_->allocate(bytes)), bytes});
}

const Gpu::Value& Gpu::copied_in(Values& values, const Tensor& bytes) {
  const Value& made = make(values, bytes.size_bytes());
  std::byte* staged;
  {
    const std::lock_guard guard(lock_);
    staged = staging_.take(made.bytes);
  }
  std::memcpy(staged, bytes.bytes(), made.bytes);
  device_->copy_in(made.data, staged, made.bytes);
  return made;
}

void Gpu::copy_out(std::byte* here, const Value& value, size_t bytes) {
  std::byte* staged;
  {
    const std::lock_guard guard(lock_);
    staged = staging_.take(bytes);
  }
  device_->copy_out(staged, value.data, bytes);
  std::memcpy(here, staged, bytes);
}

void Gpu::free(Values& values) noexcept {
  for (const Value& each : values) {
    if (!each.part) device_->free(each.data);
  }
  values.clear();
}

void Gpu::begin() {
  free(made_);
  device_->wait();  // for copies that use `staging_`
  staging_.reset();
}

Tensor Gpu::keep(const Tensor& bytes) { return tensor_of(copied_in(kept_, bytes)); }

Tensor Gpu::entered(const Tensor& bytes) { return tensor_of(copied_in(made_, bytes)); }

Tensor Gpu::number(const Node&, int32_t value) { return entered(Tensor::scalar(value)); }

Tensor Gpu::moved(const Node&, const Tensor& value) { return value; }  // it has one device

Tensor Gpu::read(const Tensor& value, const Type&) {
  const Value& wanted = value_of(value);
  Tensor out = Tensor::of_size(wanted.bytes);
  copy_out(out.bytes(), wanted, wanted.bytes);
  return out;
}

bool Gpu::truth(const Tensor& value) {
  std::byte first{};
  copy_out(&first, value_of(value), 1);
  return first != std::byte{};
}

// --- ops ---------------------------------------------------------------------------

/// The rows that a node touches are the same in each execution.
void Gpu::prepare(Node& node) {
  if (node.rows.empty()) return;
  const size_t bytes = node.rows.size() * sizeof node.rows[0];
  copied_in(kept_, Tensor::copy_of(node.rows.data(), bytes));
  node.call = static_cast<uint32_t>(kept_.size() - 1);
  device_->wait();  // a kernel of a defective device must not read rows that are not there
}

void Gpu::give_rows(const Node& node, Call& call) const {
  if (node.rows.empty()) return;
  call.rows = reinterpret_cast<const int32_t*>(kept_[node.call].data);
  call.row_count = static_cast<uint32_t>(node.rows.size());
  call.row_elements = node.row_elements;
}

void Gpu::give_operands(const Node& node, const Operands& operands, Call& call) const {
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    call.in[k] = value_of(*operands[k]).data;
    call.wide[k] = node.input_sizes[k] != 1;
  }
}

Tensor Gpu::compute(const Node& node, const Operands& operands) {
  Call call{.op = node.op, .dtype = node.operand_dtype, .threads = node.type.elements};
  give_operands(node, operands, call);
  call.inner = node.inner;
  call.columns = node.columns;
  const Value& made = make(made_, node.type.bytes());
  call.out[0] = made.data;
  device_->launch(call);
  return tensor_of(made);
}

Tensor Gpu::gathered(const Node& node, const Tensor& contents) {
  Call call{.op = Op::kIdentity, .dtype = node.type.dtype, .threads = node.type.elements};
  call.in[0] = value_of(contents).data;
  call.wide[0] = true;
  give_rows(node, call);
  const Value& made = make(made_, node.type.bytes());
  call.out[0] = made.data;
  device_->launch(call);
  return tensor_of(made);
}

void Gpu::apply_update(const Node& node, Tensor* contents, const Operands& operands) {
  Call call{.op = node.op,
            .dtype = node.type.dtype,
            .nesterov = node.nesterov,
            .threads = node.type.elements};
  give_operands(node, operands, call);
  give_rows(node, call);
  Tensor after[2];
  for (size_t k = 0; k < node.variables(); ++k) {
    const Value& made = make(made_, node.type.bytes());
    call.contents[k] = value_of(contents[k]).data;
    call.out[k] = made.data;
    after[k] = tensor_of(made);
  }
  device_->launch(call);
  for (size_t k = 0; k < node.variables(); ++k) contents[k] = std::move(after[k]);
}

ClusterResult Gpu::apply_cluster(const Node&, std::span<const Tensor>,
                                 std::span<const Tensor* const>) {
  throw std::logic_error("no kernel for a cluster");  // the lowering refuses them
}

Tensor Gpu::element(const Node& node, const Tensor& many, uint32_t part) {
  const Value& all = value_of(many);
  const size_t bytes = all.bytes / node.parts;
  return tensor_of(hold(made_, {all.data + part * bytes, bytes, true}));
}

Tensor Gpu::stacked(const Node& node, std::span<const Tensor> elements) {
  const Value& made = make(made_, node.type.bytes());
  std::byte* next = made.data;
  for (const Tensor& each : elements) {
    const Value& element = value_of(each);
    Call call{.op = Op::kIdentity,
              .dtype = DType::kBool,  // bytes
              .threads = static_cast<uint32_t>(element.bytes)};
    call.in[0] = element.data;
    call.wide[0] = true;
    call.out[0] = next;
    device_->launch(call);
    next += element.bytes;
  }
  return tensor_of(made);
}

}  // namespace litmusfuzz::executor::gpu
