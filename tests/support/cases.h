#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/dtype.h"

// Reads tests/cases/*.case; tests/cases/README.md has the format.
namespace stride::testing {

struct Column {
  DType dtype;
  std::string bytes;  // elements, as they lie in memory
};

struct OpCase {
  std::string op;
  int line = 0;  // in the file
  int64_t count = 0;
  std::vector<Column> inputs;
  Column expected;
  double ulp = 0;
  // What rounding took from each expected value, in units in its last place; empty: nothing.
  std::vector<double> rest;
};

absl::StatusOr<std::vector<OpCase>> ReadCases(const std::string& path);

// What is wrong with the first element that is wrong, in words, with the number of wrong ones;
// empty when all are right.
std::string Differences(const OpCase& op_case, const std::string& actual);

}  // namespace stride::testing
