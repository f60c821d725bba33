// Concurrent tenants in the engine: a section of one tenant does not block the others, and shared
// state stays consistent.
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/tenant_partition.h"
#include "server/durable/store.h"
#include "server/engine/engine.h"
#include "server/engine/service/array_service.h"
#include "server/engine/service/device_service.h"
#include "server/engine/service/operation_service.h"
#include "server/engine/service/session_service.h"
#include "server/engine/service/tenant_service.h"
#include "server/fd_store/fd_store.h"
#include "server/session/tenant_accounts.h"
#include "tests/support/await.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"
#include "tests/support/memory_fd_store.h"

namespace stride::engine {
namespace {

using ::stride::testing::FakeBroker;
using ::stride::testing::FakeWorker;
using ::stride::testing::HostDevice;
using ::stride::testing::MemoryFdStore;
using ::stride::testing::StagedDevice;

constexpr char kSession[] = "sessions/s";
constexpr int64_t kElements = 256;

class SectionsTest : public ::testing::Test {
 protected:
  void Start(std::vector<wire::DeviceDescription> devices, std::vector<TenantId> tenants,
             EngineOptions options = {}, fd_store::FdStore* fd_store = nullptr,
             durable::DurableStore* store = nullptr) {
    broker_ = std::make_unique<FakeBroker>(std::move(devices));
    engine_ =
        Engine::Create(options, broker_.get(), fd_store,
                       fd_store != nullptr ? fd_store->TakeAll() : std::vector<NamedFd>(), store);
    for (const TenantId& tenant : tenants) {
      v1::CreateSessionRequest request;
      request.set_session_id("s");
      ASSERT_TRUE(engine_->sessions().Create(tenant, request).ok());
    }
  }
  void End() {
    EXPECT_TRUE(EndEngine(*broker_, *engine_));
    engine_.reset();
  }
  void TearDown() override {
    if (engine_ != nullptr) End();
  }

  static v1::Operation Fill(uint64_t handle) {
    v1::Operation operation;
    auto* spec = operation.mutable_creation()->mutable_fill()->mutable_spec();
    spec->set_data_type(v1::DATA_TYPE_INT32);
    spec->add_shape(kElements);
    operation.add_outputs()->set_handle(handle);
    return operation;
  }
  static v1::Operation Add(uint64_t a, uint64_t b, uint64_t out) {
    v1::Operation operation;
    operation.mutable_ufunc()->set_function("add");
    operation.mutable_ufunc()->add_inputs()->set_handle(a);
    operation.mutable_ufunc()->add_inputs()->set_handle(b);
    operation.add_outputs()->set_handle(out);
    return operation;
  }
  std::shared_ptr<OperationHandle> Submit(const TenantId& tenant, const v1::Operation& operation,
                                          SubmitBatch* batch = nullptr) {
    const SteadyTime deadline = SteadyTime::InfiniteFuture();
    auto ticket = batch != nullptr
                      ? batch->Submit(kSession, operation, deadline)
                      : engine_->operations().Submit(tenant, kSession, operation, deadline);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return ticket.ok() ? *ticket : nullptr;
  }
  void Release(const TenantId& tenant, uint64_t handle, SubmitBatch* batch = nullptr) {
    v1::Release release;
    release.add_handles(handle);
    EXPECT_TRUE((batch != nullptr ? batch->Release(kSession, release)
                                  : engine_->operations().Release(tenant, kSession, release))
                    .ok());
  }

  void Put(const TenantId& tenant, uint64_t handle, char byte, bool overwrite) {
    v1::PutArrayRequest::Header header;
    header.set_parent(kSession);
    header.set_array_id(absl::StrCat(handle));
    header.mutable_spec()->set_data_type(v1::DATA_TYPE_INT32);
    header.mutable_spec()->add_shape(kElements);
    header.set_overwrite(overwrite);
    auto upload = engine_->arrays().BeginUpload(tenant, header, SteadyTime::InfiniteFuture());
    ASSERT_TRUE(upload.ok()) << upload.status();
    ASSERT_TRUE((*upload)->Write(std::string(4 * kElements, byte)).ok());
    auto array = (*upload)->Finish();
    EXPECT_TRUE(array.ok()) << array.status();
  }
  std::string Fetch(const TenantId& tenant, uint64_t handle) {
    v1::FetchArrayRequest request;
    request.set_name(absl::StrCat(kSession, "/arrays/", handle));
    auto download = engine_->arrays().BeginDownload(tenant, request, SteadyTime::InfiniteFuture());
    EXPECT_TRUE(download.ok()) << download.status();
    if (!download.ok()) return "";
    std::string bytes;
    for (;;) {
      auto chunk = (*download)->Next(1 << 20);
      EXPECT_TRUE(chunk.ok()) << chunk.status();
      if (!chunk.ok() || chunk->bytes.empty()) return bytes;
      bytes.append(chunk->bytes);
    }
  }

