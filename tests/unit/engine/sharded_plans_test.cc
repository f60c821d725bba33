#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/core/infos.h"
#include "server/engine/sharding/shard_layout.h"
#include "server/engine/sharding/sharded.h"
#include "server/ops/plan.h"

namespace stride::engine {
namespace {

using ArrayPtr = std::shared_ptr<session::Array>;
using PlannedPtr = std::shared_ptr<const Planned>;

// Plans as the engine does, and records the launches.
class Runner : public PartRunner {
 public:
  absl::StatusOr<PlannedPtr> Plan(const v1::Operation& operation,
                                  absl::Span<const ArrayInfo* const> inputs,
                                  absl::Span<const ArrayInfo* const> existing) override {
    const ops::PlanKey key({"tenant"}, operation, inputs, existing);
    PlannedPtr kept = cache_.Find(key.bytes());
    if (kept != nullptr) return kept;
    ++num_made;
    auto copies = [](absl::Span<const ArrayInfo* const> infos) {
      std::vector<ops::Input> out;
      for (const ArrayInfo* info : infos)
        out.push_back(info != nullptr ? ops::Input(*info) : std::nullopt);
      return out;
    };
    auto plan = ops::PlanOperation(operation, copies(inputs), copies(existing));
    if (!plan.ok()) return plan.status();
    kept = MakePlanned(*std::move(plan));
    cache_.Keep(key.bytes(), kept);
    return kept;
  }
  absl::Status Admit(size_t, int64_t) override { return absl::OkStatus(); }
  absl::StatusOr<session::ArrayList> Run(Part part) override {
    launched.push_back(part.planned);
    return session::ArrayList{New(part.planned->plan.outputs[0])};
  }
  absl::StatusOr<ArrayPtr> Move(ArrayPtr array, int) override { return array; }
  absl::StatusOr<ArrayPtr> NewArray(const ArrayInfo& info) override { return New(info); }

  ArrayPtr New(const ArrayInfo& info) {
    auto array = std::make_shared<session::Array>();
    array->info = info;
    array->buffer = std::make_shared<store::Buffer>(TenantId{"t"}, info.size_bytes(), reclaimer_);
    return array;
  }

  int num_made = 0;
  std::vector<PlannedPtr> launched;

 private:
  PlanCache cache_;
  std::shared_ptr<store::Reclaimer> reclaimer_ = std::make_shared<store::Reclaimer>();
};

class SpreadPlansTest : public ::testing::Test {
 protected:
  // An array of 24 elements over `n` devices.
  ArrayPtr Split(int num_parts) {
    ops::Spread spread;
    session::ArrayList parts;
    for (int i = 0; i < num_parts; ++i) {
      spread.devices.push_back(i);
      parts.push_back(runner_.New(Contiguous(DType::kFloat32, {24 / num_parts})));
    }
    return WholeOf(Contiguous(DType::kFloat32, {24}), spread, std::move(parts));
  }
  static v1::Operation ReductionBy(v1::Reduction::Function function) {
    v1::Operation operation;
    operation.mutable_reduction()->set_function(function);
    operation.mutable_reduction()->mutable_input()->set_handle(1);
    operation.add_outputs()->set_handle(2);
    return operation;
  }
  void Run(const v1::Operation& operation, size_t num_inputs, int num_parts = 3) {
    ShardedOperation sharded{.operation = &operation};
    for (size_t i = 0; i < num_inputs; ++i) sharded.inputs.push_back(Split(num_parts));
    sharded.existing.push_back(nullptr);
    sharded.input_fields.assign(num_inputs, "input");
    sharded.output_fields.assign(1, "output");
    sharded.wanted.resize(1);
    auto outputs = RunSharded(sharded, runner_);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
  }
  // The launches of two equal operations on similar arrays, one after the other.
  void RunTwice(const v1::Operation& operation, size_t num_inputs) {
    Run(operation, num_inputs);
    const std::vector<PlannedPtr> first = std::exchange(runner_.launched, {});
    const int made = runner_.num_made;
    Run(operation, num_inputs);
    EXPECT_EQ(runner_.launched, first);
    EXPECT_EQ(runner_.num_made, made);
  }

  Runner runner_;
};

// A plan costs ten times its lookup.
TEST_F(SpreadPlansTest, EqualOperationsSharePlansOfParts) {
  v1::Operation add;
  add.mutable_ufunc()->set_function("add");
  for (int i = 0; i < 2; ++i) add.mutable_ufunc()->add_inputs()->set_handle(1);
  add.add_outputs()->set_handle(2);
  RunTwice(add, 2);
  EXPECT_EQ(runner_.launched.size(), 3u);
  EXPECT_EQ(runner_.num_made, 2);  // one for the whole, one for a part
}

TEST_F(SpreadPlansTest, EqualReductionsShareCombiningPlans) {
  const v1::Operation sum = ReductionBy(v1::Reduction::FUNCTION_SUM);
  RunTwice(sum, 1);
  EXPECT_EQ(runner_.launched.size(), 4u);
}

// The parts omit the last step: that is another plan, cached next to the first.
TEST_F(SpreadPlansTest, EqualMeansSharePartialAndFinalPlans) {
  const v1::Operation norm = ReductionBy(v1::Reduction::FUNCTION_NORM);
  RunTwice(norm, 1);
  EXPECT_EQ(runner_.launched.size(), 4u);
}

// Another number of parts has another plan, although the whole is the same.
TEST_F(SpreadPlansTest, OtherNumberOfPartsNeedsNewPlan) {
  const v1::Operation sum = ReductionBy(v1::Reduction::FUNCTION_SUM);
  RunTwice(sum, 1);
  const PlannedPtr of_three = runner_.launched.back();
  runner_.launched.clear();
  Run(sum, 1, /*num_parts=*/2);
  ASSERT_EQ(runner_.launched.size(), 3u);
  EXPECT_NE(runner_.launched.back(), of_three);
  EXPECT_EQ(runner_.launched.back()->plan.task.elementwise().inputs_size(), 2);
}

}  // namespace
}  // namespace stride::engine
