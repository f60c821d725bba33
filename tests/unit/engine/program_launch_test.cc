// Programs as one task, seen from the worker.
#include "server/engine/core/program_launch.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/engine/engine.h"
#include "server/engine/service/array_service.h"
#include "server/engine/service/operation_service.h"
#include "server/engine/service/program_service.h"
#include "server/engine/service/session_service.h"
#include "tests/support/await.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"

namespace stride::engine {
namespace {

using ::stride::testing::FakeBroker;
using ::stride::testing::FakeWorker;
using ::stride::testing::HostDevice;

const TenantId kTenant{"default"};
constexpr int64_t kCount = 1000;

class ProgramLaunchTest : public ::testing::Test {
 protected:
  void Start(int64_t memory_bytes = int64_t{1} << 30, bool hold = false) {
    broker_ = std::make_unique<FakeBroker>(
        std::vector<wire::DeviceDescription>{HostDevice(0, memory_bytes)});
    broker_->set_hold(hold);
    engine_ = Engine::Create({}, broker_.get());
    v1::CreateSessionRequest request;
    request.set_session_id("s");
    ASSERT_TRUE(engine_->sessions().Create(kTenant, request).ok());
  }
  void TearDown() override {
    EXPECT_TRUE(EndEngine(*broker_, *engine_));
    engine_.reset();
  }
  // A program of `steps` copies, each of the previous one.
  void Create(const std::string& id, int steps) {
    v1::CreateProgramRequest request;
    request.set_program_id(id);
    request.mutable_program()->add_inputs()->set_handle(1);
    for (int i = 1; i <= steps; ++i) {
      v1::Operation* step = request.mutable_program()->add_operations();
      step->mutable_copy()->mutable_input()->set_handle(i);
      step->add_outputs()->set_handle(i + 1);
    }
    request.mutable_program()->add_outputs(2);
    request.mutable_program()->add_outputs(steps + 1);
    const auto created = engine_->programs().Create(kTenant, request);
    ASSERT_TRUE(created.ok()) << created.status();
  }
  std::shared_ptr<OperationHandle> Call(const std::string& id, uint64_t first_handle,
                                        int64_t count = kCount) {
    v1::Operation call;
    call.mutable_program_call()->set_program("tenants/default/programs/" + id);
    auto* input = call.mutable_program_call()->add_inputs()->mutable_inline_array();
    input->mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
    input->mutable_spec()->add_shape(count);
    input->set_data(std::string(count * 4, '\0'));
    call.add_outputs()->set_handle(first_handle);
    call.add_outputs()->set_handle(first_handle + 1);
    auto ticket =
        engine_->operations().Submit(kTenant, "sessions/s", call, Now() + absl::Seconds(100));
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return ticket.ok() ? *ticket : nullptr;
  }
  absl::Status Wait(const std::shared_ptr<OperationHandle>& ticket) {
    return ticket->Wait(Now() + absl::Seconds(100));
  }

  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(ProgramLaunchTest, ReplayIsOneSmallTaskAndSendsItsGraphOnce) {
  Start();
  Create("p", 60);
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(Wait(Call("p", 10 + 2 * i)).ok());
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  EXPECT_EQ(worker->num_graph_loads(), 1);
  ASSERT_EQ(worker->graphs().size(), 1u);
  const auto [id, graph] = *worker->graphs().begin();
  EXPECT_EQ(graph.steps_size(), 60);
  EXPECT_EQ(graph.scratch_slot(), 3u);
  EXPECT_EQ(graph.scratch_bytes(), 2 * 4096u) << "one is read while the next is made";
  const std::vector<wire::Task> tasks = worker->submitted();
  ASSERT_EQ(tasks.size(), 3u);
  for (const wire::Task& task : tasks) {
    ASSERT_TRUE(task.has_graph());
    EXPECT_EQ(task.graph().graph(), id);
    EXPECT_EQ(task.graph().slots_size(), 4) << "input, two results, the others";
    EXPECT_LT(task.ByteSizeLong(), 200u);
    EXPECT_EQ(task.label(), "program p");
  }
}

TEST_F(ProgramLaunchTest, ReplayRunsByBlocksUntilCompiled) {
  Start();
  broker_->set_block_loops({});
  v1::CreateProgramRequest request;
  request.set_program_id("p");
  request.mutable_program()->add_inputs()->set_handle(1);
  for (int i = 1; i <= 2; ++i) {
    v1::Operation* step = request.mutable_program()->add_operations();
    step->mutable_ufunc()->set_function(i == 1 ? "sin" : "negative");
    step->mutable_ufunc()->add_inputs()->set_handle(i);
    step->add_outputs()->set_handle(i + 1);
    request.mutable_program()->add_outputs(i + 1);
  }
  ASSERT_TRUE(engine_->programs().Create(kTenant, request).ok());
  ASSERT_TRUE(Wait(Call("p", 10)).ok());
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  EXPECT_EQ(broker_->num_compiles(), 0);
  ASSERT_EQ(worker->graphs().size(), 1u);
  const std::map<uint64_t, wire::Graph> first = worker->graphs();
  for (const wire::Task& step : first.begin()->second.steps()) {
    EXPECT_TRUE(step.elementwise().has_by_blocks());
    EXPECT_EQ(step.elementwise().module(), UINT64_MAX);
  }
  // This many elements justify compilation: the graph is sent again.
  for (int i = 0; i < 1000 && worker->num_graph_loads() == 1; ++i)
    ASSERT_TRUE(Wait(Call("p", 100 + 2 * i)).ok());
  EXPECT_GE(broker_->num_compiles(), 1);
  EXPECT_EQ(worker->num_graph_loads(), 2);
  ASSERT_EQ(worker->graphs().size(), 1u);
  const std::map<uint64_t, wire::Graph> second = worker->graphs();
  for (const wire::Task& step : second.begin()->second.steps()) {
    EXPECT_FALSE(step.elementwise().has_by_blocks());
    EXPECT_NE(step.elementwise().module(), UINT64_MAX);
  }
  ASSERT_TRUE(Wait(Call("p", 5000)).ok());
  EXPECT_EQ(worker->num_graph_loads(), 2);
}

TEST_F(ProgramLaunchTest, WorkerUnloadsDeletedProgram) {
  Start();
  Create("p", 3);
  Create("q", 4);
  ASSERT_TRUE(Wait(Call("p", 10)).ok());
  v1::Program gone;
  ASSERT_TRUE(engine_->programs().Delete(kTenant, "tenants/default/programs/p").ok());
  ASSERT_TRUE(Wait(Call("q", 12)).ok());
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  for (int i = 0; i < 200 && worker->graphs().size() != 1; ++i) {
    ASSERT_TRUE(Wait(Call("q", 100 + 2 * i)).ok());
    absl::SleepFor(absl::Milliseconds(20));
  }
  ASSERT_EQ(worker->graphs().size(), 1u);
  EXPECT_EQ(worker->graphs().begin()->second.steps_size(), 4);
}

TEST_F(ProgramLaunchTest, FailureFailsEveryResult) {
  Start(int64_t{1} << 30, /*hold=*/true);
  Create("p", 3);
  auto ticket = Call("p", 10);
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  AWAIT(worker->EndNext(absl::OutOfRangeError("index 7")));
  EXPECT_TRUE(absl::IsOutOfRange(Wait(ticket)));
  for (const char* name : {"sessions/s/arrays/10", "sessions/s/arrays/11"}) {
    auto array = engine_->arrays().Get(kTenant, name);
    ASSERT_TRUE(array.ok());
    EXPECT_EQ(array->state(), v1::Array::STATE_FAILED) << name;
  }
}

TEST_F(ProgramLaunchTest, ReplayRunsAgainInNextWorker) {
  Start(int64_t{1} << 30, /*hold=*/true);
  Create("p", 3);
  auto ticket = Call("p", 10);
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() != 0);
  worker->DieRunning(absl::AbortedError("killed"), /*fault=*/false);
  std::shared_ptr<FakeWorker> next = broker_->WaitForWorker(2);
  AWAIT(next->EndNext());
  EXPECT_TRUE(Wait(ticket).ok()) << Wait(ticket);
  EXPECT_EQ(next->num_graph_loads(), 1) << "it has nothing of the one before";
}

TEST_F(ProgramLaunchTest, ProgramLargerThanDeviceRunsStepByStep) {
  constexpr int64_t kMany = 30'000;
  Start(/*memory_bytes=*/4 * kMany * 4);  // four of its five buffers
  Create("p", 8);
  ASSERT_TRUE(Wait(Call("p", 10, kMany)).ok());
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  EXPECT_EQ(worker->num_graph_loads(), 0);
  EXPECT_GE(worker->submitted().size(), 8u);
}

}  // namespace
}  // namespace stride::engine
