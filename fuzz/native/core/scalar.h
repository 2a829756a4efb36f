// Arithmetic on one element, the same on every device.
#pragma once

#include <cstdint>
#include <type_traits>

// Compiled by nvcc it runs on a GPU as well.
#ifdef __CUDACC__
#define LITMUSFUZZ_ANYWHERE __host__ __device__
#else
#define LITMUSFUZZ_ANYWHERE
#endif

namespace litmusfuzz::executor {

/// Integers wrap around, so that a wrong value causes no undefined behaviour.
template <typename T, typename F>
LITMUSFUZZ_ANYWHERE T wrapping(T a, T b, F f) {
  if constexpr (std::is_floating_point_v<T>) {
    return f(a, b);
  } else {
    using U = std::make_unsigned_t<std::conditional_t<(sizeof(T) < 4), int32_t, T>>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  }
}
template <typename T>
LITMUSFUZZ_ANYWHERE T add(T a, T b) {
  return wrapping(a, b, [](auto x, auto y) { return x + y; });
}
template <typename T>
LITMUSFUZZ_ANYWHERE T sub(T a, T b) {
  return wrapping(a, b, [](auto x, auto y) { return x - y; });
}
template <typename T>
LITMUSFUZZ_ANYWHERE T mul(T a, T b) {
  return wrapping(a, b, [](auto x, auto y) { return x * y; });
}
/// Return the first of two equal or unordered values, as std::max and std::min do.
template <typename T>
LITMUSFUZZ_ANYWHERE T larger(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
LITMUSFUZZ_ANYWHERE T smaller(T a, T b) {
  return b < a ? b : a;
}

}  // namespace litmusfuzz::executor
