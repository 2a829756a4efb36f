// Outcome of an execution as a row of ints, which Python converts.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "copy.h"

namespace litmusfuzz::executor {

/// The status; then for each observed node, variable and queue: 0 if it has no value, 2
/// if its lanes differ, 3 if it is a variable without a value, or 1 and its ints. The ints of a
/// queue follow their number.
using Row = std::vector<int64_t>;

Row outcome_of(const Program& program, const Copy& copy);
/// The same into `row`, whose memory is reused.
void read_outcome(const Program& program, const Copy& copy, Row& row);

struct RowHash {
  size_t operator()(const Row& row) const;
};
using Histogram = std::unordered_map<Row, uint64_t, RowHash>;

}  // namespace litmusfuzz::executor
