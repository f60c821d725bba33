// Each codec: a round trip, a record without the fields that later versions added, and one that
// refers to what is not there.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/tenant_partition.h"
#include "server/engine/persistence/job_codec.h"
#include "server/engine/persistence/record_convert.h"
#include "server/engine/persistence/state_codec.h"
#include "server/engine/persistence/task_codec.h"

namespace stride::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr SteadyTime At(int64_t seconds) { return SteadyTime::SinceBoot(absl::Seconds(seconds)); }

absl::Status Lost() {
  return MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST, "it was lost",
                   {{"name", "a"}});
}

class CodecTest : public ::testing::Test {
 protected:
  // Buffers and their blocks refer to the reclaimer, which lists both.
  void TearDown() override {
    buffers_.clear();
    std::vector<store::Reclaimer::Entry> entries;
    for (int partition = 0; partition < kNumTenantPartitions; ++partition) {
      reclaimer_->TakeChanged(partition);
      reclaimer_->TakeAll(partition, &entries);
    }
  }
  std::shared_ptr<store::Buffer> NewBuffer(uint64_t record, int64_t size = 64) {
    auto buffer = std::make_shared<store::Buffer>(kTenant, size, reclaimer_);
    buffer->record = record;
    buffers_[record] = buffer;
    return buffer;
  }
  static std::shared_ptr<store::Arena> NewArena(uint64_t id) {
    return std::make_shared<store::Arena>(id, 4096, UniqueFd(), MemoryMap());
  }
  // As the next daemon reads it.
  template <typename Record>
  static Record Read(const Record& record) {
    Record read;
    EXPECT_TRUE(read.ParseFromString(record.SerializeAsString()));
    return read;
  }
  recovery::ArrayRecord RecordOf(const session::Array& array, Outlives outlives) {
    recovery::ArrayRecord record;
    ToRecord(array, spaces_, outlives, &record);
    return Read(record);
  }
  recovery::TaskRecord RecordOf(const Task& task) {
    recovery::TaskRecord scratch, read;
    scratch.set_label("of an earlier task");
    EncodeTask(task, spaces_, &scratch,
               [&](const recovery::TaskRecord& record, std::string_view begin) {
                 EXPECT_TRUE(read.ParseFromString(std::string(begin) + record.SerializeAsString()));
               });
    return read;
  }
  absl::StatusOr<std::shared_ptr<Task>> TaskOf(
      const recovery::TaskRecord& record, std::shared_ptr<ProgramLaunch> program_launch = nullptr) {
    return TaskFrom(
        7, record,
        {.program_launch = std::move(program_launch), .buffers = buffers_, .spaces = spaces_});
  }

  const TenantId kTenant{"t"};
  const SpaceNames spaces_{{"cpu0", "cuda0"}, "spill:memory", "spill:disk"};
  std::shared_ptr<store::Reclaimer> reclaimer_ = std::make_shared<store::Reclaimer>();
  RestoredBuffers buffers_;
};

TEST_F(CodecTest, SpacesHaveNames) {
  EXPECT_EQ(spaces_.Find("spill:disk"), 3);
  EXPECT_EQ(spaces_.FindDevice("cuda0"), 1);
  EXPECT_EQ(spaces_.FindDevice("spill:disk"), -1);
  EXPECT_EQ(spaces_.Find("cuda1"), -1);
  EXPECT_EQ(spaces_.IdOf(2), "spill:memory");
}

TEST_F(CodecTest, SessionRoundTrip) {
  session::Session session;
  session.id = "s";
  session.tenant = kTenant;
  session.ttl = absl::Minutes(5);
  session.create_time = At(100);
  session.num_pins = 1;
  recovery::SessionRecord record;
  ToRecord(session, &record);
  auto restored = SessionFrom(3, Read(record), At(500));
  EXPECT_EQ(restored->record, 3u);
  EXPECT_EQ(restored->id, "s");
  EXPECT_EQ(restored->tenant, kTenant);
  EXPECT_EQ(restored->ttl, absl::Minutes(5));
  EXPECT_EQ(restored->expire_time, At(500) + absl::Minutes(5));
  EXPECT_EQ(restored->num_pins, 1);
  // A date, so a step of the wall clock between the two readings moves it.
  EXPECT_LT(absl::AbsDuration(restored->create_time - At(100)), absl::Seconds(60));
}

