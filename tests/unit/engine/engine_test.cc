#include "server/engine/engine.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/tenant_partition.h"
#include "server/engine/service/array_service.h"
#include "server/engine/service/device_service.h"
#include "server/engine/service/function_service.h"
#include "server/engine/service/job_service.h"
#include "server/engine/service/module_service.h"
#include "server/engine/service/operation_service.h"
#include "server/engine/service/session_service.h"
#include "server/ops/block_loops.h"
#include "server/ops/reduce_by_blocks.h"
#include "tests/support/await.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"

namespace stride::engine {
namespace {

using ::stride::testing::Eventually;
using ::stride::testing::FakeBroker;
using ::stride::testing::FakeWorker;
using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;

const TenantId kTenant{"default"};

class EngineTest : public ::testing::Test {
 protected:
  void Start(std::vector<wire::DeviceDescription> devices, bool hold = false,
             EngineOptions options = {}) {
    broker_ = std::make_unique<FakeBroker>(std::move(devices));
    broker_->set_hold(hold);
    engine_ = Engine::Create(options, broker_.get());
    v1::CreateSessionRequest request;
    request.set_session_id("s");
    ASSERT_TRUE(engine_->sessions().Create(kTenant, request).ok());
  }
  void TearDown() override {
    if (broker_ == nullptr) return;
    EXPECT_TRUE(EndEngine(*broker_, *engine_));
    engine_.reset();
  }

  static SteadyTime Soon() { return Now() + absl::Seconds(100); }

  // Header of an upload of `count` float32 elements.
  static v1::PutArrayRequest::Header HeaderOf(uint64_t handle, int64_t count) {
    v1::PutArrayRequest::Header header;
    header.set_parent("sessions/s");
    header.set_array_id(absl::StrCat(handle));
    header.mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
    header.mutable_spec()->add_shape(count);
    return header;
  }
  absl::StatusOr<v1::Array> Put(uint64_t handle, std::vector<float> values,
                                std::string device = "") {
    v1::PutArrayRequest::Header header = HeaderOf(handle, static_cast<int64_t>(values.size()));
    header.set_device(device);
    auto upload = engine_->arrays().BeginUpload(kTenant, header, Soon());
    if (!upload.ok()) return upload.status();
    absl::Status written =
        (*upload)->Write({reinterpret_cast<const char*>(values.data()), values.size() * 4});
    if (!written.ok()) return written;
    return (*upload)->Finish();
  }

  absl::StatusOr<std::vector<float>> Fetch(uint64_t handle) {
    v1::FetchArrayRequest request;
    request.set_name(absl::StrCat("sessions/s/arrays/", handle));
    auto download = engine_->arrays().BeginDownload(kTenant, request, Soon());
    if (!download.ok()) return download.status();
    std::string bytes;
    while (true) {
      auto chunk = (*download)->Next(1000);
      if (!chunk.ok()) return chunk.status();
      if (chunk->bytes.empty()) break;
      bytes.append(chunk->bytes);
    }
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  static v1::Operation Add(uint64_t a, uint64_t b, uint64_t out, std::string device = "") {
    v1::Operation operation;
    operation.mutable_ufunc()->set_function("add");
    operation.mutable_ufunc()->add_inputs()->set_handle(a);
    operation.mutable_ufunc()->add_inputs()->set_handle(b);
    operation.add_outputs()->set_handle(out);
    operation.set_device(device);
    return operation;
  }
  absl::StatusOr<std::shared_ptr<OperationHandle>> Submit(
      const v1::Operation& operation, SteadyTime deadline = SteadyTime::InfiniteFuture()) {
    return engine_->operations().Submit(kTenant, "sessions/s", operation, deadline);
  }
  v1::Array::State State(uint64_t handle) {
    auto array = engine_->arrays().Get(kTenant, absl::StrCat("sessions/s/arrays/", handle));
    return array.ok() ? array->state() : v1::Array::STATE_UNSPECIFIED;
  }

  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, BytesRoundTripThroughHostMemory) {
  Start({HostDevice(0)});
  std::vector<float> values(100000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  auto array = Put(1, values);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->state(), v1::Array::STATE_READY);
  auto back = Fetch(1);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, values);
}

// Tests of a GPU's first tier: one kernel that receives a program as parameters.
class FirstTierTest : public EngineTest {
 protected:
  void StartWithLoops(uint32_t parameter_bytes) {
    wire::KernelDescription kernel;
    kernel.set_entry(ops::kBlocksEntry);
    kernel.add_parameters()->set_size(parameter_bytes);
    Start({StagedDevice(0)});
    broker_->set_block_loops(kernel);
    ASSERT_TRUE(Put(1, {1, 2, 3}).ok());
  }
  wire::Task RunOne(const v1::Operation& operation) {
    auto ticket = Submit(operation);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    EXPECT_TRUE((*ticket)->Wait(Soon()).ok());
    return broker_->WaitForWorker(1)->submitted().back();
  }
};

TEST_F(FirstTierTest, NewOperationRunsByBlocksWithoutCompilation) {
  StartWithLoops(4000);
  const wire::Task task = RunOne(Add(1, 1, 2));
  EXPECT_TRUE(task.elementwise().has_by_blocks());
  EXPECT_EQ(task.elementwise().module(), UINT64_MAX);
  EXPECT_EQ(broker_->num_compiles(), 0);
}

TEST_F(FirstTierTest, ProgramLargerThanParametersWaitsForItsCode) {
  StartWithLoops(64);
  EXPECT_FALSE(RunOne(Add(1, 1, 2)).elementwise().has_by_blocks());
  EXPECT_EQ(broker_->num_compiles(), 1);
}

v1::Operation SumOfFirst() {
  v1::Operation sum;
  sum.mutable_reduction()->set_function(v1::Reduction::FUNCTION_SUM);
  sum.mutable_reduction()->mutable_input()->set_handle(1);
  sum.add_outputs()->set_handle(2);
  return sum;
}

// Reduces float32 elements along a row, as a GPU does.
wire::Code PlainSum() {
  return ops::PlainReduceCode(wire::ReduceCode::COMBINE_ADD, static_cast<int>(DType::kFloat32),
                              /*columns=*/false,
                              ops::TakenAtOnce{.item_bytes = 4, .contiguous = true});
}

TEST_F(FirstTierTest, ReductionRunsByBlocksWithPrecompiledCode) {
  StartWithLoops(4000);
  broker_->AddPrecompiled(PlainSum());
  const wire::Task task = RunOne(SumOfFirst());
  EXPECT_EQ(task.reduce().by_blocks().loops(), UINT64_MAX);
  EXPECT_EQ(broker_->num_compiles(), 1);  // as the fake counts a file read
  EXPECT_EQ(broker_->last_compiled(), PlainSum().SerializeAsString());
}

TEST_F(FirstTierTest, ReductionWithoutPrecompiledCodeWaitsForItsCode) {
  StartWithLoops(4000);
  const wire::Task task = RunOne(SumOfFirst());
  EXPECT_TRUE(task.has_reduce());
  EXPECT_FALSE(task.reduce().has_by_blocks());
  EXPECT_EQ(broker_->num_compiles(), 1);
  EXPECT_NE(broker_->last_compiled(), PlainSum().SerializeAsString());
}

TEST_F(FirstTierTest, ReductionLargerThanParametersWaitsForItsCode) {
  StartWithLoops(64);
  broker_->AddPrecompiled(PlainSum());
  EXPECT_FALSE(RunOne(SumOfFirst()).reduce().has_by_blocks());
}

// While the worker is busy, tasks that become ready share one packet, also a chain.
TEST_F(EngineTest, BusyWorkerReceivesManyTasksInOnePacket) {
  constexpr int kBusy = 8, kMore = 24;
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2, 3}).ok());
  for (int i = 0; i < kBusy; ++i) ASSERT_TRUE(Submit(Add(1, 1, 100 + i)).ok());
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= kBusy);
  const int packets = worker->num_packets();
  // Each operation uses the previous result.
  for (int i = 0; i < kMore; ++i) ASSERT_TRUE(Submit(Add(1, i == 0 ? 1 : 199 + i, 200 + i)).ok());
  EXPECT_EQ(worker->num_packets(), packets);
  ASSERT_TRUE(worker->EndNext());
  EXPECT_EQ(worker->num_packets(), packets + 1);
  EXPECT_EQ(worker->num_held(), kBusy - 1 + kMore);
  while (worker->EndNext()) {
  }
}

// One message of commands: the first is sent at once to an idle worker, the others in one packet.
TEST_F(EngineTest, BatchIsSentInOnePacket) {
  constexpr int kMore = 5;
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2, 3}).ok());
  auto warm = Submit(Add(1, 1, 99));
  ASSERT_TRUE(warm.ok());
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  AWAIT(worker->EndNext());
  ASSERT_TRUE((*warm)->Wait(Soon()).ok());
  const int packets = worker->num_packets();
  std::atomic<int> num_ended = 0;
  auto batch = engine_->operations().BeginSubmitBatch(kTenant);
  for (int i = 0; i <= kMore; ++i) {
    auto ticket = batch->Submit("sessions/s", Add(1, i == 0 ? 1 : 199 + i, 200 + i),
                                SteadyTime::InfiniteFuture());
    ASSERT_TRUE(ticket.ok());
    EXPECT_THAT((*ticket)->Describe(batch.get()), ::testing::SizeIs(1));
    (*ticket)->OnDone([&](const absl::Status& status) { num_ended += status.ok(); }, batch.get());
  }
  EXPECT_EQ(worker->num_packets(), packets + 1);
  EXPECT_EQ(worker->num_held(), 1);
  batch.reset();
  EXPECT_EQ(worker->num_packets(), packets + 2);
  EXPECT_EQ(worker->num_held(), 1 + kMore);
  while (worker->EndNext()) {
  }
  auto after = Submit(Add(1, 200 + kMore, 300));
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(worker->num_packets(), packets + 3);
  AWAIT(num_ended >= 1 + kMore);
  ASSERT_TRUE(worker->EndNext());
}

// The description is recorded at acceptance and reported later, when the array may be gone.
TEST_F(EngineTest, PendingArrayIsDescribedAsAtAcceptance) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2, 3}).ok());
  auto ticket = Submit(Add(1, 1, 2));
  ASSERT_TRUE(ticket.ok());
  const v1::Array described = (*ticket)->Describe().at(0);
  EXPECT_EQ(described.state(), v1::Array::STATE_PENDING);
  session::PendingArrays noted;
  ASSERT_TRUE((*ticket)->NotePending(&noted));
  ASSERT_EQ(noted.size(), 1u);
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  AWAIT(worker->EndNext());
  ASSERT_TRUE((*ticket)->Wait(Soon()).ok());
  v1::Array told;
  session::Describe(noted[0], &told);
  EXPECT_EQ(told.SerializeAsString(), described.SerializeAsString());
  session::PendingArrays none;
  EXPECT_FALSE((*ticket)->NotePending(&none)) << "it is there now, which there is more to tell of";
  EXPECT_TRUE(none.empty());
}

