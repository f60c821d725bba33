// Copies from another device's memory, for kinds that have them. One device alone skips these.

#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

// The other device's command loop: a device is driven by one thread, which has its context.
class Loop {
 public:
  Loop() : thread_([this] { Serve(); }) {}
  ~Loop() {
    Run({});
    thread_.join();
  }
  // Waits until it has been done. Empty: the end.
  void Run(std::function<void()> work) {
    std::unique_lock lock(mutex_);
    work_ = std::move(work);
    ++num_asked_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return num_done_ == num_asked_; });
  }

 private:
  void Serve() {
    std::unique_lock lock(mutex_);
    for (bool more = true; more;) {
      changed_.wait(lock, [this] { return num_done_ < num_asked_; });
      more = work_ != nullptr;
      if (more) work_();
      ++num_done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  int num_asked_ = 0, num_done_ = 0;
  std::thread thread_;
};

class PeerTest : public DeviceTest {
 protected:
  static constexpr uint64_t kPeerArena = 700, kBytes = 32 << 20;

  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (harness().subject().peers.empty())
      GTEST_SKIP() << "no other device whose memory this one reads";
    SubjectUnderTest other = harness().subject();
    other.description = other.peers[0];
    loop_.Run([&] {
      auto started = Harness::Start(other);
      ASSERT_TRUE(started.ok()) << started.status();
      peer_ = *std::move(started);
      ASSERT_TRUE(peer_->CreateArena(kPeerArena, kBytes).ok());
    });
    ASSERT_NE(peer_, nullptr);
  }
  void TearDown() override {
    if (mapped_) {
      EXPECT_TRUE(harness().device().UnmapArena(kPeerArena).ok());
    }
    loop_.Run([this] { peer_.reset(); });
  }

  absl::Status Map() {
    UniqueFd fd(dup(peer_->ArenaFd(kPeerArena)));
    absl::Status status = harness().device().MapPeerArena(kPeerArena, kBytes, std::move(fd));
    mapped_ = status.ok();
    return status;
  }
  absl::Status Copy(uint64_t offset, uint64_t source_offset, uint64_t size,
                    uint64_t source_arena = kPeerArena) {
    wire::Copy copy;
    copy.set_to_device(true);
    copy.set_arena(Harness::kArena);
    copy.set_arena_offset(offset);
    copy.set_source_arena(source_arena);
    copy.set_source_offset(source_offset);
    copy.set_size(size);
    return harness().recorder().AwaitCopy(harness().StartCopy(copy));
  }
  static std::string Noise(size_t size) {
    std::mt19937 random(11);
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  }

  void UploadToPeer(uint64_t offset, const std::string& bytes) {
    loop_.Run([&] { EXPECT_TRUE(peer_->Upload(kPeerArena, offset, bytes).ok()); });
  }

  Loop loop_;
  std::unique_ptr<Harness> peer_;
  bool mapped_ = false;
};

TEST_F(PeerTest, BytesArriveAsTheyAre) {
  const std::string bytes = Noise((20 << 20) + 5);
  UploadToPeer(4321, bytes);
  ASSERT_TRUE(Map().ok());
  ASSERT_TRUE(Copy(777, 4321, bytes.size()).ok());
  auto back = harness().Download(Harness::kArena, 777, bytes.size());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == bytes) << "bytes changed on the way";
  // The source is as it was, and later content is seen through the same mapping.
  const std::string other = Noise(1000);
  UploadToPeer(0, other);
  ASSERT_TRUE(Copy(0, 0, other.size()).ok());
  EXPECT_EQ(*harness().Download(Harness::kArena, 0, other.size()), other);
}

TEST_F(PeerTest, ManyAtOnceAllComplete) {
  ASSERT_TRUE(Map().ok());
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(Copy(i * 64, i * 128, i % 65).ok());
}

TEST_F(PeerTest, RangesOutsideAreRefused) {
  ASSERT_TRUE(Map().ok());
  EXPECT_FALSE(Copy(0, kBytes - 1, 2).ok());
  EXPECT_FALSE(Copy(Harness::kArenaBytes - 1, 0, 2).ok());
  EXPECT_FALSE(Copy(0, UINT64_MAX, 2).ok());
  EXPECT_FALSE(Copy(0, 0, UINT64_MAX).ok());
}

TEST_F(PeerTest, WhatIsNotMappedIsRefused) {
  EXPECT_FALSE(Copy(0, 0, 64).ok());
  EXPECT_FALSE(Copy(0, 0, 64, 4711).ok());
}

TEST_F(PeerTest, TasksCannotNameIt) {
  ASSERT_TRUE(Map().ok());
  wire::Task task;
  task.mutable_zero_fill()->set_arena(kPeerArena);
  task.mutable_zero_fill()->set_size(64);
  EXPECT_REFUSED(harness().Run(task));
}

TEST_F(PeerTest, OutlivesItsOwnersMapping) {
  const std::string bytes = Noise(4096);
  UploadToPeer(0, bytes);
  ASSERT_TRUE(Map().ok());
  loop_.Run([this] { EXPECT_TRUE(peer_->DropArena(kPeerArena).ok()); });
  ASSERT_TRUE(Copy(0, 0, bytes.size()).ok());
  EXPECT_EQ(*harness().Download(Harness::kArena, 0, bytes.size()), bytes);
}

TEST_F(PeerTest, WithinOneDeviceToo) {
  const std::string bytes = Noise(1 << 20);
  ASSERT_TRUE(harness().Upload(Harness::kArena, 0, bytes).ok());
  ASSERT_TRUE(Copy(8 << 20, 0, bytes.size(), Harness::kArena).ok());
  EXPECT_EQ(*harness().Download(Harness::kArena, 8 << 20, bytes.size()), bytes);
}

}  // namespace
}  // namespace stride::conformance
