#pragma once

#include <google/protobuf/text_format.h>

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/ops/program_plan.h"

// Programs as text, for tests.
namespace stride::ops::testing {

inline v1::Program ProgramOf(const std::string& text) {
  v1::Program program;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &program)) << text;
  return program;
}

inline std::string Unary(const std::string& function, int from, int to) {
  return " operations { ufunc { function: '" + function +
         "' inputs { handle: " + std::to_string(from) +
         " } } outputs { handle: " + std::to_string(to) + " } } ";
}
inline std::string Binary(const std::string& function, int left, int right, int to) {
  return " operations { ufunc { function: '" + function +
         "' inputs { handle: " + std::to_string(left) +
         " } inputs { handle: " + std::to_string(right) +
         " } } outputs { handle: " + std::to_string(to) + " } } ";
}

inline ProgramPlan Planned(const std::string& text, const std::vector<ArrayInfo>& inputs) {
  const v1::Program program = ProgramOf(text);
  EXPECT_TRUE(CheckProgram(program).ok()) << CheckProgram(program);
  auto plan = PlanProgram(program, inputs, nullptr);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : ProgramPlan();
}

}  // namespace stride::ops::testing
