// Spill to a disk that is full, or whose writes fail: a file system of four MiB that only this
// process sees.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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
#include "tests/support/descriptors.h"
#include "tests/support/fake_broker.h"

namespace stride::engine {
namespace {

namespace fs = std::filesystem;
using ::stride::testing::Eventually;
using ::stride::testing::FakeBroker;
using ::stride::testing::HostDevice;
using ::stride::testing::NumDescriptors;
using ::stride::testing::StagedDevice;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kQuarter = kMiB / 4;
constexpr char kSession[] = "sessions/s";
const TenantId kTenant{"default"};

// Enters its own mount namespace, with a user namespace where the former alone is forbidden.
bool MountTmpfs(const std::string& folder, const char* options) {
  if (unshare(CLONE_NEWNS) != 0) {
    uid_t user = getuid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  }
  return mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", folder.c_str(), "tmpfs", 0, options) == 0;
}

class SpillDiskTest : public ::testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = fs::path(::testing::TempDir()) / "disk-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    disk_ = fs::canonical(pattern);
    mounted_ = MountTmpfs(disk_, "size=4m");
  }
  static void TearDownTestSuite() {
    if (mounted_) umount(disk_.c_str());
    rmdir(disk_.c_str());
  }

  void SetUp() override {
    if (!mounted_) GTEST_SKIP() << "no file system may be mounted here";
    bool host = std::string(GetParam()) == "cpu";
    broker_ = std::make_unique<FakeBroker>(
        std::vector{host ? HostDevice(0, kMiB) : StagedDevice(0, kMiB)});
    EngineOptions options;
    options.device_memory_share = 1;
    options.spill_memory_bytes = kMiB;
    options.spill_disk_bytes = 64 * kMiB;  // which is not true
    options.upload_lease = absl::Milliseconds(1);
    options.keep_empty_time = absl::Milliseconds(50);
    options.housekeeping_interval = absl::Milliseconds(100);
    options.spill_folder = disk_ + "/spill";
    options.log = [this](const std::string& line) {
      std::lock_guard lock(mutex_);
      log_.push_back(line);
    };
    ASSERT_TRUE(store::PrepareSpillFolder(options.spill_folder).ok());
    engine_ = Engine::Create(options, broker_.get());
    v1::CreateSessionRequest request;
    request.set_session_id("s");
    ASSERT_TRUE(engine_->sessions().Create(kTenant, request).ok());
  }
  void TearDown() override {
    if (engine_ == nullptr) return;
    ASSERT_TRUE(engine_->sessions().Delete(kTenant, kSession).ok());
    EXPECT_TRUE(Eventually([&] { return FreeBytes() + FillerBytes() >= 4 * kMiB - (64 << 10); }))
        << "of the disk's room some stays taken";
    broker_->Shutdown();
    EXPECT_TRUE(engine_->Drain(Now() + absl::Seconds(5)));
    engine_.reset();
    fs::remove(Filler());
  }