TEST_F(CodecTest, BufferRoundTrip) {
  auto arena = NewArena(9);
  auto block = arena->heap.Allocate(64);
  ASSERT_TRUE(block.has_value());
  auto buffer = NewBuffer(5);
  buffer->AddReplica(1, {arena, *block, 64});
  buffer->LoseWrite("s", Lost());
  buffer->kept = 11;
  recovery::BufferRecord record;
  ToRecord(*buffer, &record);
  auto again = NewArena(9);
  auto restored = BufferFrom(5, Read(record), {{9, {again, 1}}}, reclaimer_);
  EXPECT_EQ(restored->record, 5u);
  EXPECT_EQ(restored->size, 64);
  EXPECT_EQ(restored->kept, 11u);
  EXPECT_TRUE(restored->error.ok());
  EXPECT_EQ(restored->LostWriteOf("s"), Lost());
  ASSERT_EQ(restored->replicas.count(1), 1u);
  EXPECT_EQ(restored->replicas.at(1).offset, *block);
  EXPECT_FALSE(again->heap.Reserve(*block, 64)) << "the block is not reserved";
}

TEST_F(CodecTest, BufferWithoutItsArenaHasNoBlock) {
  recovery::BufferRecord record;  // with the fields of the first version
  record.set_tenant("t");
  record.set_size(64);
  record.add_replicas()->set_arena(9);
  auto restored = BufferFrom(5, record, {}, reclaimer_);
  EXPECT_THAT(restored->replicas, IsEmpty());
  EXPECT_THAT(restored->lost_writes, IsEmpty());
  EXPECT_EQ(restored->kept, 0u);
}

// Two records that claim one block: the second buffer loses its content, and shares none.
TEST_F(CodecTest, BlockOfTwoBuffersGoesToOne) {
  recovery::BufferRecord record;
  record.set_tenant("t");
  record.set_size(64);
  recovery::ReplicaRecord* replica = record.add_replicas();
  replica->set_arena(9);
  replica->set_size(64);
  const RestoredArenas arenas = {{9, {NewArena(9), 0}}};
  auto first = BufferFrom(5, record, arenas, reclaimer_);
  auto second = BufferFrom(6, record, arenas, reclaimer_);
  EXPECT_THAT(first->replicas, SizeIs(1));
  EXPECT_THAT(second->replicas, IsEmpty());
}

TEST_F(CodecTest, ArrayRoundTrip) {
  session::Array array;
  array.tenant = kTenant;
  array.info = ArrayInfo{DType::kInt16, {2, 3}, {6, 2}, 4};
  array.buffer = NewBuffer(5);
  array.durable = 8;
  array.create_time = At(100);
  array.expire_time = At(900);
  array.receiving = std::make_shared<session::Receiving>();
  array.receiving->device = 1;
  array.receiving->ranges.Add(0, 10);
  const recovery::ArrayRecord record = RecordOf(array, Outlives::kProcess);
  EXPECT_EQ(record.receiving().device(), "cuda0");
  EXPECT_THAT(record.receiving().end(), ElementsAre(10));
  auto restored = ArrayFrom(4, record, spaces_, buffers_, {});
  EXPECT_EQ(restored->record, 4u);
  EXPECT_EQ(restored->durable, 8u);
  EXPECT_EQ(restored->tenant, kTenant);
  EXPECT_EQ(restored->buffer, array.buffer);
  EXPECT_TRUE(restored->status().ok()) << restored->status();
  EXPECT_EQ(restored->info->dtype, DType::kInt16);
  EXPECT_THAT(restored->info->shape, ElementsAre(2, 3));
  EXPECT_THAT(restored->info->strides, ElementsAre(6, 2));
  EXPECT_EQ(restored->info->offset, 4);
  EXPECT_EQ(restored->expire_time, At(900));
}

// After a reboot the steady clock has begun again, and the records of the journal are gone.
TEST_F(CodecTest, ArrayForTheDiskHasDatesAndNoReferences) {
  session::Array array;
  array.tenant = kTenant;
  array.info = Contiguous(DType::kInt16, {8});
  array.buffer = NewBuffer(5);
  array.buffer->Spoil(Lost());
  array.durable = 8;
  array.expire_time = At(900);
  const recovery::ArrayRecord record = RecordOf(array, Outlives::kMachine);
  EXPECT_EQ(record.buffer(), 0u);
  EXPECT_EQ(record.durable(), 0u);
  EXPECT_GT(record.expire_time(), 1'000'000'000'000'000'000);
  EXPECT_EQ(StatusFrom(record.error()), Lost());
  // In the journal the error is the buffer's.
  EXPECT_FALSE(RecordOf(array, Outlives::kProcess).has_error());
}

