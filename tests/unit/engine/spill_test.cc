// A full device: victims, their destination, restored contents, and the errors when nothing can be
// evicted.
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/engine/engine.h"
#include "server/engine/service/array_service.h"
#include "server/engine/service/device_service.h"
#include "server/engine/service/operation_service.h"
#include "server/engine/service/session_service.h"
#include "server/store/spill_file.h"
#include "tests/support/await.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"
#include "tests/support/temporary_folder.h"

namespace stride::engine {
namespace {

using ::stride::testing::Eventually;
using ::stride::testing::FakeBroker;
using ::stride::testing::FakeWorker;
using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kQuarter = kMiB / 4;

const TenantId kTenant{"default"};
const TenantId kOther{"other"};

bool HasRetryDelay(const absl::Status& status) {
  return status.GetPayload("type.googleapis.com/google.rpc.RetryInfo").has_value();
}

class SpillTest : public ::testing::Test {
 protected:
  struct Limits {
    int64_t memory = 64 * kMiB;
    int64_t disk = 0;
    absl::Duration patience = absl::Seconds(5);
  };
  void Start(std::vector<wire::DeviceDescription> devices, Limits limits, bool hold = false) {
    broker_ = std::make_unique<FakeBroker>(std::move(devices));
    broker_->set_hold(hold);
    EngineOptions options;
    options.device_memory_share = 1;
    options.spill_memory_bytes = limits.memory;
    options.spill_disk_bytes = limits.disk;
    options.upload_lease = absl::Milliseconds(1);
    options.keep_empty_time = absl::Milliseconds(50);
    options.housekeeping_interval = absl::Milliseconds(100);
    options.memory_patience = limits.patience;
    folder_ = absl::StrCat(::testing::TempDir(), "/spill-", getpid());
    options.spill_folder = folder_;
    ASSERT_TRUE(store::PrepareSpillFolder(folder_).ok());
    engine_ = Engine::Create(options, broker_.get());
    for (const TenantId& tenant : {kTenant, kOther}) {
      v1::CreateSessionRequest request;
      request.set_session_id(tenant.value);
      ASSERT_TRUE(engine_->sessions().Create(tenant, request).ok());
    }
  }
  void TearDown() override {
    EXPECT_TRUE(EndEngine(*broker_, *engine_));
    engine_.reset();
    EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "nothing with a name is ever there";
    stride::test_support::RemoveFolder(folder_);
  }

  static SteadyTime Soon() { return Now() + absl::Seconds(100); }
  static std::string Session(const TenantId& tenant) {
    return absl::StrCat("sessions/", tenant.value);
  }
  static std::string Name(uint64_t handle, const TenantId& tenant = kTenant) {
    return absl::StrCat(Session(tenant), "/arrays/", handle);
  }
  // Bytes that only this handle and version have.
  static std::string Content(uint64_t handle, int64_t size, uint32_t version = 0) {
    std::mt19937 random(static_cast<uint32_t>(handle) * 1000 + version);
    std::string bytes(static_cast<size_t>(size), '\0');
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      uint32_t word = static_cast<uint32_t>(random());
      std::memcpy(&bytes[i], &word, 4);
    }
    return bytes;
  }