// Other callers wait for the transaction, and only for it.
TEST_F(EngineTest, OtherCallersWaitForTheBatch) {
  Start({HostDevice(0)});
  ASSERT_TRUE(Put(1, {1, 2, 3}).ok());
  auto batch = engine_->operations().BeginSubmitBatch(kTenant);
  ASSERT_TRUE(batch->Submit("sessions/s", Add(1, 1, 2), SteadyTime::InfiniteFuture()).ok());
  std::atomic<bool> other_done = false;
  std::thread other([&] {
    EXPECT_TRUE(Submit(Add(1, 2, 3)).ok());  // 2 exists by then
    other_done = true;
  });
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_FALSE(other_done);
  batch.reset();
  other.join();
  EXPECT_TRUE(Fetch(3).ok());
}

TEST_F(EngineTest, FullPacketIsSentAtOnce) {
  constexpr int kBusy = 8, kFull = 32;
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2, 3}).ok());
  for (int i = 0; i < kBusy; ++i) ASSERT_TRUE(Submit(Add(1, 1, 100 + i)).ok());
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= kBusy);
  for (int i = 0; i < kFull; ++i) ASSERT_TRUE(Submit(Add(1, 1, 200 + i)).ok());
  EXPECT_EQ(worker->num_held(), kBusy + kFull);
  while (worker->EndNext()) {
  }
}

class InPlaceTest : public EngineTest {
 protected:
  static v1::Operand Inline(const std::vector<float>& values) {
    v1::Operand operand;
    v1::ArraySpec* spec = operand.mutable_inline_array()->mutable_spec();
    spec->set_data_type(v1::DATA_TYPE_FLOAT32);
    spec->add_shape(static_cast<int64_t>(values.size()));
    operand.mutable_inline_array()->set_data(values.data(), values.size() * sizeof(float));
    return operand;
  }
  static v1::Operation AddInline(size_t count) {
    v1::Operation operation;
    operation.mutable_ufunc()->set_function("add");
    for (int i = 0; i < 2; ++i)
      *operation.mutable_ufunc()->add_inputs() = Inline(std::vector<float>(count, 1.0f));
    operation.add_outputs()->set_inline_result(true);
    return operation;
  }
  // Returns the number of copies of the call.
  int CopiesOf(const v1::Operation& operation) {
    auto ticket = Submit(operation);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    if (!ticket.ok()) return -1;
    EXPECT_TRUE((*ticket)->Wait(Soon()).ok());
    auto result = (*ticket)->ReadInline(0, Soon());
    EXPECT_TRUE(result.ok()) << result.status();
    return broker_->WaitForWorker(1)->num_copies();
  }
};

TEST_F(InPlaceTest, SmallInputsAndResultsNeedNoCopy) {
  Start({StagedDevice(0)});
  EXPECT_EQ(CopiesOf(AddInline(1000)), 0);
  // The memory of each call is available to the next.
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(CopiesOf(AddInline(1000)), 0);
}

TEST_F(InPlaceTest, OutcomeContainsSmallMappedResults) {
  Start({StagedDevice(0)});
  auto take = [&](const v1::Operation& operation, bool wanted = true) {
    auto ticket = Submit(operation);
    EXPECT_TRUE(ticket.ok() && (*ticket)->Wait(Soon()).ok());
    EXPECT_EQ((*ticket)->OutputBytes(0), (*ticket)->Describe()[0].size_bytes());
    return (*ticket)->TakeOutcome({wanted});
  };
  const OperationHandle::Outcome small = take(AddInline(1000));
  ASSERT_EQ(small.arrays.size(), 1u);
  EXPECT_EQ(small.arrays[0].state(), v1::Array::STATE_READY);
  EXPECT_EQ(small.timeline.device(), "devices/" + StagedDevice(0).id());
  ASSERT_TRUE(small.values[0].has_value());
  EXPECT_EQ(small.values[0]->data().size(), 4000u);
  EXPECT_EQ(small.values[0]->spec().shape(0), 1000);
  // Not requested, too large to be copied under the lock, or not in mapped memory.
  EXPECT_FALSE(take(AddInline(1000), /*wanted=*/false).values[0].has_value());
  EXPECT_FALSE(take(AddInline(10000)).values[0].has_value());
  v1::Operation operation = AddInline(1000);
  operation.mutable_outputs(0)->set_handle(9);
  EXPECT_FALSE(take(operation).values[0].has_value());
}

TEST_F(InPlaceTest, ReadWaitsForWriteInFlight) {
  Start({HostDevice(0)}, /*hold=*/true);
  v1::Operation first = AddInline(10);
  first.mutable_outputs(0)->set_handle(7);
  auto ticket = Submit(first);
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  AWAIT(worker->EndNext());
  ASSERT_TRUE((*ticket)->Wait(Soon()).ok());
  EXPECT_TRUE((*ticket)->TakeOutcome({true}).values[0].has_value());
  v1::Operation second = Add(7, 7, 7);
  second.mutable_outputs(0)->set_existing(true);
  auto writer = Submit(second);
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_FALSE((*ticket)->TakeOutcome({true}).values[0].has_value());
  AWAIT(worker->EndNext());
  ASSERT_TRUE((*writer)->Wait(Soon()).ok());
  EXPECT_TRUE((*ticket)->TakeOutcome({true}).values[0].has_value());
}

TEST_F(InPlaceTest, LargeInputsAndResultsAreCopied) {
  Start({StagedDevice(0)});
  EXPECT_GT(CopiesOf(AddInline(100000)), 0);
}

TEST_F(InPlaceTest, KeptResultLiesOnTheDevice) {
  Start({StagedDevice(0)});
  v1::Operation operation = AddInline(1000);
  operation.mutable_outputs(0)->set_handle(7);
  auto ticket = Submit(operation);
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  ASSERT_TRUE((*ticket)->Wait(Soon()).ok());
  EXPECT_GT(broker_->WaitForWorker(1)->num_copies(), 0);
  EXPECT_TRUE(Fetch(7).ok());
}

TEST_F(InPlaceTest, CallSurvivesWorkerDeath) {
  Start({StagedDevice(0)}, /*hold=*/true);
  auto ticket = Submit(AddInline(1000));
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() != 0);
  broker_->set_hold(false);
  worker->DieRunning(MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed"),
                     /*fault=*/false);
  ASSERT_TRUE((*ticket)->Wait(Soon()).ok());
  EXPECT_TRUE((*ticket)->ReadInline(0, Soon()).ok());
  EXPECT_EQ(broker_->num_workers(), 2);
}

TEST_F(EngineTest, BytesRoundTripThroughStaging) {
  Start({StagedDevice(0)});
  std::vector<float> values(300001);  // many slots, the last one is partly filled
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  ASSERT_TRUE(Put(1, values).ok());
  auto back = Fetch(1);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, values);
}

TEST_F(EngineTest, DeviceIsFoundByKindAndIndex) {
  wire::DeviceDescription gpu = StagedDevice(0);
  gpu.set_id("GPU-4a1c");
  Start({HostDevice(0), gpu});
  ASSERT_TRUE(Put(1, {1, 2}, "devices/cuda:0").ok());
  auto ticket = Submit(Add(1, 1, 2, "devices/cuda:0"));
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  EXPECT_TRUE((*ticket)->Wait(Soon()).ok());
  EXPECT_EQ((*ticket)->timeline().device(), "devices/GPU-4a1c");
  EXPECT_TRUE(Submit(Add(1, 1, 3, "devices/GPU-4a1c")).ok());
  EXPECT_EQ(ReasonOf(Submit(Add(1, 1, 4, "devices/cuda:1")).status()),
            v1::ERROR_REASON_DEVICE_NOT_FOUND);
}

TEST_F(EngineTest, UnorderedRangesReportMissingRanges) {
  Start({HostDevice(0)});
  v1::PutArrayRequest::Header header;
  header.set_parent("tenants/default");
  header.set_array_id("parts");
  header.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  header.mutable_spec()->add_shape(10);
  header.mutable_range()->set_begin(6);
  header.mutable_range()->set_end(10);
  auto tail = engine_->arrays().BeginUpload(kTenant, header, Soon());
  ASSERT_TRUE(tail.ok()) << tail.status();
  ASSERT_TRUE((*tail)->Write("6789").ok());
  auto half = (*tail)->Finish();
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(half->state(), v1::Array::STATE_PENDING);
  ASSERT_EQ(half->received_size(), 1);
  EXPECT_EQ(half->received(0).begin(), 6);
  tail->reset();
  header.mutable_range()->set_begin(0);
  header.mutable_range()->set_end(6);
  auto head = engine_->arrays().BeginUpload(kTenant, header, Soon());
  ASSERT_TRUE(head.ok());
  EXPECT_EQ((*head)->Write("0123456").code(), absl::StatusCode::kInvalidArgument)
      << "more than declared";
  ASSERT_TRUE((*head)->Write("012345").ok());
  auto whole = (*head)->Finish();
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->state(), v1::Array::STATE_READY);
  v1::FetchArrayRequest fetch;
  fetch.set_name("tenants/default/arrays/parts");
  fetch.mutable_range()->set_begin(2);
  fetch.mutable_range()->set_end(8);
  auto download = engine_->arrays().BeginDownload(kTenant, fetch, Soon());
  ASSERT_TRUE(download.ok());
  EXPECT_EQ((*download)->Next(100)->bytes, "234567");
}

TEST_F(EngineTest, ErrorOfAnEndedLeaseSaysWhatWorks) {
  EngineOptions options;
  options.upload_lease = absl::Milliseconds(1);
  Start({HostDevice(0)}, /*hold=*/false, options);
  v1::PutArrayRequest::Header header = HeaderOf(1, 2);
  {
    auto upload = engine_->arrays().BeginUpload(kTenant, header, Soon());
    ASSERT_TRUE(upload.ok()) << upload.status();
    ASSERT_TRUE((*upload)->Write("half").ok());
  }
  const std::string name = "sessions/s/arrays/1";
  ASSERT_TRUE(Eventually(
      [&] { return engine_->arrays().Get(kTenant, name)->state() == v1::Array::STATE_FAILED; }));
  absl::Status fetched = Fetch(1).status();
  EXPECT_EQ(ReasonOf(fetched), v1::ERROR_REASON_ARRAY_NOT_READY);
  EXPECT_THAT(fetched.message(), ::testing::HasSubstr("delete the array, then upload it again"));
  // Actions that the errors do not suggest do not work.
  absl::Status again = Put(1, {1, 2}).status();
  EXPECT_EQ(ReasonOf(again), v1::ERROR_REASON_ALREADY_EXISTS);
  EXPECT_THAT(again.message(), ::testing::HasSubstr("has failed; delete it first"));
  header.set_overwrite(true);
  EXPECT_EQ(engine_->arrays().BeginUpload(kTenant, header, Soon()).status(), fetched);
  // Their suggestions do.
  ASSERT_TRUE(engine_->arrays().Delete(kTenant, name).ok());
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  EXPECT_EQ(*Fetch(1), (std::vector<float>{1, 2}));
}

