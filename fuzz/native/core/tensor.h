// Tensors as the executor holds them: reference-counted buffers of known size.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace litmusfuzz::executor {

enum class DType : uint8_t { kInt32, kInt64, kFloat32, kFloat64, kBool };

inline size_t item_size(DType dtype) {
  switch (dtype) {
    case DType::kBool: return 1;
    case DType::kInt32:
    case DType::kFloat32: return 4;
    default: return 8;
  }
}

/// Calls `f` with a value of the C++ type; bool is a byte.
template <typename F>
auto with_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kInt32: return f(int32_t{});
    case DType::kInt64: return f(int64_t{});
    case DType::kFloat32: return f(float{});
    case DType::kFloat64: return f(double{});
    default: return f(uint8_t{});
  }
}

/// A share in a buffer; dtype and shape are known from the program. A buffer
/// with several shares is never written.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) : buffer_(other.buffer_) {
    // Relaxed: a share is made from a share, which keeps the buffer.
    if (buffer_) buffer_->shares.fetch_add(1, std::memory_order_relaxed);
  }
  Tensor(Tensor&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~Tensor() {
    // Release, so that what this share's holder read or wrote comes before the
    // buffer is freed, or written again by `make_unique`; acquire is the other side.
    if (buffer_ && buffer_->shares.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      ::operator delete(buffer_);
    }
  }

  /// A buffer of its own, with undefined contents.
  static Tensor of_size(size_t bytes) {
    Tensor made;
    made.buffer_ = new (::operator new(kHeader + bytes)) Buffer{1, bytes};
    return made;
  }
  static Tensor copy_of(const void* data, size_t bytes) {
    Tensor made = of_size(bytes);
    std::memcpy(made.bytes(), data, bytes);
    return made;
  }

  explicit operator bool() const { return buffer_ != nullptr; }
  size_t size_bytes() const { return buffer_->size; }
  const std::byte* bytes() const { return reinterpret_cast<std::byte*>(buffer_) + kHeader; }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(buffer_) + kHeader; }
  template <typename T>
  const T* as() const { return reinterpret_cast<const T*>(bytes()); }
  template <typename T>
  T* as() { return reinterpret_cast<T*>(bytes()); }

  /// Makes it safe to write: by a copy, unless nobody else has a share. Nobody
  /// can gain one meanwhile, since shares are made from shares.
  void make_unique() {
    // Acquire: its partner is the release of the share that went last.
    if (buffer_->shares.load(std::memory_order_acquire) != 1) {
      *this = copy_of(bytes(), size_bytes());
    }
  }

 private:
  static constexpr size_t kHeader = 16;  // keeps the elements aligned
  struct Buffer {
    std::atomic<uint32_t> shares;
    size_t size;
  };
  static_assert(sizeof(Buffer) <= kHeader);

  Buffer* buffer_ = nullptr;
};

}  // namespace litmusfuzz::executor