  absl::Status Write(uint64_t handle, int64_t size, const std::string& bytes, int64_t begin,
                     bool overwrite, const TenantId& tenant, const std::string& device) {
    v1::PutArrayRequest::Header header;
    header.set_parent(Session(tenant));
    header.set_array_id(absl::StrCat(handle));
    header.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
    header.mutable_spec()->add_shape(size);
    header.mutable_range()->set_begin(begin);
    header.mutable_range()->set_end(begin + static_cast<int64_t>(bytes.size()));
    header.set_overwrite(overwrite);
    header.set_device(device);
    auto upload = engine_->arrays().BeginUpload(tenant, header, Soon());
    if (!upload.ok()) return upload.status();
    absl::Status written = (*upload)->Write(bytes);
    return written.ok() ? (*upload)->Finish().status() : written;
  }
  absl::Status Put(uint64_t handle, int64_t size = kQuarter, const TenantId& tenant = kTenant,
                   const std::string& device = "") {
    return Write(handle, size, Content(handle, size), 0, false, tenant, device);
  }
  absl::StatusOr<std::string> Fetch(uint64_t handle, const TenantId& tenant = kTenant) {
    v1::FetchArrayRequest request;
    request.set_name(Name(handle, tenant));
    auto download = engine_->arrays().BeginDownload(tenant, request, Soon());
    if (!download.ok()) return download.status();
    std::string bytes;
    while (true) {
      auto chunk = (*download)->Next(100000);
      if (!chunk.ok()) return chunk.status();
      if (chunk->bytes.empty()) return bytes;
      bytes.append(chunk->bytes);
    }
  }
  void ExpectWhole(uint64_t handle, int64_t size = kQuarter, const TenantId& tenant = kTenant) {
    auto bytes = Fetch(handle, tenant);
    ASSERT_TRUE(bytes.ok()) << handle << ": " << bytes.status();
    EXPECT_TRUE(*bytes == Content(handle, size)) << handle;
  }
  // An n x n matrix of float32 and its inverse: a worker needs two more such matrices.
  absl::Status PutMatrix(uint64_t handle, int64_t n) {
    v1::PutArrayRequest::Header header;
    header.set_parent(Session(kTenant));
    header.set_array_id(absl::StrCat(handle));
    header.mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
    header.mutable_spec()->add_shape(n);
    header.mutable_spec()->add_shape(n);
    header.mutable_range()->set_end(n * n * 4);
    auto upload = engine_->arrays().BeginUpload(kTenant, header, Soon());
    if (!upload.ok()) return upload.status();
    absl::Status written = (*upload)->Write(Content(handle, n * n * 4));
    return written.ok() ? (*upload)->Finish().status() : written;
  }
  static v1::Operation Inverse(uint64_t in, uint64_t out) {
    v1::Operation operation;
    operation.mutable_linalg()->set_function(v1::Linalg::FUNCTION_INVERSE);
    operation.mutable_linalg()->add_operands()->set_handle(in);
    operation.add_outputs()->set_handle(out);
    return operation;
  }
  bool OnDevice(uint64_t handle, const TenantId& tenant = kTenant) {
    auto array = engine_->arrays().Get(tenant, Name(handle, tenant));
    return array.ok() && array->devices_size() > 0;
  }
  // A task that reads one array and creates one.
  static v1::Operation Negate(uint64_t in, uint64_t out, const std::string& device = "") {
    v1::Operation operation;
    operation.mutable_ufunc()->set_function("invert");
    operation.mutable_ufunc()->add_inputs()->set_handle(in);
    operation.add_outputs()->set_handle(out);
    operation.set_device(device);
    return operation;
  }
  std::shared_ptr<OperationHandle> Submit(const v1::Operation& operation,
                                          const TenantId& tenant = kTenant) {
    auto ticket = engine_->operations().Submit(tenant, Session(tenant), operation,
                                               SteadyTime::InfiniteFuture());
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return ticket.ok() ? *ticket : nullptr;
  }
  absl::Status Run(const v1::Operation& operation, const TenantId& tenant = kTenant) {
    auto ticket = Submit(operation, tenant);
    return ticket != nullptr ? ticket->Wait(Soon()) : absl::InternalError("refused");
  }
  void Release(uint64_t handle, const TenantId& tenant = kTenant) {
    v1::Release release;
    release.add_handles(handle);
    ASSERT_TRUE(engine_->operations().Release(tenant, Session(tenant), release).ok());
  }

  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
  std::string folder_;
};

wire::DeviceDescription Device(const std::string& kind, int64_t bytes) {
  return kind == "cpu" ? HostDevice(0, bytes) : StagedDevice(0, bytes);
}

class SpillKindTest : public SpillTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(SpillKindTest, LeastRecentlyUsedArraysAreEvicted) {
  Start({Device(GetParam(), kMiB)}, {});
  for (uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(Put(i).ok());
  EXPECT_EQ(engine_->devices().SampleSpill().memory_bytes, 0);
  ExpectWhole(1);
  ASSERT_TRUE(Run(Negate(2, 9)).ok());  // needs a quarter more
  EXPECT_TRUE(OnDevice(1) && OnDevice(2) && OnDevice(4) && OnDevice(9));
  EXPECT_FALSE(OnDevice(3));
  EXPECT_EQ(engine_->devices().SampleSpill().memory_bytes, kQuarter);
  EXPECT_EQ(engine_->devices().SampleSpill().spilled_bytes, kQuarter);
  ASSERT_TRUE(Put(5).ok());
  EXPECT_FALSE(OnDevice(4));
  EXPECT_TRUE(OnDevice(1));
  for (uint64_t i = 1; i <= 5; ++i) ExpectWhole(i);
}

// The search visits about as many arrays as it evicts, however many exist.
TEST_P(SpillKindTest, VictimSearchIsProportionalToVictims) {
  constexpr int64_t kSize = 2 * kMiB / 512;
  Start({Device(GetParam(), 2 * kMiB)}, {});
  for (uint64_t i = 1; i <= 512; ++i) ASSERT_TRUE(Put(i, kSize).ok());
  ASSERT_EQ(engine_->devices().SampleSpill().spilled_bytes, 0);
  // Uses the first arrays again.
  for (uint64_t i = 1; i <= 64; ++i) ExpectWhole(i, kSize);
  constexpr uint64_t kMore = 1000;
  for (uint64_t i = 513; i <= 512 + kMore; ++i) ASSERT_TRUE(Put(i, kSize).ok());
  SpillSample sample = engine_->devices().SampleSpill();
  int64_t left = sample.spilled_bytes / kSize;
  EXPECT_GE(left, static_cast<int64_t>(kMore));
  EXPECT_LE(sample.looked_at, 3 * left + 100) << left;
  std::printf("  %lld left, %lld were looked at\n", static_cast<long long>(left),
              static_cast<long long>(sample.looked_at));
}

TEST_P(SpillKindTest, TaskRestoresItsInput) {
  Start({Device(GetParam(), kMiB)}, {});
  for (uint64_t i = 1; i <= 6; ++i) ASSERT_TRUE(Put(i).ok());
  ASSERT_FALSE(OnDevice(1));
  ASSERT_TRUE(Run(Negate(1, 10)).ok());
  EXPECT_TRUE(OnDevice(1));
  EXPECT_EQ(engine_->devices().SampleSpill().returned_bytes, kQuarter);
  // A restored array leaves its copy in place: the next eviction copies nothing.
  int64_t spilled = engine_->devices().SampleSpill().spilled_bytes;
  for (uint64_t i = 1; i <= 6; ++i) ExpectWhole(i);
  for (uint64_t i : {2, 3, 4}) ASSERT_TRUE(Run(Negate(i, 10 + i)).ok());
  EXPECT_GT(engine_->devices().SampleSpill().dropped_bytes, 0);
  EXPECT_GE(engine_->devices().SampleSpill().spilled_bytes, spilled);
  for (uint64_t i = 1; i <= 6; ++i) ExpectWhole(i);
}

TEST_P(SpillKindTest, FullMemorySpillsToFilesThenFails) {
  Start({Device(GetParam(), kMiB)}, {.memory = kMiB, .disk = 2 * kMiB});
  for (uint64_t i = 1; i <= 16; ++i) ASSERT_TRUE(Put(i).ok()) << i;
  SpillSample sample = engine_->devices().SampleSpill();
  EXPECT_EQ(sample.memory_bytes, kMiB);
  EXPECT_EQ(sample.disk_bytes, 2 * kMiB);
  EXPECT_LE(sample.memory_arena_bytes, kMiB);
  EXPECT_LE(sample.disk_arena_bytes, 2 * kMiB);
  absl::Status full = Put(17);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_EQ(ReasonOf(full), v1::ERROR_REASON_DEVICE_MEMORY);
  EXPECT_TRUE(HasRetryDelay(full));
  for (uint64_t i = 1; i <= 16; ++i) ExpectWhole(i);
  // The end of any array makes room for one.
  Release(3);
  uint64_t next = 18;
  ASSERT_TRUE(Eventually([&] { return Put(next++).ok(); }));
  ExpectWhole(next - 1);
}

// A quarter for the matrix, one for its inverse, and half of the device for work memory.
TEST_P(SpillKindTest, ArraysAreEvictedForWorkMemory) {
  Start({Device(GetParam(), kMiB)}, {});
  ASSERT_TRUE(PutMatrix(1, 256).ok());
  for (uint64_t i = 2; i <= 4; ++i) ASSERT_TRUE(Put(i).ok());
  ASSERT_EQ(engine_->devices().SampleSpill().spilled_bytes, 0);
  const absl::Status ran = Run(Inverse(1, 9));
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_TRUE(OnDevice(1) && OnDevice(9));
  for (uint64_t i = 2; i <= 4; ++i) EXPECT_FALSE(OnDevice(i)) << i;
  EXPECT_EQ(engine_->devices().SampleSpill().spilled_bytes, 3 * kQuarter);
  // That half is free for others once the task ends.
  for (uint64_t i = 5; i <= 6; ++i) ASSERT_TRUE(Put(i).ok());
  EXPECT_EQ(engine_->devices().SampleSpill().spilled_bytes, 3 * kQuarter);
  EXPECT_TRUE(OnDevice(1) && OnDevice(5) && OnDevice(6) && OnDevice(9));
  for (uint64_t i = 2; i <= 6; ++i) ExpectWhole(i);
}

TEST_P(SpillKindTest, WorkMemoryMustFitTheDevice) {
  Start({Device(GetParam(), kMiB)}, {});
  ASSERT_TRUE(PutMatrix(1, 300).ok());  // 360,000 bytes
  ASSERT_TRUE(Put(2).ok());
  const absl::Status full = Run(Inverse(1, 9));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_EQ(ReasonOf(full), v1::ERROR_REASON_DEVICE_MEMORY);
  EXPECT_NE(full.message().find("Needed: 1440000 bytes"), absl::string_view::npos) << full;
  ExpectWhole(1, 360000);
  ExpectWhole(2);
  ASSERT_TRUE(PutMatrix(3, 200).ok());
  EXPECT_TRUE(Run(Inverse(3, 10)).ok());
}

TEST_P(SpillKindTest, WorkMemoryOfARunningTaskIsNotShared) {
  Start({Device(GetParam(), kMiB)}, {.patience = absl::Milliseconds(300)}, /*hold=*/true);
  ASSERT_TRUE(PutMatrix(1, 256).ok());
  auto running = Submit(Inverse(1, 2));  // the whole device
  auto worker = broker_->WaitForWorker(1);
  ASSERT_TRUE(Eventually([&] { return worker->num_held() == 1; }));
  const absl::Status full = Put(3);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  auto waiting = Submit(Inverse(1, 4));
  worker->EndNext();
  EXPECT_TRUE(running->Wait(Soon()).ok());
  ASSERT_TRUE(Eventually([&] { return worker->num_held() == 1; }));
  worker->EndNext();
  EXPECT_TRUE(waiting->Wait(Soon()).ok());
  // Another handle: the lease of the refused upload may have ended, and array 3 carries the error.
  absl::Status put;
  EXPECT_TRUE(Eventually([&] { return (put = Put(5)).ok(); })) << put;
}

TEST_P(SpillKindTest, NoSpillSpaceIsAnError) {
  Start({Device(GetParam(), kMiB)}, {.memory = 0});
  for (uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(Put(i).ok());
  absl::Status full = Put(5);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  for (uint64_t i = 1; i <= 4; ++i) ExpectWhole(i);
}

TEST_P(SpillKindTest, AllUsageReturnsToZero) {
  Start({Device(GetParam(), kMiB)}, {.memory = kMiB, .disk = 4 * kMiB});
  for (uint64_t i = 1; i <= 20; ++i) ASSERT_TRUE(Put(i).ok());
  ASSERT_TRUE(Run(Negate(1, 21)).ok());
  for (const TenantId& tenant : {kTenant, kOther})
    ASSERT_TRUE(engine_->sessions().Delete(tenant, Session(tenant)).ok());
  auto zero = [&] {
    SpillSample spill = engine_->devices().SampleSpill();
    v1::DeviceSample device = engine_->devices().Sample()[0];
    return spill.memory_bytes == 0 && spill.disk_bytes == 0 && spill.memory_arena_bytes == 0 &&
           spill.disk_arena_bytes == 0 && device.array_bytes() == 0 && device.arena_bytes() == 0;
  };
  EXPECT_TRUE(Eventually(zero));
}

// The tasks need more than the device; each gets all it needs in its turn.
TEST_P(SpillKindTest, QueuedTasksLargerThanDeviceAllEnd) {
  Start({Device(GetParam(), kMiB)}, {});
  constexpr uint64_t kCount = 24;
  for (uint64_t i = 1; i <= kCount; ++i) ASSERT_TRUE(Put(i).ok());
  std::vector<std::shared_ptr<OperationHandle>> tickets;
  for (uint64_t i = 1; i <= kCount; ++i) tickets.push_back(Submit(Negate(i, 100 + i)));
  for (auto& ticket : tickets) EXPECT_TRUE(ticket->Wait(Soon()).ok()) << ticket->Wait(Soon());
  for (uint64_t i = 1; i <= kCount; ++i) ExpectWhole(i);
}

// A fifth each for two inputs, which must be restored, and for a result. Holding only a part, each
// task would wait for the other. Repeated for different interleavings.
TEST_P(SpillKindTest, TwoTasksOfThreeFifthsOfTheDeviceEnd) {
  Start({Device(GetParam(), kMiB)}, {});
  constexpr int64_t kPart = kMiB / 5 / 4096 * 4096;
  constexpr uint64_t kPairs = 30;
  for (const TenantId& tenant : {kTenant, kOther}) {
    for (uint64_t i = 1; i <= 2 * kPairs; ++i) ASSERT_TRUE(Put(i, kPart, tenant).ok());
  }
  std::vector<std::shared_ptr<OperationHandle>> tickets;
  for (uint64_t i = 1; i <= kPairs; ++i) {
    for (const TenantId& tenant : {kTenant, kOther}) {
      v1::Operation operation;
      operation.mutable_ufunc()->set_function("add");
      operation.mutable_ufunc()->add_inputs()->set_handle(i);
      operation.mutable_ufunc()->add_inputs()->set_handle(kPairs + i);
      operation.add_outputs()->set_handle(1000 + i);
      tickets.push_back(Submit(operation, tenant));
    }
  }
  for (auto& ticket : tickets) EXPECT_TRUE(ticket->Wait(Soon()).ok()) << ticket->Wait(Soon());
  for (const TenantId& tenant : {kTenant, kOther}) {
    for (uint64_t i = 1; i <= 2 * kPairs; i += 5) ExpectWhole(i, kPart, tenant);
  }
}

TEST_P(SpillKindTest, ArraysOfRunningTasksStay) {
  Start({Device(GetParam(), kMiB)}, {.patience = absl::Milliseconds(300)}, /*hold=*/true);
  ASSERT_TRUE(Put(1, kMiB / 2).ok());
  auto running = Submit(Negate(1, 2));  // the whole device
  auto worker = broker_->WaitForWorker(1);
  ASSERT_TRUE(Eventually([&] { return worker->num_held() == 1; }));
  absl::Status full = Put(3);  // after a while, in which the other might have ended
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_TRUE(OnDevice(1));
  auto waiting = Submit(Negate(1, 4));
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_FALSE(waiting->done()) << "it can wait for the other";
  worker->EndNext();
  EXPECT_TRUE(running->Wait(Soon()).ok());
  ASSERT_TRUE(Eventually([&] { return worker->num_held() == 1; }));
  EXPECT_FALSE(OnDevice(2)) << "the only one that is in nobody's way";
  worker->EndNext();
  EXPECT_TRUE(waiting->Wait(Soon()).ok());
}

// The first bytes have been copied by then, with their old values.
TEST_P(SpillKindTest, WriteDuringEvictionIsKept) {
  constexpr int64_t kSize = 48 * kMiB;
  Start({Device(GetParam(), 2 * kSize)}, {.memory = 8 * kSize});
  ASSERT_TRUE(Put(1, kSize).ok());
  ASSERT_TRUE(Put(2, kSize).ok());
  std::thread other([&] { EXPECT_TRUE(Put(3, kSize).ok()); });
  bool leaving = Eventually([&] { return engine_->devices().SampleSpill().memory_bytes > 0; });
  absl::SleepFor(absl::Milliseconds(3));
  EXPECT_TRUE(Write(1, kSize, "hello", 0, true, kTenant, "").ok());
  other.join();
  EXPECT_TRUE(leaving);
  auto bytes = Fetch(1);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->substr(0, 5), "hello");
  EXPECT_TRUE(bytes->substr(5) == Content(1, kSize).substr(5));
  ExpectWhole(2, kSize);
  ExpectWhole(3, kSize);
}

TEST_P(SpillKindTest, OversizedTaskFailsWithoutEviction) {
  Start({Device(GetParam(), kMiB)}, {});
  ASSERT_TRUE(Put(1, kMiB * 3 / 4).ok());
  ASSERT_TRUE(Put(2).ok());
  // A product of views, which does not run in pieces, with a result of more than a half.
  auto view = [&](uint64_t handle, bool transposed) {
    v1::Operation operation;
    operation.mutable_view()->mutable_input()->set_handle(1);
    auto* reshape = operation.mutable_view()->add_steps()->mutable_reshape();
    reshape->add_shape(768);
    reshape->add_shape(1024);
    if (transposed) operation.mutable_view()->add_steps()->mutable_transpose();
    operation.add_outputs()->set_handle(handle);
    return Run(operation);
  };
  ASSERT_TRUE(view(10, false).ok() && view(11, true).ok());
  v1::Operation product;
  product.mutable_matmul()->mutable_left()->set_handle(10);
  product.mutable_matmul()->mutable_right()->set_handle(11);
  product.add_outputs()->set_handle(3);
  absl::Status status = Run(product);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_DEVICE_MEMORY);
  EXPECT_FALSE(HasRetryDelay(status)) << "it never fits";
  EXPECT_TRUE(OnDevice(1) && OnDevice(2));
  EXPECT_EQ(engine_->devices().SampleSpill().spilled_bytes, 0);
}

TEST_P(SpillKindTest, IdleArraysOfOtherTenantAreEvictedIntact) {
  Start({Device(GetParam(), kMiB)}, {.memory = kMiB / 2, .disk = 8 * kMiB});
  for (uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(Put(i, kQuarter, kOther).ok());
  for (uint64_t i = 1; i <= 8; ++i) ASSERT_TRUE(Put(i).ok());
  for (uint64_t i = 1; i <= 4; ++i) {
    EXPECT_FALSE(OnDevice(i, kOther)) << i;
    ExpectWhole(i, kQuarter, kOther);
  }
  for (uint64_t i = 1; i <= 8; ++i) ExpectWhole(i);
}

// Several threads upload, partly overwrite, compute on, fetch and delete arrays of all sizes. The
// device holds only a fraction of them.
TEST_P(SpillKindTest, ArraysStayDistinctUnderLoad) {
  Start({Device(GetParam(), 2 * kMiB)}, {.memory = 2 * kMiB, .disk = 64 * kMiB});
  constexpr int kThreads = 4, kRounds = 150;
  std::vector<std::thread> threads;
  std::atomic<int> num_full{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const TenantId& tenant = t % 2 == 0 ? kTenant : kOther;
      std::mt19937 random(static_cast<uint32_t>(t));
      std::map<uint64_t, std::string> mine;
      uint64_t next = static_cast<uint64_t>(t) * 100000 + 1;
      for (int round = 0; round < kRounds; ++round) {
        uint32_t what = random() % 10;
        auto chosen = mine.begin();
        if (!mine.empty()) std::advance(chosen, random() % mine.size());
        if (mine.size() < 12 && (mine.empty() || what < 3)) {
          int64_t size = 4 * (1 + static_cast<int64_t>(random() % (60 << 10)));
          uint64_t handle = next++;
          absl::Status status = Put(handle, size, tenant);
          if (status.ok()) {
            mine[handle] = Content(handle, size);
          } else {
            EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
            ++num_full;
            Release(handle, tenant);
          }
        } else if (what < 5) {
          std::string& bytes = chosen->second;
          int64_t begin = static_cast<int64_t>(random() % bytes.size());
          int64_t count = 1 + static_cast<int64_t>(random() % (bytes.size() - begin));
          std::string part = Content(next++, count + 4).substr(0, static_cast<size_t>(count));
          absl::Status status = Write(chosen->first, static_cast<int64_t>(bytes.size()), part,
                                      begin, true, tenant, "");
          EXPECT_TRUE(status.ok()) << status;
          bytes.replace(static_cast<size_t>(begin), part.size(), part);
        } else if (what < 7) {
          uint64_t out = next++;
          absl::Status status = Run(Negate(chosen->first, out), tenant);
          EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
          if (!status.ok()) ++num_full;
          Release(out, tenant);
        } else if (what < 9) {
          auto bytes = Fetch(chosen->first, tenant);
          EXPECT_TRUE(bytes.ok()) << bytes.status();
          if (bytes.ok()) {
            EXPECT_TRUE(*bytes == chosen->second) << chosen->first;
          }
        } else if (mine.size() > 6) {
          Release(chosen->first, tenant);
          mine.erase(chosen);
        }
      }
      for (auto& [handle, bytes] : mine) {
        auto back = Fetch(handle, tenant);
        EXPECT_TRUE(back.ok() && *back == bytes) << handle << " " << back.status();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GT(engine_->devices().SampleSpill().spilled_bytes, 4 * kMiB) << "it was tight";
  EXPECT_LT(num_full, kThreads * kRounds / 20);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SpillKindTest, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

// The data came with the request, so that it must be copied to the device.
v1::Operation NegateInline(int64_t size, uint64_t out, const std::string& device) {
  v1::Operation operation;
  operation.mutable_ufunc()->set_function("invert");
  v1::InlineArray* in = operation.mutable_ufunc()->add_inputs()->mutable_inline_array();
  in->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  in->mutable_spec()->add_shape(size);
  in->set_data(std::string(static_cast<size_t>(size), 'x'));
  operation.add_outputs()->set_handle(out);
  operation.set_device(device);
  return operation;
}

// Each task gets one of its two blocks, and no third fits. The later task must not take the block
// of the other. Otherwise each loses its block when the other requests its second, for ever.
TEST_F(SpillTest, TwoWaitingTasksDoNotEvictEachOther) {
  constexpr int64_t kBlock = kMiB * 3 / 8;
  Start({StagedDevice(0, kMiB)}, {}, /*hold=*/true);
  // All of the device is used until both wait.
  ASSERT_TRUE(Put(1, kMiB / 2, kOther).ok());
  auto running = Submit(Negate(1, 2), kOther);
  auto held = broker_->WaitForWorker(1);
  ASSERT_TRUE(Eventually([&] { return held->num_held() == 1; }));
  broker_->set_hold(false);
  auto first = Submit(NegateInline(kBlock, 3, ""));
  auto worker = broker_->WaitForWorker(2);
  absl::SleepFor(absl::Milliseconds(50));
  auto second = Submit(NegateInline(kBlock, 3, ""), kOther);
  absl::SleepFor(absl::Milliseconds(50));
  ASSERT_FALSE(first->done() || second->done());
  Release(1, kOther);
  Release(2, kOther);
  ASSERT_TRUE(held->EndNext());
  EXPECT_TRUE(first->Wait(Soon()).ok()) << first->Wait(Soon());
  EXPECT_TRUE(Eventually([&] {
    held->EndNext();
    return second->done();
  }));
  EXPECT_TRUE(second->Wait(Soon()).ok()) << second->Wait(Soon());
}

// The task had its memory, based on a copy in flight that became outdated. Another task then waits
// for the room of its result.
TEST_F(SpillTest, TaskThatWaitsAgainReleasesItsMemory) {
  constexpr int64_t kBlock = kMiB * 3 / 8;
  const std::string device = "devices/cuda:0", other = "devices/cpu:0";
  Start({StagedDevice(0, kMiB), HostDevice(0)}, {});
  ASSERT_TRUE(Put(1, kBlock, kTenant, other).ok());
  ASSERT_TRUE(Put(2, 1000, kTenant, device).ok());
  auto worker = broker_->WaitForWorker(1);
  Release(2);
  worker->HoldCopies(true);
  auto given_up = Submit(Negate(1, 10, device));
  absl::SleepFor(absl::Milliseconds(50));  // its input's copy begins
  given_up->Cancel();
  EXPECT_EQ(given_up->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  Release(10);
  v1::Operation in_place = Negate(1, 1, other);
  in_place.mutable_outputs(0)->set_existing(true);
  ASSERT_TRUE(Run(in_place).ok());
  auto first = Submit(Negate(1, 11, device));
  auto second = Submit(NegateInline(kBlock, 12, device));
  absl::SleepFor(absl::Milliseconds(50));
  ASSERT_FALSE(first->done() || second->done());
  worker->HoldCopies(false);
  EXPECT_TRUE(second->Wait(Soon()).ok()) << second->Wait(Soon());
  EXPECT_TRUE(first->Wait(Soon()).ok()) << first->Wait(Soon());
}

// A deleted array would be the first victim, but a copy to its block is in flight.
TEST_P(SpillKindTest, UploadKeepsMemoryOfDeletedArray) {
  Start({Device(GetParam(), kMiB)}, {});
  v1::PutArrayRequest::Header header;
  header.set_parent(Session(kTenant));
  header.set_array_id("1");
  header.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  header.mutable_spec()->add_shape(kMiB / 2);
  auto upload = engine_->arrays().BeginUpload(kTenant, header, Soon());
  ASSERT_TRUE(upload.ok()) << upload.status();
  const std::string part(kMiB / 4, 'x');
  ASSERT_TRUE((*upload)->Write(part).ok());
  ASSERT_TRUE(engine_->arrays().Delete(kTenant, Name(1)).ok());
  ASSERT_TRUE(Put(2, kMiB / 2).ok());
  ASSERT_TRUE(Put(3, kMiB / 2).ok());
  EXPECT_FALSE(OnDevice(2));
  EXPECT_TRUE((*upload)->Write(part).ok());
  EXPECT_FALSE((*upload)->Finish().ok());
  upload->reset();
  ExpectWhole(2, kMiB / 2);
  ExpectWhole(3, kMiB / 2);
  ASSERT_TRUE(Put(4, kMiB / 2).ok());
  EXPECT_TRUE(OnDevice(3)) << "now it is the first to go";
}

TEST_F(SpillTest, PartialWriteChangesSpilledArrayInPlace) {
  Start({HostDevice(0, kMiB)}, {.memory = kMiB / 2, .disk = 4 * kMiB});
  for (uint64_t i = 1; i <= 8; ++i) ASSERT_TRUE(Put(i).ok());
  ASSERT_EQ(engine_->devices().SampleSpill().memory_bytes, kMiB / 2);
  ASSERT_EQ(engine_->devices().SampleSpill().disk_bytes, kMiB / 2);
  for (uint64_t i = 1; i <= 8; ++i) {
    std::string bytes = Content(i, kQuarter);
    bytes.replace(1001, 5, "hello");
    ASSERT_TRUE(Write(i, kQuarter, "hello", 1001, true, kTenant, "").ok());
    auto back = Fetch(i);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == bytes) << i;
  }
}

// Many small arrays fill a device's limit; each eviction leaves enough room for the next array.
TEST_F(SpillTest, SmallArraysAreEvictedInBatches) {
  Start({HostDevice(0, kMiB)}, {});
  constexpr int64_t kSmall = 1000;
  for (uint64_t i = 1; i <= 3000; ++i) ASSERT_TRUE(Put(i, kSmall).ok()) << i;
  SpillSample sample = engine_->devices().SampleSpill();
  EXPECT_GE(sample.spilled_bytes, 3000 * kSmall - kMiB);
  EXPECT_LE(sample.spilled_bytes, 3000 * kSmall - kMiB * 3 / 4);
  for (uint64_t i = 1; i <= 3000; i += 7) ExpectWhole(i, kSmall);
}

TEST_F(SpillTest, LargeArraysAreEvictedByWholeArenas) {
  Start({HostDevice(0, 160 * kMiB)}, {.memory = 400 * kMiB});
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(Put(i, 48 * kMiB).ok());
  ASSERT_TRUE(Put(4, 90 * kMiB).ok());
  EXPECT_FALSE(OnDevice(1));
  EXPECT_FALSE(OnDevice(2));
  EXPECT_TRUE(OnDevice(3));
  EXPECT_EQ(engine_->devices().SampleSpill().memory_bytes, 96 * kMiB);
  for (uint64_t i = 1; i <= 3; ++i) ExpectWhole(i, 48 * kMiB);
}

TEST_F(SpillTest, EmptyArenasAreFreedDuringTheSession) {
  Start({HostDevice(0, 256 * kMiB)}, {});
  ASSERT_TRUE(Put(1, 100 * kMiB).ok());
  Release(1);
  EXPECT_TRUE(Eventually([&] { return engine_->devices().Sample()[0].arena_bytes() == 0; }));
}

// Operations on arrays that are larger than the device.
class StreamKindTest : public SpillKindTest {
 protected:
  static constexpr int64_t kLarge = 5 * kMiB;
  // Its first piece or two are in the worker's queue.
  std::shared_ptr<FakeWorker> BeginHeld(std::shared_ptr<OperationHandle>* ticket,
                                        absl::Duration patience = absl::InfiniteDuration()) {
    Start({Device(GetParam(), kMiB)}, {}, /*hold=*/true);
    EXPECT_TRUE(Put(1, kLarge).ok());
    auto submitted =
        engine_->operations().Submit(kTenant, Session(kTenant), Negate(1, 2), Now() + patience);
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    *ticket = *submitted;
    auto worker = broker_->WaitForWorker(1);
    // Or its deadline has already passed, on a busy machine.
    EXPECT_TRUE(Eventually([&] { return worker->num_held() == 2 || (*ticket)->done(); }));
    return worker;
  }
  void ExpectAllReturns() {
    ASSERT_TRUE(engine_->sessions().Delete(kTenant, Session(kTenant)).ok());
    auto zero = [&] {
      SpillSample spill = engine_->devices().SampleSpill();
      v1::DeviceSample device = engine_->devices().Sample()[0];
      return spill.memory_arena_bytes == 0 && spill.disk_arena_bytes == 0 &&
             device.arena_bytes() == 0 && device.queue_depth() == 0;
    };
    EXPECT_TRUE(Eventually(zero));
  }
};

TEST_P(StreamKindTest, ArrayLargerThanDeviceRoundTrips) {
  Start({Device(GetParam(), kMiB)}, {.memory = 8 * kMiB, .disk = 32 * kMiB});
  for (uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(Put(i, kLarge).ok()) << i;
  for (uint64_t i = 1; i <= 4; ++i) ExpectWhole(i, kLarge);
  EXPECT_GE(engine_->devices().SampleSpill().disk_bytes, 2 * kLarge);
  EXPECT_EQ(engine_->devices().Sample()[0].arena_bytes(), 0);
  absl::Status status = Put(5, 33 * kMiB);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  ExpectAllReturns();
}

TEST_P(StreamKindTest, OperationsOnLargeArraysRunInPieces) {
  Start({Device(GetParam(), kMiB)}, {});
  ASSERT_TRUE(Put(1, kLarge).ok());
  int64_t before = engine_->devices().Sample()[0].jobs_succeeded();
  std::vector<std::shared_ptr<OperationHandle>> tickets;
  for (uint64_t i = 2; i <= 5; ++i) tickets.push_back(Submit(Negate(i - 1, i)));
  for (auto& ticket : tickets) EXPECT_TRUE(ticket->Wait(Soon()).ok()) << ticket->Wait(Soon());
  // A piece has an eighth of the device for its inputs and outputs.
  EXPECT_EQ(broker_->WaitForWorker(1)->num_ended(), 4 * 2 * kLarge / (kMiB / 8));
  EXPECT_EQ(engine_->devices().Sample()[0].jobs_succeeded() - before, 4);
  ExpectWhole(1, kLarge);
  ASSERT_TRUE(Fetch(5).ok());
  EXPECT_EQ(Fetch(5)->size(), static_cast<size_t>(kLarge));
  EXPECT_LE(engine_->devices().Sample()[0].arena_bytes(), kMiB);
  tickets.clear();
  ExpectAllReturns();
}

TEST_P(StreamKindTest, OtherTenantsRunDuringPieces) {
  Start({Device(GetParam(), kMiB)}, {.memory = 96 * kMiB});
  std::vector<std::shared_ptr<OperationHandle>> tickets;
  for (const TenantId& tenant : {kTenant, kOther}) {
    for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(Put(i, kLarge, tenant).ok());
    for (uint64_t i = 11; i <= 13; ++i) ASSERT_TRUE(Put(i, kQuarter, tenant).ok());
    for (uint64_t i = 1; i <= 3; ++i) {
      tickets.push_back(Submit(Negate(i, 100 + i), tenant));
      tickets.push_back(Submit(Negate(10 + i, 110 + i), tenant));
    }
  }
  for (auto& ticket : tickets) EXPECT_TRUE(ticket->Wait(Soon()).ok()) << ticket->Wait(Soon());
  for (uint64_t i = 1; i <= 3; ++i) {
    ExpectWhole(i, kLarge);
    ExpectWhole(10 + i, kQuarter, kOther);
  }
}

TEST_P(StreamKindTest, CancelEndsAllPieces) {
  std::shared_ptr<OperationHandle> ticket;
  auto worker = BeginHeld(&ticket);
  auto behind = Submit(Negate(2, 3));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Eventually([&] { return worker->EndNext(); }));
  }
  ticket->Cancel();
  // The running piece has its grace period.
  ASSERT_TRUE(Eventually([&] {
    worker->EndNext();
    return ticket->done();
  }));
  EXPECT_EQ(ticket->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(behind->Wait(Soon()).code(), absl::StatusCode::kCancelled);
  EXPECT_LE(worker->num_ended(), 8);
  ExpectWhole(1, kLarge);
  ticket = behind = nullptr;
  ExpectAllReturns();
}

TEST_P(StreamKindTest, TheDeadlineHolds) {
  std::shared_ptr<OperationHandle> ticket;
  auto worker = BeginHeld(&ticket, absl::Milliseconds(500));
  ASSERT_TRUE(Eventually([&] {
    absl::SleepFor(absl::Milliseconds(50));
    worker->EndNext();
    return ticket->done();
  }));
  EXPECT_EQ(ticket->Wait(Soon()).code(), absl::StatusCode::kDeadlineExceeded);
  ExpectWhole(1, kLarge);
}

TEST_P(StreamKindTest, AWorkersDeathRepeatsItsPieces) {
  std::shared_ptr<OperationHandle> ticket;
  auto worker = BeginHeld(&ticket);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Eventually([&] { return worker->EndNext(); }));
  }
  ASSERT_TRUE(Eventually([&] { return worker->num_held() > 0; }));
  broker_->set_hold(false);
  worker->DieRunning(MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed"),
                     /*fault=*/false);
  EXPECT_TRUE(ticket->Wait(Soon()).ok()) << ticket->Wait(Soon());
  EXPECT_TRUE(Fetch(2).ok());
}

INSTANTIATE_TEST_SUITE_P(Kinds, StreamKindTest, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace stride::engine
