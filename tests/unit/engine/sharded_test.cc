// Arrays over several devices, and transfers between devices, with fake workers that compute
// nothing.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
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
#include "tests/support/await.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"

namespace stride::engine {
namespace {

using ::stride::testing::EndEngine;
using ::stride::testing::FakeBroker;
using ::stride::testing::FakeWorker;
using ::stride::testing::HostDevice;
using ::stride::testing::StagedDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TenantId kTenant{"default"};

wire::Link LinkOf(const wire::DeviceDescription& from, const wire::DeviceDescription& to) {
  wire::Link link;
  link.set_from(from.id());
  link.set_to(to.id());
  link.set_peer(true);
  link.set_bytes_per_second(4e11);
  return link;
}

class ShardedTest : public ::testing::Test {
 protected:
  void Start(std::vector<wire::DeviceDescription> devices, bool linked, EngineOptions options = {},
             bool hold = false) {
    broker_ = std::make_unique<FakeBroker>(devices);
    broker_->set_hold(hold);
    if (linked)
      broker_->set_links({LinkOf(devices[0], devices[1]), LinkOf(devices[1], devices[0])});
    options.log = [this](const std::string& line) {
      absl::MutexLock lock(&mutex_);
      log_ += line + "\n";
    };
    engine_ = Engine::Create(options, broker_.get());
    v1::CreateSessionRequest request;
    request.set_session_id("s");
    ASSERT_TRUE(engine_->sessions().Create(kTenant, request).ok());
  }
  void TearDown() override {
    EXPECT_TRUE(EndEngine(*broker_, *engine_));
    engine_.reset();
  }
  static SteadyTime Soon() { return Now() + absl::Seconds(100); }

