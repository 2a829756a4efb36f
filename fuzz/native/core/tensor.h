// Tensors of the executor: small values inline, others in reference-counted buffers.
#pragma once

#include <array>
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

/// A value, or none; dtype and shape are known from the program. A value of up to a word
/// is inline: a scalar needs no allocation and no atomic instruction. Larger values share
/// a buffer, and a buffer with several owners is never written.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) : size_(other.size_), storage_(other.storage_) {
    // Relaxed: the source of the copy keeps the buffer alive.
    if (shared()) buffer()->shares.fetch_add(1, std::memory_order_relaxed);
  }
  Tensor(Tensor&& other) noexcept
      : size_(std::exchange(other.size_, 0)), storage_(other.storage_) {}
  Tensor& operator=(Tensor&& other) noexcept {
    if (this == &other) return *this;
    release();
    size_ = std::exchange(other.size_, 0);
    storage_ = other.storage_;
    return *this;
  }
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  ~Tensor() { release(); }
  friend void swap(Tensor& a, Tensor& b) noexcept {
    std::swap(a.size_, b.size_);
    std::swap(a.storage_, b.storage_);
  }

  /// A value of its own, with undefined contents; at least one byte.
  static Tensor of_size(size_t bytes) {
    Tensor made;
    if (bytes > kInline) {
      Buffer* const buffer = new (::operator new(kHeader + bytes)) Buffer{1};
      std::memcpy(made.storage_.data(), &buffer, sizeof buffer);
    }
    made.size_ = bytes;  // last: without memory there is nothing to release
    return made;
  }
  static Tensor copy_of(const void* data, size_t bytes) {
    Tensor made = of_size(bytes);
    std::memcpy(made.bytes(), data, bytes);
    return made;
  }
  template <typename T>
  static Tensor scalar(T value) {
    return copy_of(&value, sizeof value);
  }

  explicit operator bool() const { return size_ != 0; }
  size_t size_bytes() const { return size_; }
  const std::byte* bytes() const { return shared() ? contents() : storage_.data(); }
  std::byte* bytes() { return shared() ? contents() : storage_.data(); }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes());
  }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(bytes());
  }

  /// Makes it safe to write: by a copy, unless nobody else has a share. Nobody
  /// can gain one meanwhile, since shares are made from shares.
  void make_unique() {
    // Acquire: its partner is the release of the share that went last.
    if (shared() && buffer()->shares.load(std::memory_order_acquire) != 1) {
      *this = copy_of(bytes(), size_bytes());
    }
  }

 private:
  static constexpr size_t kInline = 8;
  static constexpr size_t kHeader = 16;  // keeps the elements aligned
  struct Buffer {
    std::atomic<uint32_t> shares;
  };
  static_assert(sizeof(Buffer) <= kHeader);

  void release() noexcept {
    // Release, so that this owner's reads and writes come before the buffer is freed, or
    // written again by `make_unique`; acquire is its partner.
    if (shared() && buffer()->shares.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      ::operator delete(buffer());
    }
  }
  bool shared() const { return size_ > kInline; }
  Buffer* buffer() const {
    Buffer* found;
    std::memcpy(&found, storage_.data(), sizeof found);
    return found;
  }
  std::byte* contents() const { return reinterpret_cast<std::byte*>(buffer()) + kHeader; }

  size_t size_ = 0;  // bytes; 0 for no value
  alignas(8) std::array<std::byte, kInline> storage_{};  // the value, or a pointer to its buffer
};

}  // namespace litmusfuzz::executor
