#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "server/ops/plan.h"
#include "stride/v1/operation.pb.h"

// Random expressions, for comparing two implementations of one operation.
namespace stride::testing {

// A view somewhere in its own buffer, with axes in any order, reversed, repeated, with gaps.
struct RandomArray {
  ArrayInfo info;
  std::string buffer;
};

// An elementwise expression that can be planned.
struct RandomExpression {
  std::string text;
  v1::Operation operation;
  std::vector<RandomArray> arrays;  // in the order of the operation's inputs

  std::vector<ops::Input> Inputs() const;
};

class RandomExpressions {
 public:
  explicit RandomExpressions(uint32_t seed) : random_(seed) {}
  RandomExpression Next();

 private:
  std::mt19937 random_;
};

// The position of the first element that differs between two arrays of one type; -1 if none. NaNs
// are equal: the processor determines which one results from two.
int64_t FirstDifference(DType dtype, const std::string& one, const std::string& other);

}  // namespace stride::testing
