// Arrays whose memory clients map: contents of their descriptors, and their lifetime.

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/arrays/exports.h"
#include "server/engine/service/array_service.h"
#include "server/engine/service/device_service.h"
#include "server/engine/service/operation_service.h"
#include "server/engine/service/region_service.h"
#include "server/engine/service/session_service.h"
#include "server/engine/service/tenant_service.h"
#include "tests/support/await.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"

namespace stride::engine {
namespace {

using ::stride::testing::Eventually;
using ::stride::testing::FakeBroker;
using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;

const TenantId kA{"a"}, kB{"b"};
constexpr int64_t kMiB = int64_t{1} << 20;

SteadyTime Soon() { return Now() + absl::Seconds(100); }

// An array's memory as mapped by its client.
struct Mapped {
  v1::MapArrayResponse response;
  std::string name;
  MemoryMap map;
  std::string bytes(int64_t size) const {
    return std::string(reinterpret_cast<const char*>(map.data()) + response.offset(), size);
  }
};

class ExportsTest : public ::testing::TestWithParam<bool> {
 protected:
  void Start(wire::DeviceDescription device) {
    broker_ = std::make_unique<FakeBroker>(std::vector<wire::DeviceDescription>{device});
    EngineOptions options;
    options.housekeeping_interval = absl::Milliseconds(5);
    engine_ = Engine::Create(std::move(options), broker_.get());
    for (const TenantId& tenant : {kA, kB}) {
      v1::CreateSessionRequest request;
      request.set_session_id("s");
      ASSERT_TRUE(engine_->sessions().Create(tenant, request).ok());
    }
  }
  void SetUp() override { Start(GetParam() ? HostDevice(0) : StagedDevice(0)); }
  void TearDown() override {
    EXPECT_TRUE(EndEngine(*broker_, *engine_));
    engine_.reset();
  }

  static std::string Content(int64_t size, char first) {
    std::string content(static_cast<size_t>(size), '\0');
    std::iota(content.begin(), content.end(), first);
    return content;
  }
  absl::Status Put(int handle, const std::string& content, const TenantId& tenant = kA,
                   bool overwrite = false) {
    v1::PutArrayRequest::Header header;
    header.set_parent("sessions/s");
    header.set_array_id(absl::StrCat(handle));
    header.set_overwrite(overwrite);
    header.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
    header.mutable_spec()->add_shape(static_cast<int64_t>(content.size()));
    auto upload = engine_->arrays().BeginUpload(tenant, header, Soon());
    if (!upload.ok()) return upload.status();
    if (absl::Status status = (*upload)->Write(content); !status.ok()) return status;
    return (*upload)->Finish().status();
  }
  absl::StatusOr<PinnedMemory> Map(int handle, bool hand_over = false,
                                   const TenantId& tenant = kA) {
    v1::MapArrayRequest request;
    request.set_name(absl::StrCat("sessions/s/arrays/", handle));
    request.set_hand_over(hand_over);
    response_.Clear();
    return engine_->regions().Map(tenant, request, Soon(), &response_);
  }
  Mapped MustMap(int handle, bool hand_over = false) {
    auto memory = Map(handle, hand_over);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return {response_, memory->name,
            *MemoryMap::Map(memory->fd, response_.memory_bytes(), hand_over)};
  }
  std::string Fetch(int handle) {
    v1::FetchArrayRequest request;
    request.set_name(absl::StrCat("sessions/s/arrays/", handle));
    auto download = engine_->arrays().BeginDownload(kA, request, Soon());
    EXPECT_TRUE(download.ok()) << download.status();
    std::string content;
    for (;;) {
      auto chunk = (*download)->Next(kMiB);
      EXPECT_TRUE(chunk.ok()) << chunk.status();
      if (!chunk.ok() || chunk->bytes.empty()) return content;
      content.append(chunk->bytes);
    }
  }
  int64_t ArrayBytes(const TenantId& tenant) {
    const v1::Usage usage = engine_->tenants().GetUsage(tenant);
    for (const v1::QuotaUsage& line : usage.quotas()) {
      if (line.name() == "array-bytes") return line.used();
    }
    return -1;
  }
  absl::Status Delete(int handle) {
    return engine_->arrays().Delete(kA, absl::StrCat("sessions/s/arrays/", handle));
  }
  absl::Status Write(int handle, const std::string& content) {
    return Put(handle, content, kA, /*overwrite=*/true);
  }
  bool WriteSucceedsEventually(int handle, const std::string& content) {
    return Eventually([&] { return Write(handle, content).ok(); });
  }