  v1::PutArrayRequest::Header HeaderOf(uint64_t handle, int64_t count) {
    v1::PutArrayRequest::Header header;
    header.set_parent("sessions/s");
    header.set_array_id(absl::StrCat(handle));
    header.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
    header.mutable_spec()->add_shape(count);
    return header;
  }
  absl::StatusOr<v1::Array> Put(const v1::PutArrayRequest::Header& header,
                                const std::string& bytes) {
    auto upload = engine_->arrays().BeginUpload(kTenant, header, Soon());
    if (!upload.ok()) return upload.status();
    if (absl::Status status = (*upload)->Write(bytes); !status.ok()) return status;
    return (*upload)->Finish();
  }
  std::string Fetch(uint64_t handle) {
    v1::FetchArrayRequest request;
    request.set_name(absl::StrCat("sessions/s/arrays/", handle));
    auto download = engine_->arrays().BeginDownload(kTenant, request, Soon());
    EXPECT_TRUE(download.ok()) << download.status();
    std::string bytes;
    while (download.ok()) {
      auto chunk = (*download)->Next(1 << 20);
      EXPECT_TRUE(chunk.ok()) << chunk.status();
      if (!chunk.ok() || chunk->bytes.empty()) break;
      bytes.append(chunk->bytes);
    }
    return bytes;
  }
  absl::StatusOr<std::shared_ptr<OperationHandle>> Submit(const v1::Operation& operation) {
    return engine_->operations().Submit(kTenant, "sessions/s", operation,
                                        SteadyTime::InfiniteFuture());
  }
  static v1::Operation Move(uint64_t input, uint64_t output, const std::string& device) {
    v1::Operation move;
    move.mutable_copy()->mutable_input()->set_handle(input);
    move.mutable_copy()->set_move(true);
    move.add_outputs()->set_handle(output);
    move.set_device(device);
    return move;
  }
  static v1::Operation Negative(uint64_t input, uint64_t output, const std::string& device = "") {
    v1::Operation operation;
    operation.set_device(device);
    operation.mutable_ufunc()->set_function("negative");
    operation.mutable_ufunc()->add_inputs()->set_handle(input);
    operation.add_outputs()->set_handle(output);
    return operation;
  }
  // The device's worker for which `holds` is true, among those of canaries.
  template <typename Predicate>
  std::shared_ptr<FakeWorker> WorkerOf(const wire::DeviceDescription& device, Predicate holds) {
    const SteadyTime deadline = Soon();
    // A starting worker receives its tasks when it is ready.
    while (Now() < deadline) {
      for (int i = 1; i <= broker_->num_workers(); ++i) {
        auto worker = broker_->WaitForWorker(i);
        if (worker->device().id() == device.id() && holds(*worker)) return worker;
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
    ADD_FAILURE() << "no such worker of " << device.id();
    return nullptr;
  }
  static int NumNegatives(const FakeWorker& worker) {
    int count = 0;
    for (const wire::Task& task : worker.submitted()) count += task.label() == "negative";
    return count;
  }

  // Uploads bytes to cuda:0 and moves them to cuda:1; returns the second worker.
  std::shared_ptr<FakeWorker> MoveBetween() {
    const std::string bytes(100000, 'x');
    auto header = HeaderOf(1, static_cast<int64_t>(bytes.size()));
    header.set_device("devices/cuda:0");
    EXPECT_TRUE(Put(header, bytes).ok());
    // The worker exists, so that the test can make its copies fail.
    auto other = HeaderOf(2, 4);
    other.set_device("devices/cuda:1");
    EXPECT_TRUE(Put(other, "abcd").ok());
    std::shared_ptr<FakeWorker> second =
        WorkerOf(StagedDevice(1), [](const FakeWorker& worker) { return worker.num_copies() > 0; });
    if (second == nullptr) return nullptr;
    auto moved = Submit(Move(1, 3, "devices/cuda:1"));
    EXPECT_TRUE(moved.ok()) << moved.status();
    EXPECT_TRUE((*moved)->Wait(Soon()).ok());
    EXPECT_EQ(engine_->arrays().Get(kTenant, "sessions/s/arrays/3")->devices(0), "devices/cuda:1");
    EXPECT_EQ(Fetch(3), bytes);
    return second;
  }

  // An array split along its first axis over both devices.
  void PutSplit(uint64_t handle, const std::vector<int64_t>& shape, const char* kind) {
    auto header = HeaderOf(handle, 0);
    header.mutable_spec()->clear_shape();
    int64_t bytes = 1;
    for (int64_t extent : shape) {
      header.mutable_spec()->add_shape(extent);
      bytes *= extent;
    }
    for (int i = 0; i < 2; ++i)
      header.mutable_sharding()->add_devices(absl::StrCat("devices/", kind, ":", i));
    ASSERT_TRUE(Put(header, std::string(static_cast<size_t>(bytes), 'x')).ok());
  }
  // Reduces along the split axis.
  static v1::Operation Largest(uint64_t input, uint64_t output) {
    v1::Operation operation;
    operation.mutable_reduction()->set_function(v1::Reduction::FUNCTION_MAX);
    operation.mutable_reduction()->mutable_input()->set_handle(input);
    operation.mutable_reduction()->add_axes(0);
    operation.add_outputs()->set_handle(output);
    return operation;
  }
  void Reduce(uint64_t input, uint64_t output) {
    auto ticket = Submit(Largest(input, output));
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    EXPECT_TRUE((*ticket)->Wait(Soon()).ok()) << (*ticket)->Wait(Soon());
  }
  // The launches that combined partial results.
  static std::vector<wire::Task> Combines(const FakeWorker& worker) {
    std::vector<wire::Task> combines;
    for (const wire::Task& task : worker.submitted()) {
      if (task.label() != "canary" && task.elementwise().inputs_size() == 2)
        combines.push_back(task);
    }
    return combines;
  }
  std::shared_ptr<FakeWorker> WorkerThatCombined(const wire::DeviceDescription& device,
                                                 size_t times = 1) {
    return WorkerOf(device,
                    [=](const FakeWorker& worker) { return Combines(worker).size() == times; });
  }
  std::shared_ptr<FakeWorker> WorkerThatReduced(const wire::DeviceDescription& device) {
    return WorkerOf(device, [](const FakeWorker& worker) {
      const std::vector<wire::Task> tasks = worker.submitted();
      return !tasks.empty() && tasks[0].has_reduce();
    });
  }
  // Returns whether only the second partial result of the launch lies on the other device.
  static bool ReadsPeer(const wire::Task& combine, const FakeWorker& worker) {
    const wire::ElementwiseLaunch& launch = combine.elementwise();
    const std::set<uint64_t> peers = worker.peer_arenas();
    EXPECT_EQ(peers.count(launch.inputs(0).arena()), 0u);
    EXPECT_EQ(peers.count(launch.outputs(0).arena()), 0u);
    return peers.count(launch.inputs(1).arena()) > 0;
  }

  absl::Mutex mutex_;
  std::string log_;
  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(ShardedTest, PeersCopyWithoutTheHost) {
  Start({StagedDevice(0), StagedDevice(1)}, /*linked=*/true);
  std::shared_ptr<FakeWorker> second = MoveBetween();
  EXPECT_EQ(second->num_peer_copies(), 1);
  const auto devices = engine_->devices().List();
  ASSERT_EQ(devices[1].links_size(), 1);
  EXPECT_EQ(devices[1].links(0).device(), devices[0].name());
  EXPECT_EQ(devices[1].links(0).path(), v1::DeviceLink::PATH_PEER);
}

TEST_F(ShardedTest, DevicesWithoutPeerAccessCopyThroughTheHost) {
  Start({StagedDevice(0), StagedDevice(1)}, /*linked=*/false);
  EXPECT_EQ(MoveBetween()->num_peer_copies(), 0);
}

// The first copy shows that the arena can be read; later reads need none.
TEST_F(ShardedTest, PartialResultsAreReadOnThePeer) {
  Start({StagedDevice(0), StagedDevice(1)}, /*linked=*/true);
  PutSplit(1, {8}, "cuda");
  Reduce(1, 2);
  std::shared_ptr<FakeWorker> first = WorkerThatCombined(StagedDevice(0));
  ASSERT_NE(first, nullptr);
  EXPECT_FALSE(ReadsPeer(Combines(*first)[0], *first));
  EXPECT_EQ(first->num_peer_copies(), 1);
  const int copies = first->num_copies();
  for (uint64_t i = 1; i <= 3; ++i) {
    Reduce(1, 2 + i);
    ASSERT_EQ(Combines(*first).size(), 1 + i);
    EXPECT_TRUE(ReadsPeer(Combines(*first)[i], *first));
  }
  EXPECT_EQ(first->num_peer_copies(), 1);
  EXPECT_EQ(first->num_copies(), copies);
}

TEST_F(ShardedTest, PartialResultsInHostMemoryAreReadInPlace) {
  Start({HostDevice(0), HostDevice(1)}, /*linked=*/false);
  PutSplit(1, {8}, "cpu");
  Reduce(1, 2);
  std::shared_ptr<FakeWorker> first = WorkerThatCombined(HostDevice(0));
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(ReadsPeer(Combines(*first)[0], *first));
}

TEST_F(ShardedTest, LargePartialResultsAreMoved) {
  Start({StagedDevice(0), StagedDevice(1)}, /*linked=*/true);
  PutSplit(1, {2, 64 << 10}, "cuda");
  PutSplit(2, {2, (64 << 10) + 1}, "cuda");
  for (uint64_t i = 0; i < 3; ++i) Reduce(2, 10 + i);
  std::shared_ptr<FakeWorker> first = WorkerThatCombined(StagedDevice(0), 3);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->num_peer_copies(), 3);
  for (const wire::Task& combine : Combines(*first)) EXPECT_FALSE(ReadsPeer(combine, *first));
  Reduce(1, 20);
  EXPECT_TRUE(ReadsPeer(Combines(*first)[3], *first));
}

TEST_F(ShardedTest, PartialResultsUseTheHostAfterLinkFailure) {
  Start({StagedDevice(0), StagedDevice(1)}, /*linked=*/true);
  MoveBetween();  // so that workers exist
  for (int i = 1; i <= broker_->num_workers(); ++i) broker_->WaitForWorker(i)->BreakPeers();
  PutSplit(10, {8}, "cuda");
  Reduce(10, 11);
  Reduce(10, 12);
  std::shared_ptr<FakeWorker> first = WorkerThatCombined(StagedDevice(0), 2);
  ASSERT_NE(first, nullptr);
  for (const wire::Task& combine : Combines(*first)) EXPECT_FALSE(ReadsPeer(combine, *first));
  absl::MutexLock lock(&mutex_);
  EXPECT_THAT(log_, HasSubstr("through the host from now on"));
}

// A task that reads in place is ready and waits for its packet when its worker dies. The next
// worker has not mapped the peer's arena.
TEST_F(ShardedTest, NewWorkerCopiesAgain) {
  Start({StagedDevice(0), StagedDevice(1)}, /*linked=*/true);
  PutSplit(1, {8}, "cuda");
  auto header = HeaderOf(2, 4);
  header.set_device("devices/cuda:0");
  ASSERT_TRUE(Put(header, "abcd").ok());
  Reduce(1, 3);
  std::shared_ptr<FakeWorker> first = WorkerThatCombined(StagedDevice(0));
  std::shared_ptr<FakeWorker> second = WorkerThatReduced(StagedDevice(1));
  ASSERT_TRUE(first != nullptr && second != nullptr);
  first->Hold();
  second->Hold();
  auto sum = Submit(Largest(1, 4));
  ASSERT_TRUE(sum.ok()) << sum.status();
  AWAIT(first->EndNext());
  // So many that what is ready waits for an answer.
  std::vector<std::shared_ptr<OperationHandle>> others;
  for (uint64_t i = 0; i < 8; ++i) others.push_back(*Submit(Negative(2, 10 + i, "devices/cuda:0")));
  AWAIT(first->num_held() >= 8);
  AWAIT(second->EndNext());
  EXPECT_EQ(Combines(*first).size(), 1u);
  first->DieRunning(MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed"),
                    /*fault=*/false);
  EXPECT_TRUE((*sum)->Wait(Soon()).ok()) << (*sum)->Wait(Soon());
  for (const auto& other : others) EXPECT_TRUE(other->Wait(Soon()).ok());
  std::shared_ptr<FakeWorker> next = WorkerOf(StagedDevice(0), [&](const FakeWorker& one) {
    return &one != first.get() && Combines(one).size() == 1;
  });
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->num_peer_copies(), 1);
  EXPECT_FALSE(ReadsPeer(Combines(*next)[0], *next));
}

// The second device is so small that one array fills it.
class SmallDeviceTest : public ShardedTest {
 protected:
  static constexpr int64_t kSmall = 4 << 20;

