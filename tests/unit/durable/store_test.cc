#include "server/durable/store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "tests/support/temporary_folder.h"

namespace stride::durable {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/stride-durable.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    store_.reset();
    stride::test_support::RemoveFolder(folder_);
  }

  std::string state() const { return folder_ + "/durable"; }
  std::string FileOf(uint64_t id) const { return state() + "/arrays/" + ContentFileName(id); }

  // Opens the store like another process, after this one's end.
  Rows Reopen(int64_t max_bytes = 1 << 30) {
    store_.reset();
    auto store = DurableStore::Open(
        {state(), max_bytes, [this](const std::string& line) { log_ += line + "\n"; }});
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    return store_->TakeRows();
  }

  static SteadyTime Soon() { return Now() + absl::Seconds(100); }

  // Writes an array's file and row; returns both ids.
  std::pair<uint64_t, uint64_t> Keep(const std::string& bytes, const std::string& record,
                                     uint64_t array = 0) {
    uint64_t content = store_->NewId();
    if (array == 0) array = store_->NewId();
    EXPECT_TRUE(store_->Reserve(static_cast<int64_t>(bytes.size())));
    auto writer = store_->Write(content);
    EXPECT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE((*writer)->Write(bytes).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    store_->Adopt(content, (*writer)->size());
    Change change;
    change.contents = {{content, (*writer)->size(), (*writer)->crc(), "cpu:0"}};
    change.arrays = {{array, content, record}};
    EXPECT_TRUE(store_->Await(store_->Queue(std::move(change)), Soon()));
    return {array, content};
  }

  absl::StatusOr<std::string> ReadAll(const ContentRow& row) {
    auto reader = store_->Read(row);
    if (!reader.ok()) return reader.status();
    std::string out;
    char buffer[1000];
    for (;;) {
      auto count = (*reader)->Read(buffer, sizeof(buffer));
      if (!count.ok()) return count.status();
      if (*count == 0) return out;
      out.append(buffer, *count);
    }
  }

  int NumFiles() const {
    return static_cast<int>(std::distance(fs::directory_iterator(state() + "/arrays"), {}));
  }

  std::string folder_, log_;
  std::unique_ptr<DurableStore> store_;
};

