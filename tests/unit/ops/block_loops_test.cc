#include "server/ops/block_loops.h"

#include <set>

#include "gtest/gtest.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

bool PlanRunsByBlocks(const Plan& plan) {
  return plan.code.has_value() && plan.code->has_elementwise() &&
         RunsByBlocks(plan.code->elementwise().program());
}

// Every ufunc over every pair of types that NumPy has a loop for, with casts.
TEST(BlockLoopsTest, EveryUfuncOfEveryTypeRunsByBlocks) {
  int count = 0;
  for (const OpRow& row : OpTable()) {
    for (int left = 1; left <= kNumDTypes; ++left) {
      for (int right = 1; right <= kNumDTypes; ++right) {
        std::vector<Input> inputs(static_cast<size_t>(row.arity),
                                  testing::Array(static_cast<DType>(right), {10}));
        inputs[0] = testing::Array(static_cast<DType>(left), {10});
        auto plan = PlanOperation(testing::UfuncOf(std::string(row.name), row.arity), inputs, {});
        if (!plan.ok() || !plan->code.has_value()) continue;
        ++count;
        EXPECT_TRUE(PlanRunsByBlocks(*plan)) << row.name << " " << Name(static_cast<DType>(left))
                                             << " " << Name(static_cast<DType>(right)) << "\n"
                                             << plan->code->DebugString();
      }
    }
  }
  EXPECT_GT(count, 5000);
}

TEST(BlockLoopsTest, MasksOfEveryTypeRunByBlocks) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    v1::Operation operation = testing::UfuncOf("add", 2);
    operation.mutable_ufunc()->mutable_where()->set_handle(3);
    const Input array = testing::Array(static_cast<DType>(number), {10});
    auto plan = PlanOperation(operation, {array, array, testing::Array(DType::kBool, {10})}, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(PlanRunsByBlocks(*plan)) << number;
  }
}

TEST(BlockLoopsTest, RandomNumbersRunByBlocks) {
  using Random = v1::Creation::Random;
  for (auto generator : {Random::GENERATOR_PHILOX_4X32, Random::GENERATOR_THREEFRY_2X32}) {
    for (v1::DataType dtype : {v1::DATA_TYPE_FLOAT16, v1::DATA_TYPE_FLOAT32, v1::DATA_TYPE_FLOAT64,
                               v1::DATA_TYPE_INT64, v1::DATA_TYPE_UINT32}) {
      for (int kind = 0; kind < 4; ++kind) {
        v1::Operation operation;
        operation.add_outputs()->set_handle(100);
        Random* random = operation.mutable_creation()->mutable_random();
        random->mutable_spec()->set_data_type(dtype);
        random->mutable_spec()->add_shape(10);
        random->set_generator(generator);
        if (kind == 0) random->mutable_bits();
        if (kind == 1) random->mutable_uniform()->set_high(3);
        if (kind == 2) random->mutable_normal()->set_mean(3);
        if (kind == 3) random->mutable_integers()->mutable_high()->set_int_value(6);
        auto plan = PlanOperation(operation, {}, {});
        if (!plan.ok()) continue;  // this type has no such distribution
        EXPECT_TRUE(PlanRunsByBlocks(*plan)) << operation.DebugString();
      }
    }
  }
}

TEST(BlockLoopsTest, ClientFunctionsDoNotRunByBlocks) {
  wire::ScalarProgram program;
  program.add_instructions()->set_kind(wire::Instruction::KIND_CALL);
  EXPECT_FALSE(RunsByBlocks(program));
}

TEST(BlockLoopsTest, NamesAreDistinctIdentifiers) {
  std::set<std::string> names;
  for (const BlockLoop& loop : BlockLoops()) {
    const std::string name = NameOf(loop);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos)
        << name;
  }
}

}  // namespace
}  // namespace stride::ops