TEST_F(CodecTest, ArrayWithoutItsBufferIsLost) {
  session::Array array;
  array.tenant = kTenant;
  array.info = Contiguous(DType::kInt16, {8});
  array.buffer = NewBuffer(5);
  recovery::ArrayRecord record = RecordOf(array, Outlives::kProcess);
  EXPECT_EQ(ArrayFrom(4, record, spaces_, {}, {})->status(), ContentLost());
  record.mutable_info()->set_dtype(9999);  // a later version has it
  EXPECT_EQ(ArrayFrom(4, record, spaces_, buffers_, {})->status(), ContentLost());
  SetStatus(Lost(), record.mutable_error());
  EXPECT_EQ(ArrayFrom(4, record, spaces_, buffers_, {})->status(), Lost());
}

TEST_F(CodecTest, ShardedArrayNeedsAllOfItsParts) {
  RestoredArrays parts;
  auto shards = std::make_shared<session::Shards>();
  for (uint64_t id : {21, 22}) {
    auto part = std::make_shared<session::Array>();
    part->record = id;
    part->buffer = NewBuffer(id + 100);
    parts[id] = part;
    shards->parts.push_back(part);
  }
  shards->devices = {1, 0};
  session::Array array;
  array.tenant = kTenant;
  array.info = Contiguous(DType::kInt16, {8});
  array.shards = shards;
  recovery::ArrayRecord record = RecordOf(array, Outlives::kProcess);
  auto restored = ArrayFrom(4, record, spaces_, buffers_, parts);
  ASSERT_NE(restored->shards, nullptr);
  EXPECT_THAT(restored->shards->devices, ElementsAre(1, 0));
  EXPECT_THAT(restored->shards->parts, ElementsAre(parts[21], parts[22]));

  EXPECT_EQ(ArrayFrom(4, record, spaces_, buffers_, {{21, parts[21]}})->status(), ContentLost());
  const SpaceNames other({"cpu0"}, "spill:memory", "spill:disk");
  EXPECT_EQ(ArrayFrom(4, record, other, buffers_, parts)->status(), ContentLost());
  record.mutable_shards()->set_axis(1);
  EXPECT_EQ(ArrayFrom(4, record, spaces_, buffers_, parts)->status(), ContentLost());
}

class TaskCodecTest : public CodecTest {
 protected:
  std::shared_ptr<Task> NewTask() {
    ops::Plan plan;
    plan.task.set_label("add");
    plan.outputs.resize(1);
    plan.zeroed_outputs = {0};
    plan.bytes = 24;
    plan.flops = 3;
    plan.required_kind = "cpu";
    auto task = std::make_shared<Task>(MakePlanned(std::move(plan)));
    task->tenant = kTenant;
    task->label = "add";
    task->uses = {Use{.buffer = NewBuffer(31), .read = true}, Use{},
                  Use{.buffer = NewBuffer(32), .write = true, .fresh = true}};
    task->options.pinned_device = 1;
    task->options.priority = -3;
    task->options.deadline = At(900);
    task->timeline.submit_time = At(100);
    task->options.of_job = true;
    return task;
  }
};

