#include "server/session/catalogue.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/persistence/journal_writer.h"
#include "tests/support/fake_broker.h"

namespace stride::session {
namespace {

const TenantId kTenant{"t"};
const SteadyTime kNow = SteadyTime();

class CatalogueTest : public ::testing::Test {
 protected:
  ~CatalogueTest() override {
    open.reset();
    core.Stop();
  }

  stride::testing::FakeBroker broker{{stride::testing::HostDevice(0)}};
  engine::Core core{{}, &broker};
  engine::JournalWriter recorder{&core};
  std::optional<engine::GlobalTransaction> open{std::in_place, core};
  engine::GlobalTransaction& transaction = *open;
  Catalogue catalogue;
};

TEST_F(CatalogueTest, UnusedSessionsExpire) {
  auto session = catalogue.CreateSession(transaction, kTenant, "s", absl::Seconds(10), kNow, 5);
  ASSERT_TRUE(session.ok());
  EXPECT_TRUE(catalogue.FindSession(transaction, kTenant, "s", kNow + absl::Seconds(9)).ok());
  EXPECT_EQ(catalogue.CloseExpiredSessions(transaction, kNow + absl::Seconds(18)).size(), 0u)
      << "the call renewed it";
  ++(*session)->num_pins;
  EXPECT_EQ(catalogue.CloseExpiredSessions(transaction, kNow + absl::Seconds(30)).size(), 0u)
      << "pinned";
  --(*session)->num_pins;
  EXPECT_EQ(catalogue.CloseExpiredSessions(transaction, kNow + absl::Seconds(30)).size(), 1u);
  EXPECT_FALSE(catalogue.FindSession(transaction, kTenant, "s", kNow).ok());
  EXPECT_EQ(catalogue.CloseExpiredSessions(transaction, kNow + absl::Seconds(30)).size(), 0u)
      << "once";
}

TEST_F(CatalogueTest, ClosedSessionIsNotFoundAndKeepsItsName) {
  auto session = catalogue.CreateSession(transaction, kTenant, "s", absl::Seconds(10), kNow, 5);
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(catalogue.AddArray(transaction, **session, 7, std::make_shared<Array>()).ok());
  auto closed = catalogue.CloseSession(transaction, kTenant, "s");
  ASSERT_TRUE(closed.ok());
  EXPECT_EQ(*closed, *session);
  EXPECT_TRUE(absl::IsNotFound(catalogue.FindSession(transaction, kTenant, "s", kNow).status()));
  EXPECT_TRUE(absl::IsNotFound(catalogue.CloseSession(transaction, kTenant, "s").status()));
  EXPECT_TRUE(absl::IsNotFound(
      catalogue.FindArray(transaction, kTenant, {.session = "s", .handle = 7}, kNow).status()));
  EXPECT_EQ((*session)->arrays.size(), 1u) << "whoever closed it takes them out";
  EXPECT_TRUE(absl::IsAlreadyExists(
      catalogue.CreateSession(transaction, kTenant, "s", absl::Seconds(10), kNow, 5).status()));
  catalogue.DeleteSession(transaction, kTenant, "s");
  EXPECT_TRUE(catalogue.CreateSession(transaction, kTenant, "s", absl::Seconds(10), kNow, 5).ok());
}

TEST_F(CatalogueTest, RefusesTakenNamesAndTooManySessions) {
  ASSERT_TRUE(catalogue.CreateSession(transaction, kTenant, "a", absl::Seconds(10), kNow, 2).ok());
  EXPECT_EQ(catalogue.CreateSession(transaction, kTenant, "a", absl::Seconds(10), kNow, 2)
                .status()
                .code(),
            absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(catalogue.CreateSession(transaction, kTenant, "b", absl::Seconds(10), kNow, 2).ok());
  EXPECT_EQ(catalogue.CreateSession(transaction, kTenant, "c", absl::Seconds(10), kNow, 2)
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(
      catalogue.CreateSession(transaction, TenantId{"u"}, "a", absl::Seconds(10), kNow, 2).ok())
      << "names are each tenant's own";
}

TEST_F(CatalogueTest, FindsSessionsByName) {
  ASSERT_TRUE(catalogue.CreateSession(transaction, kTenant, "a", absl::Seconds(10), kNow, 5).ok());
  ASSERT_TRUE(catalogue.CreateSession(transaction, kTenant, "b", absl::Seconds(10), kNow, 5).ok());
  const TenantId other{"u"};
  ASSERT_TRUE(catalogue.CreateSession(transaction, other, "a", absl::Seconds(10), kNow, 5).ok());
  auto find = [&](const TenantId& tenant, const char* name) {
    return catalogue.FindSessionNamed(transaction, tenant, name, "session", kNow);
  };
  for (int i = 0; i < 2; ++i) {  // one after the other, and the same again
    for (int j = 0; j < 2; ++j) {
      EXPECT_EQ(find(kTenant, "sessions/a").value()->tenant, kTenant);
      EXPECT_EQ(find(other, "sessions/a").value()->tenant, other);
      EXPECT_EQ(find(kTenant, "sessions/b").value()->id, "b");
    }
    EXPECT_EQ(find(kTenant, "sessions/b").value()->id, "b");
  }
  EXPECT_TRUE(absl::IsNotFound(find(other, "sessions/b").status()));
  for (const char* malformed : {"", "b", "sessions/", "sessions/b/", "Sessions/b", "sessions/B"})
    EXPECT_TRUE(absl::IsInvalidArgument(find(kTenant, malformed).status())) << malformed;
  catalogue.DeleteSession(transaction, kTenant, "b");
  EXPECT_TRUE(absl::IsNotFound(find(kTenant, "sessions/b").status())) << "though it was found last";
}

TEST_F(CatalogueTest, ExpiryVisitsFewOfManyNamedArrays) {
  constexpr int kArrays = 5 * Catalogue::kMostLookedAt / 2;
  for (int i = 0; i < kArrays; ++i) {
    auto array = std::make_shared<Array>();
    if (i % 2 == 0) array->expire_time = kNow;
    const TenantId tenant{absl::StrCat("t", i % 3)};
    ASSERT_TRUE(catalogue
                    .AddArray(transaction, tenant,
                              {.tenant = tenant.value, .id = absl::StrCat("a", i)}, array, kNow)
                    .ok());
  }
  size_t taken = 0;
  for (int i = 0; i < 3; ++i) {
    const size_t now = catalogue.TakeExpiredArrays(transaction, kNow).size();
    EXPECT_LT(now, Catalogue::kMostLookedAt);
    EXPECT_GT(now, 0u);
    taken += now;
  }
  EXPECT_EQ(taken, kArrays / 2);
  EXPECT_EQ(catalogue.TakeExpiredArrays(transaction, kNow).size(), 0u);
  auto late = std::make_shared<Array>();
  late->expire_time = kNow;
  ASSERT_TRUE(
      catalogue.AddArray(transaction, TenantId{"t0"}, {.tenant = "t0", .id = "a"}, late, kNow)
          .ok());
  taken = catalogue.TakeExpiredArrays(transaction, kNow).size();
  taken += catalogue.TakeExpiredArrays(transaction, kNow).size();
  EXPECT_EQ(taken, 1u) << "it begins anew";
}

TEST_F(CatalogueTest, KeptResourcesHaveNames) {
  auto session = catalogue.CreateSession(transaction, kTenant, "s", absl::Hours(1), kNow, 5);
  ASSERT_TRUE(session.ok());
  auto unnamed = std::make_shared<Array>();
  EXPECT_TRUE(unnamed->name.empty());
  auto array = std::make_shared<Array>();
  ASSERT_TRUE(catalogue.AddArray(transaction, **session, 7, array).ok());
  EXPECT_TRUE(array->name.is_handle());
  EXPECT_EQ(array->name.ToString(), "sessions/s/arrays/7");
  EXPECT_EQ(array->tenant, kTenant);
  EXPECT_TRUE(absl::IsAlreadyExists(catalogue.AddArray(transaction, **session, 7, unnamed)));
  EXPECT_EQ(*Catalogue::FindArray(**session, 7), array);
  auto named = std::make_shared<Array>();
  ASSERT_TRUE(
      catalogue.AddArray(transaction, kTenant, {.tenant = "t", .id = "n"}, named, kNow).ok());
  EXPECT_FALSE(named->name.is_handle());
  EXPECT_EQ(named->name.ToString(), "tenants/t/arrays/n");
}

TEST_F(CatalogueTest, ListsInPages) {
  ASSERT_TRUE(catalogue.CreateSession(transaction, kTenant, "s", absl::Hours(1), kNow, 5).ok());
  for (uint64_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE(catalogue
                    .AddArray(transaction, kTenant, {.session = "s", .handle = i * 3},
                              std::make_shared<Array>(), kNow)
                    .ok());
    ASSERT_TRUE(catalogue
                    .AddArray(transaction, kTenant, {.tenant = "t", .id = absl::StrCat("n", i)},
                              std::make_shared<Array>(), kNow)
                    .ok());
  }
  for (const char* parent : {"sessions/s", "tenants/t"}) {
    std::string token;
    size_t total = 0;
    bool more = true;
    while (more) {
      auto page = catalogue.ListArrays(transaction, kTenant, parent, 2, token, kNow);
      ASSERT_TRUE(page.ok());
      more = page->size() > 2;
      if (more) page->pop_back();
      total += page->size();
      token = page->back().first;
    }
    EXPECT_EQ(total, 5u) << parent;
  }
}

}  // namespace
}  // namespace stride::session
