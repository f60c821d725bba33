// The records of an earlier daemon, from its journals and from the disk.
#include "server/engine/persistence/record_set.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/persistence/record_convert.h"
#include "server/engine/persistence/task_codec.h"
#include "server/engine/restored_dispositions.h"
#include "tests/support/memory_fd_store.h"

namespace stride::engine {
namespace {

using recovery::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::SizeIs;

class JournaledTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto journals = recovery::Journals::Create(&fd_store_);
    ASSERT_TRUE(journals.ok()) << journals.status();
    journals_ = *std::move(journals);
  }
  void Set(Kind kind, uint64_t id, const google::protobuf::MessageLite& record) {
    journals_->of(static_cast<int>(id % kNumTenantPartitions))
        .Set(recovery::Key(kind, id), record.SerializeAsString());
  }
  absl::StatusOr<RecordSet> Read() { return RecordSet::FromJournals(*journals_); }

  testing::MemoryFdStore fd_store_;
  std::unique_ptr<recovery::Journals> journals_;
};

TEST_F(JournaledTest, HasTheRecordsOfAllJournals) {
  recovery::SessionRecord session;
  session.set_id("s");
  Set(Kind::kSession, 3, session);
  recovery::ArrayRecord array;
  array.set_name("tenants/t/arrays/a");
  Set(Kind::kArray, 70, array);
  Set(Kind::kArena, 500, recovery::ArenaRecord());
  journals_->of(1).Set(recovery::Key(Kind::kInlineBytes, 4), "bytes");
  auto records = Read();
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_EQ(records->sessions.at(3).id(), "s");
  EXPECT_EQ(records->arrays.at(70).name(), "tenants/t/arrays/a");
  EXPECT_EQ(records->inline_bytes.at(4), "bytes");
  EXPECT_THAT(records->arenas, ElementsAre(Key(500)));
  EXPECT_EQ(records->last_id, 70u) << "arenas have a count of their own";
}

// No later task gets the id of one that has ended.
TEST_F(JournaledTest, KnowsTheLastTask) {
  Set(Kind::kTask, 20, recovery::TaskRecord());
  Set(Kind::kTaskResult, 25, recovery::TaskResultRecord());
  EXPECT_EQ(Read()->last_task, 25u);
  recovery::JobRecord job;
  job.add_tasks(40);
  job.add_tasks(30);
  Set(Kind::kJob, 5, job);
  EXPECT_EQ(Read()->last_task, 40u);
  EXPECT_EQ(Read()->last_id, 5u);
}

// A dispatch in the task's body counts until another record replaces it; an empty one takes the
// task back.
TEST_F(JournaledTest, MergesDispatches) {
  recovery::TaskRecord task;
  task.mutable_dispatch()->set_last_sequence(7);
  for (uint64_t id : {1, 2, 3}) Set(Kind::kTask, id, task);
  recovery::DispatchRecord later;
  later.set_last_sequence(9);
  Set(Kind::kDispatch, 2, later);
  Set(Kind::kDispatch, 3, recovery::DispatchRecord());
  auto records = Read();
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_THAT(records->dispatches, ElementsAre(Key(1), Key(2)));
  EXPECT_EQ(records->dispatches.at(1).last_sequence(), 7u);
  EXPECT_EQ(records->dispatches.at(2).last_sequence(), 9u);
}

TEST_F(JournaledTest, DamagedRecordIsNoticed) {
  for (Kind kind : {Kind::kSession, Kind::kArray, Kind::kBuffer, Kind::kArena, Kind::kWorker,
                    Kind::kTask, Kind::kDispatch, Kind::kTaskResult, Kind::kJob, Kind::kModule,
                    Kind::kFunction, Kind::kProgram, Kind::kProgramLaunch}) {
    const uint64_t key = recovery::Key(kind, 1);
    journals_->of(0).Set(key, "\xff\xff\xff");
    EXPECT_EQ(Read().status().code(), absl::StatusCode::kDataLoss) << static_cast<int>(kind);
    journals_->of(0).Erase(key);
  }
  EXPECT_TRUE(Read().ok());
}

