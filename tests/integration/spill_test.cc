// Arrays of several times the device's memory: all are used and restored bit for bit, from the
// device, host memory or files. Also the errors when all three are full.

#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "gmock/gmock.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/temporary_folder.h"

namespace stride::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kCount = kMiB;  // elements of an array of 4 MiB

class SpillTest : public ::testing::Test {
 protected:
  SpillTest() {
    std::string pattern = "/tmp/stride-spill.XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    state_ = pattern;
  }
  ~SpillTest() override { stride::test_support::RemoveFolder(state_); }
  std::vector<std::string> Flags(int64_t device, int64_t memory, int64_t disk) const {
    return {"--state-dir=" + state_, "--device-memory=" + std::to_string(device),
            "--spill-memory=" + std::to_string(memory), "--spill-disk=" + std::to_string(disk)};
  }
  static std::vector<int32_t> Content(int32_t number) {
    return Iota<int32_t>(kCount, number * 1000003);
  }
  static int64_t ArrayBytes(Client& client) {
    int64_t bytes = -1;
    Must(client.WatchDevices({}, [&](const std::vector<DeviceSample>& samples) {
      bytes = 0;
      for (const DeviceSample& sample : samples) bytes += sample.array_bytes;
      return false;
    }));
    return bytes;
  }
  std::string state_;
};

TEST_F(SpillTest, ComputesOnManyTimesTheDeviceMemory) {
  Daemon daemon(Flags(64 * kMiB, 96 * kMiB, 512 * kMiB));
  Client client = daemon.Connect();
  constexpr int32_t kArrays = 40;  // 160 MiB, and as much of results
  std::vector<Array> arrays, sums;
  const auto begin = Clock::now();
  for (int32_t i = 0; i < kArrays; ++i) arrays.push_back(Must(client.Put(Content(i), {kCount})));
  EXPECT_LE(ArrayBytes(client), 64 * kMiB);
  // All at once: waiting tasks' inputs may be evicted again.
  for (int32_t i = 0; i < kArrays; ++i) sums.push_back(client.Ufunc("add", {arrays[i], 7 * i}));
  for (int32_t i = 0; i < kArrays; ++i) {
    auto expected = Content(i);
    for (int32_t& value : expected) value += 7 * i;
    ASSERT_TRUE(Get<int32_t>(client, sums[i]) == expected) << i;
    ASSERT_TRUE(Get<int32_t>(client, arrays[i]) == Content(i)) << i;
  }
  // Several evicted inputs, a view, a change in place, an inline result.
  Array far = client.Ufunc("add", {arrays[0], arrays[kArrays / 2]});
  auto expected = Content(0);
  const auto other = Content(kArrays / 2);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += other[i];
  EXPECT_TRUE(Get<int32_t>(client, far) == expected);
  Array view = client.Reshape(arrays[1], {kCount / 1024, 1024});
  EXPECT_TRUE(Get<int32_t>(client, view) == Content(1));
  client.Compute(Operation::Ufunc("add", {arrays[2], 1}).ToExisting(arrays[2]));
  auto changed = Content(2);
  for (int32_t& value : changed) value += 1;
  EXPECT_TRUE(Get<int32_t>(client, arrays[2]) == changed);
  Array top = client.Reduce(Reduction::kMax, arrays[3]);
  EXPECT_EQ(Get<int32_t>(client, top)[0], Content(3).back());
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::printf("  %.1f s for %d MiB of arrays on a device of 64\n", seconds, 2 * kArrays * 4);
  EXPECT_TRUE(daemon.WaitForLog("devices are full: idle arrays hold", std::chrono::seconds(5)));

  // Other users cannot read the files: the folder is private to the daemon, and they have no names.
  struct stat info;
  ASSERT_EQ(stat((state_ + "/spill").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_TRUE(fs::is_empty(state_ + "/spill"));
}

TEST_F(SpillTest, FullSpillIsAnErrorAndArraysStayIntact) {
  Daemon daemon(Flags(32 * kMiB, 16 * kMiB, 16 * kMiB));
  Client client = daemon.Connect();
  std::vector<Array> arrays;
  std::optional<Error> full;
  for (int32_t i = 0; i < 32 && !full.has_value(); ++i) {
    auto put = client.Put(Content(i), {kCount});
    if (put) {
      arrays.push_back(*std::move(put));
    } else {
      full = put.error();
    }
  }
  ASSERT_TRUE(full.has_value());
  EXPECT_TRUE(IsError(*full, Code::kResourceExhausted, "DEVICE_MEMORY"));
  EXPECT_TRUE(full->retry_delay.has_value());
  EXPECT_GE(arrays.size(), 14u);
  EXPECT_LE(arrays.size(), 16u);
  for (size_t i = 0; i < arrays.size(); ++i)
    EXPECT_TRUE(Get<int32_t>(client, arrays[i]) == Content(static_cast<int32_t>(i))) << i;
}

TEST_F(SpillTest, ArraysOfSeveralClientsStayDistinct) {
  Daemon daemon(Flags(32 * kMiB, 32 * kMiB, 512 * kMiB));
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      try {
        Client client = daemon.Connect();
        std::vector<Array> arrays;
        for (int32_t i = 0; i < 12; ++i) {
          arrays.push_back(Must(client.Put(Content(100 * t + i), {kCount})));
          arrays.push_back(client.Ufunc("negative", {arrays.back()}));
        }
        // Also in place, some during their eviction.
        for (int round = 0; round < 4; ++round) {
          for (int32_t i = 0; i < 12; ++i)
            client.Compute(Operation::Ufunc("add", {arrays[2 * i], 1}).ToExisting(arrays[2 * i]));
        }
        for (int32_t i = 0; i < 12; ++i) {
          auto expected = Content(100 * t + i);
          for (int32_t& value : expected) value += 4;
          EXPECT_TRUE(Get<int32_t>(client, arrays[2 * i]) == expected) << t << " " << i;
          for (int32_t& value : expected) value = -(value - 4);
          EXPECT_TRUE(Get<int32_t>(client, arrays[2 * i + 1]) == expected) << t << " " << i;
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace stride::testing