TEST_F(TaskCodecTest, RoundTrip) {
  auto task = NewTask();
  const recovery::TaskRecord record = RecordOf(*task);
  auto restored = TaskOf(record);
  ASSERT_TRUE(restored.ok()) << restored.status();
  const Task& again = **restored;
  EXPECT_EQ(again.id, 7u);
  EXPECT_EQ(again.label, "add");
  EXPECT_TRUE(again.journal.recorded);
  EXPECT_EQ(again.state, TaskState::kWaiting);
  EXPECT_THAT(again.uses, SizeIs(3));
  EXPECT_EQ(again.uses[0].buffer, buffers_[31]);
  EXPECT_TRUE(again.uses[0].read && !again.uses[0].write);
  EXPECT_EQ(again.uses[1].buffer, nullptr);
  EXPECT_TRUE(again.uses[2].write && again.uses[2].fresh);
  EXPECT_EQ(again.options.pinned_device, 1);
  EXPECT_EQ(again.options.priority, -3);
  EXPECT_EQ(again.options.deadline, At(900));
  EXPECT_EQ(again.timeline.submit_time, At(100));
  EXPECT_TRUE(again.options.of_job);
  EXPECT_EQ(again.plan().task.SerializeAsString(), task->plan().task.SerializeAsString());
  EXPECT_THAT(again.plan().outputs, SizeIs(1));
  EXPECT_THAT(again.plan().zeroed_outputs, ElementsAre(0));
  EXPECT_EQ(again.plan().bytes, 24);
  EXPECT_EQ(again.plan().required_kind, "cpu");
  // Nothing is lost or added by a second daemon.
  EXPECT_EQ(RecordOf(again).SerializeAsString(), record.SerializeAsString());
}

// The plan's part is serialized once where it is small, and lent to the record where it is not.
TEST_F(TaskCodecTest, PlansOfAnySizeAreWhole) {
  auto task = NewTask();
  ops::Plan large = task->plan();
  large.task.set_label(std::string(10000, 'x'));
  task->planned = MakePlanned(std::move(large));
  for (int i = 0; i < 2; ++i) {
    const recovery::TaskRecord record = RecordOf(*task);
    EXPECT_THAT(record.task().label(), SizeIs(10000));
    EXPECT_EQ(record.label(), "add");
  }
  EXPECT_THAT(task->plan().task.label(), SizeIs(10000)) << "the plan lent it";
}

TEST_F(TaskCodecTest, KernelsKeepTheirArguments) {
  auto task = NewTask();
  auto operation = std::make_shared<v1::Operation>();
  operation->mutable_kernel_launch()->set_entry("k");
  task->kernel = std::make_unique<KernelArguments>();
  task->kernel->operation = operation;
  task->kernel->inputs = {Contiguous(DType::kInt16, {8}), std::nullopt};
  task->kernel->bound = true;
  auto restored = TaskOf(RecordOf(*task));
  ASSERT_TRUE(restored.ok()) << restored.status();
  ASSERT_NE((*restored)->kernel, nullptr);
  const KernelArguments& kernel = *(*restored)->kernel;
  EXPECT_EQ(kernel.operation->kernel_launch().entry(), "k");
  EXPECT_TRUE(kernel.bound);
  ASSERT_THAT(kernel.inputs, SizeIs(2));
  EXPECT_TRUE(kernel.inputs[0].has_value() && !kernel.inputs[1].has_value());
}

TEST_F(TaskCodecTest, MissingReferencesAreErrors) {
  auto task = NewTask();
  recovery::TaskRecord record = RecordOf(*task);
  record.set_pinned_device("cuda7");
  EXPECT_EQ(TaskOf(record).status().code(), absl::StatusCode::kFailedPrecondition);
  record = RecordOf(*task);
  record.set_program_launch(99);
  EXPECT_EQ(TaskOf(record).status(), ContentLost());
  buffers_.erase(31);
  EXPECT_EQ(TaskOf(RecordOf(*task)).status(), ContentLost());
}

TEST_F(TaskCodecTest, RecordOfTheFirstVersionHasDefaults) {
  recovery::TaskRecord record;
  record.set_tenant("t");
  record.set_label("add");
  auto restored = TaskOf(record);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ((*restored)->options.pinned_device, -1);
  EXPECT_EQ((*restored)->options.priority, 0);
  EXPECT_EQ((*restored)->options.deadline, SteadyTime::InfiniteFuture());
  EXPECT_EQ((*restored)->kernel, nullptr);
  EXPECT_EQ((*restored)->program_launch, nullptr);
}

