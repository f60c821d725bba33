#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "server/ops/plan.h"
#include "stride/v1/operation.pb.h"

// Expressions at random, for comparing how two pieces of code compute the same one.
namespace stride::testing {

// A view somewhere in a buffer of its own, with axes in any order, reversed, repeated, with gaps.
struct RandomArray {
  ArrayInfo info;
  std::string buffer;
};

// An elementwise expression that has code: planning it succeeds.
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

// The position of the first element that differs between two arrays of one type; -1: there is none.
// Any NaN equals any other: which one results from two is the processor's choice.
int64_t FirstDifference(DType dtype, const std::string& one, const std::string& other);

}  // namespace stride::testing
