#include "server/ops/bind.h"

#include "gtest/gtest.h"

namespace stride::ops {
namespace {

wire::Task Sum() {
  wire::Task task;
  for (uint64_t slot : {0, 1}) {
    auto* input = task.mutable_elementwise()->add_inputs();
    input->set_arena(slot);
    input->set_offset(8 * slot);
    input->add_strides(4);
  }
  task.mutable_elementwise()->add_outputs()->set_arena(2);
  return task;
}

wire::Task Copy() {
  wire::Task task;
  task.mutable_copy_bytes()->set_from_arena(0);
  task.mutable_copy_bytes()->set_from_offset(16);
  task.mutable_copy_bytes()->set_to_arena(1);
  return task;
}

std::string Bound(wire::Task task, absl::Span<const Location> slots) {
  Bind(&task, slots);
  return task.SerializeAsString();
}

TEST(BindTest, SlotsBecomeLocations) {
  wire::Task task = Sum();
  Bind(&task, {{5, 100}, {6, 200}});
  EXPECT_EQ(task.elementwise().inputs(0).arena(), 5u);
  EXPECT_EQ(task.elementwise().inputs(0).offset(), 100u);
  EXPECT_EQ(task.elementwise().inputs(1).arena(), 6u);
  EXPECT_EQ(task.elementwise().inputs(1).offset(), 208u);
  // A slot that does not exist.
  EXPECT_EQ(task.elementwise().outputs(0).arena(), UINT64_MAX);
}

TEST(RebinderTest, RebindEqualsFirstBind) {
  Rebinder rebinder;
  rebinder.Use(Sum());
  const std::vector<Location> first = {{5, 100}, {6, 200}, {5, 300}};
  const std::vector<Location> second = {{2, 64}, {2, 0}, {1, 512}};
  EXPECT_EQ(rebinder.Bind(first)->SerializeAsString(), Bound(Sum(), first));
  EXPECT_EQ(rebinder.Bind(second)->SerializeAsString(), Bound(Sum(), second));
  EXPECT_EQ(rebinder.Bind(first)->SerializeAsString(), Bound(Sum(), first));
}

TEST(RebinderTest, RebindKeepsNothingOfThePreviousPlan) {
  Rebinder rebinder;
  rebinder.Use(Sum());
  const std::vector<Location> slots = {{5, 100}, {6, 200}, {5, 300}};
  rebinder.Bind(slots)->set_label("sum");
  rebinder.Use(Copy());
  EXPECT_EQ(rebinder.Bind(slots)->SerializeAsString(), Bound(Copy(), slots));
}

}  // namespace
}  // namespace stride::ops
