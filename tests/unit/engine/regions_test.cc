// Memory shared with clients: the table of regions and its tickets, and transfers through them.

#include <sys/mman.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/engine/service/array_service.h"
#include "server/engine/service/device_service.h"
#include "server/engine/service/region_service.h"
#include "server/engine/service/session_service.h"
#include "server/engine/service/tenant_service.h"
#include "server/engine/transfers/regions.h"
#include "server/session/tenant_accounts.h"
#include "server/store/spill_file.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"

namespace stride::engine {
namespace {

using ::stride::testing::FakeBroker;
using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;

const TenantId kA{"a"}, kB{"b"};
constexpr int64_t kMiB = int64_t{1} << 20;

SteadyTime Soon() { return Now() + absl::Seconds(100); }

std::string FieldOf(const absl::Status& status) {
  google::rpc::BadRequest request;
  auto payload = status.GetPayload("type.googleapis.com/google.rpc.BadRequest");
  if (!payload.has_value() || !request.ParseFromString(std::string(*payload))) return "(none)";
  return request.field_violations(0).field();
}

// A region as mapped by its client.
struct Mine {
  std::string name;
  MemoryMap map;
  char* data() const { return reinterpret_cast<char*>(map.data()); }
};

class RegionsTest : public ::testing::TestWithParam<bool> {
 protected:
  void Start(wire::DeviceDescription device, int64_t region_bytes = 64 * kMiB) {
    broker_ = std::make_unique<FakeBroker>(std::vector<wire::DeviceDescription>{device});
    EngineOptions options;
    options.region_bytes = region_bytes;
    engine_ = Engine::Create(std::move(options), broker_.get());
    for (const TenantId& tenant : {kA, kB}) {
      for (const char* id : {"s", "t"}) {
        v1::CreateSessionRequest request;
        request.set_session_id(id);
        ASSERT_TRUE(engine_->sessions().Create(tenant, request).ok());
      }
    }
  }
  void TearDown() override {
    if (broker_ == nullptr) return;
    EXPECT_TRUE(EndEngine(*broker_, *engine_));
    engine_.reset();
  }

  absl::StatusOr<PinnedMemory> Create(int64_t size, const TenantId& tenant = kA,
                                      const std::string& session = "sessions/s") {
    v1::CreateRegionRequest request;
    request.set_parent(session);
    request.set_size_bytes(size);
    return engine_->regions().Create(tenant, request, &response_);
  }
  Mine MustPin(int64_t size, const TenantId& tenant = kA,
               const std::string& session = "sessions/s") {
    auto made = Create(size, tenant, session);
    EXPECT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->name, response_.region().name());
    return {made->name,
            *MemoryMap::Map(made->fd, response_.region().size_bytes(), /*writable=*/true)};
  }
  // Not pinned.
  Mine MustCreate(int64_t size, const TenantId& tenant = kA,
                  const std::string& session = "sessions/s") {
    Mine mine = MustPin(size, tenant, session);
    engine_->regions().Release(mine.name, nullptr);
    return mine;
  }

  static v1::PutArrayRequest::Header Header(int64_t bytes, const std::string& region) {
    v1::PutArrayRequest::Header header;
    header.set_parent("sessions/s");
    header.set_array_id("1");
    header.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
    header.mutable_spec()->add_shape(bytes);
    header.set_region(region);
    return header;
  }
  absl::StatusOr<std::unique_ptr<Download>> FetchTo(const std::string& region,
                                                    int64_t region_offset) {
    v1::FetchArrayRequest request;
    request.set_name("sessions/s/arrays/1");
    request.set_region(region);
    request.set_region_offset(region_offset);
    return engine_->arrays().BeginDownload(kA, request, Soon());
  }
  // Fetches consecutive chunks; returns their number.
  static int FetchAll(Download& download, int64_t offset, int64_t bytes, int64_t chunk_bytes) {
    int count = 0;
    for (const int64_t end = offset + bytes;; ++count) {
      auto chunk = download.NextShared(chunk_bytes);
      EXPECT_TRUE(chunk.ok()) << chunk.status();
      if (!chunk.ok()) return count;
      if (chunk->size == 0) {
        EXPECT_EQ(offset, end);
        return count;
      }
      EXPECT_EQ(chunk->offset, offset);
      EXPECT_LE(chunk->size, chunk_bytes);
      offset += chunk->size;
    }
  }
  static void Fill(const Mine& mine) {
    std::iota(mine.data(), mine.data() + mine.map.size(), static_cast<char>(3));
    for (size_t i = 0; i < mine.map.size(); i += 4096) std::memcpy(mine.data() + i, &i, sizeof(i));
  }
  bool BytesComeTo(int64_t bytes) {
    for (int i = 0; i < 5000 && engine_->regions().bytes() != bytes; ++i)
      absl::SleepFor(absl::Milliseconds(1));
    return engine_->regions().bytes() == bytes;
  }