TEST_F(JournaledTest, RecordOfALaterVersionIsNotSkipped) {
  journals_->of(0).Set(recovery::Key(static_cast<Kind>(99), 1), "");
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kDataLoss);
}

// An earlier daemon noted in its journal that it had not read all of the disk.
TEST_F(JournaledTest, HalfOfTheDiskIsNone) {
  Set(Kind::kArray, 1, recovery::ArrayRecord());
  journals_->common().Set(recovery::Key(Kind::kReadingDisk, 0), "");
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kNotFound);
}

recovery::ArrayRecord Named(const std::string& id, int64_t count) {
  recovery::ArrayRecord record;
  record.set_tenant("t");
  record.set_name("tenants/t/arrays/" + id);
  ToRecord(Contiguous(DType::kInt16, {count}), record.mutable_info());
  return record;
}

class RowsTest : public ::testing::Test {
 protected:
  void Add(uint64_t id, uint64_t content, const recovery::ArrayRecord& record) {
    rows_.arrays[id] = {id, content, record.SerializeAsString()};
  }
  RecordSet Read() {
    damage_.clear();
    return RecordSet::FromRows(rows_, &damage_);
  }

  durable::Rows rows_;
  std::vector<std::string> damage_;
};

TEST_F(RowsTest, ArraysShareTheBufferOfTheirFile) {
  rows_.contents[50] = {50, 16, 0, "cpu0"};
  Add(1, 50, Named("a", 8));
  Add(2, 50, Named("view", 4));
  const RecordSet records = Read();
  EXPECT_THAT(damage_, IsEmpty());
  EXPECT_THAT(records.arrays, ElementsAre(Key(1), Key(2)));
  EXPECT_EQ(records.arrays.at(2).durable(), 2u);
  EXPECT_EQ(records.arrays.at(2).buffer(), 50u);
  ASSERT_THAT(records.buffers, ElementsAre(Key(50)));
  EXPECT_EQ(records.buffers.at(50).size(), 16);
  EXPECT_EQ(records.buffers.at(50).kept(), 50u);
  EXPECT_EQ(records.buffers.at(50).tenant(), "t");
}

TEST_F(RowsTest, ArrayWithoutAFileKeepsItsError) {
  recovery::ArrayRecord failed = Named("failed", 8);
  SetStatus(absl::AbortedError("the operation failed"), failed.mutable_error());
  Add(1, 0, failed);
  Add(2, 51, Named("unknown", 8));
  const RecordSet records = Read();
  EXPECT_THAT(damage_, IsEmpty());
  EXPECT_EQ(StatusFrom(records.buffers.at(1).error()), absl::AbortedError("the operation failed"));
  EXPECT_EQ(records.buffers.at(1).kept(), 0u);
  EXPECT_FALSE(records.arrays.at(1).has_error());
  const absl::Status lost = StatusFrom(records.buffers.at(2).error());
  EXPECT_EQ(lost.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(lost.message()), HasSubstr("file is not known"));
}

TEST_F(RowsTest, DamagedRowsAreLeftOut) {
  rows_.contents[50] = {50, 16, 0, "cpu0"};
  rows_.arrays[1] = {1, 50, "\xff\xff\xff"};
  Add(2, 50, Named("too-long", 9));
  recovery::ArrayRecord of_session = Named("a", 8);
  of_session.set_name("sessions/s/arrays/a");
  Add(3, 50, of_session);
  recovery::ArrayRecord no_type = Named("no-type", 8);
  no_type.mutable_info()->set_dtype(9999);
  Add(4, 50, no_type);
  rows_.definitions[5] = {5, durable::DefinitionRow::kFunction, "\xff\xff\xff"};
  Add(6, 50, Named("whole", 8));
  const RecordSet records = Read();
  EXPECT_THAT(records.arrays, ElementsAre(Key(6)));
  EXPECT_THAT(records.functions, IsEmpty());
  EXPECT_THAT(damage_, ElementsAre("the row of array 1", "the row of array 2", "the row of array 3",
                                   "the row of array 4", "the row of function or program 5"));
}