  static std::string Filler() { return disk_ + "/filler"; }
  static int64_t FillerBytes() {
    return fs::exists(Filler()) ? static_cast<int64_t>(fs::file_size(Filler())) : 0;
  }
  static int64_t FreeBytes() {
    struct statvfs info;
    return statvfs(disk_.c_str(), &info) == 0 ? static_cast<int64_t>(info.f_bsize * info.f_bavail)
                                              : -1;
  }
  // Fills the disk except for this many bytes.
  static void Fill(int64_t all_but) {
    UniqueFd fd(open(Filler().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(posix_fallocate(fd.get(), 0, FreeBytes() - all_but), 0);
  }

  static SteadyTime Soon() { return Now() + absl::Seconds(100); }
  static std::string Content(uint64_t handle, int64_t size) {
    std::mt19937 random(static_cast<uint32_t>(handle));
    std::string bytes(static_cast<size_t>(size), '\0');
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      auto word = static_cast<uint32_t>(random());
      std::memcpy(&bytes[i], &word, 4);
    }
    return bytes;
  }
  absl::Status Put(uint64_t handle, int64_t size = kQuarter) {
    v1::PutArrayRequest::Header header;
    header.set_parent(kSession);
    header.set_array_id(absl::StrCat(handle));
    header.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
    header.mutable_spec()->add_shape(size);
    header.mutable_range()->set_end(size);
    auto upload = engine_->arrays().BeginUpload(kTenant, header, Soon());
    if (!upload.ok()) return upload.status();
    absl::Status written = (*upload)->Write(Content(handle, size));
    return written.ok() ? (*upload)->Finish().status() : written;
  }
  // Creates as many arrays as fit; the first that does not fit is deleted again.
  uint64_t PutAll(uint64_t first, absl::Status* full) {
    for (uint64_t handle = first;; ++handle) {
      *full = Put(handle);
      if (full->ok()) continue;
      Release(handle);
      return handle;
    }
  }
  void Release(uint64_t handle) {
    v1::Release release;
    release.add_handles(handle);
    ASSERT_TRUE(engine_->operations().Release(kTenant, kSession, release).ok());
  }
  absl::Status Negate(uint64_t in, uint64_t out) {
    v1::Operation operation;
    operation.mutable_ufunc()->set_function("invert");
    operation.mutable_ufunc()->add_inputs()->set_handle(in);
    operation.add_outputs()->set_handle(out);
    auto ticket =
        engine_->operations().Submit(kTenant, kSession, operation, SteadyTime::InfiniteFuture());
    return ticket.ok() ? (*ticket)->Wait(Soon()) : ticket.status();
  }
  void ExpectWhole(uint64_t begin, uint64_t end) {
    for (uint64_t handle = begin; handle < end; ++handle) {
      v1::FetchArrayRequest request;
      request.set_name(absl::StrCat(kSession, "/arrays/", handle));
      auto download = engine_->arrays().BeginDownload(kTenant, request, Soon());
      ASSERT_TRUE(download.ok()) << handle << ": " << download.status();
      std::string bytes;
      for (bool more = true; more;) {
        auto chunk = (*download)->Next(100000);
        ASSERT_TRUE(chunk.ok()) << handle << ": " << chunk.status();
        more = !chunk->bytes.empty();
        bytes.append(chunk->bytes);
      }
      EXPECT_TRUE(bytes == Content(handle, kQuarter)) << handle;
    }
  }
  static void ExpectFull(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_DEVICE_MEMORY) << status;
    EXPECT_TRUE(status.GetPayload("type.googleapis.com/google.rpc.RetryInfo").has_value());
  }
  int64_t NumLines(const std::string& text) {
    std::lock_guard lock(mutex_);
    return std::count_if(log_.begin(), log_.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
  // The descriptors of files on the disk.
  static std::vector<int> SpillFiles() {
    std::vector<int> found;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      std::string target = fs::read_symlink(entry.path(), error).string();
      if (target.rfind(disk_ + "/spill/", 0) == 0)
        found.push_back(std::stoi(entry.path().filename()));
    }
    return found;
  }

  void TestFailingWrites(const std::function<void(int)>& spoil,
                         const std::function<void(int)>& mend);

  inline static std::string disk_;
  inline static bool mounted_ = false;
  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
  std::mutex mutex_;
  std::vector<std::string> log_;
};

TEST_P(SpillDiskTest, FullDiskFailsPromptlyAndKeepsArrays) {
  Fill(/*all_but=*/kMiB);
  absl::Status full;
  uint64_t end = PutAll(1, &full);
  ExpectFull(full);
  EXPECT_GE(end - 1, 8u + 3u) << "the device, host memory, and what the disk had left";
  EXPECT_LE(end - 1, 8u + 4u);
  SpillSample before = engine_->devices().SampleSpill();
  int64_t descriptors = NumDescriptors(), free = FreeBytes();
  SteadyTime start = Now();
  // Also an array that could only lie in a file.
  ExpectFull(Put(900, 5 * kMiB / 2));
  Release(900);
  constexpr int kTries = 10;
  for (uint64_t i = 0; i < kTries; ++i) {
    ExpectFull(Put(1000 + i));
    Release(1000 + i);
    ExpectFull(Negate(1, 2000 + i));
    Release(2000 + i);
  }
  EXPECT_LT(Now() - start, absl::Seconds(5));
  EXPECT_EQ(NumLines("cannot leave for the disk"), 1);
  EXPECT_EQ(NumDescriptors(), descriptors);
  EXPECT_EQ(FreeBytes(), free);
  EXPECT_EQ(engine_->devices().SampleSpill().disk_arena_bytes, before.disk_arena_bytes);
  EXPECT_EQ(engine_->devices().SampleSpill().disk_bytes, before.disk_bytes);
  ExpectWhole(1, end);

  fs::remove(Filler());
  ASSERT_TRUE(Eventually([&] {
    absl::Status status = Put(end);
    if (!status.ok()) Release(end);
    return status.ok();
  }));
  uint64_t last = PutAll(end + 1, &full);
  ExpectFull(full);
  EXPECT_GE(last - end, 8u) << "the rest of the disk is used as well";
  ExpectWhole(1, last);
}

// After the reservation, `spoil` makes writes to the file of this descriptor fail; `mend` undoes
// that.
void SpillDiskTest::TestFailingWrites(const std::function<void(int)>& spoil,
                                      const std::function<void(int)>& mend) {
  constexpr uint64_t kEnd = 10;  // the last one before it lies in a file, which has room for more
  for (uint64_t handle = 1; handle < kEnd; ++handle) ASSERT_TRUE(Put(handle).ok());
  ASSERT_EQ(SpillFiles().size(), 1u);
  int file = SpillFiles()[0];
  ASSERT_EQ(engine_->devices().SampleSpill().disk_bytes, kQuarter);
  spoil(file);
  int64_t descriptors = NumDescriptors();
  SteadyTime start = Now();
  for (uint64_t i = 0; i < 5; ++i) {
    ExpectFull(Put(kEnd + i));
    Release(kEnd + i);
    ExpectFull(Negate(kEnd - 1, 100 + i));
    Release(100 + i);
  }
  EXPECT_LT(Now() - start, absl::Seconds(5));
  EXPECT_EQ(NumLines("cannot leave for the disk"), 1);
  EXPECT_EQ(NumDescriptors(), descriptors);
  EXPECT_EQ(engine_->devices().SampleSpill().disk_bytes, kQuarter);
  mend(file);
  ExpectWhole(1, kEnd);
  ASSERT_TRUE(Eventually([&] {
    absl::Status status = Put(kEnd);
    if (!status.ok()) Release(kEnd);
    return status.ok();
  }));
  EXPECT_EQ(engine_->devices().SampleSpill().disk_bytes, 2 * kQuarter);
  ExpectWhole(1, kEnd + 1);
}

TEST_P(SpillDiskTest, LostReservationKeepsArrays) {
  auto spoil = [](int file) {
    auto size = static_cast<off_t>(fs::file_size(absl::StrCat("/proc/self/fd/", file)));
    // After the one array that exists.
    ASSERT_EQ(
        fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kQuarter, size - kQuarter), 0);
    Fill(/*all_but=*/0);
  };
  TestFailingWrites(spoil, [](int) { fs::remove(Filler()); });
}

TEST_P(SpillDiskTest, UnwritableFileKeepsArrays) {
  UniqueFd saved;
  auto spoil = [&](int file) {
    saved = UniqueFd(dup(file));
    UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(dup3(null.get(), file, O_CLOEXEC), file);
  };
  TestFailingWrites(spoil, [&](int file) { ASSERT_EQ(dup3(saved.get(), file, O_CLOEXEC), file); });
}

INSTANTIATE_TEST_SUITE_P(Kinds, SpillDiskTest, ::testing::Values("cpu", "gpu"));

}  // namespace
}  // namespace stride::engine
