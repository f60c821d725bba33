// Another device's memory, for kinds that read it: as an input of elementwise tasks, and by copies.
// For CPU devices it is a memory file; for other kinds, a machine with one device skips these.

#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

// The other device's command loop: one thread drives a device and owns its context.
class Loop {
 public:
  Loop() : thread_([this] { Serve(); }) {}
  ~Loop() {
    Run({});
    thread_.join();
  }
  // Waits until the work is done. An empty function ends the thread.
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
    if (HostMemory()) {
      auto file = CreateMemoryFile("peer", kBytes);
      ASSERT_TRUE(file.ok()) << file.status();
      file_ = *std::move(file);
      auto map = MemoryMap::Map(file_.get(), kBytes, /*writable=*/true);
      ASSERT_TRUE(map.ok()) << map.status();
      memory_ = *std::move(map);
      return;
    }
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
    if (mapped_) Unmap();
    loop_.Run([this] { peer_.reset(); });
  }

  bool HostMemory() { return harness().subject().description.host_memory(); }
  absl::Status Map() {
    UniqueFd fd(dup(HostMemory() ? file_.get() : peer_->ArenaFd(kPeerArena)));
    absl::Status status = harness().device().MapPeerArena(kPeerArena, kBytes, std::move(fd));
    mapped_ = status.ok();
    return status;
  }
  void Unmap() {
    EXPECT_TRUE(harness().device().UnmapArena(kPeerArena).ok());
    mapped_ = false;
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
    if (HostMemory()) {
      std::memcpy(memory_.data() + offset, bytes.data(), bytes.size());
      return;
    }
    loop_.Run([&] { EXPECT_TRUE(peer_->Upload(kPeerArena, offset, bytes).ok()); });
  }

  // Its owner releases it.
  void DropPeer() {
    if (HostMemory()) {
      memory_ = MemoryMap();
      file_.Reset();
    } else {
      loop_.Run([this] { EXPECT_TRUE(peer_->DropArena(kPeerArena).ok()); });
    }
  }

  // An array of int32 there, which counts from `first`.
  DeviceArray PutOnPeer(uint64_t offset, int64_t count, int first = 0) {
    const HostArray array = Counting(count, first);
    UploadToPeer(offset, array.buffer);
    return {kPeerArena, offset, array.info};
  }
  static HostArray Counting(int64_t count, int first) {
    return Make(DType::kInt32, {count}, [=](int64_t i) { return Value(i + first); });
  }
  // The device's own array plus the peer's.
  absl::Status ExpectSum(const HostArray& own, const DeviceArray& peer, const HostArray& content) {
    auto sum = harness().Compute(UfuncOf("add", 2), {harness().Put(own), peer});
    if (!sum.ok()) return sum.status();
    const auto got = harness().Get(*sum).Values(), a = own.Values(), b = content.Values();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], a[i] + b[i]) << "element " << i;
    return absl::OkStatus();
  }

  Loop loop_;
  std::unique_ptr<Harness> peer_;
  UniqueFd file_;
  MemoryMap memory_;
  bool mapped_ = false;
};

class PeerCopyTest : public PeerTest {
 protected:
  void SetUp() override {
    PeerTest::SetUp();
    if (!IsSkipped() && HostMemory()) GTEST_SKIP() << "the daemon copies host memory itself";
  }
};

TEST_F(PeerTest, TasksReadPeerMemory) {
  ASSERT_TRUE(Map().ok());
  for (int64_t count : {1, 5, 1000, 16 << 10, 1 << 20}) {
    const DeviceArray there = PutOnPeer(4096, count, 7);
    EXPECT_TRUE(ExpectSum(Counting(count, 3), there, Counting(count, 7)).ok());
    harness().Reset();
  }
}

TEST_F(PeerTest, TasksReadLaterWritesOfThePeer) {
  ASSERT_TRUE(Map().ok());
  for (int first = 0; first < 20; ++first) {
    const DeviceArray there = PutOnPeer(64, 300, first);
    ASSERT_TRUE(ExpectSum(Counting(300, 0), there, Counting(300, first)).ok());
  }
}

TEST_F(PeerTest, TasksReadAnyStrides) {
  ASSERT_TRUE(Map().ok());
  DeviceArray there = PutOnPeer(0, 64);
  for (const auto& view : {EverySecond(Counting(64, 0), 0), Reversed(Counting(64, 0), 0)}) {
    there.info = view.info;
    EXPECT_TRUE(ExpectSum(Counting(there.info.shape[0], 5), there, view).ok());
  }
}

TEST_F(PeerTest, TasksCannotReadBeyondPeerMemory) {
  ASSERT_TRUE(Map().ok());
  DeviceArray there = PutOnPeer(kBytes - 256, 64);
  EXPECT_TRUE(ExpectSum(Counting(64, 1), there, Counting(64, 0)).ok());
  there.offset += 4;
  EXPECT_REFUSED(ExpectSum(Counting(64, 1), there, Counting(64, 0)));
  there.offset = UINT64_MAX - 3;
  EXPECT_REFUSED(ExpectSum(Counting(64, 1), there, Counting(64, 0)));
}