std::string SomeBytes(size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::string bytes(size, 0);
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST_F(StoreTest, ArraysAreRestored) {
  EXPECT_THAT(Reopen().arrays, IsEmpty());
  auto [one, content] = Keep(SomeBytes(100000), "record one");
  auto [empty, nothing] = Keep("", "record two");
  Rows rows = Reopen();
  ASSERT_EQ(rows.arrays.size(), 2u);
  EXPECT_EQ(rows.arrays[one].record, "record one");
  EXPECT_EQ(rows.arrays[one].content, content);
  EXPECT_EQ(rows.contents[content].device, "cpu:0");
  EXPECT_EQ(ReadAll(rows.contents[content]).value(), SomeBytes(100000));
  EXPECT_EQ(rows.arrays[empty].record, "record two");
  EXPECT_EQ(ReadAll(rows.contents[nothing]).value(), "");
  EXPECT_EQ(store_->used_bytes(), 100000);
  EXPECT_GT(store_->NewId(), nothing);
}

TEST_F(StoreTest, JobsAreRestored) {
  Reopen();
  Change change;
  change.jobs = {{1, "first"}, {2, "second"}, {3, "third"}, {4, "fourth"}};
  store_->Queue(std::move(change));
  change = {};
  change.changed_kept_jobs = {1};
  change.cancelled_jobs = {2};
  change.ended_jobs = {{3, "how it ended"}};
  change.erased_jobs = {4};
  ASSERT_TRUE(store_->Await(store_->Queue(std::move(change)), Soon()));
  Rows rows = Reopen();
  ASSERT_EQ(rows.jobs.size(), 3u);
  EXPECT_EQ(rows.jobs[1].accepted, "first");
  EXPECT_TRUE(rows.jobs[1].changed_kept);
  EXPECT_FALSE(rows.jobs[1].cancel_requested);
  EXPECT_TRUE(rows.jobs[2].cancel_requested);
  EXPECT_EQ(rows.jobs[3].ended, "how it ended");
  EXPECT_EQ(rows.jobs[1].ended, "");
}

TEST_F(StoreTest, OlderVersionIsDeletedWithItsRow) {
  Reopen();
  auto [array, old_content] = Keep("old", "r");
  auto [same, new_content] = Keep("newer", "r", array);
  store_->Close();
  EXPECT_EQ(store_->used_bytes(), 5);
  EXPECT_FALSE(fs::exists(FileOf(old_content)));
  Rows rows = Reopen();
  EXPECT_EQ(rows.contents.size(), 1u);
  EXPECT_EQ(ReadAll(rows.contents[new_content]).value(), "newer");
}

TEST_F(StoreTest, BytesStayWhileReferenced) {
  Reopen();
  auto [array, content] = Keep("shared", "r");
  Change view;
  view.arrays = {{77, content, "view"}};
  store_->Queue(std::move(view));
  Change erased;
  erased.erased_arrays = {array};
  ASSERT_TRUE(store_->Await(store_->Queue(std::move(erased)), Soon()));
  EXPECT_TRUE(fs::exists(FileOf(content)));
  erased = {};
  erased.erased_arrays = {77};
  uint64_t number = store_->Queue(std::move(erased));
  ASSERT_TRUE(store_->Await(number, Soon()));
  store_->Close();
  EXPECT_FALSE(fs::exists(FileOf(content)));
  EXPECT_EQ(store_->used_bytes(), 0);
}

TEST_F(StoreTest, FilesArePrivate) {
  Reopen();
  auto [array, content] = Keep("secret", "tenants/../../etc/arrays/passwd");
  struct stat info;
  for (const std::string& path :
       {FileOf(content), state() + "/rows.db", state() + "/rows.db-wal", state() + "/lock"}) {
    ASSERT_EQ(stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << path;
  }
  for (const std::string& path : {state(), state() + "/arrays"}) {
    ASSERT_EQ(stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_mode & 0777, 0700u) << path;
  }
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(StoreTest, DamagedFilesAreDetected) {
  Reopen();
  std::vector<uint64_t> contents;
  for (int i = 0; i < 4; ++i) contents.push_back(Keep(SomeBytes(5000), "r").second);
  store_.reset();
  fs::resize_file(FileOf(contents[0]), 4999);  // torn write
  fs::resize_file(FileOf(contents[1]), 5001);
  fs::remove(FileOf(contents[2]));
  {
    std::fstream file(FileOf(contents[3]), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(2500);
    char byte = static_cast<char>(file.get());
    file.seekp(2500);
    file.put(static_cast<char>(byte ^ 1));
  }
  Rows rows = Reopen();
  const char* expected[] = {"too short", "not what was written", "gone", "checksum"};
  for (int i = 0; i < 4; ++i) {
    absl::Status status = ReadAll(rows.contents[contents[i]]).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(expected[i]));
  }
}

TEST_F(StoreTest, FilesWithoutARowAreDeleted) {
  Reopen();
  auto [array, content] = Keep("kept", "r");
  {  // named, but the process ended before its row was written
    auto writer = store_->Write(999999);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Write("orphan").ok());
    ASSERT_TRUE((*writer)->Finish().ok());
  }
  // The same before the file was named.
  std::ofstream(FileOf(999998) + ".tmp") << "half";
  EXPECT_EQ(NumFiles(), 3);
  Rows rows = Reopen();
  EXPECT_EQ(NumFiles(), 1);
  EXPECT_EQ(ReadAll(rows.contents[content]).value(), "kept");
  EXPECT_THAT(log_, HasSubstr("removed 2 files"));
  EXPECT_EQ(store_->used_bytes(), 4);
}

// A user who could plant a link there would have every file at its target removed.
TEST_F(StoreTest, LinksAreNotFollowed) {
  const std::string elsewhere = folder_ + "/elsewhere";
  fs::create_directory(elsewhere);
  std::ofstream(elsewhere + "/0000000000000001.content") << "precious";
  std::ofstream(elsewhere + "/rows.db") << "";
  const auto open = [&] { return DurableStore::Open({.folder = state()}).status(); };
  fs::create_directory_symlink(elsewhere, state());
  EXPECT_EQ(open().code(), absl::StatusCode::kFailedPrecondition);
  fs::remove(state());
  fs::create_directory(state());
  fs::create_directory_symlink(elsewhere, state() + "/arrays");
  EXPECT_EQ(open().code(), absl::StatusCode::kFailedPrecondition);
  fs::remove(state() + "/arrays");
  for (const char* name : {"rows.db", "lock"}) {
    fs::remove(state() + "/" + name);
    fs::create_symlink(elsewhere + "/rows.db", state() + "/" + name);
    EXPECT_EQ(open().code(), absl::StatusCode::kFailedPrecondition) << name;
    fs::remove(state() + "/" + name);
  }
  EXPECT_TRUE(fs::exists(elsewhere + "/0000000000000001.content"));
  EXPECT_EQ(fs::file_size(elsewhere + "/rows.db"), 0u);
  EXPECT_TRUE(open().ok()) << open();
}

TEST_F(StoreTest, ForeignFilesStay) {
  Reopen();
  for (const char* name : {"notes.txt", "1.content", "zzzzzzzzzzzzzzzz.content", "x.content.tmp"})
    std::ofstream(state() + "/arrays/" + name) << "somebody's";
  std::ofstream(FileOf(77)) << "an orphan";
  Reopen();
  EXPECT_EQ(NumFiles(), 4);
}

TEST_F(StoreTest, DroppedWriterLeavesNoFile) {
  Reopen();
  {
    auto writer = store_->Write(5);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Write("half").ok());
  }
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(StoreTest, DamagedDatabaseIsSetAside) {
  Reopen();
  for (int i = 0; i < 200; ++i) {
    Change change;
    change.jobs = {{store_->NewId(), SomeBytes(3000)}};
    store_->Queue(std::move(change));
  }
  auto [array, content] = Keep("bytes", "r");
  store_.reset();
  for (int kind = 0; kind < 2; ++kind) {
    std::string path = state() + "/rows.db";
    if (kind == 0) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(5000);
      file << std::string(20000, 'x');
    } else {
      std::ofstream(path, std::ios::binary)
          << "this is no database, and longer than a header is: " << std::string(200, 'y');
    }
    log_.clear();
    Rows rows = Reopen();
    EXPECT_THAT(rows.arrays, IsEmpty());
    EXPECT_THAT(rows.jobs, IsEmpty());
    EXPECT_THAT(log_, HasSubstr("set aside")) << kind;
    if (kind == 0) {
      bool found = false;
      for (const auto& entry : fs::recursive_directory_iterator(state()))
        found = found || entry.path().filename() == ContentFileName(content);
      EXPECT_TRUE(found);
      absl::SleepFor(absl::Seconds(1));  // the next one gets another name
    }
    // The store works.
    auto kept = Keep("again", "r2");
    EXPECT_EQ(Reopen().arrays[kept.first].record, "r2");
    store_.reset();
  }
}

TEST_F(StoreTest, DamagedRowIsDroppedAlone) {
  Reopen();
  Change change;
  change.jobs = {{1, std::string(300, 'a')}, {2, std::string(300, 'b')}};
  ASSERT_TRUE(store_->Await(store_->Queue(std::move(change)), Soon()));
  store_.reset();
  std::string path = state() + "/rows.db", bytes;
  {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  size_t at = bytes.find(std::string(300, 'b'));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 100] = 'x';
  std::ofstream(path, std::ios::binary) << bytes;
  Rows rows = Reopen();
  ASSERT_EQ(rows.jobs.size(), 1u);
  EXPECT_EQ(rows.jobs[1].accepted, std::string(300, 'a'));
  EXPECT_THAT(log_, HasSubstr("the row of job 2"));
}

TEST_F(StoreTest, SizeIsBounded) {
  Reopen(10);
  EXPECT_TRUE(store_->Reserve(6));
  EXPECT_FALSE(store_->Reserve(5));
  EXPECT_TRUE(store_->Reserve(5, 6));  // replaces the first
  store_->Release(11);
  EXPECT_EQ(store_->used_bytes(), 0);
}

TEST_F(StoreTest, SecondProcessIsRefused) {
  Reopen();
  auto second = DurableStore::Open({state(), 100, [](const std::string&) {}});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition) << second.status();
}

