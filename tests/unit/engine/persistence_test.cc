// The two sinks of an engine's state, journal and disk, and the one way to restore from either.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/durable/store.h"
#include "server/engine/engine.h"
#include "server/engine/persistence/record_set.h"
#include "server/engine/service/array_service.h"
#include "server/engine/service/device_service.h"
#include "server/engine/service/function_service.h"
#include "server/engine/service/program_service.h"
#include "server/recovery/journals.h"
#include "server/recovery/key.h"
#include "server/recovery/records.pb.h"
#include "tests/support/await.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"
#include "tests/support/memory_fd_store.h"
#include "tests/support/temporary_folder.h"

namespace stride::engine {
namespace {

using ::stride::testing::FakeBroker;
using ::stride::testing::HostDevice;
using ::stride::testing::MemoryFdStore;
using ::testing::Contains;
using ::testing::HasSubstr;

const TenantId kTenant{"t"};
constexpr absl::Duration kPatience = absl::Seconds(100);

class PersistenceTest : public ::testing::Test {
 protected:
  void Start(MemoryFdStore* fd_store, bool disk = true) {
    broker_ = std::make_unique<FakeBroker>(std::vector<wire::DeviceDescription>{HostDevice(0)});
    if (disk) {
      auto store =
          durable::DurableStore::Open({.folder = folder_.Path("durable"), .max_bytes = 1 << 20});
      ASSERT_TRUE(store.ok()) << store.status();
      store_ = *std::move(store);
    }
    EngineOptions options;
    options.health.interval = absl::Hours(1);
    options.log = [this](const std::string& line) { log_.push_back(line); };
    engine_ = Engine::Create(std::move(options), broker_.get(), fd_store,
                             fd_store != nullptr ? fd_store->TakeAll() : std::vector<NamedFd>(),
                             store_.get());
    engine_->devices().AwaitHealth(Now() + kPatience);
  }
  // Nothing later reaches the journal or the disk, as if the daemon had been killed.
  void Die() {
    if (engine_ == nullptr) return;
    engine_->StopRecording();
    EXPECT_TRUE(EndEngine(*broker_, *engine_));
    engine_.reset();
    store_.reset();
  }
  void TearDown() override { Die(); }

  static std::string NameOf(const std::string& collection, const std::string& id) {
    return absl::StrCat("tenants/", kTenant.value, "/", collection, "/", id);
  }
  void Put(const std::string& id, const std::string& bytes) {
    v1::PutArrayRequest::Header header;
    header.set_parent("tenants/t");
    header.set_array_id(id);
    header.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
    header.mutable_spec()->add_shape(static_cast<int64_t>(bytes.size()));
    auto upload = engine_->arrays().BeginUpload(kTenant, header, Now() + kPatience);
    ASSERT_TRUE(upload.ok()) << upload.status();
    ASSERT_TRUE((*upload)->Write(bytes).ok());
    ASSERT_TRUE((*upload)->Finish().ok());
  }
  absl::StatusOr<std::string> Fetch(const std::string& id) {
    v1::FetchArrayRequest request;
    request.set_name(NameOf("arrays", id));
    auto download = engine_->arrays().BeginDownload(kTenant, request, Now() + kPatience);
    if (!download.ok()) return download.status();
    std::string bytes;
    for (;;) {
      auto chunk = (*download)->Next(1000);
      if (!chunk.ok()) return chunk.status();
      if (chunk->bytes.empty()) return bytes;
      bytes.append(chunk->bytes);
    }
  }
  void Define() {
    v1::CreateFunctionRequest function;
    function.set_function_id("f");
    auto* ufunc = function.mutable_function()->mutable_ufunc();
    ufunc->add_signatures("float32->float32");
    ufunc->mutable_body()->mutable_expression()->set_text("a + a");
    ufunc->mutable_body()->mutable_expression()->add_parameters("a");
    auto made = engine_->functions().Create(kTenant, function, Now() + kPatience);
    ASSERT_TRUE(made.ok()) << made.status();
    v1::CreateProgramRequest program;
    program.set_program_id("p");
    program.mutable_program()->add_inputs()->set_handle(1);
    v1::Operation* copy = program.mutable_program()->add_operations();
    copy->mutable_copy()->mutable_input()->set_handle(1);
    copy->add_outputs()->set_handle(2);
    program.mutable_program()->add_outputs(2);
    auto created = engine_->programs().Create(kTenant, program);
    ASSERT_TRUE(created.ok()) << created.status();
  }
  // Waits until the array's content is on disk.
  void Flush() { ASSERT_TRUE(engine_->Drain(Now() + kPatience)); }
  // Whether the journals note which file has the present content of the one buffer.
  static bool IsKept(MemoryFdStore& fd_store) {
    auto files = fd_store.Copy();
    auto journals = recovery::Journals::Open(&fd_store, &files);
    if (!journals.ok()) return false;
    auto records = RecordSet::FromJournals(**journals);
    return records.ok() && records->buffers.size() == 1 &&
           records->buffers.begin()->second.kept() != 0;
  }
  void ExpectEverything() {
    auto bytes = Fetch("a");
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, "the bytes of a");
    EXPECT_TRUE(engine_->functions().Get(kTenant, NameOf("functions", "f")).ok());
    EXPECT_TRUE(engine_->programs().Get(kTenant, NameOf("programs", "p")).ok());
  }