TEST_F(PeerTest, OnlyElementwiseInputsMayBePeerMemory) {
  const DeviceArray there = PutOnPeer(0, 64);
  const DeviceArray own = harness().Put(Counting(64, 1));
  EXPECT_REFUSED(harness().Compute(UfuncOf("add", 2), {own, there}).status());
  ASSERT_TRUE(Map().ok());
  EXPECT_REFUSED(harness().Compute(UfuncOf("add", 2), {own, own}, &there).status());
  v1::Operation sum;
  sum.mutable_reduction()->set_function(v1::Reduction::FUNCTION_SUM);
  sum.mutable_reduction()->mutable_input()->set_handle(1);
  EXPECT_REFUSED(harness().Compute(sum, {there}).status());
  wire::Task task;
  task.mutable_zero_fill()->set_arena(kPeerArena);
  task.mutable_zero_fill()->set_size(64);
  EXPECT_REFUSED(harness().Run(task));
  Unmap();
  EXPECT_REFUSED(harness().Compute(UfuncOf("add", 2), {own, there}).status());
}

// Tasks submitted before the unmap still read it.
TEST_F(PeerTest, MappingLastsForSubmittedTasks) {
  ASSERT_TRUE(Map().ok());
  const int64_t count = 1 << 20;
  const DeviceArray there = PutOnPeer(0, count, 2), own = harness().Put(Counting(count, 1));
  DeviceArray output;
  auto task = harness().Prepare(UfuncOf("add", 2), {own, there}, nullptr, &output);
  ASSERT_TRUE(task.ok()) << task.status();
  std::vector<uint64_t> sequences;
  for (int i = 0; i < 50; ++i) sequences.push_back(harness().Submit(*task));
  Unmap();
  DropPeer();
  for (uint64_t sequence : sequences) {
    const absl::Status ended = harness().recorder().AwaitTask(sequence);
    EXPECT_TRUE(ended.ok()) << ended;
  }
  EXPECT_EQ(harness().Get(output).At(count - 1), Value(2 * (count - 1) + 3));
}

TEST_F(PeerTest, PeerMemoryOutlivesItsOwner) {
  const DeviceArray there = PutOnPeer(0, 100, 4);
  ASSERT_TRUE(Map().ok());
  DropPeer();
  EXPECT_TRUE(ExpectSum(Counting(100, 1), there, Counting(100, 4)).ok());
}

TEST_F(PeerCopyTest, BytesArriveUnchanged) {
  const std::string bytes = Noise((20 << 20) + 5);
  UploadToPeer(4321, bytes);
  ASSERT_TRUE(Map().ok());
  ASSERT_TRUE(Copy(777, 4321, bytes.size()).ok());
  auto back = harness().Download(Harness::kArena, 777, bytes.size());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == bytes) << "bytes changed on the way";
  // The source is unchanged, and later content is visible through the same mapping.
  const std::string other = Noise(1000);
  UploadToPeer(0, other);
  ASSERT_TRUE(Copy(0, 0, other.size()).ok());
  EXPECT_EQ(*harness().Download(Harness::kArena, 0, other.size()), other);
}

TEST_F(PeerCopyTest, ManyConcurrentCopiesComplete) {
  ASSERT_TRUE(Map().ok());
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(Copy(i * 64, i * 128, i % 65).ok());
}

TEST_F(PeerCopyTest, RangesOutsideTheArenaAreRefused) {
  ASSERT_TRUE(Map().ok());
  EXPECT_FALSE(Copy(0, kBytes - 1, 2).ok());
  EXPECT_FALSE(Copy(Harness::kArenaBytes - 1, 0, 2).ok());
  EXPECT_FALSE(Copy(0, UINT64_MAX, 2).ok());
  EXPECT_FALSE(Copy(0, 0, UINT64_MAX).ok());
}

TEST_F(PeerCopyTest, UnmappedArenaIsRefused) {
  EXPECT_FALSE(Copy(0, 0, 64).ok());
  EXPECT_FALSE(Copy(0, 0, 64, 4711).ok());
}

TEST_F(PeerCopyTest, CopyOutlivesTheOwnersMapping) {
  const std::string bytes = Noise(4096);
  UploadToPeer(0, bytes);
  ASSERT_TRUE(Map().ok());
  DropPeer();
  ASSERT_TRUE(Copy(0, 0, bytes.size()).ok());
  EXPECT_EQ(*harness().Download(Harness::kArena, 0, bytes.size()), bytes);
}

TEST_F(PeerCopyTest, CopyWithinOneDevice) {
  const std::string bytes = Noise(1 << 20);
  ASSERT_TRUE(harness().Upload(Harness::kArena, 0, bytes).ok());
  ASSERT_TRUE(Copy(8 << 20, 0, bytes.size(), Harness::kArena).ok());
  EXPECT_EQ(*harness().Download(Harness::kArena, 8 << 20, bytes.size()), bytes);
}

}  // namespace
}  // namespace stride::conformance