  // Uploads one part of the region in two chunks, then downloads into another.
  void RoundTrip() {
    const int64_t size = 5 * kMiB + 17;
    Mine mine = MustCreate(12 * kMiB);
    Fill(mine);
    const std::string content(mine.data() + 100, size);
    auto upload = engine_->arrays().BeginUpload(kA, Header(size, mine.name), Soon());
    ASSERT_TRUE(upload.ok()) << upload.status();
    ASSERT_TRUE((*upload)->WriteShared(100, kMiB).ok());
    ASSERT_TRUE((*upload)->WriteShared(100 + kMiB, size - kMiB).ok());
    auto put = (*upload)->Finish();
    ASSERT_TRUE(put.ok()) << put.status();
    EXPECT_EQ(put->state(), v1::Array::STATE_READY);
    upload->reset();
    std::memset(mine.data(), 0, mine.map.size());
    auto download = FetchTo(mine.name, 6 * kMiB);
    ASSERT_TRUE(download.ok()) << download.status();
    EXPECT_EQ(FetchAll(**download, 6 * kMiB, size, kMiB), 6);
    EXPECT_TRUE(std::string(mine.data() + 6 * kMiB, size) == content);
    EXPECT_EQ(std::string(mine.data() + 6 * kMiB - 9, 9), std::string(9, '\0'));
  }

