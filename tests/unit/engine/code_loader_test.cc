// Code that workers have loaded.
#include "server/engine/scheduling/code_loader.h"

#include <memory>

#include "tests/unit/engine/part_test.h"

namespace stride::engine {
namespace {

using ::stride::testing::FakeWorker;
using ::stride::testing::HostDevice;

class CodeLoaderTest : public PartTest {
 protected:
  CodeLoaderTest() {
    Start({HostDevice(0)});
    loader_ = std::make_unique<CodeLoader>(core_.get());
    queue_ = &QueueOf("t");
    queue_->worker = *broker_->StartWorker(0);
    worker_ = broker_->WaitForWorker(1);
  }
  static std::shared_ptr<const broker::CompiledModule> Module(uint64_t id) {
    auto module = std::make_shared<broker::CompiledModule>();
    module->id = id;
    module->description.add_kernels()->set_entry("kernel");
    return module;
  }
  // A launch of a program of one module.
  std::shared_ptr<Task> Launch(std::shared_ptr<ProgramLaunch> launch) {
    auto task = NewTask(*queue_);
    task->program_launch = std::move(launch);
    auto compiled = std::make_shared<CompiledProgram>();
    compiled->modules = {Module(100)};
    task->code.compiled = compiled;
    return task;
  }
  static std::shared_ptr<ProgramLaunch> NewLaunch(uint64_t id) {
    return std::make_shared<ProgramLaunch>(id, ops::ProgramGraph());
  }
  absl::Status Load(const Task& task) {
    TenantTransaction transaction(*core_, queue_->tenant);
    return loader_->Load(task, *queue_);
  }
  // The number of answers, when the worker has sent all of them.
  uint64_t NumAnswers() {
    time_.RunAll();
    return queue_->contents.num_answers;
  }

  std::unique_ptr<CodeLoader> loader_;
  DeviceQueue* queue_;
  std::shared_ptr<FakeWorker> worker_;
};

TEST_F(CodeLoaderTest, ModuleIsLoadedOnceForAWorker) {
  auto task = NewTask(*queue_);
  task->code.module = Module(7);
  ASSERT_TRUE(Load(*task).ok());
  ASSERT_TRUE(Load(*task).ok());
  EXPECT_EQ(NumAnswers(), 1u);
  TenantTransaction transaction(*core_, queue_->tenant);
  EXPECT_EQ(queue_->contents.attributes[7].kernels(0).entry(), "kernel");
}

TEST_F(CodeLoaderTest, TaskWithoutCodeNeedsNone) {
  EXPECT_TRUE(Load(*NewTask(*queue_)).ok());
  EXPECT_TRUE(queue_->contents.modules.empty());
}

TEST_F(CodeLoaderTest, ProgramIsLoadedWithItsModules) {
  auto launch = NewLaunch(1);
  auto task = Launch(launch);
  ASSERT_TRUE(Load(*task).ok());
  ASSERT_TRUE(Load(*task).ok());
  EXPECT_EQ(worker_->num_graph_loads(), 1);
  EXPECT_EQ(queue_->contents.modules.count(100), 1u);
  EXPECT_EQ(NumAnswers(), 1u);
}

// Its code was compiled since.
TEST_F(CodeLoaderTest, ProgramWithNewCodeIsLoadedAgain) {
  auto launch = NewLaunch(1);
  auto by_blocks = Launch(launch);
  ASSERT_TRUE(Load(*by_blocks).ok());
  ASSERT_TRUE(Load(*Launch(launch)).ok());
  EXPECT_EQ(worker_->num_graph_loads(), 2);
  EXPECT_EQ(worker_->graphs().size(), 1u);
  EXPECT_EQ(NumAnswers(), 1u);
}

TEST_F(CodeLoaderTest, ProgramWithoutAnOwnerIsUnloaded) {
  auto kept = NewLaunch(1);
  auto task = Launch(kept);
  ASSERT_TRUE(Load(*task).ok());
  ASSERT_TRUE(Load(*Launch(NewLaunch(2))).ok());
  TenantTransaction transaction(*core_, queue_->tenant);
  loader_->Unload(*queue_);
  EXPECT_EQ(worker_->graphs().size(), 1u);
  EXPECT_EQ(worker_->graphs().count(1), 1u);
}

TEST_F(CodeLoaderTest, LeastRecentlyUsedProgramIsUnloaded) {
  std::vector<std::shared_ptr<Task>> tasks;
  for (uint64_t id = 1; id <= 1001; ++id) {
    tasks.push_back(Launch(NewLaunch(id)));
    ASSERT_TRUE(Load(*tasks.back()).ok());
    ASSERT_TRUE(Load(*tasks.front()).ok());
  }
  EXPECT_EQ(worker_->graphs().size(), 1000u);
  EXPECT_EQ(worker_->graphs().count(1), 1u) << "it was just used";
  EXPECT_EQ(worker_->graphs().count(2), 0u);
}

TEST_F(CodeLoaderTest, ErrorOfAModuleIsFoundForItsTasks) {
  auto task = NewTask(*queue_);
  task->code.module = Module(7);
  EXPECT_TRUE(CodeLoader::ErrorOf(*task, *queue_).ok());
  queue_->contents.load_errors[7] = absl::InternalError("refused");
  EXPECT_EQ(CodeLoader::ErrorOf(*task, *queue_).message(), "refused");
  EXPECT_TRUE(CodeLoader::ErrorOf(*NewTask(*queue_), *queue_).ok());
}

}  // namespace
}  // namespace stride::engine
