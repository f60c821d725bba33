#include "stride/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <thread>

#include "tests/support/fake_daemon/fake_daemon.h"
#include "tests/support/temporary_folder.h"

namespace stride {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FakeDaemon;
using ::testing::HasSubstr;

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    std::string name = std::filesystem::temp_directory_path() / "client.XXXXXX";
    folder_ = mkdtemp(name.data());
    daemon_ = std::make_unique<FakeDaemon>("unix:" + folder_ + "/s");
    auto client = Client::Connect({.address = "unix:" + folder_ + "/s", .num_bulk_channels = 4});
    EXPECT_TRUE(client.ok());
    client_.emplace(std::move(*client));
  }
  ~ClientTest() override {
    client_.reset();
    daemon_.reset();
    stride::test_support::RemoveFolder(folder_);
  }

  Array Put(const std::vector<int32_t>& values) {
    auto array = client_->Put(values, {static_cast<int64_t>(values.size())});
    EXPECT_TRUE(array.ok()) << array.error().ToString();
    return std::move(*array);
  }

  std::string folder_;
  std::unique_ptr<FakeDaemon> daemon_;
  std::optional<Client> client_;
};

TEST_F(ClientTest, PutThenGetReturnsTheBytes) {
  for (int64_t count : {int64_t{0}, int64_t{1}, int64_t{100'000}, int64_t{9'000'001}}) {
    std::vector<int32_t> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 0);
    const Array array = Put(values);
    const auto back = client_->Fetch<int32_t>(array);
    ASSERT_TRUE(back.ok()) << back.error().ToString();
    EXPECT_TRUE(*back == values) << count;
  }
}

TEST_F(ClientTest, LargeArraysTravelInRanges) {
  const std::vector<int32_t> values(10'000'000, 7);
  int64_t moved = 0;
  std::mutex mutex;
  PutOptions options;
  options.progress = [&](int64_t bytes) {
    std::lock_guard lock(mutex);
    moved += bytes;
  };
  const auto array = client_->Put(values, {10'000'000}, options);
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(moved, 40'000'000);
  EXPECT_EQ(daemon_->counters().puts, 4);
  ASSERT_TRUE(client_->Fetch<int32_t>(*array).ok());
  EXPECT_EQ(daemon_->counters().fetches, 4);
}

TEST_F(ClientTest, ChainNeedsNoRoundTrips) {
  const Array one = Put({1, 2, 3});
  // With responses withheld, only a client that does not wait reaches the end.
  daemon_->faults().hold_answers = true;
  Array sum = client_->Ufunc("add", {one, one});
  for (int i = 0; i < 199; ++i) sum = client_->Ufunc("add", {sum, one});
  EXPECT_EQ(sum.Wait({.timeout = milliseconds(50)}).error().code, Code::kDeadlineExceeded);
  daemon_->faults().hold_answers = false;
  // The small fetch takes the same stream, after the chain, and needs none of the withheld
  // responses.
  std::vector<int32_t> out(3);
  ASSERT_TRUE(client_->FetchInto<int32_t>(sum, out).ok());
  EXPECT_EQ(out, (std::vector<int32_t>{201, 402, 603}));
  EXPECT_EQ(daemon_->counters().streams, 1);
}

TEST_F(ClientTest, ManyThreadsShareMessages) {
  const Array one = Put({1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Array sum = client_->Ufunc("add", {one, one});
      for (int i = 0; i < 500; ++i) sum = client_->Ufunc("add", {sum, one});
      std::vector<int32_t> out(1);
      EXPECT_TRUE(client_->FetchInto<int32_t>(sum, out).ok());
      EXPECT_EQ(out[0], 502);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GE(daemon_->counters().commands, 2000);
  EXPECT_LT(daemon_->counters().messages, daemon_->counters().commands);
  EXPECT_EQ(daemon_->counters().sessions, 1);
}

TEST_F(ClientTest, BurstOfOneThreadSharesMessages) {
  const Array one = Put({1});
  const int before = daemon_->counters().messages;
  std::vector<Array> sums;
  for (int i = 0; i < 2000; ++i) sums.push_back(client_->Ufunc("add", {one, one}));
  ASSERT_TRUE(client_->Synchronize().ok());
  EXPECT_LT(daemon_->counters().messages - before, 2000);
}

// After a few unanswered messages, later commands wait for a shared message until a caller waits
// for them.
TEST_F(ClientTest, UnansweredMessagesDelayTheNext) {
  constexpr int kMost = 4, kAdds = 300;
  const Array one = Put({1});
  ASSERT_TRUE(one.Spec().ok());
  daemon_->faults().hold_answers = true;
  const int before = daemon_->counters().messages;
  Array sum = client_->Ufunc("add", {one, one});
  for (int i = 1; i < kAdds; ++i) {
    sum = client_->Ufunc("add", {sum, one});
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  EXPECT_LE(daemon_->counters().messages - before, kMost);
  EXPECT_LT(daemon_->counters().commands, kAdds);
  daemon_->faults().hold_answers = false;
  std::vector<int32_t> out(1);
  ASSERT_TRUE(client_->FetchInto<int32_t>(sum, out).ok());
  EXPECT_EQ(out[0], 1 + kAdds);
  // Every message is answered, so no command is delayed.
  const Array last = client_->Ufunc("add", {sum, one});
  EXPECT_TRUE(last.Wait().ok());
}

// Destruction while the writer thread works.
TEST_F(ClientTest, BurstMayBeAbandoned) {
  const Array one = Put({1});
  for (int i = 0; i < 500; ++i) (void)client_->Ufunc("add", {one, one});
  client_.reset();
}

TEST_F(ClientTest, ErrorsStayOnArrays) {
  const Array one = Put({1});
  const Array bad = client_->Ufunc("ad", {one, one});
  const Array worse = client_->Ufunc("add", {bad, one});
  for (const Array* array : {&bad, &worse}) {
    const auto back = client_->Fetch<int32_t>(*array);
    ASSERT_FALSE(back.ok());
    EXPECT_EQ(back.error().code, Code::kInvalidArgument);
    EXPECT_EQ(back.error().reason, "UNKNOWN_FUNCTION");
    EXPECT_EQ(array->Wait().error().reason, "UNKNOWN_FUNCTION");
  }
}

TEST_F(ClientTest, ReleasesAreBatched) {
  {
    const Array one = Put({1});
    const Operand kept = one;
    for (int i = 0; i < 300; ++i) client_->Ufunc("add", {kept, kept});
  }
  ASSERT_TRUE(client_->Synchronize().ok());
  EXPECT_EQ(daemon_->num_arrays(), 0u);
  EXPECT_EQ(daemon_->counters().released, 301);
}

TEST_F(ClientTest, TypesAndSizesAreChecked) {
  const Array array = Put({1, 2, 3});
  EXPECT_EQ(client_->Fetch<float>(array).error().code, Code::kInvalidArgument);
  std::vector<int32_t> small(2);
  EXPECT_EQ(client_->FetchInto<int32_t>(array, small).error().code, Code::kInvalidArgument);
  EXPECT_EQ(client_->Put(small, {3}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(client_->Put(small, {-1, -2}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Array().Wait().error().code, Code::kInvalidArgument);
}

TEST_F(ClientTest, BrokenStreamFailsItsCommandsAndIsReplaced) {
  const Array one = Put({5});
  daemon_->faults().break_streams = true;
  const Array lost = client_->Ufunc("add", {one, one});
  EXPECT_EQ(lost.Spec().error().code, Code::kUnavailable);
  const Array next = client_->Ufunc("add", {one, one});
  EXPECT_EQ(*client_->Fetch<int32_t>(next), std::vector<int32_t>{10});
  EXPECT_EQ(daemon_->counters().streams, 2);
}

TEST_F(ClientTest, WaitsEndByCancellationAndTimeout) {
  const Array one = Put({1});
  daemon_->faults().hold_answers = true;
  const Array sum = client_->Ufunc("add", {one, one});
  EXPECT_EQ(sum.Spec({.timeout = milliseconds(30)}).error().code, Code::kDeadlineExceeded);
  std::vector<std::byte> out(4);
  Future<void> fetch = client_->FetchAsync(sum, out);
  EXPECT_FALSE(fetch.WaitFor(milliseconds(10)));
  fetch.Cancel();
  EXPECT_EQ(fetch.Get().error().code, Code::kCancelled);
}

TEST_F(ClientTest, ShortDownloadIsAnError) {
  const Array array = Put(std::vector<int32_t>(1'000'000, 1));
  daemon_->faults().short_fetch = true;
  EXPECT_EQ(client_->Fetch<int32_t>(array).error().code, Code::kDataLoss);
}

TEST_F(ClientTest, NamedArraysPersist) {
  const std::vector<int32_t> values = {1, 2};
  for (const char* id : {"a", "b", "c"}) {
    PutOptions options;
    options.name = std::string("tenants/default/arrays/") + id;
    ASSERT_TRUE(client_->Put(values, {2}, options).ok());
  }
  EXPECT_EQ(client_->ListArrays("tenants/default")->size(), 3u);
  EXPECT_EQ(*client_->Fetch<int32_t>(client_->Open("tenants/default/arrays/b")), values);
  ASSERT_TRUE(client_->DeleteArray("tenants/default/arrays/b").ok());
  const auto gone = client_->Fetch<int32_t>(client_->Open("tenants/default/arrays/b"));
  EXPECT_EQ(gone.error().reason, "ARRAY_NOT_FOUND");
}

TEST_F(ClientTest, SessionEndsWithTheClient) {
  Array outlives = Put({1});
  EXPECT_EQ(daemon_->counters().open_sessions, 1);
  client_.reset();
  EXPECT_EQ(daemon_->counters().open_sessions, 0);
  EXPECT_EQ(outlives.Wait().error().code, Code::kCancelled);
}

TEST_F(ClientTest, UploadRunsInTheBackground) {
  const std::vector<int32_t> values(3'000'000, 3);
  auto future =
      client_->PutAsync(std::as_bytes(std::span(values)), {DataType::kInt32, {3'000'000}});
  auto array = future.Get();
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(client_->Fetch<int32_t>(*array)->at(2'999'999), 3);
}

TEST(DeviceTest, DeviceNameIsKindAndIndex) {
  const Device device{.name = "devices/GPU-4a1c", .kind = "cuda", .index = 1};
  EXPECT_EQ(device.place(), "devices/cuda:1");
}

TEST_F(ClientTest, WatchDevicesReturnsSamples) {
  int rounds = 0;
  ASSERT_TRUE(client_
                  ->WatchDevices({.max_samples = 3},
                                 [&](const auto& samples) {
                                   EXPECT_EQ(samples.at(0).queue_depth, rounds);
                                   EXPECT_EQ(samples.at(0).utilization_ratio, 0.5);
                                   EXPECT_FALSE(samples.at(0).power_watts.has_value());
                                   ++rounds;
                                   return true;
                                 })
                  .ok());
  EXPECT_EQ(rounds, 3);
}

TEST_F(ClientTest, MissingDaemonIsReported) {
  const auto none = Client::Connect(
      {.address = "unix:" + folder_ + "/none", .connect_timeout = milliseconds(200)});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::kUnavailable);
  EXPECT_THAT(none.error().message, HasSubstr("there is no socket"));
}

TEST_F(ClientTest, InaccessibleSocketIsPermissionDenied) {
  ASSERT_EQ(chmod((folder_ + "/s").c_str(), 0), 0);
  // A thread may have another user than its process; root itself can open every socket.
  std::optional<Error> error;
  std::thread([&] {
    if (geteuid() == 0) {
      ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
      ASSERT_EQ(syscall(SYS_setresuid, -1, 65534, -1), 0);
    }
    const auto client = Client::Connect(
        {.address = "unix:" + folder_ + "/s", .connect_timeout = std::chrono::hours(1)});
    if (!client.ok()) error = client.error();
  }).join();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, Code::kPermissionDenied);
  EXPECT_THAT(error->message, HasSubstr("may not open"));
}

TEST_F(ClientTest, PortWithoutListenerIsReported) {
  const auto none =
      Client::Connect({.address = "127.0.0.1:1", .connect_timeout = milliseconds(200)});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("nothing listens there"));
}

}  // namespace
}  // namespace stride