  v1::CreateRegionResponse response_;
  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(RegionsTest, RegionIsSealedAndFullyAllocated) {
  Start(HostDevice(0));
  auto made = Create(5000);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->name, ::testing::StartsWith("sessions/s/regions/"));
  EXPECT_EQ(response_.region().size_bytes(), 8192);
  EXPECT_TRUE(CheckMemoryFile(made->fd, 8192).ok());
  EXPECT_NE(ftruncate(made->fd, 0), 0);
  EXPECT_NE(ftruncate(made->fd, 1 << 20), 0);
  unsigned char present[2] = {};
  auto map = MemoryMap::Map(made->fd, 8192, true);
  ASSERT_TRUE(map.ok());
  ASSERT_EQ(mincore(map->data(), 8192, present), 0);
  EXPECT_TRUE((present[0] & 1) && (present[1] & 1));
}

TEST_F(RegionsTest, RegionSizeAndSessionAreChecked) {
  Start(HostDevice(0));
  for (int64_t size : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    auto made = Create(size);
    EXPECT_TRUE(absl::IsInvalidArgument(made.status())) << made.status();
    EXPECT_EQ(FieldOf(made.status()), "size_bytes");
  }
  EXPECT_EQ(FieldOf(Create(1, kA, "s").status()), "parent");
  EXPECT_EQ(ReasonOf(Create(1, kA, "sessions/none").status()), v1::ERROR_REASON_SESSION_NOT_FOUND);
  EXPECT_EQ(engine_->regions().bytes(), 0);
}

TEST_F(RegionsTest, RegionsWithoutMemoryAreUnimplemented) {
  Start(HostDevice(0), 0);
  absl::Status status = Create(1).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_EQ(MetadataOf(status, "feature"), "regions");
}

TEST_F(RegionsTest, TenantIsLimitedToHalfOfAllRegions) {
  Start(HostDevice(0), 4 * kMiB);
  ASSERT_TRUE(Create(kMiB).ok());
  absl::Status over = Create(kMiB + 1).status();
  EXPECT_TRUE(absl::IsResourceExhausted(over)) << over;
  EXPECT_EQ(MetadataOf(over, "quota"), "region-bytes");
  EXPECT_EQ(engine_->regions().bytes(), kMiB);
  const v1::Usage usage = engine_->tenants().GetUsage(kA);
  const v1::QuotaUsage& line = usage.quotas(usage.quotas_size() - 1);
  EXPECT_EQ(line.name(), "region-bytes");
  EXPECT_EQ(line.used(), kMiB);
  EXPECT_EQ(line.limit(), 2 * kMiB);
  engine_->accounts().SetQuotas({{kA, {.region_bytes = 3 * kMiB}}}, {});
  auto large = Create(2 * kMiB);
  ASSERT_TRUE(large.ok());
  absl::Status full = Create(kMiB + 1, kB).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_EQ(MetadataOf(full, "quota"), "");
  ASSERT_TRUE(engine_->regions().Delete(kA, large->name).ok());
  large->owner.reset();
  EXPECT_TRUE(BytesComeTo(kMiB));
  EXPECT_TRUE(Create(kMiB + 1, kB).ok());
}

TEST_F(RegionsTest, RegionsPerTenantAreBounded) {
  Start(HostDevice(0));
  for (int i = 0; i < Regions::kMaxRegionsOfTenant; ++i) ASSERT_TRUE(Create(1).ok());
  absl::Status over = Create(1).status();
  EXPECT_TRUE(absl::IsResourceExhausted(over)) << over;
  EXPECT_EQ(MetadataOf(over, "quota"), "regions");
  EXPECT_TRUE(Create(1, kB).ok());
}

TEST_F(RegionsTest, RegionsEndWithTheirSessionAndFreePages) {
  Start(HostDevice(0));
  Mine mine = MustCreate(kMiB);
  Mine other = MustCreate(kMiB, kA, "sessions/t");
  Mine stranger = MustCreate(kMiB, kB);
  std::memset(mine.data(), 'x', kMiB);
  ASSERT_TRUE(engine_->sessions().Delete(kA, "sessions/s").ok());
  EXPECT_TRUE(BytesComeTo(2 * kMiB));
  EXPECT_TRUE(absl::IsNotFound(engine_->regions().Delete(kA, mine.name)));
  EXPECT_TRUE(engine_->regions().Delete(kA, other.name).ok());
  EXPECT_TRUE(engine_->regions().Delete(kB, stranger.name).ok());
  // A client that keeps the mapping pins no memory of the daemon.
  EXPECT_EQ(mine.data()[17], '\0');
}

TEST_F(RegionsTest, PinnedRegionOutlivesItsSessionAndIsCharged) {
  Start(HostDevice(0));
  Mine held = MustPin(kMiB), deleted = MustPin(kMiB), let_go = MustPin(kMiB);
  for (const Mine* one : {&held, &deleted, &let_go}) std::memset(one->data(), 'x', kMiB);
  engine_->regions().Release("sessions/s/regions/none", nullptr);
  EXPECT_TRUE(engine_->regions().Delete(kA, deleted.name).ok());
  EXPECT_TRUE(BytesComeTo(2 * kMiB));
  EXPECT_EQ(deleted.data()[17], '\0');
  engine_->regions().Release(deleted.name, nullptr);
  engine_->regions().Release(let_go.name, nullptr);
  ASSERT_TRUE(engine_->sessions().Delete(kA, "sessions/s").ok());
  EXPECT_TRUE(BytesComeTo(kMiB));
  EXPECT_EQ(let_go.data()[17], '\0');
  EXPECT_EQ(held.data()[17], 'x');
  engine_->regions().Release(held.name, nullptr);
  EXPECT_TRUE(BytesComeTo(0));
  EXPECT_EQ(held.data()[17], '\0');
}

TEST_F(RegionsTest, PinnedRegionOutlivesTheDaemon) {
  Start(HostDevice(0));
  Mine held = MustPin(kMiB), other = MustCreate(kMiB);
  std::memset(held.data(), 'x', kMiB);
  std::memset(other.data(), 'x', kMiB);
  TearDown();
  broker_.reset();
  EXPECT_EQ(held.data()[17], 'x');
  EXPECT_EQ(other.data()[17], '\0');
}

TEST_F(RegionsTest, RegionIsVisibleOnlyToItsTenantAndSession) {
  Start(HostDevice(0));
  Mine stranger = MustCreate(kMiB, kB);
  Mine other = MustCreate(kMiB, kA, "sessions/t");
  for (const std::string& name :
       {stranger.name, other.name, std::string("sessions/s/regions/none")}) {
    absl::Status put = engine_->arrays().BeginUpload(kA, Header(10, name), Soon()).status();
    EXPECT_TRUE(absl::IsNotFound(put)) << put;
    EXPECT_EQ(MetadataOf(put, "name"), name);
  }
  EXPECT_TRUE(absl::IsNotFound(engine_->regions().Delete(kA, stranger.name)));
  EXPECT_EQ(FieldOf(engine_->arrays().BeginUpload(kA, Header(10, "nonsense"), Soon()).status()),
            "region");
  // No array was created.
  EXPECT_TRUE(absl::IsNotFound(engine_->arrays().Get(kA, "sessions/s/arrays/1").status()));
  // A named array belongs to no session.
  v1::PutArrayRequest::Header named = Header(10, other.name);
  named.set_parent("tenants/a");
  EXPECT_TRUE(engine_->arrays().BeginUpload(kA, named, Soon()).ok());
  EXPECT_TRUE(engine_->arrays().Delete(kA, "tenants/a/arrays/1").ok());
}

TEST_F(RegionsTest, ChunksOutsideTheRegionAreRefused) {
  Start(HostDevice(0));
  Mine mine = MustCreate(8192);
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  auto upload = engine_->arrays().BeginUpload(kA, Header(20000, mine.name), Soon());
  ASSERT_TRUE(upload.ok());
  const std::pair<int64_t, int64_t> wrong[] = {{-1, 1},   {0, -1},   {0, 8193}, {8192, 1},
                                               {8193, 0}, {kMax, 1}, {1, kMax}, {-5, 10}};
  for (auto [offset, size] : wrong) {
    absl::Status status = (*upload)->WriteShared(offset, size);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << offset << " " << size << " " << status;
    EXPECT_EQ(FieldOf(status), "chunk");
  }
  EXPECT_EQ((*upload)->remaining(), 20000);
  EXPECT_TRUE((*upload)->WriteShared(0, 8192).ok());
  EXPECT_TRUE((*upload)->WriteShared(0, 8192).ok());  // again: another part of the array
  EXPECT_EQ(FieldOf((*upload)->WriteShared(0, 8192)), "chunk");
  EXPECT_EQ(FieldOf((*upload)->Finish().status()), "chunk");
  ASSERT_TRUE((*upload)->WriteShared(0, 20000 - 2 * 8192).ok());
  ASSERT_TRUE((*upload)->Finish().ok());
  upload->reset();
  EXPECT_EQ(FieldOf(FetchTo(mine.name, 0).status()), "region_offset");
  EXPECT_EQ(FieldOf(FetchTo(mine.name, -1).status()), "region_offset");
  EXPECT_EQ(FieldOf(FetchTo(mine.name, kMax).status()), "region_offset");
}

TEST_F(RegionsTest, BytesTravelThroughHostMemory) {
  Start(HostDevice(0));
  RoundTrip();
}

TEST_F(RegionsTest, BytesTravelByDeviceCopies) {
  Start(StagedDevice(0));
  RoundTrip();
  auto worker = broker_->WaitForWorker(1);
  // Uploads use 1 MiB and the rest, downloads 1 MiB each.
  EXPECT_EQ(worker->num_region_copies(), 2 + 6);
  EXPECT_EQ(worker->num_regions(), 1);
  ASSERT_TRUE(engine_->sessions().Delete(kA, "sessions/s").ok());
  EXPECT_TRUE(BytesComeTo(0));
  EXPECT_EQ(worker->num_regions(), 0);
}

TEST_F(RegionsTest, LargeChunksAreSplitAndOverlap) {
  Start(StagedDevice(0, int64_t{1} << 30), 256 * kMiB);
  const int64_t size = 70 * kMiB + 1;
  Mine mine = MustCreate(size);
  Fill(mine);
  const std::string content(mine.data(), size);
  auto upload = engine_->arrays().BeginUpload(kA, Header(size, mine.name), Soon());
  ASSERT_TRUE(upload.ok()) << upload.status();
  ASSERT_TRUE((*upload)->WriteShared(0, size).ok());
  ASSERT_TRUE((*upload)->Finish().ok());
  upload->reset();
  EXPECT_EQ(broker_->WaitForWorker(1)->num_region_copies(), 5);
  std::memset(mine.data(), 0, size);
  auto download = FetchTo(mine.name, 0);
  ASSERT_TRUE(download.ok());
  FetchAll(**download, 0, size, 64 * kMiB);
  EXPECT_TRUE(std::string(mine.data(), size) == content);
}

TEST_F(RegionsTest, CopiesContinueWithReplacementWorkers) {
  Start(StagedDevice(0));
  broker_->set_die_at_copy(3, 2);
  RoundTrip();
  EXPECT_EQ(engine_->devices().Sample()[0].worker_restarts(), 2);
}

TEST_F(RegionsTest, CopyFailsWhenAllWorkersDie) {
  Start(StagedDevice(0));
  broker_->set_die_at_copy(1, 100);
  Mine mine = MustCreate(kMiB);
  auto upload = engine_->arrays().BeginUpload(kA, Header(kMiB, mine.name), Soon());
  ASSERT_TRUE(upload.ok()) << upload.status();
  absl::Status status = (*upload)->WriteShared(0, kMiB);
  if (status.ok()) status = (*upload)->Finish().status();
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_WORKER_LOST) << status;
  upload->reset();
  EXPECT_TRUE(engine_->sessions().Delete(kA, "sessions/s").ok());
}

