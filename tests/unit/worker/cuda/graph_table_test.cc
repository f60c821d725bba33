// Objects of the driver that the table keeps, with fake functions that run nothing.
#include "server/worker/cuda/graph_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/unit/worker/cuda/fake_graphs.h"

namespace stride::cuda {
namespace {

constexpr uint64_t kGraph = 5;

class GraphTableTest : public testing::Test {
 protected:
  void SetUp() override { table_ = *GraphTable::Create(driver_, nullptr, scratch_); }

  // Two captured steps, one that is not captured, and two captured ones.
  void Load(uint64_t id) {
    wire::Graph graph;
    for (int i = 0; i < 5; ++i) {
      wire::Task* step = graph.add_steps();
      if (i == 2) {
        step->mutable_fft();
      } else {
        step->mutable_copy_bytes()->set_to_arena(0);
      }
    }
    auto traits = [](const wire::KernelLaunch&) { return GraphTable::KernelTraits(); };
    ASSERT_TRUE(table_->Load(id, graph, std::nullopt, traits).ok());
  }

  // Returns the number of steps launched separately or captured; -1 on failure.
  int Replay(uint64_t id, uint64_t offset = 0) {
    wire::GraphLaunch launch;
    launch.set_graph(id);
    launch.add_slots()->set_offset(offset);
    int steps = 0;
    auto lower = [&](const wire::Task&, CUstream, codegen::RoutineFault*, CUdeviceptr) {
      ++steps;
      return absl::OkStatus();
    };
    return table_->Replay(launch, nullptr, lower).ok() ? steps : -1;
  }

  Driver driver_;
  FakeGraphs& fake_ = NewFakeGraphs(&driver_);
  Scratch scratch_{driver_, nullptr};
  std::unique_ptr<GraphTable> table_;
};

TEST_F(GraphTableTest, ExecutablesAreKeptForTheNextReplay) {
  Load(kGraph);
  EXPECT_EQ(Replay(kGraph), 5);
  EXPECT_EQ(fake_.executables.size(), 0u);
  EXPECT_EQ(Replay(kGraph), 5);  // four captured, one launched
  EXPECT_EQ(fake_.executables.size(), 2u);
  EXPECT_EQ(Replay(kGraph), 1);
  EXPECT_EQ(fake_.num_launches, 4);
  EXPECT_EQ(fake_.executables.size(), 2u);
  EXPECT_EQ(fake_.graphs.size(), 0u);
  EXPECT_EQ(Replay(kGraph, 64), 5);
  EXPECT_EQ(fake_.executables.size(), 4u);
}

TEST_F(GraphTableTest, UnloadDestroysExecutables) {
  for (uint64_t id : {kGraph, kGraph + 1}) {
    Load(id);
    Replay(id);
    Replay(id);
  }
  EXPECT_EQ(fake_.executables.size(), 4u);
  EXPECT_TRUE(table_->Unload(kGraph).ok());
  EXPECT_EQ(fake_.executables.size(), 2u);
  table_ = nullptr;
  EXPECT_EQ(fake_.executables.size(), 0u);
}

TEST_F(GraphTableTest, ForgottenExecutablesAreRecreated) {
  Load(kGraph);
  Replay(kGraph);
  for (uint64_t offset : {0, 64}) Replay(kGraph, offset);
  table_->ForgetExecutables();
  EXPECT_EQ(fake_.executables.size(), 0u);
  EXPECT_EQ(Replay(kGraph), 5);
  EXPECT_EQ(fake_.executables.size(), 2u);
}

// The limit is the total, not per graph.
TEST_F(GraphTableTest, StepsOfExecutablesAreLimited) {
  for (uint64_t id = 1; id <= 200; ++id) {
    Load(id);
    Replay(id);
    for (uint64_t offset = 0; offset < 50; ++offset) EXPECT_EQ(Replay(id, offset), 5);
    EXPECT_LE(fake_.executables.size() / 2 * 5, 32u << 10);
  }
  // Too many existed once, and were destroyed.
  EXPECT_EQ(Replay(1), 5);
  EXPECT_EQ(Replay(200), 1);
}

TEST_F(GraphTableTest, DestroyedExecutablesDoNotCount) {
  Load(kGraph);
  Replay(kGraph);
  Replay(kGraph);
  for (int turn = 0; turn < 200; ++turn) {
    Load(1);
    Replay(1);
    for (uint64_t offset = 0; offset < 50; ++offset) Replay(1, offset);
    EXPECT_TRUE(table_->Unload(1).ok());
  }
  EXPECT_EQ(Replay(kGraph), 1);
}

TEST_F(GraphTableTest, LeastRecentlyUsedExecutableIsReplaced) {
  Load(kGraph);
  Replay(kGraph);
  for (uint64_t offset = 0; offset < 64; ++offset) Replay(kGraph, offset);
  EXPECT_EQ(fake_.executables.size(), 128u);
  EXPECT_EQ(Replay(kGraph, 64), 5);
  EXPECT_EQ(fake_.num_updates, 2);
  fake_.updates = false;
  EXPECT_EQ(Replay(kGraph, 65), 5);
  EXPECT_EQ(fake_.num_updates, 2);
  EXPECT_EQ(fake_.executables.size(), 128u);
  EXPECT_EQ(Replay(kGraph, 1), 5);   // was the third
  EXPECT_EQ(Replay(kGraph, 65), 1);  // exists
}

TEST_F(GraphTableTest, RefusedGraphsLaunchTheirSteps) {
  Load(kGraph);
  Replay(kGraph);
  EXPECT_EQ(Replay(kGraph), 5);
  fake_.instantiates = false;
  EXPECT_EQ(Replay(kGraph, 64), 7);  // two of them in vain
  EXPECT_EQ(fake_.executables.size(), 0u);
  EXPECT_EQ(fake_.graphs.size(), 0u);
  fake_.instantiates = true;
  EXPECT_EQ(Replay(kGraph), 5);
  EXPECT_EQ(fake_.executables.size(), 0u);
}

}  // namespace
}  // namespace stride::cuda