TEST_F(EngineTest, OverwriteThatWaitsTooLongLeavesTheArray) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  auto reader = Submit(Add(1, 1, 2));
  ASSERT_TRUE(reader.ok());
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= 1);
  v1::PutArrayRequest::Header header = HeaderOf(1, 2);
  header.set_overwrite(true);
  absl::Status late = engine_->arrays().BeginUpload(kTenant, header, Now()).status();
  EXPECT_EQ(ReasonOf(late), v1::ERROR_REASON_DEADLINE);
  EXPECT_EQ(*Fetch(1), (std::vector<float>{1, 2}));
  worker->EndNext();
  EXPECT_TRUE((*reader)->Wait(Soon()).ok());
}

TEST_F(EngineTest, DependentTaskIsQueuedBeforeItsInputIsDone) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  auto first = Submit(Add(1, 1, 2));
  auto second = Submit(Add(2, 1, 3));
  ASSERT_TRUE(first.ok() && second.ok());
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= 2);
  EXPECT_FALSE((*first)->done());
  worker->EndNext();
  EXPECT_TRUE((*first)->Wait(Soon()).ok());
  EXPECT_FALSE((*second)->done());
  worker->EndNext();
  EXPECT_TRUE((*second)->Wait(Soon()).ok());
}

// A fetch reads the version at its acceptance; later writes do not change it.
TEST_F(EngineTest, FetchReadsVersionAtAcceptance) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  ASSERT_TRUE(Put(3, {5, 6}).ok());
  auto early = engine_->arrays().BeginFetch(kTenant, "sessions/s", 1);
  ASSERT_TRUE(early.ok()) << early.status();
  v1::Operation in_place = Add(3, 3, 1);
  in_place.mutable_outputs(0)->set_existing(true);
  auto later = Submit(in_place);
  ASSERT_TRUE(later.ok()) << later.status();
  ASSERT_TRUE(engine_->operations()
                  .Release(kTenant, "sessions/s",
                           [] {
                             v1::Release release;
                             release.add_handles(1);
                             return release;
                           }())
                  .ok());
  auto bytes = (*early)->Read(Soon());  // does not wait: no task has ended
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const float wanted[] = {1, 2};
  EXPECT_EQ(bytes->data(), std::string(reinterpret_cast<const char*>(wanted), sizeof wanted));
  EXPECT_FALSE((*later)->done());
  early->reset();
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->EndNext());
  EXPECT_TRUE((*later)->Wait(Soon()).ok());
}

TEST_F(EngineTest, FetchWaitsOnlyForEarlierOperations) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  ASSERT_TRUE(Submit(Add(1, 1, 2)).ok());
  auto fetch = engine_->arrays().BeginFetch(kTenant, "sessions/s", 2);
  ASSERT_TRUE(fetch.ok()) << fetch.status();
  auto later = Submit(Add(2, 2, 3));
  EXPECT_TRUE(absl::IsDeadlineExceeded((*fetch)->Read(Now()).status()));
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= 2);
  worker->EndNext();
  EXPECT_TRUE((*fetch)->Read(Soon()).ok());
  EXPECT_FALSE((*later)->done());
  worker->EndNext();
  EXPECT_EQ(ReasonOf(engine_->arrays().BeginFetch(kTenant, "sessions/s", 9).status()),
            v1::ERROR_REASON_ARRAY_NOT_FOUND);
}

TEST_F(EngineTest, FirstErrorPropagatesDownTheChain) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  auto first = Submit(Add(1, 1, 2));
  auto second = Submit(Add(2, 1, 3));
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= 2);
  worker->EndNext(absl::FailedPreconditionError("it broke"));
  worker->EndNext();
  EXPECT_EQ((*first)->Wait(Soon()).message(), "it broke");
  EXPECT_EQ((*second)->Wait(Soon()).message(), "it broke");
  EXPECT_EQ(ReasonOf((*second)->Wait(Soon())), v1::ERROR_REASON_KERNEL_FAULT);
  EXPECT_EQ(State(1), v1::Array::STATE_READY);
  EXPECT_EQ(State(2), v1::Array::STATE_FAILED);
  EXPECT_EQ(State(3), v1::Array::STATE_FAILED);
  auto third = Submit(Add(3, 1, 4));
  EXPECT_EQ(third.status().message(), "it broke") << "later uses report the first cause";
  EXPECT_EQ(Fetch(3).status().message(), "it broke");
}

// Operations accepted before the write read the old content. Later reads of any array that shares
// the memory fail.
TEST_F(EngineTest, RefusedInPlaceWriteFailsLaterUses) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  v1::Operation view;
  view.mutable_view()->mutable_input()->set_handle(1);
  v1::View::Slice* slice = view.mutable_view()->add_steps()->mutable_slice();
  slice->set_start(0);
  slice->set_stop(1);
  view.add_outputs()->set_handle(2);
  ASSERT_TRUE(Submit(view).ok());
  auto before = Submit(Add(1, 1, 3));
  v1::Operation write = Add(1, 1, 2);
  write.mutable_outputs(0)->set_existing(true);
  const absl::Status refusal = Submit(write).status();
  ASSERT_EQ(ReasonOf(refusal), v1::ERROR_REASON_SHAPE_MISMATCH);
  EXPECT_EQ(Submit(Add(1, 1, 4)).status(), refusal);
  for (uint64_t handle : {1, 2, 4}) {
    EXPECT_EQ(Fetch(handle).status(), refusal) << handle;
    EXPECT_EQ(State(handle), v1::Array::STATE_FAILED) << handle;
  }
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  AWAIT(worker->EndNext());
  EXPECT_TRUE((*before)->Wait(Soon()).ok());
}

// An array that outlives the session stays intact for all others, and under its name.
TEST_F(EngineTest, RefusedInPlaceWriteKeepsNamedArray) {
  Start({HostDevice(0)});
  const std::string name = "tenants/default/arrays/kept";
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  v1::Operation keep;
  keep.mutable_copy()->mutable_input()->set_handle(1);
  keep.add_outputs()->set_name(name);
  ASSERT_TRUE((*Submit(keep))->Wait(Soon()).ok());
  v1::Operation load;
  load.mutable_view()->mutable_input()->set_name(name);
  load.add_outputs()->set_handle(2);
  ASSERT_TRUE(Submit(load).ok());
  v1::Operation write;
  write.mutable_copy()->mutable_input()->set_handle(9);
  write.add_outputs()->set_handle(2);
  write.mutable_outputs(0)->set_existing(true);
  EXPECT_EQ(ReasonOf(Submit(write).status()), v1::ERROR_REASON_ARRAY_NOT_FOUND);
  EXPECT_EQ(ReasonOf(Fetch(2).status()), v1::ERROR_REASON_ARRAY_NOT_FOUND);
  EXPECT_EQ(engine_->arrays().Get(kTenant, name)->state(), v1::Array::STATE_READY);
}

TEST_F(EngineTest, InPlaceWriteWithFailedInputFailsLaterUses) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  ASSERT_TRUE(Put(2, {5, 6}).ok());
  auto input = Submit(Add(1, 1, 3));
  v1::Operation write = Add(3, 3, 2);
  write.mutable_outputs(0)->set_existing(true);
  auto written = Submit(write);
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= 2);
  worker->EndNext(absl::FailedPreconditionError("it broke"));
  worker->EndNext();
  EXPECT_EQ((*written)->Wait(Soon()).message(), "it broke");
  EXPECT_EQ(Fetch(2).status().message(), "it broke");
}

TEST_F(EngineTest, FaultFailsItsJobAndRequeuesOthers) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  auto culprit = Submit(Add(1, 1, 2));
  auto innocent = Submit(Add(1, 1, 3));
  auto dependent = Submit(Add(2, 1, 4));
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= 3);
  broker_->set_hold(false);
  worker->DieRunning(MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT,
                               "illegal address"),
                     true);
  EXPECT_EQ((*culprit)->Wait(Soon()).message(), "illegal address");
  EXPECT_TRUE((*innocent)->Wait(Soon()).ok());
  EXPECT_EQ((*dependent)->Wait(Soon()).message(), "illegal address");
  EXPECT_EQ(State(1), v1::Array::STATE_READY);
  EXPECT_EQ(State(3), v1::Array::STATE_READY);
  EXPECT_EQ(*Fetch(1), (std::vector<float>{1, 2}));
  EXPECT_EQ(engine_->devices().Sample()[0].worker_restarts(), 1);
}

TEST_F(EngineTest, RepeatableTaskSurvivesKilledWorker) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  auto ticket = Submit(Add(1, 1, 2));
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= 1);
  broker_->set_hold(false);
  worker->DieRunning(MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed"),
                     false);
  EXPECT_TRUE((*ticket)->Wait(Soon()).ok());
}

// A postponed start is then dropped, and no other event ends the wait.
TEST_F(EngineTest, ShutdownEndsCopyThatWaitsForWorker) {
  Start({HostDevice(0), StagedDevice(0)}, /*hold=*/false, {.start_patience = absl::Hours(1)});
  ASSERT_TRUE(Put(1, std::vector<float>(50000, 7), "devices/cuda:0").ok());
  auto from = broker_->WaitForWorker(1);
  ASSERT_TRUE(Put(2, {1, 2}, "devices/cpu:0").ok());
  ASSERT_TRUE((*Submit(Add(2, 2, 3, "devices/cpu:0")))->Wait(Soon()).ok());
  broker_->set_die_at_start(1000);
  from->DieAtCopy(1);
  ASSERT_TRUE(Submit(Add(1, 1, 4, "devices/cpu:0")).ok());
  AWAIT(broker_->num_starts() >= 7);
  engine_ = nullptr;
  broker_->Shutdown();
  broker_ = nullptr;
}

// A start may take longer than the limit on waiting for memory.
TEST_F(EngineTest, UploadWaitsForWorkerStartThenForMemory) {
  Start({StagedDevice(0)}, /*hold=*/false,
        {.memory_patience = absl::Milliseconds(400), .start_patience = absl::Minutes(1)});
  broker_->set_die_at_start(6);
  auto put = Put(1, std::vector<float>(50000, 7), "devices/cuda:0");
  EXPECT_TRUE(put.ok()) << put.status();
  EXPECT_GE(broker_->num_starts(), 7);
}

TEST_F(EngineTest, KilledWorkerFailsInPlaceTask) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  v1::Operation in_place = Add(1, 1, 1);
  in_place.mutable_outputs(0)->set_existing(true);
  auto ticket = Submit(in_place);
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= 1);
  broker_->set_hold(false);
  worker->DieRunning(MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed"),
                     false);
  EXPECT_EQ((*ticket)->Wait(Soon()).message(), "killed");
  EXPECT_EQ(State(1), v1::Array::STATE_FAILED);
}