  // A first reduction has proved the link; the first device's worker is held.
  void SetUp() override {
    EngineOptions options;
    options.device_memory_share = 1;
    options.spill_memory_bytes = 64 << 20;
    options.memory_patience = absl::Milliseconds(50);
    Start({StagedDevice(0), StagedDevice(1, kSmall)}, /*linked=*/true, options);
    PutSplit(1, {8}, "cuda");
    Reduce(1, 2);
    first_ = WorkerThatCombined(StagedDevice(0));
    ASSERT_NE(first_, nullptr);
    first_->Hold();
  }
  absl::Status FillSecond(uint64_t handle) {
    auto header = HeaderOf(handle, kSmall);
    header.set_device("devices/cuda:1");
    return Put(header, std::string(kSmall, 'y')).status();
  }
  void EndAllOfFirst(OperationHandle& ticket) {
    while (!ticket.Wait(Now() + absl::Milliseconds(1)).ok()) first_->EndNext();
  }

  std::shared_ptr<FakeWorker> first_;
};

TEST_F(SmallDeviceTest, PartialResultInUseStays) {
  auto largest = Submit(Largest(1, 3));
  ASSERT_TRUE(largest.ok()) << largest.status();
  AWAIT(first_->num_held() >= 2);
  EXPECT_TRUE(ReadsPeer(Combines(*first_)[1], *first_));
  EXPECT_EQ(FillSecond(4).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(engine_->arrays().Delete(kTenant, "sessions/s/arrays/4").ok());  // it could continue
  EndAllOfFirst(**largest);
  EXPECT_TRUE(FillSecond(5).ok());
}

// It is read from where it was spilled to.
TEST_F(SmallDeviceTest, SpilledPartialResultIsMoved) {
  auto header = HeaderOf(3, 4);
  header.set_device("devices/cuda:0");
  ASSERT_TRUE(Put(header, "abcd").ok());
  // Enough tasks that the first partial result waits for a reply.
  for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(Submit(Negative(3, 10 + i, "devices/cuda:0")).ok());
  AWAIT(first_->num_held() >= 8);
  std::shared_ptr<FakeWorker> second = WorkerThatReduced(StagedDevice(1));
  ASSERT_NE(second, nullptr);
  const int ended = second->num_ended();
  auto largest = Submit(Largest(1, 4));
  ASSERT_TRUE(largest.ok()) << largest.status();
  AWAIT(second->num_ended() != ended);
  const absl::Status filled = FillSecond(5);
  EXPECT_TRUE(filled.ok()) << filled;
  EndAllOfFirst(**largest);
  ASSERT_EQ(Combines(*first_).size(), 2u);
  EXPECT_FALSE(ReadsPeer(Combines(*first_)[1], *first_));
  EXPECT_EQ(first_->num_peer_copies(), 1);
}

TEST_F(ShardedTest, EachPartGoesToItsDevice) {
  Start({HostDevice(0), HostDevice(1)}, /*linked=*/false);
  auto header = HeaderOf(1, 7);
  header.mutable_sharding()->add_devices("devices/cpu:1");
  header.mutable_sharding()->add_devices("devices/cpu:0");
  auto put = Put(header, "abcdefg");
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->state(), v1::Array::STATE_READY);
  EXPECT_THAT(put->devices(), ElementsAre("devices/cpu:1", "devices/cpu:0"));
  EXPECT_EQ(Fetch(1), "abcdefg");
  auto ticket = Submit(Negative(1, 2));
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  ASSERT_TRUE((*ticket)->Wait(Soon()).ok());
  for (int i = 0; i < 2; ++i) {
    auto worker =
        WorkerOf(HostDevice(i), [](const FakeWorker& one) { return NumNegatives(one) == 1; });
    ASSERT_NE(worker, nullptr);
    EXPECT_EQ(worker->submitted().back().elementwise().extents(0), i == 1 ? 4 : 3);
  }
}

// Parts over quota are refused before any of them is sent.
TEST_F(ShardedTest, PartsAreAcceptedAtomically) {
  EngineOptions options;
  options.max_queued_tasks = 3;
  Start({HostDevice(0), HostDevice(1)}, /*linked=*/false, options, /*hold=*/true);
  auto header = HeaderOf(1, 8);
  header.mutable_sharding()->add_devices("devices/cpu:0");
  header.mutable_sharding()->add_devices("devices/cpu:1");
  ASSERT_TRUE(Put(header, "abcdefgh").ok());
  auto one = HeaderOf(2, 1);
  one.set_device("devices/cpu:0");
  ASSERT_TRUE(Put(one, "a").ok());
  auto blocking = Submit(Negative(2, 3));
  ASSERT_TRUE(blocking.ok()) << blocking.status();
  auto refused = Submit(Negative(1, 4));
  EXPECT_EQ(ReasonOf(refused.status()), v1::ERROR_REASON_QUEUE_FULL) << refused.status();
  auto worker =
      WorkerOf(HostDevice(0), [](const FakeWorker& one) { return NumNegatives(one) == 1; });
  ASSERT_NE(worker, nullptr);
  for (int i = 1; i <= broker_->num_workers(); ++i) {
    auto other = broker_->WaitForWorker(i);
    EXPECT_TRUE(other == worker || NumNegatives(*other) == 0);
  }
  while (worker->EndNext()) {
  }
  ASSERT_TRUE((*blocking)->Wait(Soon()).ok());
}

TEST_F(ShardedTest, UnhealthyDeviceOfAPartIsNamed) {
  EngineOptions options;
  options.start_patience = absl::Milliseconds(200);
  Start({HostDevice(0), HostDevice(1)}, /*linked=*/false, options);
  auto header = HeaderOf(1, 8);
  header.mutable_sharding()->add_devices("devices/cpu:0");
  header.mutable_sharding()->add_devices("devices/cpu:1");
  ASSERT_TRUE(Put(header, "abcdefgh").ok());
  broker_->set_ill(1, true);
  auto ticket = Submit(Negative(1, 2));
  absl::Status status = ticket.ok() ? (*ticket)->Wait(Soon()) : ticket.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("devices/cpu:1"));
  EXPECT_EQ(engine_->arrays().Get(kTenant, "sessions/s/arrays/2")->state(),
            v1::Array::STATE_FAILED);
  EXPECT_EQ(Fetch(1), "abcdefgh");
}

}  // namespace
}  // namespace stride::engine
