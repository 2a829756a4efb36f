#include "outcome.h"

#include <array>
#include <cmath>
#include <span>
#include <type_traits>

#include "backend.h"

namespace litmusfuzz::executor {
namespace {

enum : int64_t { kUnseen = 0, kValue = 1, kTorn = 2, kEmpty = 3 };

/// No total order yields a float that is not an integer below 2^62, so such a value
/// counts as torn.
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

/// The most frequent case: it cannot be torn, and has no lanes.
bool plain(const Type& type) { return type.dtype == DType::kInt32 && type.elements == 1; }

void append_plain(const Tensor& value, Row& row) {
  const std::array<int64_t, 2> both{kValue, *value.as<int32_t>()};
  row.insert(row.end(), both.begin(), both.end());
}

template <typename Values>
void append(const Values& values, const Type& type, bool queue, Backend* backend, Row& row) {
  const size_t start = row.size();
  row.push_back(kValue);
  if (queue) row.push_back(static_cast<int64_t>(values.size()));
  for (const Tensor& each : values) {
    if (append_ints(backend ? backend->read(each, type) : each, type, row)) continue;
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
  const auto append_one = [&](const Tensor& value, const Type& type, uint32_t device) {
    Backend* const backend = program.backend(device);
    if (!backend && plain(type)) return append_plain(value, row);
    append(std::span(&value, 1), type, false, backend, row);
  };
  for (const Observed& each : program.observed) {
    if (copy.ended(each.run)) {
      append_one(copy.slot(each.run, each.slot), each.type, each.device);
    } else {
      row.push_back(kUnseen);
    }
  }
  for (uint32_t r = 0; r < program.resources.size(); ++r) {
    const Resource& resource = program.resources[r];
    if (resource.sort == Resource::Sort::kQueue) {
      Backend* const backend = program.backend(resource.device);
      append(copy.cell(r).elements, resource.type, true, backend, row);
    } else if (resource.sort == Resource::Sort::kVariable && !copy.cell(r).value) {
      row.push_back(kEmpty);
    } else if (resource.sort == Resource::Sort::kAccumulator) {
      append_one(copy.cell(r).value, resource.type, resource.device);
      row.push_back(kValue);
      row.push_back(copy.cell(r).count);
    } else if (resource.sort == Resource::Sort::kVariable) {
      append_one(copy.cell(r).value, resource.type, resource.device);
    }
  }
}

size_t RowHash::operator()(const Row& row) const {
  // Four independent chains of multiplications: one chain would take as long as two ops
  // of a small test. Each step is injective, since the factor is odd.
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15u;
  std::array<uint64_t, 4> hashes{row.size(), 1, 2, 3};
  size_t i = 0;
  for (; i + 4 <= row.size(); i += 4) {
    for (size_t k = 0; k < 4; ++k) {
      hashes[k] = (hashes[k] ^ static_cast<uint64_t>(row[i + k])) * kFactor;
    }
  }
  for (; i < row.size(); ++i) hashes[0] = (hashes[0] ^ static_cast<uint64_t>(row[i])) * kFactor;
  uint64_t hash = 0;
  for (const uint64_t each : hashes) {
    hash = (hash ^ each) * kFactor;
    hash ^= hash >> 29;  // high bits affect low ones
  }
  return hash;
}

}  // namespace litmusfuzz::executor