  // Returns the bytes of all the tenant's arrays. Takes no section.
  int64_t ArrayBytes(const TenantId& tenant) {
    const v1::Usage usage = engine_->accounts().Describe(tenant);
    for (const v1::QuotaUsage& quota : usage.quotas()) {
      if (quota.name() == "array-bytes") return quota.used();
    }
    return -1;
  }

  // Calls `work` while the tenant's section lasts, on another thread.
  void Within(const TenantId& tenant, const std::shared_ptr<OperationHandle>& ticket,
              const std::function<void()>& work) {
    absl::Notification inside, leave;
    std::thread section([&] {
      v1::Array array;
      ticket->Describe([&] {
        inside.Notify();
        AWAIT(leave.HasBeenNotified());
        return &array;
      });
    });
    AWAIT(inside.HasBeenNotified());
    work();
    leave.Notify();
    section.join();
  }

  const TenantId kA{"a"}, kB{"b"};
  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
};

// Accepts, sends, completes, reports and releases tasks while another tenant's section lasts. With
// one lock for both this would never end.
TEST_F(SectionsTest, SectionDoesNotBlockOtherTenants) {
  ASSERT_NE(PartitionOf(kA), PartitionOf(kB));
  for (int num_devices : {1, 2}) {
    std::vector<wire::DeviceDescription> devices;
    for (int i = 0; i < num_devices; ++i) devices.push_back(HostDevice(i));
    Start(devices, {kA, kB}, {.housekeeping_interval = absl::InfiniteDuration()});
    auto mine = Submit(kA, Fill(1));
    ASSERT_TRUE(mine->Wait(SteadyTime::InfiniteFuture()).ok());
    ASSERT_TRUE(
        Submit(kB, Fill(1))->Wait(SteadyTime::InfiniteFuture()).ok());  // has a worker, memory
    Within(kA, mine, [&] {
      std::vector<std::shared_ptr<OperationHandle>> tickets;
      for (uint64_t i = 1; i < 100; ++i) {
        tickets.push_back(Submit(kB, Add(i, i, i + 1)));
        Release(kB, i);
      }
      for (const auto& ticket : tickets) {
        absl::Notification told;
        ticket->OnDone([&](const absl::Status& status) {
          EXPECT_TRUE(status.ok()) << status;
          told.Notify();
        });
        AWAIT(told.HasBeenNotified());
        EXPECT_EQ(ticket->TakeOutcome({false}).arrays.size(), 1u);
      }
    });
    End();
  }
}

// Uploads, also over existing arrays, and fetches.
TEST_F(SectionsTest, SectionDoesNotBlockUploads) {
  for (const wire::DeviceDescription& device : {HostDevice(0), StagedDevice(0)}) {
    Start({device}, {kA, kB}, {.housekeeping_interval = absl::InfiniteDuration()});
    auto mine = Submit(kA, Fill(1));
    ASSERT_TRUE(mine->Wait(SteadyTime::InfiniteFuture()).ok());
    ASSERT_TRUE(
        Submit(kB, Fill(1))->Wait(SteadyTime::InfiniteFuture()).ok());  // has a worker, memory
    Within(kA, mine, [&] {
      for (uint64_t handle = 2; handle < 50; ++handle) {
        Put(kB, handle, 'a', /*overwrite=*/false);
        Put(kB, handle, 'b', /*overwrite=*/true);
        EXPECT_EQ(Fetch(kB, handle), std::string(4 * kElements, 'b'));
        Release(kB, handle);
      }
    });
    End();
  }
}

// The next turn on the device: the thread that assigns it belongs to another tenant.
TEST_F(SectionsTest, SectionDoesNotBlockNextTurn) {
  Start({HostDevice(0)}, {kA, kB},
        {.housekeeping_interval = absl::InfiniteDuration(), .fair_quantum = absl::Hours(1)});
  auto ended = Submit(kA, Fill(1));
  ASSERT_TRUE(ended->Wait(SteadyTime::InfiniteFuture()).ok());
  ASSERT_TRUE(Submit(kB, Fill(1))->Wait(SteadyTime::InfiniteFuture()).ok());
  auto worker = broker_->WaitForWorker(2);
  worker->Hold();
  auto running = Submit(kB, Fill(2)), waiting = Submit(kA, Fill(2));
  ASSERT_EQ(worker->num_held(), 1);
  Within(kA, ended, [&] {
    EXPECT_TRUE(worker->EndNext());
    EXPECT_TRUE(running->Wait(SteadyTime::InfiniteFuture()).ok());
    EXPECT_FALSE(waiting->done());
  });
  EXPECT_TRUE(waiting->Wait(SteadyTime::InfiniteFuture()).ok());
}

// The session may have millions of arrays; its end takes every tenant's lock.
TEST_F(SectionsTest, SectionDoesNotBlockSessionEnd) {
  Start({HostDevice(0)}, {kA, kB}, {.housekeeping_interval = absl::InfiniteDuration()});
  auto mine = Submit(kA, Fill(1));
  ASSERT_TRUE(mine->Wait(SteadyTime::InfiniteFuture()).ok());
  for (uint64_t handle = 1; handle <= 1000; ++handle)
    ASSERT_TRUE(Submit(kB, Fill(handle))->Wait(SteadyTime::InfiniteFuture()).ok());
  ASSERT_EQ(ArrayBytes(kB), 1000 * 4 * kElements);
  std::thread end;
  Within(kA, mine, [&] {
    end = std::thread([&] { EXPECT_TRUE(engine_->sessions().Delete(kB, kSession).ok()); });
    AWAIT(ArrayBytes(kB) <= 0);
  });
  end.join();
}

// A section of all tenants waits for those in progress and sees their complete state.
TEST_F(SectionsTest, GlobalSectionWaitsForEverySection) {
  Start({HostDevice(0)}, {kA, kB});
  auto mine = Submit(kA, Fill(1));
  ASSERT_TRUE(mine->Wait(SteadyTime::InfiniteFuture()).ok());
  std::atomic<bool> sampled = false;
  std::thread all;
  Within(kA, mine, [&] {
    all = std::thread([&] {
      engine_->devices().Sample();
      sampled = true;
    });
    absl::SleepFor(absl::Milliseconds(50));
    EXPECT_FALSE(sampled);
  });
  all.join();
}

// Threads of many tenants, alone and in batches, share devices that are too small for them. Other
// threads take sections of all tenants.
TEST_F(SectionsTest, ManyTenantsWorkConcurrently) {
  constexpr int kTenants = 6, kThreads = 2, kRounds = 120, kChain = 12;
  std::vector<TenantId> tenants;
  for (int i = 0; i < kTenants; ++i) tenants.push_back({absl::StrCat("tenant-", i)});
  EngineOptions options;
  options.device_memory_share = 1;
  options.spill_memory_bytes = int64_t{64} << 20;
  options.fair_quantum = absl::Milliseconds(1);
  options.housekeeping_interval = absl::Milliseconds(5);
  options.keep_empty_time = absl::Milliseconds(1);
  options.memory_patience = absl::Seconds(60);
  Start({HostDevice(0, 1 << 20), StagedDevice(1, 1 << 20)}, tenants, options);
  std::atomic<int> num_ended = 0, num_wrong = 0;
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < kTenants * kThreads; ++t) {
    threads.emplace_back([&, t] {
      const TenantId& tenant = tenants[t % kTenants];
      uint64_t next = uint64_t{1000000} * (t + 1);
      for (int round = 0; round < kRounds; ++round) {
        std::vector<std::shared_ptr<OperationHandle>> tickets;
        {
          auto batch = round % 2 == 0 ? engine_->operations().BeginSubmitBatch(tenant) : nullptr;
          tickets.push_back(Submit(tenant, Fill(next), batch.get()));
          for (int i = 0; i < kChain; ++i) {
            tickets.push_back(Submit(tenant, Add(next, next, next + 1), batch.get()));
            Release(tenant, next++, batch.get());
          }
          for (const auto& ticket : tickets) {
            ticket->OnDone(
                [&](const absl::Status& status) {
                  if (!status.ok()) ++num_wrong;
                  ++num_ended;
                },
                batch.get());
          }
        }
        if (round % 3 == 0) tickets.back()->Wait(SteadyTime::InfiniteFuture()).IgnoreError();
        tickets.back()->TakeOutcome({true});
        Release(tenant, next++);
      }
    });
  }
  std::thread all([&] {
    for (int i = 0; !over; ++i) {
      engine_->devices().Sample();
      engine_->devices().List();
      engine_->tenants().GetUsage(tenants[i % kTenants]);
      v1::CreateSessionRequest request;
      request.set_session_id("short");
      engine_->sessions().Create(tenants[i % kTenants], request).IgnoreError();
      engine_->sessions().Delete(tenants[i % kTenants], "sessions/short").IgnoreError();
    }
  });
  for (std::thread& thread : threads) thread.join();
  constexpr int kOperations = kTenants * kThreads * kRounds * (kChain + 1);
  const SteadyTime late = Now() + absl::Minutes(2);
  while (num_ended < kOperations && Now() < late) absl::SleepFor(absl::Milliseconds(5));
  over = true;
  all.join();
  EXPECT_EQ(num_ended, kOperations);
  EXPECT_EQ(num_wrong, 0);
  int64_t operations = 0;
  for (const TenantId& tenant : tenants)
    operations += engine_->tenants().GetUsage(tenant).operations();
  EXPECT_EQ(operations, kOperations);
  int64_t succeeded = 0;
  for (const v1::DeviceSample& sample : engine_->devices().Sample()) {
    succeeded += sample.jobs_succeeded();
    EXPECT_EQ(sample.queue_depth(), 0);
    EXPECT_EQ(sample.queue_seconds(), 0);
  }
  EXPECT_EQ(succeeded, kOperations);
}

// Sections of many tenants write their journals and queue writes to disk. The next daemon restores
// exactly this state.
TEST_F(SectionsTest, RestartRestoresStateOfManyTenants) {
  constexpr int kTenants = 5;
  constexpr uint64_t kNamed = 1, kFirst = 10, kRounds = 150;
  MemoryFdStore fd_store;
  const std::string folder = absl::StrCat(::testing::TempDir(), "/sections-", getpid());
  auto open = [&] {
    return *durable::DurableStore::Open({.folder = folder, .max_bytes = 1 << 20});
  };
  std::vector<TenantId> tenants;
  for (int i = 0; i < kTenants; ++i) tenants.push_back({absl::StrCat("tenant-", i)});
  auto store = open();
  Start({HostDevice(0)}, tenants, {}, &fd_store, store.get());
  std::vector<std::thread> threads;
  for (const TenantId& tenant : tenants) {
    threads.emplace_back([&, tenant] {
      // A named array that also has a handle: a write to the handle changes the array.
      v1::Operation named = Fill(0);
      named.mutable_outputs(0)->set_name(absl::StrCat("tenants/", tenant.value, "/arrays/kept"));
      Submit(tenant, named);
      v1::Operation view;
      view.mutable_view()->mutable_input()->set_name(named.outputs(0).name());
      view.mutable_view()->add_steps()->mutable_reshape()->add_shape(kElements);
      view.add_outputs()->set_handle(kNamed);
      Submit(tenant, view);
      Submit(tenant, Fill(kFirst));
      std::shared_ptr<OperationHandle> last;
      for (uint64_t i = kFirst; i < kFirst + kRounds; ++i) {
        auto batch = engine_->operations().BeginSubmitBatch(tenant);
        last = Submit(tenant, Add(i, i, i + 1), batch.get());
        Release(tenant, i, batch.get());
        v1::Operation change = Add(kNamed, i + 1, kNamed);
        change.mutable_outputs(0)->set_existing(true);
        last = Submit(tenant, change, batch.get());
      }
      EXPECT_TRUE(last->Wait(SteadyTime::InfiniteFuture()).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  engine_->StopRecording();
  End();
  store.reset();

  for (int restart = 0; restart < 2; ++restart) {
    SCOPED_TRACE(restart);
    store = open();
    Start({HostDevice(0)}, {}, {}, &fd_store, store.get());
    for (const TenantId& tenant : tenants) {
      v1::ListArraysRequest request;
      request.set_parent(kSession);
      auto arrays = engine_->arrays().List(tenant, request);
      ASSERT_TRUE(arrays.ok()) << arrays.status();
      std::vector<std::string> names;
      for (const v1::Array& array : arrays->arrays()) {
        names.push_back(array.name());
        EXPECT_EQ(array.state(), v1::Array::STATE_READY) << array.name();
      }
      EXPECT_EQ(names,
                (std::vector<std::string>{absl::StrCat(kSession, "/arrays/", kNamed),
                                          absl::StrCat(kSession, "/arrays/", kFirst + kRounds)}));
      auto named =
          engine_->arrays().Get(tenant, absl::StrCat("tenants/", tenant.value, "/arrays/kept"));
      ASSERT_TRUE(named.ok()) << named.status();
      EXPECT_EQ(named->state(), v1::Array::STATE_READY);
    }
    engine_->StopRecording();
    End();
    store.reset();
  }
}

}  // namespace
}  // namespace stride::engine