TEST_F(EngineTest, IndependentWorkSpreadsOverDevices) {
  Start({HostDevice(0), HostDevice(1)}, /*hold=*/true);
  v1::Operation fill;
  fill.mutable_creation()->mutable_fill()->mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
  fill.mutable_creation()->mutable_fill()->mutable_spec()->add_shape(1000);
  std::vector<std::shared_ptr<OperationHandle>> tickets;
  for (int i = 1; i <= 10; ++i) {
    fill.mutable_outputs()->Clear();
    fill.add_outputs()->set_handle(i);
    auto ticket = Submit(fill);
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    tickets.push_back(*ticket);
  }
  auto a = broker_->WaitForWorker(1), b = broker_->WaitForWorker(2);
  AWAIT(a->num_held() + b->num_held() >= 10);
  EXPECT_EQ(a->num_held(), 5);
  EXPECT_EQ(b->num_held(), 5);
  while (a->EndNext() || b->EndNext()) {
  }
  for (auto& ticket : tickets) EXPECT_TRUE(ticket->Wait(Soon()).ok());
}

TEST_F(EngineTest, InputMovesToRequestedDevice) {
  Start({HostDevice(0), StagedDevice(0)});
  std::vector<float> values(50000, 7);
  ASSERT_TRUE(Put(1, values, "devices/cpu:0").ok());
  auto ticket = Submit(Add(1, 1, 2, "devices/cuda:0"));
  ASSERT_TRUE(ticket.ok());
  EXPECT_TRUE((*ticket)->Wait(Soon()).ok());
  EXPECT_EQ((*ticket)->timeline().device(), "devices/cuda:0");
  auto input = engine_->arrays().Get(kTenant, "sessions/s/arrays/1");
  EXPECT_EQ(input->devices_size(), 2) << "the input has a copy on both";
  v1::Operation move;
  move.mutable_copy()->mutable_input()->set_handle(1);
  move.mutable_copy()->set_move(true);
  move.add_outputs()->set_handle(3);
  move.set_device("devices/cuda:0");
  auto moved = Submit(move);
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_TRUE((*moved)->Wait(Soon()).ok());
  EXPECT_THAT(engine_->arrays().Get(kTenant, "sessions/s/arrays/3")->devices(),
              ::testing::ElementsAre("devices/cuda:0"));
  EXPECT_EQ(*Fetch(3), values);
}

TEST_F(EngineTest, CancelledAndExpiredTasksNeverRun) {
  Start({HostDevice(0)}, /*hold=*/true);
  // The upload is unfinished: every operation waits for it.
  auto upload = engine_->arrays().BeginUpload(kTenant, HeaderOf(1, 1), Soon());
  ASSERT_TRUE(upload.ok());
  auto cancelled = Submit(Add(1, 1, 2));
  auto late = Submit(Add(1, 1, 3), Now() + absl::Milliseconds(20));
  (*cancelled)->Cancel();
  EXPECT_EQ((*cancelled)->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ((*late)->Wait(Soon()).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(State(2), v1::Array::STATE_FAILED);
  ASSERT_TRUE((*upload)->Write(std::string(4, '\0')).ok());
  ASSERT_TRUE((*upload)->Finish().ok());
}

// A task, its buffers and its device queue belong to one tenant.
TEST_F(EngineTest, ACancelNeedsNoLockOfOtherTenants) {
  Start({HostDevice(0)}, /*hold=*/true);
  const TenantId other{"another"};
  ASSERT_NE(PartitionOf(kTenant), PartitionOf(other));
  ASSERT_TRUE(Put(1, {1, 2, 3}).ok());
  auto first = Submit(Add(1, 1, 2));
  auto second = Submit(Add(1, 1, 3));
  ASSERT_TRUE(first.ok() && second.ok());
  std::shared_ptr<FakeWorker> worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() == 2);
  auto others = engine_->operations().BeginSubmitBatch(other);  // their lock
  absl::Notification cancelled;
  std::thread cancels([&] {
    (*second)->Cancel();  // in its worker's queue, which answers
    EXPECT_EQ((*second)->Wait(Soon()).code(), absl::StatusCode::kCancelled);
    cancelled.Notify();
  });
  EXPECT_TRUE(cancelled.WaitForNotificationWithTimeout(absl::Seconds(20)));
  others.reset();
  cancels.join();
  while (worker->EndNext()) {
  }
  EXPECT_TRUE((*first)->Wait(Soon()).ok());
}

TEST_F(EngineTest, ExpiredRunningTaskIsKilledAfterGrace) {
  Start({HostDevice(0)}, /*hold=*/true, {.kill_grace = absl::Milliseconds(10)});
  ASSERT_TRUE(Put(1, {1}).ok());
  auto endless = Submit(Add(1, 1, 2), Now() + absl::Milliseconds(50));
  auto next = Submit(Add(1, 1, 3));
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= 2);
  broker_->set_hold(false);
  EXPECT_EQ((*endless)->Wait(Soon()).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE((*next)->Wait(Soon()).ok()) << "the queue behind it is sent again";
}

TEST_F(EngineTest, HigherPriorityReadyTaskIsSentFirst) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1}).ok());
  // The worker exists before the tasks, so that the packets are known.
  auto first = Submit(Add(1, 1, 100));
  ASSERT_TRUE(first.ok());
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->EndNext());
  ASSERT_TRUE((*first)->Wait(Soon()).ok());
  // Fills the worker's queue: eight tasks alone, then whole packets. The last tasks wait.
  constexpr int kMost = 256, kWaiting = 8;
  for (uint64_t i = 0; i < kMost + kWaiting; ++i) ASSERT_TRUE(Submit(Add(1, 1, 1000 + i)).ok());
  ASSERT_EQ(worker->num_held(), kMost);
  for (int priority : {0, -10, 10, 5, 0}) {
    v1::Operation operation = Add(1, 1, 0);
    operation.mutable_outputs(0)->set_name(absl::StrCat("tenants/default/arrays/p", priority));
    operation.mutable_outputs(0)->clear_target();
    operation.mutable_outputs(0)->set_inline_result(true);
    operation.mutable_ufunc()->set_function(priority == 10  ? "multiply"
                                            : priority == 5 ? "subtract"
                                            : priority == 0 ? "maximum"
                                                            : "minimum");
    operation.set_priority(priority);
    ASSERT_TRUE(Submit(operation).ok());
  }
  absl::SleepFor(absl::Milliseconds(50));  // until all are ready: no event reports it
  for (int i = 0; i < kWaiting + 5; ++i) worker->EndNext();
  std::vector<std::string> order;
  auto submitted = worker->submitted();
  ASSERT_EQ(submitted.size(), size_t{1 + kMost + kWaiting + 5});
  for (size_t i = 1 + kMost; i < submitted.size(); ++i) order.push_back(submitted[i].label());
  std::vector<std::string> expected = {"multiply", "subtract"};
  expected.insert(expected.end(), kWaiting, "add");
  expected.insert(expected.end(), {"maximum", "maximum", "minimum"});
  EXPECT_EQ(order, expected);
  v1::Operation wrong = Add(1, 1, 5000);
  wrong.set_priority(11);
  EXPECT_EQ(ReasonOf(Submit(wrong).status()), v1::ERROR_REASON_INVALID_FIELD);
}

// A running task with queued tasks after it.
class QueuedTaskTest : public EngineTest {
 protected:
  void StartWithFront(EngineOptions options = {}) {
    Start({HostDevice(0)}, /*hold=*/true, options);
    ASSERT_TRUE(Put(1, {1, 2}).ok());
    auto front = Submit(Add(1, 1, 100));
    ASSERT_TRUE(front.ok());
    front_ = *front;
    worker_ = broker_->WaitForWorker(1);
    AwaitHeld(1);
  }
  void AwaitHeld(int count) { AWAIT(worker_->num_held() >= count); }
  void AwaitCancels(size_t count) { AWAIT(worker_->cancels().size() >= count); }
  void EndAll() {
    while (worker_->EndNext()) {
    }
  }
  static v1::Operation InPlace(uint64_t a, uint64_t out) {
    v1::Operation operation = Add(a, a, out);
    operation.mutable_outputs(0)->set_existing(true);
    return operation;
  }

  std::shared_ptr<OperationHandle> front_;
  std::shared_ptr<FakeWorker> worker_;
};

