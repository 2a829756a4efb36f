#include "outcome.h"

#include <cmath>
#include <span>
#include <type_traits>

namespace litmusfuzz::executor {
namespace {

enum : int64_t { kUnseen = 0, kValue = 1, kTorn = 2 };

/// A float that is no integer below 2^62 is what no total order gives, and so
/// is one whose lanes differ.
template <typename T>
bool exact_int(T value, int64_t& out) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!(std::abs(value) < T{1} * (int64_t{1} << 62)) || std::trunc(value) != value) return false;
  }
  out = static_cast<int64_t>(value);  // -0.0 becomes 0
  return true;
}

/// Adds the ints of one lane; false if the lanes differ.
bool append_ints(const Tensor& tensor, const Type& type, Row& row) {
  if (type.dtype == DType::kInt32 && type.elements == 1) {  // by far the most
    row.push_back(*tensor.as<int32_t>());
    return true;
  }
  return with_dtype(type.dtype, [&](auto t) {
    const auto* data = tensor.as<decltype(t)>();
    const size_t lanes = type.elements / type.ints;
    for (size_t i = 0; i < type.ints; ++i) {
      int64_t first = 0;
      for (size_t lane = 0; lane < lanes; ++lane) {
        int64_t value = 0;
        if (!exact_int(data[i * lanes + lane], value) || (lane && value != first)) return false;
        first = value;
      }
      row.push_back(first);
    }
    return true;
  });
}

template <typename Values>
void append(const Values& values, const Type& type, bool queue, Row& row) {
  const size_t start = row.size();
  row.push_back(kValue);
  if (queue) row.push_back(static_cast<int64_t>(values.size()));
  for (const Tensor& each : values) {
    if (append_ints(each, type, row)) continue;
    row.resize(start);
    row.push_back(kTorn);
    return;
  }
}

}  // namespace

Row outcome_of(const Program& program, const Copy& copy) {
  Row row;
  read_outcome(program, copy, row);
  return row;
}

void read_outcome(const Program& program, const Copy& copy, Row& row) {
  const Status status = copy.status();
  row.assign(1, static_cast<int64_t>(status));
  if (status == Status::kFailed) return;
  for (const Observed& each : program.observed) {
    if (copy.ended(each.run)) {
      append(std::span(&copy.slot(each.run, each.slot), 1), each.type, false, row);
    } else {
      row.push_back(kUnseen);
    }
  }
  for (uint32_t r = 0; r < program.resources.size(); ++r) {
    const Resource& resource = program.resources[r];
    if (resource.sort == Resource::Sort::kVariable) {
      append(std::span(&copy.cell(r).value, 1), resource.type, false, row);
    } else if (resource.sort == Resource::Sort::kQueue) {
      append(copy.cell(r).elements, resource.type, true, row);
    }
  }
}

size_t RowHash::operator()(const Row& row) const {
  uint64_t hash = row.size();
  for (const int64_t each : row) {
    hash = (hash ^ static_cast<uint64_t>(each)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace litmusfuzz::executor