TEST_F(RegionsTest, RegionInUseOutlivesDeletionAndSession) {
  for (bool staged : {false, true}) {
    Start(staged ? StagedDevice(0) : HostDevice(0));
    Mine mine = MustCreate(2 * kMiB);
    Fill(mine);
    const std::string content(mine.data(), 2 * kMiB);
    v1::PutArrayRequest::Header header = Header(2 * kMiB, mine.name);
    header.set_parent("tenants/a");
    header.set_array_id("named");
    auto upload = engine_->arrays().BeginUpload(kA, header, Soon());
    ASSERT_TRUE(upload.ok()) << upload.status();
    ASSERT_TRUE((*upload)->WriteShared(0, kMiB).ok());
    ASSERT_TRUE(engine_->regions().Delete(kA, mine.name).ok());
    ASSERT_TRUE(engine_->sessions().Delete(kA, "sessions/s").ok());
    EXPECT_EQ(engine_->regions().bytes(), 2 * kMiB);
    ASSERT_TRUE((*upload)->WriteShared(kMiB, kMiB).ok());
    ASSERT_TRUE((*upload)->Finish().ok());
    upload->reset();
    EXPECT_TRUE(BytesComeTo(0));
    v1::FetchArrayRequest request;
    request.set_name("tenants/a/arrays/named");
    auto download = engine_->arrays().BeginDownload(kA, request, Soon());
    ASSERT_TRUE(download.ok());
    std::string back;
    for (;;) {
      auto chunk = (*download)->Next(kMiB);
      ASSERT_TRUE(chunk.ok()) << chunk.status();
      if (chunk->bytes.empty()) break;
      back.append(chunk->bytes);
    }
    EXPECT_TRUE(back == content);
    download->reset();
    TearDown();
    broker_.reset();
  }
}

