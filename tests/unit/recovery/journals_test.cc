#include "server/recovery/journals.h"

#include <unistd.h>

#include <map>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/recovery/key.h"
#include "tests/support/memory_fd_store.h"

namespace stride::recovery {
namespace {

using ::testing::HasSubstr;
using Records = std::map<uint64_t, std::string>;

class JournalsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Journals> Create() {
    auto journals = Journals::Create(&fd_store_);
    EXPECT_TRUE(journals.ok()) << journals.status();
    EXPECT_TRUE((*journals)->Complete().ok());
    return *std::move(journals);
  }
  absl::StatusOr<std::unique_ptr<Journals>> Open() {
    auto files = fd_store_.Copy();
    return Journals::Open(&fd_store_, &files);
  }
  static Records Content(const Journals& journals) {
    Records content;
    journals.ForEach(
        [&](uint64_t key, std::string_view bytes) { content[key] = std::string(bytes); });
    return content;
  }

  testing::MemoryFdStore fd_store_;
};

TEST_F(JournalsTest, ReadsAllThatWasCommittedInAny) {
  {
    auto journals = Create();
    journals->common().Set(1, "everybody's");
    ASSERT_TRUE(journals->common().Commit().ok());
    for (int partition = 0; partition < kNumTenantPartitions; ++partition) {
      journals->of(partition).Set(static_cast<uint64_t>(100 + partition), "a stripe's");
      if (partition != 5) {
        ASSERT_TRUE(journals->of(partition).Commit().ok());
      }
    }
    journals->Erase(163);
    ASSERT_TRUE(journals->of(63).Commit().ok());
  }
  auto journals = Open();
  ASSERT_TRUE(journals.ok()) << journals.status();
  Records expected = {{1, "everybody's"}};
  for (uint64_t partition = 0; partition < 63; ++partition) {
    if (partition != 5) expected[100 + partition] = "a stripe's";
  }
  EXPECT_EQ(Content(**journals), expected);
}

TEST_F(JournalsTest, OneThatIsMissingOrDamagedIsNoticed) {
  Create();
  for (int file = 0; file < 2; ++file) fd_store_.Remove(Journal::FileName("journal-s17", file));
  auto journals = Open();
  EXPECT_EQ(journals.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(journals.status().message()), HasSubstr("journal-s17"));

  Create();
  auto files = fd_store_.Copy();
  const std::string garbage(8, 'x');
  const UniqueFd& damaged = files.at(Journal::FileName("journal-s40", 0));
  ASSERT_EQ(pwrite(damaged.get(), garbage.data(), garbage.size(), 0), 8);
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(JournalsTest, NoneIsNotAnError) {
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kNotFound);
  auto journals = Create();
  journals->LetGo();
  EXPECT_TRUE(fd_store_.Copy().empty());
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kNotFound);
}

// A later version may deal tenants out otherwise.
TEST_F(JournalsTest, AnotherNumberOfStripesIsNotRead) {
  auto journals = Create();
  journals->common().Set(Key(Kind::kStripes, kNumTenantPartitions * 2), "");
  ASSERT_TRUE(journals->common().Commit().ok());
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss);
}

// A process that died while it created them.
TEST_F(JournalsTest, OpenAfterPartOfCreate_ReturnsNotFound) {
  ASSERT_TRUE(Journal::Create(&fd_store_, "journal").ok());
  ASSERT_TRUE(Journal::Create(&fd_store_, "journal-s0").ok());
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kNotFound);
  Create();
  EXPECT_TRUE(Open().ok());
}

// A process that died while it read the state on disk: the disk still has everything.
TEST_F(JournalsTest, OpenBeforeComplete_ReturnsNotFound) {
  auto journals = *Journals::Create(&fd_store_);
  journals->of(3).Set(1, "a record");
  ASSERT_TRUE(journals->of(3).Commit().ok());
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(journals->Complete().ok());
  auto opened = Open();
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(Content(**opened), (Records{{1, "a record"}}));
}

}  // namespace
}  // namespace stride::recovery
