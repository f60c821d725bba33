// Named resources of tenants: the map, and the table with its quota, journal and restoration. No
// engine.
#include "server/engine/persistence/resource_table.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/rows.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/recovery/journals.h"
#include "server/recovery/records.pb.h"
#include "server/tenant/resource_map.h"
#include "stride/v1/kernel_service.pb.h"
#include "tests/support/fake_broker.h"
#include "tests/support/memory_fd_store.h"

namespace stride::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const TenantId kA{"a"}, kB{"b"};
constexpr absl::Duration kPatience = absl::Seconds(100);

std::vector<std::string> Ids(const std::vector<std::pair<std::string, int>>& page) {
  std::vector<std::string> ids;
  for (const auto& [id, entry] : page) ids.push_back(id);
  return ids;
}

TEST(ResourceMapTest, EntriesBelongToTenants) {
  ResourceMap<int> map;
  map.Set(kA, "x", 1);
  map.Set(kB, "x", 2);
  map.Set(kA, "y", 3);
  EXPECT_EQ(*map.Find(kA, "x"), 1);
  EXPECT_EQ(*map.Find(kB, "x"), 2);
  EXPECT_EQ(map.Find(kB, "y"), nullptr);
  EXPECT_EQ(map.Count(kA), 2);
  map.Set(kA, "y", 4);
  EXPECT_EQ(map.Count(kA), 2) << "replaced";
  map.Erase(kA, "x");
  map.Erase(kA, "x");
  map.Erase(TenantId{"c"}, "x");
  EXPECT_EQ(map.Count(kA), 1);
  EXPECT_EQ(map.Count(kB), 1);
}

TEST(ResourceMapTest, PagesContinueWhileEntriesComeAndGo) {
  ResourceMap<int> map;
  for (const char* id : {"b", "d", "f", "h"}) map.Set(kA, id, 0);
  map.Set(kB, "c", 0);
  auto same = [](int entry) { return entry; };
  // One more than a page, which says that there is a next one.
  EXPECT_THAT(Ids(map.PageAfter(kA, "", 2, same)), ElementsAre("b", "d", "f"));
  map.Erase(kA, "d");  // the token itself
  map.Erase(kA, "h");
  map.Set(kA, "a", 0);  // before it
  map.Set(kA, "e", 0);  // after it
  EXPECT_THAT(Ids(map.PageAfter(kA, "d", 2, same)), ElementsAre("e", "f"));
  EXPECT_THAT(Ids(map.PageAfter(kA, "z", 2, same)), IsEmpty());
  EXPECT_THAT(Ids(map.PageAfter(TenantId{"c"}, "", 2, same)), IsEmpty());
}

TEST(ResourceMapTest, EraseIfTakesOnePrefix) {
  ResourceMap<int> map;
  for (std::string_view id : {"s", "s.a", "s.b", "s2.a", "t"})
    map.Set(kA, std::string(id), id == "s.b");
  map.EraseIf(kA, "s.", [](std::string_view, int keep) { return keep == 0; });
  EXPECT_THAT(Ids(map.PageAfter(kA, "", 10, [](int entry) { return entry; })),
              ElementsAre("s", "s.b", "s2.a", "t"));
}

constexpr ResourceKind kThings{
    .noun = "thing", .collection = "things", .not_found = v1::ERROR_REASON_MODULE_NOT_FOUND};

struct Thing {
  using Message = v1::Module;
  using Record = recovery::FunctionRecord;
  std::shared_ptr<const v1::Module> message;
  int64_t Cost() const { return 100; }
  bool is_kept() const { return true; }
  void WriteTo(Record* record) const { record->set_function(message->source()); }
};

std::optional<Thing> ReadThing(GlobalTransaction&, const recovery::FunctionRecord& record) {
  if (record.function() == "from the future") return std::nullopt;
  auto module = std::make_shared<v1::Module>();
  module->set_source(record.function());
  return Thing{.message = std::move(module)};
}

class ResourceTableTest : public ::testing::Test {
 protected:
  using Table = ResourceTable<Thing>;

  ~ResourceTableTest() override {
    {
      GlobalTransaction transaction(core_);
      core_.journal_writer->Stop(transaction);
    }
    core_.Stop();
  }

