#include "server/recovery/journal.h"

#include <unistd.h>

#include <cstring>
#include <map>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/crc32c.h"
#include "tests/support/memory_fd_store.h"

namespace stride::recovery {
namespace {

using Records = std::map<uint64_t, std::string>;

Records Content(const Journal& journal) {
  Records content;
  journal.ForEach([&](uint64_t key, std::string_view bytes) { content[key] = std::string(bytes); });
  return content;
}

constexpr char kName[] = "books";

class JournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<Journal> Create() {
    auto journal = Journal::Create(&fd_store_, kName);
    EXPECT_TRUE(journal.ok()) << journal.status();
    return *std::move(journal);
  }
  absl::StatusOr<std::unique_ptr<Journal>> Open() {
    auto files = fd_store_.Copy();
    return Journal::Open(&fd_store_, kName, std::move(files.at(Journal::FileName(kName, 0))),
                         std::move(files.at(Journal::FileName(kName, 1))));
  }
  Records Reopened() {
    auto journal = Open();
    EXPECT_TRUE(journal.ok()) << journal.status();
    return journal.ok() ? Content(**journal) : Records{};
  }
  // The journal file, mapped by the test.
  int fd(int index) {
    auto files = fd_store_.Copy();
    return lent_.emplace_back(std::move(files.at(Journal::FileName(kName, index)))).get();
  }

  testing::MemoryFdStore fd_store_;
  std::vector<UniqueFd> lent_;
};

TEST(Crc32cTest, KnownValues) {
  EXPECT_EQ(Crc32c("123456789", 9), 0xe3069283u);
  std::string zeros(32, '\0');
  EXPECT_EQ(Crc32c(zeros.data(), zeros.size()), 0x8a9136aau);
  std::string text = "a text of some length, in two parts";
  EXPECT_EQ(Crc32c(text.data(), text.size()),
            Crc32c(text.data() + 11, text.size() - 11, Crc32c(text.data(), 11)));
}

TEST_F(JournalTest, CommittedRecordsAreRead) {
  auto journal = Create();
  journal->Set(1, "one");
  journal->Set(2, "");
  journal->Set(3, "three three");
  ASSERT_TRUE(journal->Commit().ok());
  journal->Set(1, "uno");
  journal->Erase(3);
  journal->Erase(99);
  ASSERT_TRUE(journal->Commit().ok());
  EXPECT_EQ(Reopened(), (Records{{1, "uno"}, {2, ""}}));
}

TEST_F(JournalTest, UnfinishedBatchIsNotRead) {
  auto journal = Create();
  journal->Set(1, "one");
  ASSERT_TRUE(journal->Commit().ok());
  journal->Set(1, "two");
  journal->Set(2, "two");
  EXPECT_EQ(Reopened(), (Records{{1, "one"}}));
}

TEST_F(JournalTest, SuccessorContinuesTheJournal) {
  Create()->Set(1, "never committed");
  {
    auto journal = Open();
    ASSERT_TRUE(journal.ok());
    (*journal)->Set(1, "a");
    ASSERT_TRUE((*journal)->Commit().ok());
  }
  auto journal = Open();
  ASSERT_TRUE(journal.ok());
  EXPECT_EQ((*journal)->CountAttempt(), 1u);
  (*journal)->Set(2, "b");
  ASSERT_TRUE((*journal)->Commit().ok());
  auto third = Open();
  EXPECT_EQ(Content(**third), (Records{{1, "a"}, {2, "b"}}));
  EXPECT_EQ((*third)->CountAttempt(), 2u);
}

// The end of the last batch is moved anywhere: only its true position is accepted.
TEST_F(JournalTest, EndWithinABatchIsDamage) {
  auto journal = Create();
  journal->Set(1, "first");
  ASSERT_TRUE(journal->Commit().ok());
  constexpr off_t kCommitted = 24;
  uint64_t begin = 0, end = 0;
  pread(fd(0), &begin, 8, kCommitted);
  journal->Set(1, "second");
  journal->Set(2, "second");
  ASSERT_TRUE(journal->Commit().ok());
  pread(fd(0), &end, 8, kCommitted);
  ASSERT_GT(end, begin);
  for (uint64_t at = begin; at <= end + 8; ++at) {
    ASSERT_EQ(pwrite(fd(0), &at, 8, kCommitted), 8);
    auto reopened = Open();
    if (at == begin) {
      EXPECT_EQ(Content(**reopened), (Records{{1, "first"}}));
    } else if (at == end) {
      EXPECT_EQ(Content(**reopened), (Records{{1, "second"}, {2, "second"}}));
    } else {
      EXPECT_EQ(reopened.status().code(), absl::StatusCode::kDataLoss) << at;
    }
  }
}

TEST_F(JournalTest, EveryChangedByteIsDetected) {
  auto journal = Create();
  journal->Set(7, "some bytes");
  journal->Set(8, "and some more of them");
  ASSERT_TRUE(journal->Commit().ok());
  uint64_t end = 0;
  pread(fd(0), &end, 8, 24);
  for (uint64_t at = JournalFile::kFirstBatch; at < end; ++at) {
    if (at >= JournalFile::kFirstBatch + 12 && at < JournalFile::kFirstBatch + 16)
      continue;  // unused
    for (int bit = 0; bit < 8; ++bit) {
      unsigned char byte = 0;
      pread(fd(0), &byte, 1, static_cast<off_t>(at));
      byte ^= 1u << bit;
      pwrite(fd(0), &byte, 1, static_cast<off_t>(at));
      EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss) << at << " bit " << bit;
      byte ^= 1u << bit;
      pwrite(fd(0), &byte, 1, static_cast<off_t>(at));
    }
  }
  EXPECT_EQ(Reopened().size(), 2u);
}

