#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/dtype.h"

// Reads tests/cases/*.case; tests/cases/README.md has the format.
namespace stride::testing {

struct Column {
  DType dtype;
  std::string bytes;  // elements in memory layout
};

struct OpCase {
  std::string op;
  int line = 0;  // line in the file
  int64_t count = 0;
  std::vector<Column> inputs;
  Column expected;
  double ulp = 0;
  // The rounding error of each expected value, in units in its last place; empty if none.
  std::vector<double> rest;
};

absl::StatusOr<std::vector<OpCase>> ReadCases(const std::string& path);

// Describes the first wrong element, with the number of wrong ones; empty if all are correct.
std::string Differences(const OpCase& op_case, const std::string& actual);

}  // namespace stride::testing