  v1::MapArrayResponse response_;
  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(ExportsTest, DescriptorExposesNoOtherArray) {
  const std::string mine = Content(5000, 3), other(3000, '\x7f');
  ASSERT_TRUE(Put(1, other).ok());
  ASSERT_TRUE(Put(2, mine).ok());
  ASSERT_TRUE(Put(3, other).ok());
  Mapped mapped = MustMap(2);
  EXPECT_EQ(mapped.bytes(5000), mine);
  // Arrays created later are not exposed either.
  ASSERT_TRUE(Put(4, other).ok());
  const std::string all(reinterpret_cast<const char*>(mapped.map.data()), mapped.map.size());
  EXPECT_EQ(all.find(other.substr(0, 64)), std::string::npos);
  EXPECT_EQ(Fetch(1), other);
  EXPECT_EQ(Fetch(2), mine);
  ASSERT_TRUE(Delete(2).ok());
  ASSERT_TRUE(Put(5, other).ok());
  EXPECT_EQ(mapped.bytes(5000), mine);
  engine_->regions().Release(mapped.name, nullptr);
  EXPECT_TRUE(Eventually([&] { return ArrayBytes(kA) == 4 * 3000; }));
  ASSERT_TRUE(Put(6, other).ok());
  const std::string after(reinterpret_cast<const char*>(mapped.map.data()), mapped.map.size());
  EXPECT_EQ(after.find(other.substr(0, 64)), std::string::npos);
}

TEST_P(ExportsTest, LargeArrayIsMappedInPlace) {
  const std::string content = Content(40 * kMiB, 1);
  ASSERT_TRUE(Put(1, content).ok());
  auto before = engine_->devices().Sample();
  Mapped mapped = MustMap(1), again = MustMap(1);
  EXPECT_TRUE(mapped.bytes(40 * kMiB) == content);
  EXPECT_TRUE(again.bytes(40 * kMiB) == content);
  EXPECT_EQ(engine_->devices().Sample()[0].arena_bytes(), before[0].arena_bytes());
}

TEST_P(ExportsTest, WriteIsRefusedWhileMapped) {
  const std::string content = Content(4096, 5), changed = Content(4096, 9);
  ASSERT_TRUE(Put(1, content).ok());
  Mapped first = MustMap(1), second = MustMap(1);
  absl::Status refused = Write(1, changed);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused), v1::ERROR_REASON_WRONG_STATE);
  EXPECT_EQ(first.bytes(4096), content);
  engine_->regions().Release(first.name, nullptr);
  // The other export still maps it.
  engine_->regions().Release(first.name, nullptr);
  engine_->regions().Release("exports/none", nullptr);
  ASSERT_TRUE(engine_->Responds(absl::Seconds(100)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Write(1, changed)));
  engine_->regions().Release(second.name, nullptr);
  EXPECT_TRUE(WriteSucceedsEventually(1, changed));
  EXPECT_EQ(Fetch(1), changed);
}

TEST_P(ExportsTest, ConnectionClosesWhenExportEnds) {
  ASSERT_TRUE(Put(1, Content(100, 0)).ok());
  Mapped mapped = MustMap(1);
  auto connection = std::make_shared<int>(1);
  std::weak_ptr<int> open = connection;
  engine_->regions().Release(mapped.name, std::move(connection));
  EXPECT_TRUE(Eventually([&] { return open.expired(); }));
  EXPECT_TRUE(Write(1, Content(100, 1)).ok());
}

TEST_P(ExportsTest, HandedOverMemoryStaysCharged) {
  const std::string content = Content(4096, 5);
  ASSERT_TRUE(Put(1, content).ok());
  const int64_t before = engine_->devices().Sample()[0].arena_bytes();
  Mapped mapped = MustMap(1, /*hand_over=*/true);
  EXPECT_GT(engine_->devices().Sample()[0].arena_bytes(), before);
  EXPECT_EQ(mapped.bytes(4096), content);
  mapped.map.data()[0] = std::byte{77};
  EXPECT_TRUE(absl::IsNotFound(engine_->arrays().Get(kA, "sessions/s/arrays/1").status()));
  EXPECT_EQ(ArrayBytes(kA), 4096);
  ASSERT_TRUE(engine_->sessions().Delete(kA, "sessions/s").ok());
  EXPECT_EQ(ArrayBytes(kA), 4096);
  engine_->regions().Release(mapped.name, nullptr);
  EXPECT_TRUE(Eventually([&] { return ArrayBytes(kA) == 0; }));
  EXPECT_TRUE(Eventually([&] { return engine_->devices().Sample()[0].arena_bytes() == before; }));
}

TEST_P(ExportsTest, HandOverIsRefusedForSharedMemory) {
  ASSERT_TRUE(Put(1, Content(4096, 5)).ok());
  v1::Operation view;
  view.mutable_view()->mutable_input()->set_handle(1);
  view.add_outputs()->set_handle(2);
  auto ticket = engine_->operations().Submit(kA, "sessions/s", view, Soon());
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  ASSERT_TRUE((*ticket)->Wait(Soon()).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Map(1, true).status())) << Map(1, true).status();
  EXPECT_TRUE(Map(2).ok());
  // Mapped read-only.
  EXPECT_TRUE(absl::IsFailedPrecondition(Map(1, true).status()));
  v1::MapArrayRequest named;
  named.set_name("tenants/a/arrays/x");
  named.set_hand_over(true);
  EXPECT_TRUE(
      absl::IsInvalidArgument(engine_->regions().Map(kA, named, Soon(), &response_).status()));
}

