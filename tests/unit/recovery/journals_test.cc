#include "server/recovery/journals.h"

#include <unistd.h>

#include <map>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/recovery/key.h"
#include "tests/support/memory_keeper.h"

namespace stride::recovery {
namespace {

using ::testing::HasSubstr;
using Records = std::map<uint64_t, std::string>;

class JournalsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Journals> Create() {
    auto journals = Journals::Create(&keeper_);
    EXPECT_TRUE(journals.ok()) << journals.status();
    return *std::move(journals);
  }
  absl::StatusOr<std::unique_ptr<Journals>> Open() {
    auto files = keeper_.Copy();
    return Journals::Open(&keeper_, &files);
  }
  static Records Content(const Journals& journals) {
    Records content;
    journals.ForEach(
        [&](uint64_t key, std::string_view bytes) { content[key] = std::string(bytes); });
    return content;
  }

  testing::MemoryKeeper keeper_;
};

TEST_F(JournalsTest, ReadsRecordsOfAllJournals) {
  {
    auto journals = Create();
    journals->common().Set(1, "everybody's");
    ASSERT_TRUE(journals->common().Commit().ok());
    for (int stripe = 0; stripe < kNumStripes; ++stripe) {
      journals->of(stripe).Set(static_cast<uint64_t>(100 + stripe), "a stripe's");
      if (stripe != 5) {
        ASSERT_TRUE(journals->of(stripe).Commit().ok());
      }
    }
    journals->Erase(163);
    ASSERT_TRUE(journals->of(63).Commit().ok());
  }
  auto journals = Open();
  ASSERT_TRUE(journals.ok()) << journals.status();
  EXPECT_FALSE((*journals)->of_one());
  Records expected = {{1, "everybody's"}};
  for (uint64_t stripe = 0; stripe < 63; ++stripe) {
    if (stripe != 5) expected[100 + stripe] = "a stripe's";
  }
  EXPECT_EQ(Content(**journals), expected);
}

TEST_F(JournalsTest, MissingOrDamagedJournalIsDetected) {
  Create();
  for (int file = 0; file < 2; ++file) keeper_.Remove(Journal::FileName("journal-s17", file));
  auto journals = Open();
  EXPECT_EQ(journals.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(journals.status().message()), HasSubstr("journal-s17"));

  Create();
  auto files = keeper_.Copy();
  const std::string garbage(8, 'x');
  const UniqueFd& damaged = files.at(Journal::FileName("journal-s40", 0));
  ASSERT_EQ(pwrite(damaged.get(), garbage.data(), garbage.size(), 0), 8);
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(JournalsTest, NoJournalIsNoError) {
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kNotFound);
  auto journals = Create();
  journals->LetGo();
  EXPECT_TRUE(keeper_.Copy().empty());
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kNotFound);
}

// A later version may distribute tenants differently.
TEST_F(JournalsTest, OtherNumberOfStripesIsRefused) {
  auto journals = Create();
  journals->common().Set(Key(Kind::kStripes, kNumStripes * 2), "");
  ASSERT_TRUE(journals->common().Commit().ok());
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss);
}

// The state of an earlier version's daemon, in its only journal.
TEST_F(JournalsTest, SingleJournalOfEarlierVersionIsDistributed) {
  Records expected;
  {
    auto one = *Journal::Create(&keeper_, "journal");
    for (uint64_t key = 1; key <= 200; ++key) {
      const std::string bytes(key * 7, static_cast<char>(key));
      one->Set(key, bytes);
      if (key % 10 != 0) expected[key] = bytes;
    }
    ASSERT_TRUE(one->Commit().ok());
  }
  // A migration that does not finish has changed nothing.
  {
    auto begun = Open();
    ASSERT_TRUE(begun.ok()) << begun.status();
    (*begun)->of(3).Set(3, "half of it");
    ASSERT_TRUE((*begun)->of(3).Commit().ok());
  }
  auto journals = Open();
  ASSERT_TRUE(journals.ok()) << journals.status();
  EXPECT_TRUE((*journals)->of_one());
  EXPECT_EQ(Content(**journals).size(), 200u);
  auto stripe_of = [](uint64_t key) {
    return key % 10 == 0 ? Journals::kNobody : static_cast<int>(key % kNumStripes);
  };
  ASSERT_TRUE((*journals)->DealOut(stripe_of).ok());
  EXPECT_EQ(Content(**journals), expected);
  (*journals)->of(1).Set(1, "changed");
  ASSERT_TRUE((*journals)->of(1).Commit().ok());
  expected[1] = "changed";

  journals = Open();
  ASSERT_TRUE(journals.ok()) << journals.status();
  EXPECT_FALSE((*journals)->of_one());
  EXPECT_EQ(Content(**journals), expected);
  EXPECT_TRUE((*journals)->of(1).Has(1));
  EXPECT_TRUE((*journals)->of(2).Has(66));
  EXPECT_FALSE((*journals)->common().Has(66));
}

}  // namespace
}  // namespace stride::recovery
