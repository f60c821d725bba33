// The journal as a sink: what one transaction changes becomes records at its end.
#include "server/engine/persistence/journal_writer.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/core/core.h"
#include "server/engine/core/task.h"
#include "server/engine/persistence/record_set.h"
#include "server/engine/persistence/state_codec.h"
#include "server/engine/scheduling/hazards.h"
#include "tests/support/fake_broker.h"
#include "tests/support/memory_fd_store.h"

namespace stride::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::SizeIs;

const TenantId kTenant{"t"};

class JournalWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    core_.catalogue.add_observer(&journal_writer_);
    auto journals = recovery::Journals::Create(&fd_store_);
    ASSERT_TRUE(journals.ok()) << journals.status();
    journal_writer_.Start(&fd_store_, *std::move(journals), 100);
    GlobalTransaction transaction(core_);
    journal_writer_.Complete(transaction);
  }
  void TearDown() override { core_.Stop(); }

  // As the next daemon finds them now.
  RecordSet Records() {
    auto files = fd_store_.Copy();
    auto journals = recovery::Journals::Open(&fd_store_, &files);
    EXPECT_TRUE(journals.ok()) << journals.status();
    if (!journals.ok()) return {};
    auto records = RecordSet::FromJournals(**journals);
    EXPECT_TRUE(records.ok()) << records.status();
    return records.ok() ? *std::move(records) : RecordSet();
  }
  std::shared_ptr<store::Buffer> NewBuffer() {
    return std::make_shared<store::Buffer>(kTenant, 8, core_.reclaimer);
  }
  std::shared_ptr<session::Array> NewArray() {
    auto array = std::make_shared<session::Array>();
    array->info = Contiguous(DType::kUInt8, {8});
    array->buffer = NewBuffer();
    return array;
  }
  absl::Status Add(GlobalTransaction& transaction, const std::shared_ptr<session::Array>& array,
                   const std::string& id = "a") {
    return core_.catalogue.AddArray(transaction, kTenant, {.tenant = "t", .id = id}, array,
                                    core_.Now());
  }
  std::shared_ptr<Task> NewTask(Uses uses) {
    auto task = std::make_shared<Task>();
    task->id = ++last_task_;
    task->tenant = kTenant;
    task->uses = std::move(uses);
    return task;
  }

  testing::FakeBroker broker_{{testing::HostDevice(0)}};
  testing::MemoryFdStore fd_store_;
  Core core_{EngineOptions(), &broker_};
  JournalWriter journal_writer_{&core_};
  uint64_t last_task_ = 0;
};

TEST_F(JournalWriterTest, TransactionIsOneBatch) {
  auto array = NewArray();
  {
    GlobalTransaction transaction(core_);
    ASSERT_TRUE(Add(transaction, array).ok());
    array->buffer->inline_bytes = std::make_shared<const std::string>("contents");
    EXPECT_THAT(Records().arrays, IsEmpty()) << "before the transaction ends";
  }
  RecordSet records = Records();
  ASSERT_THAT(records.arrays, ElementsAre(Key(array->record)));
  ASSERT_THAT(records.buffers, ElementsAre(Key(array->buffer->record)));
  EXPECT_GT(array->record, 100u) << "ids of the earlier daemon are not used again";
  EXPECT_EQ(records.arrays.at(array->record).buffer(), array->buffer->record);
  EXPECT_EQ(records.inline_bytes.at(array->buffer->record), "contents");
}

TEST_F(JournalWriterTest, RemovedThingsLeaveNoRecord) {
  auto array = NewArray();
  std::shared_ptr<session::Session> session;
  {
    GlobalTransaction transaction(core_);
    ASSERT_TRUE(Add(transaction, array).ok());
    auto made =
        core_.catalogue.CreateSession(transaction, kTenant, "s", absl::Hours(1), core_.Now(), 10);
    ASSERT_TRUE(made.ok()) << made.status();
    session = *made;
  }
  EXPECT_THAT(Records().sessions, ElementsAre(Key(session->record)));
  {
    GlobalTransaction transaction(core_);
    core_.catalogue.DeleteSession(transaction, kTenant, "s");
    ASSERT_TRUE(
        core_.catalogue.RemoveArray(transaction, kTenant, {.tenant = "t", .id = "a"}, core_.Now())
            .ok());
  }
  EXPECT_THAT(Records().sessions, IsEmpty());
  EXPECT_THAT(Records().arrays, IsEmpty());
  EXPECT_THAT(Records().buffers, SizeIs(1)) << "an operation may still use it";
  array.reset();
  { TenantTransaction transaction(core_, kTenant); }
  EXPECT_THAT(Records().buffers, IsEmpty());
}

// A buffer that no array has belongs to a call, which ends with the daemon.
TEST_F(JournalWriterTest, TaskIsRecordedWithWhatARecordedBufferNeeds) {
  auto array = NewArray();
  auto input = NewBuffer();
  {
    GlobalTransaction transaction(core_);
    ASSERT_TRUE(Add(transaction, array).ok());
  }
  auto of_call = NewTask({{.buffer = NewBuffer(), .write = true, .fresh = true}});
  auto makes = NewTask({{.buffer = input, .read = true}, {.buffer = array->buffer, .write = true}});
  {
    TenantTransaction transaction(core_, kTenant);
    journal_writer_.Accepted(transaction, of_call);
    journal_writer_.Accepted(transaction, makes);
  }
  RecordSet records = Records();
  EXPECT_THAT(records.tasks, ElementsAre(Key(makes->id)));
  EXPECT_THAT(records.buffers, SizeIs(2));
  EXPECT_NE(input->record, 0u);
  EXPECT_THAT(records.dispatches, IsEmpty());
}

TEST_F(JournalWriterTest, DispatchAndEndOfATask) {
  auto array = NewArray();
  auto task = NewTask({{.buffer = array->buffer, .write = true, .fresh = true}});
  task->options.of_job = true;
  {
    GlobalTransaction transaction(core_);
    ASSERT_TRUE(Add(transaction, array).ok());
    journal_writer_.Accepted(transaction, task);
  }
  auto change = [&](TaskState state) {
    TenantTransaction transaction(core_, kTenant);
    task->state = state;
    journal_writer_.Changed(transaction, *task);
  };
  task->sent.first_sequence = task->sent.last_sequence = 5;
  change(TaskState::kDispatched);
  EXPECT_EQ(Records().dispatches.at(task->id).last_sequence(), 5u);
  change(TaskState::kWaiting);  // taken back
  EXPECT_THAT(Records().dispatches, IsEmpty());
  task->sent.first_sequence = task->sent.last_sequence = 6;
  change(TaskState::kDispatched);
  EXPECT_EQ(Records().dispatches.at(task->id).last_sequence(), 6u);
  task->result = absl::AbortedError("it failed");
  change(TaskState::kDone);
  RecordSet records = Records();
  EXPECT_THAT(records.tasks, IsEmpty());
  EXPECT_THAT(records.dispatches, IsEmpty());
  EXPECT_EQ(records.results.at(task->id).status().message(), "it failed");
}

TEST_F(JournalWriterTest, NothingIsRecordedAfterStop) {
  {
    GlobalTransaction transaction(core_);
    journal_writer_.Stop(transaction);
    ASSERT_TRUE(Add(transaction, NewArray()).ok());
  }
  EXPECT_FALSE(journal_writer_.on());
  EXPECT_THAT(Records().arrays, IsEmpty());
}

}  // namespace
}  // namespace stride::engine