TEST_P(ExportsTest, NameOfAnotherTenantIsNotFound) {
  ASSERT_TRUE(Put(1, Content(64, 5), kB).ok());
  absl::Status theirs = Map(1).status(), none = Map(2).status();
  EXPECT_TRUE(absl::IsNotFound(theirs)) << theirs;
  EXPECT_EQ(theirs.code(), none.code());
  ASSERT_TRUE(Put(3, Content(64, 5)).ok());
  ASSERT_TRUE(Delete(3).ok());
  EXPECT_TRUE(absl::IsNotFound(Map(3).status()));
  ASSERT_TRUE(Put(4, Content(64, 5)).ok());
  ASSERT_TRUE(engine_->sessions().Delete(kA, "sessions/s").ok());
  EXPECT_TRUE(absl::IsNotFound(Map(4).status()));
  EXPECT_TRUE(Map(1, false, kB).ok());
}

TEST_P(ExportsTest, ExportsPerTenantAreBounded) {
  ASSERT_TRUE(Put(1, Content(64, 5)).ok());
  ASSERT_TRUE(Put(1, Content(64, 5), kB).ok());
  std::vector<std::string> names;
  for (int i = 0; i < Exports::kMaxExportsOfTenant; ++i) {
    auto mapped = Map(1);
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    names.push_back(mapped->name);
  }
  for (int i = 0; i < 100; ++i) {
    absl::Status over = Map(1).status();
    ASSERT_TRUE(absl::IsResourceExhausted(over)) << over;
    EXPECT_EQ(MetadataOf(over, "quota"), "mapped-arrays");
  }
  EXPECT_TRUE(Map(1, false, kB).ok());
  engine_->regions().Release(names[0], nullptr);
  EXPECT_TRUE(Eventually([&] { return Map(1).ok(); }));
}

TEST_P(ExportsTest, BytesAreBoundedByDeviceMemory) {
  TearDown();
  Start(GetParam() ? HostDevice(0, 100 * kMiB) : StagedDevice(0, 100 * kMiB));
  ASSERT_TRUE(Put(1, Content(40 * kMiB, 1)).ok());
  ASSERT_TRUE(Put(2, Content(33 * kMiB, 1)).ok());
  Mapped mapped = MustMap(1);
  absl::Status over = Map(2).status();
  EXPECT_TRUE(absl::IsResourceExhausted(over)) << over;
  EXPECT_EQ(MetadataOf(over, "quota"), "mapped-bytes");
  // The same memory counts once.
  EXPECT_TRUE(Map(1).ok());
}

TEST_P(ExportsTest, ReadOnlyDescriptorCannotBeMappedForWriting) {
  if (!GetParam()) GTEST_SKIP() << "a GPU's handle has one kind";
  ASSERT_TRUE(Put(1, Content(4096, 5)).ok());
  auto memory = Map(1);
  ASSERT_TRUE(memory.ok());
  const auto size = static_cast<size_t>(response_.memory_bytes());
  EXPECT_EQ(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0), MAP_FAILED);
  struct stat info;
  ASSERT_EQ(fstat(memory->fd, &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(CheckMemoryFile(memory->fd, size).ok());
}

INSTANTIATE_TEST_SUITE_P(HostAndStaged, ExportsTest, ::testing::Bool(),
                         [](const auto& kind) { return kind.param ? "Host" : "Staged"; });

}  // namespace
}  // namespace stride::engine