  static EngineOptions Options() {
    EngineOptions options;
    options.max_modules = 3;
    options.control_bytes = 1000;
    return options;
  }
  static Thing ThingOf(const std::string& source) {
    auto module = std::make_shared<v1::Module>();
    module->set_source(source);
    return {.message = std::move(module)};
  }
  absl::StatusOr<Table::Reservation> Reserve(const TenantId& tenant, const std::string& id,
                                             int64_t bytes = 100) {
    return table_.Reserve(tenant, id, bytes, Now() + kPatience);
  }
  absl::Status Add(const TenantId& tenant, const std::string& id) {
    auto reservation = Reserve(tenant, id);
    if (!reservation.ok()) return reservation.status();
    table_.Add(*std::move(reservation), ThingOf(absl::StrCat("of ", id)));
    return absl::OkStatus();
  }
  // Sources of a page.
  std::vector<std::string> List(const TenantId& tenant, int page_size, std::string* token) {
    v1::ListModulesRequest request;
    request.set_page_size(page_size);
    request.set_page_token(*token);
    v1::ListModulesResponse response;
    auto write = [](const v1::Module& module, v1::Module* listed) { *listed = module; };
    EXPECT_TRUE(table_.List(tenant, request, write, response.mutable_modules(), token).ok());
    std::vector<std::string> sources;
    for (const v1::Module& module : response.modules()) sources.push_back(module.source());
    return sources;
  }
  int64_t ControlBytes(const TenantId& tenant) { return core_.accounts->ControlOf(tenant)->used(); }
  int64_t Count(const TenantId& tenant) {
    TenantTransaction transaction(core_, tenant);
    return table_.Count(transaction, tenant);
  }
  void StartJournal() {
    auto journals = recovery::Journals::Create(&fd_store_);
    ASSERT_TRUE(journals.ok()) << journals.status();
    journal_writer_.Start(&fd_store_, *std::move(journals), 0);
    GlobalTransaction transaction(core_);
    journal_writer_.Complete(transaction);
  }
  // The records that a successor would find, by id.
  std::map<uint64_t, recovery::FunctionRecord> Records() {
    std::map<std::string, UniqueFd> kept = fd_store_.Copy();
    auto journals = recovery::Journals::Open(&fd_store_, &kept);
    EXPECT_TRUE(journals.ok()) << journals.status();
    std::map<uint64_t, recovery::FunctionRecord> records;
    (*journals)->ForEach([&](uint64_t key, std::string_view bytes) {
      if (recovery::KindOf(key) == recovery::Kind::kFunction)
        records[recovery::IdOf(key)].ParseFromString(std::string(bytes));
    });
    return records;
  }

  stride::testing::MemoryFdStore fd_store_;
  stride::testing::FakeBroker broker_{{stride::testing::HostDevice(0)}};
  Core core_{Options(), &broker_};
  JournalWriter journal_writer_{&core_};
  Table table_{&core_,
               kThings,
               &identity::Quota::modules,
               recovery::Kind::kFunction,
               durable::DefinitionRow::kFunction,
               ReadThing};
};

TEST_F(ResourceTableTest, NamesAreOfTheTenant) {
  ASSERT_TRUE(Add(kA, "x").ok());
  EXPECT_EQ((*table_.Get(kA, "tenants/a/things/x"))->source(), "of x");
  EXPECT_TRUE(absl::IsNotFound(table_.Get(kB, "tenants/a/things/x").status()));
  EXPECT_TRUE(absl::IsNotFound(table_.Delete(kB, "tenants/a/things/x")));
  EXPECT_TRUE(absl::IsInvalidArgument(table_.Get(kA, "things/x").status()));
  EXPECT_TRUE(absl::IsNotFound(kThings.CheckParent("tenants/a", kB)));
  EXPECT_TRUE(kThings.CheckParent("", kB).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(kThings.CheckId("no/slash")));
  EXPECT_TRUE(table_.Delete(kA, "tenants/a/things/x").ok());
  EXPECT_TRUE(absl::IsNotFound(table_.Get(kA, "tenants/a/things/x").status()));
  EXPECT_TRUE(absl::IsNotFound(table_.Delete(kA, "tenants/a/things/x")));
}

TEST_F(ResourceTableTest, NumberIsBoundedWithReservations) {
  ASSERT_TRUE(Add(kA, "x").ok());
  ASSERT_TRUE(Add(kA, "y").ok());
  std::optional<Table::Reservation> third = *Reserve(kA, "z");
  const absl::Status full = Add(kA, "w");
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_EQ(MetadataOf(full, "quota"), "things");
  EXPECT_EQ(MetadataOf(full, "limit"), "3");
  EXPECT_EQ(MetadataOf(full, "used"), "3");
  EXPECT_NE(full.message().find("delete some"), std::string::npos) << full;
  EXPECT_TRUE(Add(kB, "w").ok()) << "another tenant";
  third.reset();  // its creation failed
  EXPECT_TRUE(Add(kA, "w").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Add(kA, "z")));
  ASSERT_TRUE(table_.Delete(kA, "tenants/a/things/x").ok());
  EXPECT_TRUE(Add(kA, "z").ok());
  EXPECT_EQ(Count(kA), 3);
  core_.accounts->SetQuotas({{kB, {.modules = 0}}}, {.modules = 4});
  EXPECT_TRUE(Add(kA, "v").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Add(kB, "v")));
}