TEST_F(RowsTest, DefinitionsAreRecordsOfTheJournal) {
  recovery::FunctionRecord function;
  function.set_id("f");
  recovery::ProgramRecord program;
  program.set_id("p");
  rows_.definitions[5] = {5, durable::DefinitionRow::kFunction, function.SerializeAsString()};
  rows_.definitions[6] = {6, durable::DefinitionRow::kProgram, program.SerializeAsString()};
  rows_.definitions[7] = {7, 99, "of a later version"};
  const RecordSet records = Read();
  EXPECT_THAT(damage_, IsEmpty());
  EXPECT_EQ(records.functions.at(5).id(), "f");
  EXPECT_EQ(records.functions.at(5).durable(), 5u);
  EXPECT_EQ(records.programs.at(6).id(), "p");
  EXPECT_EQ(records.programs.at(6).durable(), 6u);
}

// The dispositions of tasks by their records; fates_test.cc has those of a queue.
class RestoredDispositionsTest : public ::testing::Test {
 protected:
  void Add(uint64_t id, uint32_t flags, uint64_t worker, uint64_t sequence) {
    recovery::UseRecord* use = records_.tasks[id].add_uses();
    use->set_buffer(id);
    use->set_flags(flags);
    if (worker == 0) return;
    recovery::DispatchRecord& dispatch = records_.dispatches[id];
    dispatch.set_worker(worker);
    dispatch.set_first_sequence(sequence);
    dispatch.set_last_sequence(sequence);
    dispatch.add_flags(flags);
  }
  RecordSet records_;
};

TEST_F(RestoredDispositionsTest, UnsentTaskRunsAgain) {
  Add(1, kUseWrite, 0, 0);
  EXPECT_THAT(DispositionsOf(records_, {}), ElementsAre(std::pair(1, TaskDisposition::kAgain)));
}

TEST_F(RestoredDispositionsTest, WithoutProgressChangesInPlaceAreLost) {
  Add(1, kUseWrite, 8, 1);
  Add(2, kUseWrite | kUseFresh, 8, 2);
  for (const WorkerProgress& progress : {WorkerProgress{}, WorkerProgress{{8, std::nullopt}}}) {
    EXPECT_THAT(
        DispositionsOf(records_, progress),
        ElementsAre(std::pair(1, TaskDisposition::kLost), std::pair(2, TaskDisposition::kAgain)));
    EXPECT_TRUE(WasRunning(records_.dispatches.at(2), progress));
  }
}

TEST_F(RestoredDispositionsTest, FirstInTheQueueOfItsWorkerWasRunning) {
  Add(1, kUseWrite, 8, 1);
  Add(2, kUseWrite, 8, 2);
  Add(3, kUseWrite, 8, 3);
  Add(4, kUseWrite, 9, 1);
  const WorkerProgress progress = {{8, QueueProgress{.completed = 1, .started = 2}},
                                   {9, QueueProgress{}}};
  EXPECT_FALSE(WasRunning(records_.dispatches.at(1), progress));
  EXPECT_TRUE(WasRunning(records_.dispatches.at(2), progress));
  EXPECT_FALSE(WasRunning(records_.dispatches.at(3), progress));
  EXPECT_THAT(
      DispositionsOf(records_, progress),
      ElementsAre(std::pair(1, TaskDisposition::kDone), std::pair(2, TaskDisposition::kLost),
                  std::pair(3, TaskDisposition::kAgain), std::pair(4, TaskDisposition::kAgain)));
}

TEST_F(RestoredDispositionsTest, TaskOfWhichWorkersDieIsNotRunForEver) {
  Add(1, kUseWrite | kUseFresh, 8, 1);
  const WorkerProgress progress = {{8, QueueProgress{.completed = 0, .started = 1}}};
  EXPECT_THAT(DispositionsOf(records_, progress),
              ElementsAre(std::pair(1, TaskDisposition::kAgain)));
  records_.dispatches.at(1).set_num_deaths(kMaxTaskAttempts - 1);
  EXPECT_THAT(DispositionsOf(records_, progress),
              ElementsAre(std::pair(1, TaskDisposition::kLost)));
}

}  // namespace
}  // namespace stride::engine