TEST_F(TaskCodecTest, ProgramsKeepTheirGraph) {
  ops::ProgramGraph graph;
  graph.num_inputs = 2;
  graph.result_bytes = {64};
  graph.scratch_bytes = 128;
  graph.written = {false, true};
  graph.codes.resize(1);
  ops::GraphStep step;
  step.task.set_label("add");
  step.places = {{1, 16}};
  step.code = 0;
  graph.steps = {step};
  recovery::ProgramLaunchRecord record;
  ToRecord(graph, &record);
  const ops::ProgramGraph again = GraphFrom(Read(record));
  EXPECT_EQ(again.num_inputs, 2u);
  EXPECT_THAT(again.result_bytes, ElementsAre(64));
  EXPECT_EQ(again.scratch_bytes, 128);
  EXPECT_THAT(again.written, ElementsAre(false, true));
  ASSERT_THAT(again.steps, SizeIs(1));
  EXPECT_EQ(again.steps[0].code, 0);
  EXPECT_EQ(again.steps[0].places[0].offset, 16u);
  // A task of the program runs the graph of this daemon, whatever its id was.
  auto task = NewTask();
  recovery::TaskRecord of_program = RecordOf(*task);
  of_program.set_program_launch(99);
  auto program_launch = std::make_shared<ProgramLaunch>(1234, again);
  auto restored = TaskOf(of_program, program_launch);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ((*restored)->plan().task.graph().graph(), 1234u);
  record.clear_written();  // an earlier version did not know it
  EXPECT_THAT(GraphFrom(record).written, ElementsAre(false, false));
}

TEST_F(TaskCodecTest, DispatchAndResult) {
  auto task = NewTask();
  task->state = TaskState::kDispatched;
  task->sent.worker_record = 3;
  task->sent.first_sequence = 4;
  task->sent.last_sequence = 6;
  task->sent.num_deaths = 1;
  task->cancel.recall = absl::CancelledError("cancelled");
  const recovery::DispatchRecord dispatch = RecordOf(*task).dispatch();
  EXPECT_EQ(dispatch.worker(), 3u);
  EXPECT_EQ(dispatch.first_sequence(), 4u);
  EXPECT_EQ(dispatch.last_sequence(), 6u);
  EXPECT_EQ(dispatch.num_deaths(), 1);
  EXPECT_THAT(dispatch.flags(), ElementsAre(kUseRead, 0, kUseWrite | kUseFresh));
  EXPECT_EQ(StatusFrom(dispatch.recall()), task->cancel.recall);
  EXPECT_FALSE(dispatch.has_lost_input());

  task->result = Lost();
  task->timeline.ran_on_device = 1;
  task->timeline.end_time = At(120);
  task->timeline.run_seconds = 0.5;
  recovery::TaskResultRecord record;
  ToRecord(*task, spaces_, &record);
  auto ended = FinishedTask(7, Read(record), spaces_);
  EXPECT_EQ(ended->id, 7u);
  EXPECT_EQ(ended->state, TaskState::kDone);
  EXPECT_EQ(ended->result, Lost());
  EXPECT_EQ(ended->timeline.ran_on_device, 1);
  EXPECT_EQ(ended->timeline.submit_time, At(100));
  EXPECT_EQ(ended->timeline.end_time, At(120));
  EXPECT_EQ(ended->timeline.run_seconds, 0.5);
  EXPECT_TRUE(FinishedTask(7, recovery::TaskResultRecord(), spaces_)->result.ok());
}

TEST(JobCodec, NamesEachArrayOnce) {
  v1::Job job;
  job.set_name("tenants/t/jobs/j");
  job.set_state(v1::Job::STATE_RUNNING);
  job.add_results();
  v1::Operation* first = job.add_operations();
  first->mutable_copy()->mutable_input()->set_name("tenants/t/arrays/in");
  first->add_outputs()->set_name("tenants/t/arrays/out");
  v1::Operation* second = job.add_operations();
  second->mutable_copy()->mutable_input()->set_name("tenants/t/arrays/out");
  second->add_outputs()->set_name("tenants/t/arrays/changed");
  second->mutable_outputs(0)->set_existing(true);
  recovery::DurableJobRecord record;
  ToRecord(job, &record);
  std::vector<std::pair<std::string, bool>> arrays;
  for (const auto& array : record.arrays()) arrays.emplace_back(array.name(), array.made());
  EXPECT_THAT(arrays, ElementsAre(std::pair("tenants/t/arrays/out", true),
                                  std::pair("tenants/t/arrays/in", false),
                                  std::pair("tenants/t/arrays/changed", false)));
  v1::Job request;
  ASSERT_TRUE(request.ParseFromString(record.job()));
  EXPECT_EQ(request.state(), v1::Job::STATE_UNSPECIFIED);
  EXPECT_EQ(request.results_size(), 0);
  EXPECT_EQ(request.operations_size(), 2);
}

}  // namespace
}  // namespace stride::engine