TEST_F(ResourceTableTest, ControlBytesAreChargedAndReturned) {
  EXPECT_TRUE(absl::IsResourceExhausted(Reserve(kA, "x", 1001).status()));
  EXPECT_EQ(ControlBytes(kA), 0);
  {
    auto reservation = Reserve(kA, "x", 700);
    ASSERT_TRUE(reservation.ok());
    EXPECT_EQ(ControlBytes(kA), 700);
    EXPECT_EQ(MetadataOf(Reserve(kA, "y", 400).status(), "quota"), "control-bytes");
    table_.Add(*std::move(reservation), ThingOf("x"));
  }
  EXPECT_EQ(ControlBytes(kA), 100) << "what it costs in the end";
  ASSERT_TRUE(table_.Delete(kA, "tenants/a/things/x").ok());
  EXPECT_EQ(ControlBytes(kA), 0);
}

TEST_F(ResourceTableTest, SecondCallWaitsForTheFirst) {
  auto first = Reserve(kA, "x");
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      table_.Reserve(kA, "x", 100, Now() + absl::Milliseconds(1)).status()));
  EXPECT_TRUE(Add(kA, "y").ok()) << "another name";
  absl::Status second;
  std::shared_ptr<const v1::Module> existing;
  std::thread caller([&] {
    second = Add(kA, "x");
    EXPECT_TRUE(table_.Reserve(kA, "x", 100, Now() + kPatience, &existing).ok());
  });
  absl::SleepFor(absl::Milliseconds(20));
  table_.Add(*std::move(first), ThingOf("first"));
  caller.join();
  EXPECT_TRUE(absl::IsAlreadyExists(second)) << second;
  ASSERT_NE(existing, nullptr);
  EXPECT_EQ(existing->source(), "first");
}

TEST_F(ResourceTableTest, NameOfAFailedCreationIsFree) {
  std::optional<Table::Reservation> first = *Reserve(kA, "x");
  std::thread caller([&] { EXPECT_TRUE(Add(kA, "x").ok()); });
  absl::SleepFor(absl::Milliseconds(20));
  first.reset();
  caller.join();
  EXPECT_EQ(Count(kA), 1);
}

TEST_F(ResourceTableTest, PagesContinueWhileResourcesComeAndGo) {
  for (const char* id : {"b", "d", "f"}) ASSERT_TRUE(Add(kA, id).ok());
  std::string token;
  EXPECT_THAT(List(kA, 2, &token), ElementsAre("of b", "of d"));
  EXPECT_EQ(token, "d");
  ASSERT_TRUE(table_.Delete(kA, "tenants/a/things/d").ok());
  ASSERT_TRUE(Add(kA, "e").ok());
  EXPECT_THAT(List(kA, 2, &token), ElementsAre("of e", "of f"));
  EXPECT_EQ(token, "");
  v1::ListModulesRequest request;
  request.set_parent("tenants/a");
  v1::ListModulesResponse response;
  auto write = [](const v1::Module&, v1::Module*) {};
  EXPECT_TRUE(
      absl::IsNotFound(table_.List(kB, request, write, response.mutable_modules(), &token)));
}

TEST_F(ResourceTableTest, JournalHasWhatTheTableHas) {
  StartJournal();
  ASSERT_TRUE(Add(kA, "x").ok());
  ASSERT_TRUE(Add(kB, "y").ok());
  std::map<std::string, std::string> found;
  for (const auto& [id, record] : Records())
    found[record.tenant() + record.id()] = record.function();
  EXPECT_THAT(found, ElementsAre(Pair("ax", "of x"), Pair("by", "of y")));
  ASSERT_TRUE(table_.Delete(kA, "tenants/a/things/x").ok());
  EXPECT_EQ(Records().size(), 1u);
  {
    GlobalTransaction transaction(core_);
    table_.EraseIf(transaction, kB, "", [](const Thing&) { return true; });
  }
  EXPECT_THAT(Records(), IsEmpty());
  EXPECT_EQ(ControlBytes(kB), 0);
}

TEST_F(ResourceTableTest, RestorationIgnoresQuotas) {
  StartJournal();
  core_.accounts->SetQuotas({{kA, {.control_bytes = 250, .modules = 2}}}, {});
  {
    GlobalTransaction transaction(core_);
    for (uint64_t id = 1; id <= 4; ++id) {
      recovery::FunctionRecord record;
      record.set_tenant("a");
      record.set_id(absl::StrCat("old", id));
      record.set_function(id == 4 ? "from the future" : "old");
      if (id == 3) record.set_durable(7);
      table_.Restore(transaction, id, record);
    }
  }
  EXPECT_EQ(Count(kA), 3) << "all but the unknown one";
  EXPECT_EQ(ControlBytes(kA), 300);
  EXPECT_THAT(Records(), IsEmpty()) << "the recovery writes restored records";
  EXPECT_TRUE(absl::IsResourceExhausted(Add(kA, "new")));
  for (int i = 1; i <= 2; ++i)
    ASSERT_TRUE(table_.Delete(kA, absl::StrCat("tenants/a/things/old", i)).ok());
  EXPECT_TRUE(Add(kA, "new").ok());
}

}  // namespace
}  // namespace stride::engine