  test_support::TemporaryFolder folder_;
  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<durable::DurableStore> store_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::string> log_;
};

// Whichever sink the state comes from, the next daemon restores it from either again.
TEST_F(PersistenceTest, JournalAndDiskRestoreTheSame) {
  MemoryFdStore first;
  Start(&first);
  Put("a", "the bytes of a");
  Define();
  Flush();
  Die();
  Start(&first);  // from the journals
  EXPECT_THAT(log_, Contains(HasSubstr("recovered: 0 sessions, 1 arrays")));
  ExpectEverything();
  Die();
  MemoryFdStore second;
  Start(&second);  // from the disk, into new journals
  EXPECT_THAT(log_, Contains(HasSubstr("found on disk: 1 arrays")));
  ExpectEverything();
  Die();
  log_.clear();
  Start(&second);  // from those
  EXPECT_THAT(log_, Contains(HasSubstr("recovered: 0 sessions, 1 arrays")));
  ExpectEverything();
  Die();
  Start(nullptr);  // from the disk, without journals
  ExpectEverything();
}

// Without the disk, its rows mean nothing to a journal that had them.
TEST_F(PersistenceTest, JournalWithoutItsDiskKeepsEverything) {
  MemoryFdStore fd_store;
  Start(&fd_store);
  Put("a", "the bytes of a");
  Define();
  Flush();
  Die();
  Start(&fd_store, /*disk=*/false);
  ExpectEverything();
}

// A device went with the daemon, and the arrays' memory with it. The disk has a current version.
TEST_F(PersistenceTest, ArrayWhoseMemoryIsGoneIsReadFromDisk) {
  MemoryFdStore fd_store;
  Start(&fd_store);
  Put("a", "the bytes of a");
  Define();
  Flush();
  AWAIT(IsKept(fd_store));
  Die();
  for (const auto& [name, fd] : fd_store.Copy()) {
    if (absl::StartsWith(name, "arena-")) fd_store.Remove(name);
  }
  Start(&fd_store);
  EXPECT_THAT(log_, Contains(HasSubstr("recovered: 0 sessions, 1 arrays")));
  ExpectEverything();
  Die();
  for (const auto& [name, fd] : fd_store.Copy()) {
    if (absl::StartsWith(name, "arena-")) fd_store.Remove(name);
  }
  Start(&fd_store, /*disk=*/false);
  EXPECT_TRUE(absl::IsDataLoss(Fetch("a").status())) << Fetch("a").status();
}

TEST_F(PersistenceTest, DeletionsReachBothSinks) {
  MemoryFdStore fd_store;
  Start(&fd_store);
  Put("a", "the bytes of a");
  Define();
  Flush();
  ASSERT_TRUE(engine_->arrays().Delete(kTenant, NameOf("arrays", "a")).ok());
  ASSERT_TRUE(engine_->functions().Delete(kTenant, NameOf("functions", "f")).ok());
  ASSERT_TRUE(engine_->programs().Delete(kTenant, NameOf("programs", "p")).ok());
  Die();
  for (MemoryFdStore* source : {&fd_store, static_cast<MemoryFdStore*>(nullptr)}) {
    Start(source);
    EXPECT_TRUE(absl::IsNotFound(Fetch("a").status()));
    EXPECT_FALSE(engine_->functions().Get(kTenant, NameOf("functions", "f")).ok());
    EXPECT_FALSE(engine_->programs().Get(kTenant, NameOf("programs", "p")).ok());
    Die();
  }
}

// A daemon that died while it read the disk leaves journals with a part of it.
TEST_F(PersistenceTest, IncompleteJournalsAreIgnored) {
  Start(nullptr);
  Put("a", "the bytes of a");
  Define();
  Flush();
  Die();
  MemoryFdStore fd_store;
  auto journals = recovery::Journals::Create(&fd_store);
  ASSERT_TRUE(journals.ok()) << journals.status();
  recovery::SessionRecord session;
  session.set_tenant("t");
  session.set_id("s");
  (*journals)->of(0).Set(recovery::Key(recovery::Kind::kSession, 1), session.SerializeAsString());
  ASSERT_TRUE((*journals)->of(0).Commit().ok());
  Start(&fd_store);
  EXPECT_THAT(log_, Contains(HasSubstr("found on disk: 1 arrays")));
  ExpectEverything();
}

// One record in a damaged journal discards all journals. The disk has what it had.
TEST_F(PersistenceTest, DamagedJournalLeavesTheDisk) {
  MemoryFdStore fd_store;
  Start(&fd_store);
  Put("a", "the bytes of a");
  Define();
  Flush();
  Die();
  {
    auto files = fd_store.Copy();
    auto journals = recovery::Journals::Open(&fd_store, &files);
    ASSERT_TRUE(journals.ok()) << journals.status();
    (*journals)->of(5).Set(recovery::Key(recovery::Kind::kBuffer, 99), "\xff\xff\xff");
    ASSERT_TRUE((*journals)->of(5).Commit().ok());
  }
  Start(&fd_store);
  EXPECT_THAT(log_, Contains(HasSubstr("ALL ARRAYS AND JOBS THAT ARE NOT ON DISK ARE LOST")));
  ExpectEverything();
}

// A damaged row costs its array and nothing else, and goes.
TEST_F(PersistenceTest, DamagedRowsAreGivenUp) {
  Start(nullptr);
  Put("a", "the bytes of a");
  Define();
  Flush();
  Die();
  {
    auto store =
        *durable::DurableStore::Open({.folder = folder_.Path("durable"), .max_bytes = 1 << 20});
    durable::Change change;
    change.arrays.push_back({store->NewId(), 0, "\xff\xff\xff"});
    change.definitions.push_back(
        {store->NewId(), durable::DefinitionRow::kProgram, "\xff\xff\xff"});
    ASSERT_TRUE(store->Await(store->Queue(std::move(change)), Now() + kPatience));
  }
  for (const size_t damaged : {2, 0}) {
    log_.clear();
    Start(nullptr);
    size_t lines = 0;
    for (const std::string& line : log_) lines += line.find("given up") != std::string::npos;
    EXPECT_EQ(lines, damaged);
    ExpectEverything();
    Flush();
    Die();
  }
}

}  // namespace
}  // namespace stride::engine