TEST_F(JournalTest, TruncatedOrForeignFilesAreDamage) {
  auto journal = Create();
  journal->Set(1, std::string(100000, 'x'));
  ASSERT_TRUE(journal->Commit().ok());
  for (off_t size : {50000, 4097, 4096, 100, 0}) {
    ASSERT_EQ(ftruncate(fd(0), size), 0);
    EXPECT_FALSE(Open().ok()) << size;
  }
  UniqueFd pipe_ends[2];
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pipe_ends[0].Reset(ends[0]);
  pipe_ends[1].Reset(ends[1]);
  EXPECT_FALSE(
      Journal::Open(&fd_store_, kName, std::move(pipe_ends[0]), std::move(pipe_ends[1])).ok());
}

// The missing file may be the newer one; the other has an outdated state.
TEST_F(JournalTest, MissingFileIsDamage) {
  auto journal = Create();
  journal->Set(1, "one");
  ASSERT_TRUE(journal->Commit().ok());
  for (int missing = 0; missing < 2; ++missing) {
    auto files = fd_store_.Copy();
    files[Journal::FileName(kName, missing)] = UniqueFd();
    EXPECT_EQ(Journal::Open(&fd_store_, kName, std::move(files[Journal::FileName(kName, 0)]),
                            std::move(files[Journal::FileName(kName, 1)]))
                  .status()
                  .code(),
              absl::StatusCode::kDataLoss);
  }
}

// Long enough for many compactions and growths.
TEST_F(JournalTest, RandomChangesAreReadBack) {
  auto journal = Create();
  Records expected;
  std::mt19937 random(1);
  for (int round = 0; round < 6000; ++round) {
    for (uint32_t i = 0, n = random() % 8; i < n; ++i) {
      uint64_t key = random() % 300;
      if (random() % 3 == 0) {
        journal->Erase(key);
        expected.erase(key);
      } else {
        std::string bytes(random() % 4000, static_cast<char>('a' + random() % 26));
        journal->Set(key, bytes);
        expected[key] = bytes;
      }
    }
    ASSERT_TRUE(journal->Commit().ok());
    if (round % 500 == 0) {
      ASSERT_EQ(Reopened(), expected) << round;
    }
  }
  EXPECT_EQ(Reopened(), expected);
  EXPECT_GT(journal->generation(), 2u);
  EXPECT_EQ(journal->num_records(), expected.size());
}

