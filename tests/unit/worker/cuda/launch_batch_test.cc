// Objects of the driver that a batch keeps, with fake functions that run nothing.
#include "server/worker/cuda/launch_batch.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/worker/cuda/fake_graphs.h"

namespace stride::cuda {
namespace {

class LaunchBatchTest : public testing::Test {
 protected:
  absl::Status Launch(int count) {
    std::vector<EmittedLaunch> launches(count);
    for (EmittedLaunch& launch : launches) launch.kernel = &kernel_;
    return batch_.Launch(absl::MakeSpan(launches));
  }

  Kernel kernel_;
  Driver driver_;
  FakeGraphs& fake_ = NewFakeGraphs(&driver_);
  LaunchBatch batch_{driver_, nullptr};
};

TEST_F(LaunchBatchTest, GraphOfEachLengthIsCreatedOnceAndUpdated) {
  for (int turn = 0; turn < 2; ++turn) {
    for (int count : {2, 3}) ASSERT_TRUE(Launch(count).ok());
    EXPECT_EQ(fake_.executables.size(), 2u);
    EXPECT_EQ(fake_.graphs.size(), 2u);  // nodes that were updated
    EXPECT_EQ(fake_.num_updates, turn == 0 ? 0 : 5);
  }
  EXPECT_EQ(fake_.num_launches, 4);
}

TEST_F(LaunchBatchTest, ForgottenGraphsAreRecreated) {
  for (int count : {2, 16}) ASSERT_TRUE(Launch(count).ok());
  batch_.Forget();
  EXPECT_EQ(fake_.executables.size(), 0u);
  EXPECT_EQ(fake_.graphs.size(), 0u);
  ASSERT_TRUE(Launch(16).ok());
  EXPECT_EQ(fake_.executables.size(), 1u);
  EXPECT_EQ(fake_.num_updates, 0);
}

TEST_F(LaunchBatchTest, RefusedGraphLeavesNoObjects) {
  fake_.instantiates = false;
  EXPECT_FALSE(Launch(4).ok());
  EXPECT_EQ(fake_.graphs.size(), 0u);
  EXPECT_EQ(fake_.num_launches, 0);
  fake_.instantiates = true;
  EXPECT_TRUE(Launch(4).ok());
  fake_.updates = false;
  EXPECT_FALSE(Launch(4).ok());
  EXPECT_EQ(fake_.num_launches, 1);
}

}  // namespace
}  // namespace stride::cuda