TEST_F(RegionsTest, DroppedUploadWaitsForItsCopies) {
  Start(StagedDevice(0));
  Mine mine = MustCreate(kMiB);
  auto upload = engine_->arrays().BeginUpload(kA, Header(kMiB, mine.name), Soon());
  ASSERT_TRUE(upload.ok()) << upload.status();
  auto worker = broker_->WaitForWorker(1);
  worker->HoldCopies(true);
  std::atomic<bool> dropped = false;
  std::thread call([&] {
    (*upload)->WriteShared(0, kMiB).IgnoreError();
    upload->reset();
    dropped = true;
  });
  ASSERT_TRUE(engine_->regions().Delete(kA, mine.name).ok());
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_FALSE(dropped);
  EXPECT_EQ(worker->num_regions(), 1);
  worker->HoldCopies(false);
  call.join();
  // Its missing part may still arrive.
  EXPECT_TRUE(engine_->sessions().Delete(kA, "sessions/s").ok());
  EXPECT_TRUE(BytesComeTo(0));
  EXPECT_EQ(worker->num_regions(), 0);
}

// A file has no mapping: bytes are copied directly between it and the region.
TEST_F(RegionsTest, RegionsReachArraysInFiles) {
  const std::string folder = ::testing::TempDir() + absl::StrCat("/regions-", getpid());
  ASSERT_TRUE(store::PrepareSpillFolder(folder).ok());
  broker_ =
      std::make_unique<FakeBroker>(std::vector<wire::DeviceDescription>{StagedDevice(0, 4 * kMiB)});
  EngineOptions options;
  options.region_bytes = 64 * kMiB;
  options.spill_disk_bytes = 64 * kMiB;
  options.spill_folder = folder;
  engine_ = Engine::Create(std::move(options), broker_.get());
  v1::CreateSessionRequest request;
  request.set_session_id("s");
  ASSERT_TRUE(engine_->sessions().Create(kA, request).ok());
  RoundTrip();  // larger than the device
  EXPECT_GT(engine_->devices().SampleSpill().disk_bytes, 0);
}

}  // namespace
}  // namespace stride::engine