// A file grows with its live records, and is returned some time later.
TEST_F(JournalTest, MemoryIsReturnedAfterPeakLoad) {
  auto journal = Create();
  auto bytes_of_files = [&] {
    off_t bytes = 0;
    for (int i = 0; i < 2; ++i) bytes += lseek(fd(i), 0, SEEK_END);
    return static_cast<uint64_t>(bytes);
  };
  auto work = [&](uint64_t records) {
    for (uint64_t key = 1; key <= records; ++key) {
      journal->Set(key, std::string(100'000, 'a'));
      ASSERT_TRUE(journal->Commit().ok());
    }
    for (uint64_t key = 1; key <= records; ++key) {
      if (key != 7) journal->Erase(key);
      ASSERT_TRUE(journal->Commit().ok());
    }
  };
  const uint64_t at_first = bytes_of_files();
  work(300);
  const uint64_t at_most = bytes_of_files();
  EXPECT_GT(at_most, 3 * at_first);
  // Not while such load may come again.
  journal->Trim();
  EXPECT_EQ(bytes_of_files(), at_most);
  for (int i = 0; i < 60; ++i) {
    journal->Trim();
    EXPECT_EQ(Reopened(), (Records{{7, std::string(100'000, 'a')}})) << i;
  }
  EXPECT_LT(bytes_of_files(), 2 * at_first);
  work(50);
  EXPECT_EQ(Reopened().size(), 1u);
}

// Runs of keys that come and go, like ids that are counted up, and some that stay.
TEST(RecordIndexTest, BehavesLikeAMap) {
  RecordIndex index;
  std::map<uint64_t, uint64_t> expected;
  std::mt19937_64 random(1);
  uint64_t next = 0;
  for (int i = 0; i < 200000; ++i) {
    const uint64_t kind = random() % 15;
    const bool recent = random() % 8 != 0;
    const uint64_t id = recent ? next - std::min<uint64_t>(next, random() % 400) : random() % 5000;
    const uint64_t key = kind << 56 | id;
    next += random() % 3 == 0 ? 1 : 0;
    if (random() % 2 == 0) {
      auto [place, is_new] = index.Insert(key);
      ASSERT_EQ(is_new, expected.count(key) == 0);
      place->offset = expected[key] = static_cast<uint64_t>(i);
    } else {
      index.Erase(key);
      expected.erase(key);
    }
    const RecordIndex::Place* found = index.Find(key);
    ASSERT_EQ(found != nullptr, expected.count(key) > 0);
    ASSERT_EQ(index.size(), expected.size());
  }
  std::map<uint64_t, uint64_t> all;
  index.ForEach([&](uint64_t key, const RecordIndex::Place& place) { all[key] = place.offset; });
  EXPECT_EQ(all, expected);
}

// A death during a compaction leaves the old file valid.
TEST_F(JournalTest, FileWithoutGenerationIsIgnored) {
  auto journal = Create();
  for (uint64_t generation = 1; journal->generation() == 1;) {
    journal->Set(5, std::string(100000, 'y'));
    ASSERT_TRUE(journal->Commit().ok());
    (void)generation;
  }
  Records expected = Reopened();
  EXPECT_EQ(expected.size(), 1u);
  // The newer file is invalid while it is written: only the older one counts.
  uint64_t none = 0;
  ASSERT_EQ(pwrite(fd(1), &none, 8, 16), 8);
  auto reopened = Open();
  ASSERT_TRUE(reopened.ok());
  EXPECT_EQ((*reopened)->generation(), 1u);
  EXPECT_EQ(Content(**reopened), expected);
}

}  // namespace
}  // namespace stride::recovery