TEST_F(QueuedTaskTest, CancelledRunningTaskIsKilledAfterGrace) {
  StartWithFront({.kill_grace = absl::Milliseconds(20)});
  auto needs_it = Submit(Add(100, 1, 101));
  auto next = Submit(Add(1, 1, 102));
  AwaitHeld(3);
  broker_->set_hold(false);
  SteadyTime begin = Now();
  front_->Cancel();
  EXPECT_EQ(front_->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  EXPECT_GE(Now() - begin, absl::Milliseconds(20));
  EXPECT_EQ((*needs_it)->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE((*next)->Wait(Soon()).ok()) << "the queue behind it is sent again";
  EXPECT_EQ(State(100), v1::Array::STATE_FAILED);
  EXPECT_EQ(State(1), v1::Array::STATE_READY);
}

TEST_F(QueuedTaskTest, CancelledTaskKeepsItsResultIfDoneWithinGrace) {
  StartWithFront({.kill_grace = absl::Milliseconds(200)});
  front_->Cancel();
  AwaitCancels(1);
  absl::SleepFor(absl::Milliseconds(20));
  auto next = Submit(Add(1, 1, 102));
  AwaitHeld(2);
  ASSERT_TRUE(worker_->EndNext());
  EXPECT_TRUE(front_->Wait(Soon()).ok());
  absl::SleepFor(absl::Milliseconds(400));
  EXPECT_TRUE(worker_->alive()) << "nobody else dies for it";
  EndAll();
  EXPECT_TRUE((*next)->Wait(Soon()).ok());
}

TEST_F(QueuedTaskTest, CancelledQueuedTaskEndsBeforeRunningTask) {
  StartWithFront();
  auto cancelled = Submit(Add(1, 1, 2));
  auto independent = Submit(Add(1, 1, 3));
  AwaitHeld(3);
  (*cancelled)->Cancel();
  absl::Status status = (*cancelled)->Wait(Soon());
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_CANCELLED);
  EXPECT_FALSE(front_->done());
  EXPECT_EQ(State(2), v1::Array::STATE_FAILED);
  EXPECT_FALSE((*cancelled)->timeline().has_start_time());
  EXPECT_FALSE((*cancelled)->timeline().has_run());
  EndAll();
  EXPECT_TRUE(front_->Wait(Soon()).ok());
  EXPECT_TRUE((*independent)->Wait(Soon()).ok());
  EXPECT_TRUE((*independent)->timeline().has_start_time());
  EXPECT_EQ(engine_->devices().Sample()[0].worker_restarts(), 0);
}

TEST_F(QueuedTaskTest, ExpiredQueuedTaskEndsBeforeRunningTask) {
  StartWithFront({.kill_grace = absl::Milliseconds(1)});
  auto late = Submit(Add(1, 1, 2), Now() + absl::Milliseconds(50));
  AwaitHeld(2);
  EXPECT_EQ((*late)->Wait(Soon()).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(front_->done());
  EXPECT_EQ(engine_->arrays().Get(kTenant, "sessions/s/arrays/2")->error().code(),
            static_cast<int>(absl::StatusCode::kDeadlineExceeded));
  EndAll();
  EXPECT_TRUE(front_->Wait(Soon()).ok());
  EXPECT_EQ(engine_->devices().Sample()[0].worker_restarts(), 0);
}

// Sent in the same command as the input's cancel: otherwise the worker might begin one in between.
TEST_F(QueuedTaskTest, DependentsAreCancelledWithTheirInput) {
  StartWithFront();
  auto cancelled = Submit(Add(1, 1, 2));          // 2
  auto dependent = Submit(Add(2, 1, 3));          // 3
  auto independent = Submit(Add(1, 1, 4));        // 4
  auto of_dependent = Submit(Add(4, 3, 5));       // 5
  auto reader_of_front = Submit(Add(100, 1, 6));  // 6
  AwaitHeld(6);
  (*cancelled)->Cancel();
  for (const auto* ticket : {&cancelled, &dependent, &of_dependent}) {
    EXPECT_EQ((**ticket)->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  }
  EXPECT_FALSE(front_->done());
  EXPECT_THAT(worker_->cancels(), ::testing::ElementsAre(::testing::ElementsAre(2, 3, 5)));
  EndAll();
  EXPECT_TRUE((*independent)->Wait(Soon()).ok());
  EXPECT_TRUE((*reader_of_front)->Wait(Soon()).ok());
}

TEST_F(QueuedTaskTest, NoTaskIsQueuedAfterOneWithPendingCancel) {
  StartWithFront();
  worker_->HoldCancels();
  auto cancelled = Submit(Add(1, 1, 2));
  AwaitHeld(2);
  (*cancelled)->Cancel();
  AwaitCancels(1);
  auto dependent = Submit(Add(2, 1, 3));
  EXPECT_EQ(worker_->submitted().size(), 2u);
  EXPECT_FALSE((*dependent)->done());
  worker_->AnswerCancels();
  EXPECT_EQ((*dependent)->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(worker_->submitted().size(), 2u);
}

TEST_F(QueuedTaskTest, CancelAfterStartDoesNotChangeResult) {
  StartWithFront();
  worker_->HoldCancels();
  auto begun = Submit(Add(1, 1, 2));
  AwaitHeld(2);
  (*begun)->Cancel();
  AwaitCancels(1);
  worker_->EndNext();  // the running one
  auto dependent = Submit(Add(2, 1, 3));
  worker_->AnswerCancels();
  AwaitHeld(2);
  EndAll();
  EXPECT_TRUE((*begun)->Wait(Soon()).ok());
  EXPECT_TRUE((*dependent)->Wait(Soon()).ok());
}

// As on a GPU: a stream cannot remove a task.
TEST_F(QueuedTaskTest, AbandonedStreamTaskPinsMemoryUntilDone) {
  StartWithFront();
  worker_->RefuseCancels();
  auto cancelled = Submit(Add(1, 1, 2));
  auto dependent = Submit(Add(2, 1, 3));
  auto independent = Submit(Add(1, 1, 4));
  AwaitHeld(4);
  (*cancelled)->Cancel();
  EXPECT_EQ((*cancelled)->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ((*dependent)->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(front_->done());
  EXPECT_EQ(State(2), v1::Array::STATE_FAILED);
  const int64_t held = engine_->devices().Sample()[0].array_bytes();
  EndAll();
  EXPECT_TRUE(front_->Wait(Soon()).ok());
  EXPECT_TRUE((*independent)->Wait(Soon()).ok());
  SteadyTime soon = Soon();
  while (engine_->devices().Sample()[0].array_bytes() >= held && Now() < soon)
    absl::SleepFor(absl::Milliseconds(1));
  EXPECT_LT(engine_->devices().Sample()[0].array_bytes(), held);
  EXPECT_EQ(engine_->devices().Sample()[0].worker_restarts(), 0);
}

TEST_F(QueuedTaskTest, CancelWaitsForStreamTaskThatWritesInPlace) {
  StartWithFront();
  worker_->RefuseCancels();
  auto begun = Submit(InPlace(1, 1));
  AwaitHeld(2);
  (*begun)->Cancel();
  AwaitCancels(1);
  EXPECT_FALSE((*begun)->Wait(Now() + absl::Milliseconds(20)).ok());
  EXPECT_FALSE((*begun)->done());
  EndAll();
  EXPECT_TRUE((*begun)->Wait(Soon()).ok());
}

TEST_F(QueuedTaskTest, EndlessAbandonedTaskIsKilledForLaterTasks) {
  StartWithFront({.kill_grace = absl::Milliseconds(20)});
  worker_->RefuseCancels();
  auto endless = Submit(Add(1, 1, 2));
  auto next = Submit(InPlace(1, 1));
  AwaitHeld(3);
  broker_->set_hold(false);
  (*endless)->Cancel();
  EXPECT_EQ((*endless)->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(worker_->EndNext());
  EXPECT_TRUE(front_->Wait(Soon()).ok());
  EXPECT_TRUE((*next)->Wait(Soon()).ok()) << "it had not begun";
  EXPECT_EQ(engine_->devices().Sample()[0].worker_restarts(), 1);
}

// An array to be written in place stays as it was; the operations that depend on the write are
// notified.
TEST_F(QueuedTaskTest, CancelledInPlaceWriteKeepsTheArray) {
  StartWithFront();
  ASSERT_TRUE(Put(2, {5, 6}).ok());
  auto cancelled = Submit(InPlace(1, 2));
  auto reader = Submit(Add(2, 2, 3));
  AwaitHeld(3);
  (*cancelled)->Cancel();
  EXPECT_EQ((*cancelled)->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ((*reader)->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(State(2), v1::Array::STATE_READY);
  EXPECT_EQ(*Fetch(2), (std::vector<float>{5, 6}));
  auto later = Submit(Add(2, 2, 4));
  AwaitHeld(4);
  EndAll();
  EXPECT_TRUE((*later)->Wait(Soon()).ok());
}

TEST_F(QueuedTaskTest, WorkerDeathHonoursPendingCancel) {
  StartWithFront();
  worker_->HoldCancels();
  auto cancelled = Submit(Add(1, 1, 2));
  auto dependent = Submit(Add(2, 1, 3));
  auto independent = Submit(Add(1, 1, 4));
  AwaitHeld(4);
  (*cancelled)->Cancel();
  AwaitCancels(1);
  broker_->set_hold(false);
  worker_->DieRunning(MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed"),
                      false);
  EXPECT_EQ((*cancelled)->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ((*dependent)->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(front_->Wait(Soon()).ok());
  EXPECT_TRUE((*independent)->Wait(Soon()).ok());
  EXPECT_EQ(broker_->WaitForWorker(2)->submitted().size(), 2u);
}

TEST_F(QueuedTaskTest, JobIsRunningOnceItsWorkerStartsIt) {
  StartWithFront();
  v1::CreateJobRequest request;
  *request.mutable_job()->add_operations() = Add(1, 1, 0);
  for (auto* input :
       {request.mutable_job()->mutable_operations(0)->mutable_ufunc()->mutable_inputs(0),
        request.mutable_job()->mutable_operations(0)->mutable_ufunc()->mutable_inputs(1)})
    input->set_name("sessions/s/arrays/1");
  request.mutable_job()->mutable_operations(0)->mutable_outputs(0)->set_name(
      "tenants/default/arrays/result");
  auto job = engine_->jobs().Create(kTenant, request);
  ASSERT_TRUE(job.ok()) << job.status();
  auto state = [&] { return engine_->jobs().Get(kTenant, job->name())->state(); };
  AwaitHeld(2);
  AWAIT(state() != v1::Job::STATE_QUEUED);
  EXPECT_EQ(state(), v1::Job::STATE_SCHEDULED) << "it waits for its turn";
  worker_->set_begins(false);
  worker_->EndNext();
  ASSERT_TRUE(front_->Wait(Soon()).ok());
  absl::SleepFor(absl::Milliseconds(10));  // the page is read more than once
  EXPECT_EQ(state(), v1::Job::STATE_SCHEDULED) << "first in the queue, but not begun";
  worker_->set_begins(true);
  AWAIT(state() != v1::Job::STATE_SCHEDULED);
  EXPECT_EQ(state(), v1::Job::STATE_RUNNING);
  worker_->EndNext();
  AWAIT(state() != v1::Job::STATE_RUNNING);
  auto done = engine_->jobs().Get(kTenant, job->name());
  EXPECT_EQ(done->state(), v1::Job::STATE_SUCCEEDED);
  ASSERT_EQ(done->timelines_size(), 1);
  const v1::Timeline& timeline = done->timelines(0);
  double queued = timeline.queue().seconds() + timeline.queue().nanos() * 1e-9;
  EXPECT_GE(queued, 0.010) << "the wait in the worker's queue is part of it";
}

// Operations that need copies of their own: the output overlaps the input, or operands are first
// converted to one type.
class HelperCopiesTest : public QueuedTaskTest {
 protected:
  static void Name(uint64_t handle, v1::Operand* operand) {
    operand->set_name(absl::StrCat("sessions/s/arrays/", handle));
  }
  // Array 1 becomes its sum with its reverse.
  v1::CreateJobRequest OverlappingJob() {
    v1::Operation view;
    view.mutable_view()->mutable_input()->set_handle(1);
    auto* slice = view.mutable_view()->add_steps()->mutable_slice();
    slice->set_step(-1);
    view.add_outputs()->set_handle(7);
    auto backwards = Submit(view);
    EXPECT_TRUE(backwards.ok()) << backwards.status();
    v1::CreateJobRequest request;
    v1::Operation* add = request.mutable_job()->add_operations();
    add->mutable_ufunc()->set_function("add");
    Name(1, add->mutable_ufunc()->add_inputs());
    Name(7, add->mutable_ufunc()->add_inputs());
    add->add_outputs()->set_name("sessions/s/arrays/1");
    add->mutable_outputs(0)->set_existing(true);
    return request;
  }
  v1::CreateJobRequest ConvertingJob() {
    v1::CreateJobRequest request;
    v1::Operation* matmul = request.mutable_job()->add_operations();
    Name(1, matmul->mutable_matmul()->mutable_left());
    v1::InlineArray* wide = matmul->mutable_matmul()->mutable_right()->mutable_inline_array();
    wide->mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT64);
    wide->mutable_spec()->add_shape(2);
    wide->set_data(std::string(16, 0));
    matmul->add_outputs()->set_name("tenants/default/arrays/product");
    return request;
  }
};

TEST_F(HelperCopiesTest, CopiesAreCancelledWithTheirJob) {
  StartWithFront();
  int held = 1;
  for (const auto& request : {OverlappingJob(), ConvertingJob()}) {
    auto job = engine_->jobs().Create(kTenant, request);
    ASSERT_TRUE(job.ok()) << job.status();
    AwaitHeld(held += 2);
    ASSERT_TRUE(engine_->jobs().Cancel(kTenant, job->name()).ok());
    AWAIT(engine_->jobs().Get(kTenant, job->name())->state() >= v1::Job::STATE_SUCCEEDED);
    EXPECT_EQ(engine_->jobs().Get(kTenant, job->name())->state(), v1::Job::STATE_CANCELLED);
  }
  std::set<uint64_t> taken_out;
  for (const auto& sequences : worker_->cancels())
    taken_out.insert(sequences.begin(), sequences.end());
  EXPECT_THAT(taken_out, ::testing::ElementsAre(2, 3, 4, 5)) << "each copy and what needs it";
  EndAll();
  EXPECT_TRUE(front_->Wait(Soon()).ok());
  EXPECT_EQ(State(1), v1::Array::STATE_READY);
  EXPECT_EQ(*Fetch(1), (std::vector<float>{1, 2}));
}

TEST_F(HelperCopiesTest, CopiesNeverRunForValidateOnlyJob) {
  StartWithFront();
  for (v1::CreateJobRequest request : {OverlappingJob(), ConvertingJob()}) {
    request.set_validate_only(true);
    ASSERT_TRUE(engine_->jobs().Create(kTenant, request).ok());
  }
  auto after = Submit(Add(1, 1, 2));
  AwaitHeld(2);
  EXPECT_EQ(worker_->submitted().size(), 2u);
  EndAll();
  EXPECT_TRUE((*after)->Wait(Soon()).ok());
}

// The result exists and only its message was lost. `later` has begun to overwrite the input: a
// second run would read other values.
TEST_F(EngineTest, TaskWithOverwrittenInputIsNotRepeated) {
  for (bool overwritten : {true, false}) {
    SCOPED_TRACE(overwritten);
    Start({HostDevice(0)}, /*hold=*/true);
    ASSERT_TRUE(Put(1, {1, 2}).ok());
    auto reader = Submit(Add(1, 1, 2));
    v1::Operation in_place = Add(1, 1, 1);
    in_place.mutable_outputs(0)->set_existing(true);
    auto writer = Submit(in_place);
    auto worker = broker_->WaitForWorker(1);
    AWAIT(worker->num_held() >= 2);
    broker_->set_hold(false);
    worker->Die(
        {.cause = MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed"),
         .completed_sequence = 1,
         .started_sequence = overwritten ? 2u : 1u});
    EXPECT_TRUE((*reader)->Wait(Soon()).ok());
    EXPECT_EQ((*writer)->Wait(Soon()).ok(), !overwritten);
    EXPECT_EQ(State(2), v1::Array::STATE_READY);
    auto probe = Submit(Add(2, 2, 3));
    EXPECT_TRUE((*probe)->Wait(Soon()).ok());
    size_t sent_again = broker_->WaitForWorker(2)->submitted().size() - 1;
    EXPECT_EQ(sent_again, overwritten ? 0u : 2u);
    TearDown();
    broker_.reset();
  }
}

// The second run might fail. The consumer of the first result would then have succeeded on an input
// that does not exist.
TEST_F(EngineTest, ProducerForUnrepeatableTaskIsNotRepeated) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  ASSERT_TRUE(Put(5, {1, 2}).ok());
  v1::Operation in_place = Add(1, 1, 1);
  in_place.mutable_outputs(0)->set_existing(true);
  std::vector<std::shared_ptr<OperationHandle>> tickets;
  // No operation uses the second; the third reads what the last has begun to change.
  for (const v1::Operation& operation :
       {Add(5, 5, 2), Add(5, 5, 4), Add(1, 2, 3), Add(5, 2, 6), in_place}) {
    auto ticket = Submit(operation);
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    tickets.push_back(*ticket);
    auto worker = broker_->WaitForWorker(1);
    AWAIT(worker->num_held() >= static_cast<int>(tickets.size()));
  }
  broker_->set_hold(false);
  broker_->WaitForWorker(1)->Die(
      {.cause = MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed"),
       .completed_sequence = 4,
       .started_sequence = 5});
  for (size_t i = 0; i < tickets.size(); ++i) EXPECT_EQ(tickets[i]->Wait(Soon()).ok(), i < 4) << i;
  for (uint64_t handle : {2, 3, 4, 6}) EXPECT_EQ(State(handle), v1::Array::STATE_READY) << handle;
  EXPECT_EQ(broker_->WaitForWorker(2)->submitted().size(), 2u) << "the second and the fourth";
}

TEST_F(EngineTest, WorkerLossReportsRunningTasks) {
  absl::Mutex mutex;
  std::vector<WorkerLoss> losses;
  Start({HostDevice(0)}, /*hold=*/true, {.worker_lost = [&](const WorkerLoss& loss) {
          absl::MutexLock lock(&mutex);
          losses.push_back(loss);
        }});
  ASSERT_TRUE(Put(1, {1}).ok());
  auto ticket = Submit(Add(1, 1, 2));
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= 1);
  broker_->set_hold(false);
  worker->DieRunning(MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT,
                               "illegal address"),
                     true);
  EXPECT_FALSE((*ticket)->Wait(Soon()).ok());
  absl::MutexLock lock(&mutex);
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].device, "devices/cpu:0");
  EXPECT_EQ(losses[0].tenant, kTenant);
  EXPECT_EQ(losses[0].operation, "add");
  EXPECT_EQ(losses[0].cause.message(), "illegal address");
}

TEST_F(EngineTest, FailedJobReportsFieldPathOfRequest) {
  Start({HostDevice(0)});
  broker_->set_compile_error(
      InvalidField(v1::ERROR_REASON_COMPILE_FAILED, "", "kernel.cu:1: what is this"));
  v1::CreateJobRequest request;
  v1::Operation* view = request.mutable_job()->add_operations();
  view->mutable_creation()->mutable_fill()->mutable_spec()->set_data_type(v1::DATA_TYPE_INT32);
  view->mutable_creation()->mutable_fill()->mutable_spec()->add_shape(0);
  view->add_outputs()->set_handle(1);
  v1::Operation* launch = request.mutable_job()->add_operations();
  launch->mutable_kernel_launch()->set_source("__global__ void f(int* x) {}");
  launch->mutable_kernel_launch()->set_entry("f");
  launch->mutable_kernel_launch()->add_arguments()->mutable_array()->set_handle(1);
  auto job = engine_->jobs().Create(kTenant, request);
  ASSERT_TRUE(job.ok()) << job.status();
  auto state = [&] { return engine_->jobs().Get(kTenant, job->name())->state(); };
  AWAIT(state() >= v1::Job::STATE_SUCCEEDED);
  auto failed = engine_->jobs().Get(kTenant, job->name());
  ASSERT_EQ(failed->state(), v1::Job::STATE_FAILED);
  std::vector<std::string> fields;
  for (const auto& detail : failed->error().details()) {
    google::rpc::BadRequest request;
    if (!detail.UnpackTo(&request)) continue;
    for (const auto& violation : request.field_violations()) fields.push_back(violation.field());
  }
  EXPECT_THAT(fields, ::testing::ElementsAre(::testing::StartsWith("job.operations[")));
}

TEST_F(EngineTest, FullQueueReportsRetryDelay) {
  Start({HostDevice(0)}, /*hold=*/true, {.max_queued_tasks = 2});
  ASSERT_TRUE(Put(1, {1}).ok());
  ASSERT_TRUE(Submit(Add(1, 1, 2)).ok());
  ASSERT_TRUE(Submit(Add(1, 1, 3)).ok());
  auto refused = Submit(Add(1, 1, 4));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused.status()), v1::ERROR_REASON_QUEUE_FULL);
}

TEST_F(EngineTest, FullDeviceRefusesThenRecovers) {
  Start({HostDevice(0, 256 << 20)});
  v1::CreateArrayRequest request;
  request.set_parent("sessions/s");
  request.set_array_id("1");
  request.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  request.mutable_spec()->add_shape(160 << 20);
  ASSERT_TRUE(engine_->arrays().Create(kTenant, request).ok());
  request.set_array_id("2");
  ASSERT_TRUE(engine_->arrays().Create(kTenant, request).ok())
      << "accepted; the device tells later";
  AWAIT(State(2) != v1::Array::STATE_PENDING);
  auto full = engine_->arrays().Get(kTenant, "sessions/s/arrays/2");
  EXPECT_EQ(full->error().code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  ASSERT_TRUE(engine_->arrays().Delete(kTenant, "sessions/s/arrays/1").ok());
  request.set_array_id("3");
  ASSERT_TRUE(engine_->arrays().Create(kTenant, request).ok());
  AWAIT(State(3) != v1::Array::STATE_PENDING);
  EXPECT_EQ(State(3), v1::Array::STATE_READY);
}

TEST_F(EngineTest, MemoryReturnsToZero) {
  Start({HostDevice(0), StagedDevice(0)});
  ASSERT_TRUE(Put(1, std::vector<float>(1000), "devices/cpu:0").ok());
  ASSERT_TRUE(Put(2, std::vector<float>(1000), "devices/cuda:0").ok());
  auto sum = Submit(Add(1, 2, 3));
  ASSERT_TRUE((*sum)->Wait(Soon()).ok());
  sum->reset();
  ASSERT_TRUE(engine_->sessions().Delete(kTenant, "sessions/s").ok());
  auto used = [&] {
    auto samples = engine_->devices().Sample();
    return samples[0].array_bytes() + samples[1].array_bytes();
  };
  for (int i = 0; i < 5000 && used() != 0; ++i) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(used(), 0);
}

TEST_F(EngineTest, OtherTenantSeesNoArrays) {
  Start({HostDevice(0)});
  ASSERT_TRUE(Put(1, {1}).ok());
  TenantId other{"other"};
  auto mine = engine_->arrays().Get(other, "sessions/s/arrays/1");
  auto absent = engine_->arrays().Get(other, "sessions/t/arrays/1");
  EXPECT_EQ(mine.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(mine.status().message(), "no such session: sessions/s");
  EXPECT_EQ(absent.status().message(), "no such session: sessions/t");
}

TEST_F(EngineTest, JobOutlivesItsClientAndIsWatchedOnce) {
  Start({HostDevice(0)});
  v1::CreateJobRequest request;
  request.set_request_id("6a8b3f0e-0000-4000-8000-000000000001");
  v1::Operation* fill = request.mutable_job()->add_operations();
  fill->mutable_creation()->mutable_fill()->mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
  fill->mutable_creation()->mutable_fill()->mutable_spec()->add_shape(4);
  fill->add_outputs()->set_handle(1);
  *request.mutable_job()->add_operations() = Add(1, 1, 0);
  request.mutable_job()->mutable_operations(1)->mutable_outputs(0)->set_name(
      "tenants/default/arrays/result");
  request.set_validate_only(true);
  ASSERT_TRUE(engine_->jobs().Create(kTenant, request).ok());
  EXPECT_EQ(engine_->arrays().Get(kTenant, "tenants/default/arrays/result").status().code(),
            absl::StatusCode::kNotFound);
  request.set_validate_only(false);
  auto job = engine_->jobs().Create(kTenant, request);
  ASSERT_TRUE(job.ok()) << job.status();
  auto again = engine_->jobs().Create(kTenant, request);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->name(), job->name());
  uint64_t seen = 0;
  v1::Job::State last = v1::Job::STATE_UNSPECIFIED;
  while (true) {
    auto events = engine_->jobs().NextEvents(kTenant, job->name(), seen, Soon());
    ASSERT_TRUE(events.ok());
    if (events->empty()) break;
    for (const auto& event : *events) {
      EXPECT_GT(event.sequence(), seen);
      EXPECT_GT(event.state(), last);
      seen = event.sequence();
      last = event.state();
    }
  }
  EXPECT_EQ(last, v1::Job::STATE_SUCCEEDED);
  auto done = engine_->jobs().Get(kTenant, job->name());
  EXPECT_EQ(done->timelines_size(), 2);
  ASSERT_EQ(done->results_size(), 1);
  EXPECT_EQ(done->results(0).state(), v1::Array::STATE_READY);
  EXPECT_TRUE(engine_->jobs().Delete(kTenant, job->name()).ok());
}

TEST_F(EngineTest, InvalidJobIsRefusedWithFieldPath) {
  Start({HostDevice(0)});
  v1::CreateJobRequest request;
  v1::Operation* fill = request.mutable_job()->add_operations();
  fill->mutable_creation()->mutable_fill()->mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
  fill->add_outputs()->set_name("tenants/default/arrays/first");
  *request.mutable_job()->add_operations() = Add(9, 9, 10);
  auto job = engine_->jobs().Create(kTenant, request);
  EXPECT_EQ(job.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(engine_->arrays().Get(kTenant, "tenants/default/arrays/first").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(EngineTest, KernelWithWrongArgumentsNeverRuns) {
  Start({HostDevice(0)});
  wire::KernelDescription kernel;
  kernel.set_parameters_known(true);
  wire::Parameter* parameter = kernel.add_parameters();
  parameter->set_kind(wire::Parameter::KIND_POINTER);
  parameter->set_size(8);
  parameter->set_type("int*");
  parameter->set_pointee_dtype(v1::DATA_TYPE_INT32);
  broker_->set_kernel(kernel);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  v1::Operation launch;
  launch.mutable_kernel_launch()->set_source("__global__ void f(int* x) {}");
  launch.mutable_kernel_launch()->set_entry("f");
  launch.mutable_kernel_launch()->add_arguments()->mutable_array()->set_handle(1);
  auto ticket = Submit(launch);
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  absl::Status status = (*ticket)->Wait(Soon());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  EXPECT_EQ(State(1), v1::Array::STATE_READY) << "it was never touched";
}

// The array to be changed stays intact and carries no error: with the code available, the response
// itself reports it.
TEST_F(EngineTest, RefusedKernelFailsTheSubmission) {
  Start({HostDevice(0)});
  wire::KernelDescription kernel;
  kernel.set_parameters_known(true);
  broker_->set_kernel(kernel);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  v1::Operation launch;
  launch.mutable_kernel_launch()->set_source("__global__ void f() {}");
  launch.mutable_kernel_launch()->set_entry("f");
  auto good = Submit(launch);
  ASSERT_TRUE(good.ok()) << good.status();
  ASSERT_TRUE((*good)->Wait(Soon()).ok());
  launch.mutable_kernel_launch()->add_arguments()->mutable_array()->set_handle(1);
  auto refused = Submit(launch);
  EXPECT_EQ(ReasonOf(refused.status()), v1::ERROR_REASON_ARGUMENT_COUNT) << refused.status();
  EXPECT_EQ(State(1), v1::Array::STATE_READY);
}

TEST_F(EngineTest, FunctionForOneDeviceKindRunsThere) {
  Start({HostDevice(0), StagedDevice(0)});
  v1::CreateFunctionRequest request;
  request.set_function_id("twice");
  auto* ufunc = request.mutable_function()->mutable_ufunc();
  ufunc->add_signatures("float32->float32");
  ufunc->mutable_body()->mutable_expression()->set_text("a + a");
  ufunc->mutable_body()->mutable_expression()->add_parameters("a");
  request.set_device_kind("tpu");
  EXPECT_EQ(engine_->functions().Create(kTenant, request, Soon()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const std::string kind = StagedDevice(0).kind();
  request.set_device_kind(kind);
  ASSERT_TRUE(engine_->functions().Create(kTenant, request, Soon()).ok());
  ASSERT_TRUE(Put(1, {1, 2}, absl::StrCat("devices/", HostDevice(0).id())).ok());
  v1::Operation call;
  call.mutable_ufunc()->set_function("twice");
  call.mutable_ufunc()->add_inputs()->set_handle(1);
  for (uint64_t out = 10; out < 14; ++out) {
    call.clear_outputs();
    call.add_outputs()->set_handle(out);
    auto ticket = Submit(call);
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    ASSERT_TRUE((*ticket)->Wait(Soon()).ok());
    EXPECT_EQ((*ticket)->timeline().device(), absl::StrCat("devices/", StagedDevice(0).id()));
  }
  call.clear_outputs();
  call.add_outputs()->set_handle(20);
  call.set_device(absl::StrCat("devices/", HostDevice(0).id()));
  auto elsewhere = Submit(call);
  const absl::Status status =
      elsewhere.ok() ? (*elsewhere)->Wait(Soon()) : absl::Status(elsewhere.status());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

TEST_F(EngineTest, CompileErrorsAreReturnedUnchanged) {
  Start({HostDevice(0)});
  broker_->set_compile_error(
      InvalidField(v1::ERROR_REASON_COMPILE_FAILED, "", "kernel.cu:1: what is this"));
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  auto ticket = Submit(Add(1, 1, 2));
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ((*ticket)->Wait(Soon()).message(), "kernel.cu:1: what is this");
}

class IdleWorkerTest : public EngineTest,
                       public ::testing::WithParamInterface<wire::DeviceDescription> {};

TEST_P(IdleWorkerTest, IdleWorkerIsStoppedAndArraysRemain) {
  Start({GetParam()}, /*hold=*/false, {.worker_idle_timeout = absl::Milliseconds(50)});
  std::vector<float> values(100000, 3);
  ASSERT_TRUE(Put(1, values).ok());
  auto first = Submit(Add(1, 1, 2));
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE((*first)->Wait(Soon()).ok());
  auto worker = broker_->WaitForWorker(1);
  EXPECT_TRUE(Eventually([&] { return !worker->alive(); }));
  EXPECT_EQ(engine_->devices().Sample()[0].num_workers(), 0);
  EXPECT_EQ(engine_->devices().Sample()[0].worker_restarts(), 0) << "that was no death";
  EXPECT_EQ(*Fetch(1), values);
  auto second = Submit(Add(1, 1, 3));
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE((*second)->Wait(Soon()).ok());
  EXPECT_EQ(*Fetch(1), values);
}

INSTANTIATE_TEST_SUITE_P(Kinds, IdleWorkerTest, ::testing::Values(HostDevice(0), StagedDevice(0)),
                         [](const auto& info) { return info.param.kind(); });

TEST_F(EngineTest, ExpiredSessionFreesItsArrays) {
  Start({HostDevice(0)});
  v1::CreateSessionRequest request;
  request.set_session_id("short");
  request.mutable_ttl()->set_seconds(2);
  ASSERT_TRUE(engine_->sessions().Create(kTenant, request).ok());
  v1::PutArrayRequest::Header header;
  header.set_parent("sessions/short");
  header.set_array_id("1");
  header.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  header.mutable_spec()->add_shape(1 << 20);
  auto upload = engine_->arrays().BeginUpload(kTenant, header, Soon());
  ASSERT_TRUE(upload.ok());
  ASSERT_TRUE((*upload)->Write(std::string(1 << 20, 'x')).ok());
  ASSERT_TRUE((*upload)->Finish().ok());
  upload->reset();
  header.set_array_id("2");  // left half done by a client that disconnected
  auto half = engine_->arrays().BeginUpload(kTenant, header, Soon());
  ASSERT_TRUE(half.ok());
  ASSERT_TRUE((*half)->Write(std::string(1 << 19, 'x')).ok());
  half->reset();
  auto used = [&] { return engine_->devices().Sample()[0].array_bytes(); };
  EXPECT_GE(used(), 2 << 20);

  ASSERT_TRUE(Put(1, {1, 2}).ok());
  int64_t jobs = 0;
  uint64_t handle = 2;
  // Longer than the session's lifetime, on a fast machine too.
  const absl::Time end = absl::Now() + absl::Minutes(1);
  while (used() > 1 << 19 && absl::Now() < end) {
    auto ticket = Submit(Add(1, 1, handle));
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    ASSERT_TRUE((*ticket)->Wait(Soon()).ok());
    v1::Release release;
    release.add_handles(handle++);
    ASSERT_TRUE(engine_->operations().Release(kTenant, "sessions/s", release).ok());
    ++jobs;
  }
  EXPECT_GT(jobs, 0);
  EXPECT_EQ(*Fetch(1), (std::vector<float>{1, 2}));
  auto gone = engine_->arrays().Get(kTenant, "sessions/short/arrays/1");
  EXPECT_EQ(gone.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(gone.status()), v1::ERROR_REASON_SESSION_NOT_FOUND);
  auto late = engine_->operations().Submit(kTenant, "sessions/short", Add(1, 1, 9), Soon());
  EXPECT_EQ(ReasonOf(late.status()), v1::ERROR_REASON_SESSION_NOT_FOUND);
  ASSERT_TRUE(engine_->sessions().Delete(kTenant, "sessions/s").ok());
  EXPECT_TRUE(Eventually([&] { return used() == 0; })) << used();
}

TEST_F(EngineTest, DownloadContinuesWithReplacementWorker) {
  Start({StagedDevice(0)});
  std::vector<float> values(1000, 5);
  ASSERT_TRUE(Put(1, values).ok());
  auto first = broker_->WaitForWorker(1);
  broker_->set_die_at_map(1);
  first->DieRunning(MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed"),
                    false);
  auto back = Fetch(1);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, values);
  EXPECT_NE(broker_->WaitForWorker(3), nullptr);
}

TEST_F(EngineTest, UploadContinuesAfterWorkersDieDuringCopy) {
  Start({StagedDevice(0)});
  broker_->set_die_at_copy(2, 2);
  std::vector<float> values(1 << 20);
  std::iota(values.begin(), values.end(), 0.0f);
  ASSERT_TRUE(Put(1, values).ok());
  EXPECT_EQ(*Fetch(1), values);
  EXPECT_EQ(engine_->devices().Sample()[0].worker_restarts(), 2);
}

TEST_F(EngineTest, UploadContinuesAfterWorkersDieCreatingArena) {
  Start({StagedDevice(0)});
  broker_->set_die_at_map(2);
  auto put = Put(1, {1, 2, 3});
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(*Fetch(1), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(engine_->devices().Sample()[0].worker_restarts(), 2);
}

TEST_F(EngineTest, UploadFailsWhenAllWorkersDieCreatingArena) {
  Start({StagedDevice(0)});
  broker_->set_die_at_map(100);
  absl::Status status = Put(1, {1, 2, 3}).status();
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_WORKER_LOST) << status;
  // Its missing part may still arrive.
  EXPECT_TRUE(engine_->sessions().Delete(kTenant, "sessions/s").ok());
}

TEST_F(EngineTest, UploadFailsWhenAllWorkersDie) {
  Start({StagedDevice(0)});
  broker_->set_die_at_copy(1, 100);
  absl::Status status = Put(1, {1, 2, 3}).status();
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_WORKER_LOST) << status;
  // Its missing part may still arrive.
  EXPECT_TRUE(engine_->sessions().Delete(kTenant, "sessions/s").ok());
}

class CreateModuleTest : public EngineTest {
 protected:
  absl::StatusOr<v1::Module> Create(const std::string& id, const std::string& source) {
    v1::CreateModuleRequest request;
    request.set_module_id(id);
    request.mutable_module()->set_source(source);
    request.mutable_module()->add_entries("f");
    return engine_->modules().Create(kTenant, request, Soon());
  }

  // Starts several creates; none can end before all that may compile do.
  std::vector<absl::StatusOr<v1::Module>> CreateTogether(const std::string& id,
                                                         std::vector<std::string> sources) {
    broker_->HoldCompiles(true);
    std::vector<absl::StatusOr<v1::Module>> results(sources.size(), absl::UnknownError(""));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < sources.size(); ++i)
      threads.emplace_back([&, i] { results[i] = Create(id, sources[i]); });
    // The others would compile by then, if they were to compile too.
    for (int i = 0; i < 300 && broker_->num_compiles() < 2; ++i)
      absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(broker_->num_compiles(), 1);
    broker_->HoldCompiles(false);
    for (std::thread& thread : threads) thread.join();
    return results;
  }
};

TEST_F(CreateModuleTest, ConcurrentCreatesOfOneIdSucceedOnce) {
  Start({HostDevice(0)});
  int made = 0;
  for (const auto& result : CreateTogether("m", {"a", "b", "c", "d"})) {
    made += result.ok();
    if (!result.ok()) {
      EXPECT_EQ(result.status().code(), absl::StatusCode::kAlreadyExists);
    }
  }
  EXPECT_EQ(made, 1);
}

TEST_F(CreateModuleTest, EqualModulesWithoutIdAreShared) {
  Start({HostDevice(0)});
  auto results = CreateTogether("", {"a", "a", "a"});
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->name(), results[0]->name());
    EXPECT_EQ(result->kernels_size(), 1);
  }
}

TEST_F(CreateModuleTest, FailureLeavesTheIdFree) {
  Start({HostDevice(0)});
  broker_->set_compile_error(InvalidField(v1::ERROR_REASON_COMPILE_FAILED, "", "wrong"));
  EXPECT_FALSE(Create("m", "a").ok());
  broker_->set_compile_error(absl::OkStatus());
  EXPECT_TRUE(Create("m", "b").ok());
}

TEST_F(CreateModuleTest, CreateWaitsForLoadInFlight) {
  Start({HostDevice(0)});
  ASSERT_TRUE(Create("m", "a").ok());
  broker_->WaitForWorker(1)->HoldLoads(true);
  std::vector<std::thread> threads;
  std::vector<absl::StatusOr<v1::Module>> results(2, absl::UnknownError(""));
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] { results[i] = Create(absl::StrCat("n", i), "b"); });
  absl::SleepFor(absl::Milliseconds(100));
  broker_->WaitForWorker(1)->HoldLoads(false);
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->kernels(0).shared_bytes(), FakeWorker::kSharedBytes);
  }
}

// Dependencies that an operation had when it ended ahead of its order.
class OrderTest : public EngineTest {
 protected:
  v1::Operation InPlace(uint64_t a, uint64_t b) {
    v1::Operation operation = Add(a, b, a);
    operation.mutable_outputs(0)->set_existing(true);
    return operation;
  }
  v1::Array::State Named(const std::string& id) {
    auto array = engine_->arrays().Get(kTenant, absl::StrCat("tenants/default/arrays/", id));
    return array.ok() ? array->state() : v1::Array::STATE_UNSPECIFIED;
  }
};

TEST_F(OrderTest, ReadersWaitForWriterAfterCancelledMove) {
  Start({HostDevice(0), HostDevice(1)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  ASSERT_TRUE(Submit(Add(1, 1, 2)).ok());
  v1::Operation move;
  move.mutable_copy()->mutable_input()->set_handle(2);
  move.mutable_copy()->set_move(true);
  move.add_outputs()->set_handle(3);
  move.set_device("devices/cpu:1");
  auto moved = Submit(move);
  ASSERT_TRUE(moved.ok()) << moved.status();
  (*moved)->Cancel();
  EXPECT_TRUE(absl::IsCancelled((*moved)->Wait(Soon())));
  auto fetch = engine_->arrays().BeginFetch(kTenant, "sessions/s", 2);
  ASSERT_TRUE(fetch.ok()) << fetch.status();
  EXPECT_TRUE(absl::IsDeadlineExceeded((*fetch)->Read(Now()).status()));
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->EndNext());
  EXPECT_TRUE((*fetch)->Read(Soon()).ok());
}

// A task that ends early may have waited, because of another array, for a writer before the last
// writer of this array.
TEST_F(OrderTest, ReadersWaitForLastWriterAfterCancelledWrite) {
  Start({HostDevice(0)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, {1, 2}).ok());
  ASSERT_TRUE(Put(2, {1, 2}).ok());
  ASSERT_TRUE(Submit(InPlace(1, 2)).ok());
  ASSERT_TRUE(Submit(InPlace(1, 1)).ok());
  auto other = Submit(InPlace(2, 2));
  auto needs_it = Submit(InPlace(1, 2));
  ASSERT_TRUE(other.ok() && needs_it.ok());
  auto worker = broker_->WaitForWorker(1);
  AWAIT(worker->num_held() >= 4);
  (*other)->Cancel();
  EXPECT_TRUE(absl::IsCancelled((*needs_it)->Wait(Soon())));
  auto fetch = engine_->arrays().BeginFetch(kTenant, "sessions/s", 1);
  ASSERT_TRUE(fetch.ok()) << fetch.status();
  ASSERT_TRUE(worker->EndNext());
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_TRUE(absl::IsDeadlineExceeded((*fetch)->Read(Now()).status()));
  ASSERT_TRUE(worker->EndNext());
  EXPECT_TRUE((*fetch)->Read(Soon()).ok());
}

TEST_F(OrderTest, UploadToDeletedArrayIsCancelled) {
  Start({HostDevice(0)});
  v1::PutArrayRequest::Header header;
  header.set_parent("sessions/s");
  header.set_array_id("1");
  header.mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
  header.mutable_spec()->add_shape(2);
  auto upload = engine_->arrays().BeginUpload(kTenant, header, Soon());
  ASSERT_TRUE(upload.ok()) << upload.status();
  ASSERT_TRUE((*upload)->Write("12345678").ok());
  ASSERT_TRUE(engine_->arrays().Delete(kTenant, "sessions/s/arrays/1").ok());
  EXPECT_TRUE(absl::IsCancelled((*upload)->Finish().status()));
}

// The worker's page reports the failure; the message was lost.
TEST_F(OrderTest, FailedWriteIsNotDoneAfterWorkerDeath) {
  for (bool failed : {true, false}) {
    SCOPED_TRACE(failed);
    Start({HostDevice(0)}, /*hold=*/true);
    ASSERT_TRUE(Put(1, {1, 2}).ok());
    auto writer = Submit(InPlace(1, 1));
    auto worker = broker_->WaitForWorker(1);
    AWAIT(worker->num_held() >= 1);
    broker_->set_hold(false);
    broker::WorkerDeath death{
        .cause = MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed"),
        .completed_sequence = 1,
        .started_sequence = 1};
    if (failed) death.undone.failed.insert(1);
    worker->Die(death);
    EXPECT_EQ(absl::IsAborted((*writer)->Wait(Soon())), failed);
    TearDown();
    broker_.reset();
  }
}

// A task that ran on the output of a failed one is not done either, even if only the worker's page
// reports both. A recalled task has changed nothing.
TEST_F(OrderTest, WriteAfterFailedTaskIsLostAndRecalledOneRepeats) {
  for (bool failed : {true, false}) {
    SCOPED_TRACE(failed);
    Start({HostDevice(0)}, /*hold=*/true);
    ASSERT_TRUE(Put(1, {1, 2}).ok());
    ASSERT_TRUE(Put(2, {1, 2}).ok());
    auto fresh = Submit(Add(1, 1, 3));
    auto writer = Submit(InPlace(2, 3));
    auto worker = broker_->WaitForWorker(1);
    AWAIT(worker->num_held() >= 2);
    broker_->set_hold(false);
    broker::WorkerDeath death{
        .cause = MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed"),
        .completed_sequence = 2,
        .started_sequence = 2};
    if (failed) {
      death.undone.failed = {1};
    } else {
      death.undone.taken_out = {1, 2};
    }
    worker->Die(death);
    EXPECT_TRUE((*fresh)->Wait(Soon()).ok());
    absl::Status status = (*writer)->Wait(Soon());
    EXPECT_EQ(absl::IsAborted(status), failed) << status;
    EXPECT_EQ(status.ok(), !failed) << status;
    TearDown();
    broker_.reset();
  }
}

TEST_F(OrderTest, ValidateOnlyJobKeepsArrayToOverwrite) {
  Start({HostDevice(0)});
  v1::CreateArrayRequest request;
  request.set_parent("tenants/default");
  request.set_array_id("kept");
  request.mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
  request.mutable_spec()->add_shape(2);
  ASSERT_TRUE(engine_->arrays().Create(kTenant, request).ok());
  v1::CreateJobRequest job;
  job.set_parent("tenants/default");
  job.set_validate_only(true);
  v1::Operation* operation = job.mutable_job()->add_operations();
  operation->mutable_ufunc()->set_function("add");
  for (int i = 0; i < 2; ++i)
    operation->mutable_ufunc()->add_inputs()->set_name("tenants/default/arrays/kept");
  operation->add_outputs()->set_name("tenants/default/arrays/kept");
  operation->mutable_outputs(0)->set_existing(true);
  ASSERT_TRUE(engine_->jobs().Create(kTenant, job).ok());
  EXPECT_NE(Named("kept"), v1::Array::STATE_UNSPECIFIED);
}

TEST_F(OrderTest, OperationOnReleasedUploadFails) {
  Start({HostDevice(0)});
  v1::PutArrayRequest::Header header;
  header.set_parent("sessions/s");
  header.set_array_id("1");
  header.mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
  header.mutable_spec()->add_shape(2);
  ASSERT_TRUE(engine_->arrays().BeginUpload(kTenant, header, Soon()).ok());
  auto ticket = Submit(Add(1, 1, 2));
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  v1::Release release;
  release.add_handles(1);
  ASSERT_TRUE(engine_->operations().Release(kTenant, "sessions/s", release).ok());
  EXPECT_EQ(ReasonOf((*ticket)->Wait(Soon())), v1::ERROR_REASON_ARRAY_NOT_READY);
}

}  // namespace
}  // namespace stride::engine
