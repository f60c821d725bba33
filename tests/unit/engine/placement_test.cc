#include "server/engine/scheduling/placement.h"

#include <vector>

#include "gtest/gtest.h"

namespace stride::engine {
namespace {

TEST(Placement, TakesTheDeviceThatFinishesFirst) {
  std::vector<Candidate> candidates = {
      {.device = 0, .queued_seconds = 2, .run_seconds = 1},
      {.device = 1, .queued_seconds = 0.5, .transfer_seconds = 1, .run_seconds = 1}};
  EXPECT_EQ(ChooseDevice(candidates), 1);
}

TEST(Placement, MovingBytesCanCostMoreThanWaiting) {
  std::vector<Candidate> candidates = {
      {.device = 0, .queued_seconds = 2, .run_seconds = 1},
      {.device = 1, .queued_seconds = 0, .transfer_seconds = 5, .run_seconds = 1}};
  EXPECT_EQ(ChooseDevice(candidates), 0);
}

TEST(Placement, TransferOverlapsTheQueue) {
  std::vector<Candidate> candidates = {
      {.device = 0, .queued_seconds = 3.1, .run_seconds = 1},
      {.device = 1, .queued_seconds = 3, .transfer_seconds = 3, .run_seconds = 1}};
  EXPECT_EQ(ChooseDevice(candidates), 1);
}

TEST(Placement, TieGoesToTheFirstDevice) {
  std::vector<Candidate> candidates = {{.device = 2}, {.device = 0}, {.device = 1}};
  EXPECT_EQ(ChooseDevice(candidates), 2);
}

TEST(Placement, NoSuitableDeviceIsAnError) {
  std::vector<Candidate> candidates = {{.device = 0, .suitable = false}};
  EXPECT_EQ(ChooseDevice(candidates), -1);
  EXPECT_EQ(ChooseDevice({}), -1);
}

}  // namespace
}  // namespace stride::engine
