// Tensors as the executor holds them: small values in place, others in
// reference-counted buffers.
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

/// A value, or none; dtype and shape are known from the program. What fits into
/// a word is held in place: a scalar costs no allocation and no locked
/// instruction. Else it is a share in a buffer, and a buffer with several shares
/// is never written.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) : size_(other.size_), room_(other.room_) {
    // Relaxed: a share is made from a share, which keeps the buffer.
    if (shared()) buffer()->shares.fetch_add(1, std::memory_order_relaxed);
  }
  Tensor(Tensor&& other) noexcept : size_(std::exchange(other.size_, 0)), room_(other.room_) {}
  Tensor& operator=(Tensor&& other) noexcept {
    if (this == &other) return *this;
    release();
    size_ = std::exchange(other.size_, 0);
    room_ = other.room_;
    return *this;
  }
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  ~Tensor() { release(); }
  friend void swap(Tensor& a, Tensor& b) noexcept {
    std::swap(a.size_, b.size_);
    std::swap(a.room_, b.room_);
  }

  /// A value of its own, with undefined contents; at least one byte.
  static Tensor of_size(size_t bytes) {
    Tensor made;
    made.size_ = bytes;
    if (made.shared()) {
      Buffer* const buffer = new (::operator new(kHeader + bytes)) Buffer{1};
      std::memcpy(made.room_.data(), &buffer, sizeof buffer);
    }
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
  const std::byte* bytes() const { return shared() ? contents() : room_.data(); }
  std::byte* bytes() { return shared() ? contents() : room_.data(); }
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
  static constexpr size_t kRoom = 8;
  static constexpr size_t kHeader = 16;  // keeps the elements aligned
  struct Buffer {
    std::atomic<uint32_t> shares;
  };
  static_assert(sizeof(Buffer) <= kHeader);

  void release() noexcept {
    // Release, so that what this share's holder read or wrote comes before the
    // buffer is freed, or written again by `make_unique`; acquire is the other side.
    if (shared() && buffer()->shares.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      ::operator delete(buffer());
    }
  }
  bool shared() const { return size_ > kRoom; }
  Buffer* buffer() const {
    Buffer* found;
    std::memcpy(&found, room_.data(), sizeof found);
    return found;
  }
  std::byte* contents() const { return reinterpret_cast<std::byte*>(buffer()) + kHeader; }

  size_t size_ = 0;  // bytes; 0 where there is no value
  alignas(8) std::array<std::byte, kRoom> room_{};  // the value, or where its buffer is
};

}  // namespace litmusfuzz::executor