TEST_F(StoreTest, DatabaseThatCrashesReadersIsSetAside) {
  Reopen();
  Change change;
  change.jobs = {{1, "poison"}};
  change.restored = true;
  ASSERT_TRUE(store_->Await(store_->Queue(std::move(change)), Soon()));
  for (int i = 0; i < 10; ++i) ASSERT_EQ(Reopen().jobs.size(), 1u) << i;
  EXPECT_EQ(Reopen().jobs.size(), 0u);
  EXPECT_THAT(log_, HasSubstr("no daemon survived"));
}

// A full disk: the database may grow no further.
TEST_F(StoreTest, FailedWriteIsReportedAndRetried) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a small file system of its own";
  std::string disk = folder_ + "/disk";
  fs::create_directory(disk);
  if (system(absl::StrCat("mount -t tmpfs -o size=1m none ", disk, " 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "may not mount";
  auto store = DurableStore::Open(
      {disk + "/durable", 1 << 30, [this](const std::string& line) { log_ += line + "\n"; }});
  ASSERT_TRUE(store.ok()) << store.status();
  Change change;
  change.jobs = {{1, std::string(2 << 20, 'a')}};
  EXPECT_FALSE((*store)->Await((*store)->Queue(std::move(change)), Soon()));
  auto writer = (*store)->Write(7);
  ASSERT_TRUE(writer.ok());
  EXPECT_FALSE((*writer)->Write(std::string(2 << 20, 'b')).ok());
  ASSERT_EQ(system(absl::StrCat("mount -o remount,size=64m ", disk).c_str()), 0);
  uint64_t last = (*store)->last();
  SteadyTime give_up = Soon();
  while (!(*store)->Await(last, give_up) && Now() < give_up) absl::SleepFor(absl::Milliseconds(50));
  EXPECT_TRUE((*store)->Await(last, Soon()));
  store->reset();
  writer->reset();
  EXPECT_THAT(log_, HasSubstr("cannot be written"));
  EXPECT_THAT(log_, HasSubstr("written to disk again"));
  auto again = DurableStore::Open({disk + "/durable", 1 << 30, [](const std::string&) {}});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->TakeRows().jobs[1].accepted.size(), size_t{2 << 20});
  again->reset();
  EXPECT_EQ(system(absl::StrCat("umount ", disk).c_str()), 0);
}

}  // namespace
}  // namespace stride::durable
