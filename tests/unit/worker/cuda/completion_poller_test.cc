// The poller with a driver of a few fake functions: the test writes completion values instead of
// streams.
#include "server/worker/cuda/completion_poller.h"
#include "tests/support/await.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace stride::cuda {
namespace {

std::atomic<CUresult> g_query_result{CUDA_ERROR_NOT_READY};
// The file to which the driver writes the text of kernels.
const int g_output = open("/dev/null", O_WRONLY | O_CLOEXEC);

Driver FakeDriver() {
  Driver driver;
  driver.cuDevicePrimaryCtxRetain = [](CUcontext*, CUdevice) { return CUDA_SUCCESS; };
  driver.cuDevicePrimaryCtxRelease = [](CUdevice) { return CUDA_SUCCESS; };
  driver.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  driver.cuStreamQuery = [](CUstream) { return g_query_result.load(); };
  driver.cuEventDestroy = [](CUevent) { return CUDA_SUCCESS; };
  // The event is a text in the device's buffer.
  driver.cuEventSynchronize = [](CUevent event) {
    const auto* text = reinterpret_cast<const char*>(event);
    EXPECT_GE(write(g_output, text, std::strlen(text)), 0);
    return CUDA_SUCCESS;
  };
  return driver;
}

class FakeCompletions : public worker::Completions {
 public:
  void TaskDone(uint64_t sequence, const absl::Status& status, double run_seconds,
                bool more) override {
    absl::MutexLock lock(&mutex_);
    lines_.push_back("task " + std::to_string(sequence) + (status.ok() ? "" : " failed"));
    EXPECT_GE(run_seconds, 0);
  }
  void TasksCancelled(uint64_t, bool) override {}
  void Printed(uint64_t sequence, const PrintedText& printed) override {
    absl::MutexLock lock(&mutex_);
    lines_.push_back("printed " + std::to_string(sequence) + " " + printed.text);
  }
  void CopyDone(uint64_t id, const absl::Status& status) override {
    absl::MutexLock lock(&mutex_);
    lines_.push_back("copy " + std::to_string(id) + (status.ok() ? "" : " failed"));
  }
  [[noreturn]] void Fatal(uint64_t sequence, const absl::Status& status, bool) override {
    for (const std::string& line : lines()) std::fprintf(stderr, "%s; ", line.c_str());
    std::fprintf(stderr, "fatal %d: %s\n", static_cast<int>(sequence),
                 std::string(status.message()).c_str());
    _exit(1);
  }
  std::vector<std::string> lines() {
    absl::MutexLock lock(&mutex_);
    return lines_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> lines_;
};

class CompletionPollerTest : public ::testing::Test {
 protected:
  CompletionPollerTest()
      : context_(*Context::Retain(driver_, 0)),
        poller_(driver_, context_, completions_,
                {CompletionPoller::Watch{nullptr, &marks_[0]},
                 {nullptr, &marks_[1]},
                 {nullptr, &marks_[2]},
                 {nullptr, &marks_[3]},
                 {nullptr, &marks_[4]}},
                heartbeat_, &capture_) {}

  void Task(uint32_t sequence, absl::Status status = absl::OkStatus()) {
    poller_.Begin(CompletionPoller::kCompute, sequence, sequence,
                  "task" + std::to_string(sequence));
    poller_.Launched(CompletionPoller::kCompute, {std::move(status)});
  }

  const Driver driver_ = FakeDriver();
  FakeCompletions completions_;
  std::atomic<uint32_t> marks_[5] = {};
  std::atomic<uint64_t> heartbeat_{0};
  Context context_;
  PrintCapture capture_ = *PrintCapture::StartAt(g_output);
  CompletionPoller poller_;
};

using Lines = std::vector<std::string>;

TEST_F(CompletionPollerTest, ReportsTasksUpToTheMark) {
  Task(1);
  Task(2, absl::InternalError("x"));
  Task(3);
  marks_[0] = 2;
  AWAIT(completions_.lines().size() >= 2);
  EXPECT_EQ(completions_.lines(), (Lines{"task 1", "task 2 failed"}));
  EXPECT_TRUE(poller_.HasEnded(CompletionPoller::kCompute, 2));
  EXPECT_FALSE(poller_.HasEnded(CompletionPoller::kCompute, 3));
  marks_[0] = 3;
  poller_.Drain();
  EXPECT_EQ(completions_.lines().size(), 3u);
}

TEST_F(CompletionPollerTest, KeepsMarkReachedBeforeLaunchReturns) {
  poller_.Begin(CompletionPoller::kUpload, 77, 1, "");
  marks_[1] = 1;
  poller_.Launched(CompletionPoller::kUpload, {absl::OkStatus()});
  poller_.Drain();
  EXPECT_EQ(completions_.lines(), Lines{"copy 77"});
}

TEST_F(CompletionPollerTest, TasksOfOneLaunchAreReportedSeparately) {
  Task(1);
  std::vector<CompletionPoller::Work> work = {{2, 2, "b"}, {3, 3, "c"}, {4, 4, "d"}};
  poller_.Begin(CompletionPoller::kCompute, absl::MakeSpan(work));
  marks_[0] = 3;  // some have ended before all are launched
  poller_.Launched(CompletionPoller::kCompute,
                   {absl::OkStatus(), absl::InternalError("x"), absl::OkStatus()});
  AWAIT(completions_.lines().size() >= 3);
  EXPECT_EQ(completions_.lines(), (Lines{"task 1", "task 2", "task 3 failed"}));
  marks_[0] = 4;
  poller_.Drain();
  EXPECT_EQ(completions_.lines().back(), "task 4");
}

TEST_F(CompletionPollerTest, PrintedTextPrecedesTaskResult) {
  auto text = [this](const char* words) {
    const auto event = reinterpret_cast<CUevent>(const_cast<char*>(words));
    return std::make_shared<const Event>(driver_, event);
  };
  const absl::Status done;
  poller_.Begin(CompletionPoller::kCompute, 5, 5, "");
  poller_.Launched(CompletionPoller::kCompute, {done}, {}, text("five\n"));
  poller_.Begin(CompletionPoller::kCompute, 6, 6, "");
  poller_.Launched(CompletionPoller::kCompute, {done}, {}, text(""));
  poller_.Begin(CompletionPoller::kCompute, 7, 7, "");
  poller_.Launched(CompletionPoller::kCompute, {done}, {}, text("seven\n"));
  marks_[0] = 7;
  poller_.Drain();
  EXPECT_EQ(completions_.lines(),
            (Lines{"printed 5 five\n", "task 5", "task 6", "printed 7 seven\n", "task 7"}));
}

TEST(PrintCapture, TextBeyondTheFileIsDroppedAndDoesNotBlock) {
  PrintCapture capture = *PrintCapture::StartAt(g_output);
  const std::string line = std::string(1023, 'x') + "\n";
  for (int i = 0; i < 6000; ++i) (void)!write(g_output, line.data(), line.size());
  PrintedText printed = capture.Take();
  EXPECT_EQ(printed.text.size(), kMaxPrintedBytes);
  EXPECT_GT(printed.dropped_lines, 0u);
  EXPECT_EQ(write(g_output, "after\n", 6), 6);
  printed = capture.Take();
  EXPECT_EQ(printed.text, "after\n");
  EXPECT_EQ(printed.dropped_lines, 0u);
}

TEST(PrintCapture, PrintingCodeHasTheSymbol) {
  EXPECT_TRUE(MayPrint(".version 8.0\n.extern .func (.param .b32 r) vprintf\n"));
  EXPECT_FALSE(MayPrint(".version 8.0\n.entry k() { ret; }\n"));
}

TEST_F(CompletionPollerTest, LanesDoNotWaitForEachOther) {
  Task(1);
  poller_.Begin(CompletionPoller::kDownload, 5, 1, "");
  poller_.Launched(CompletionPoller::kDownload, {absl::InternalError("x")});
  marks_[2] = 1;
  AWAIT(!completions_.lines().empty());
  EXPECT_EQ(completions_.lines(), Lines{"copy 5 failed"});
  marks_[0] = 1;
  poller_.Drain();
}

TEST_F(CompletionPollerTest, MarksMayWrapAround) {
  marks_[0] = 0xfffffffe;
  poller_.Begin(CompletionPoller::kCompute, 0x100000001, 1, "");
  poller_.Launched(CompletionPoller::kCompute, {absl::OkStatus()});
  EXPECT_TRUE(completions_.lines().empty());
  marks_[0] = 1;
  poller_.Drain();
  EXPECT_EQ(completions_.lines(), Lines{"task 4294967297"});
}

// The command loop may be blocked in the driver at that time.
TEST_F(CompletionPollerTest, SendsHeartbeatsOnlyWhileTheDeviceWorks) {
  Task(1);
  AWAIT(heartbeat_ >= 3);
  marks_[0] = 1;
  poller_.Drain();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const uint64_t idle = heartbeat_;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(heartbeat_, idle);
}

TEST_F(CompletionPollerTest, ManyTasksAndASlowDevice) {
  std::thread device([&] {
    for (uint32_t mark = 1; mark <= 20000; ++mark) marks_[0] = mark;
  });
  for (uint32_t sequence = 1; sequence <= 20000; ++sequence) Task(sequence);
  device.join();
  poller_.Drain();
  const Lines lines = completions_.lines();
  ASSERT_EQ(lines.size(), 20000u);
  for (uint32_t i = 0; i < lines.size(); ++i) ASSERT_EQ(lines[i], "task " + std::to_string(i + 1));
}

// A new object in a child process, since a fork does not keep the poller's thread.
TEST(CompletionPollerDeathTest, BlamesTheFirstUnfinishedTask) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        g_query_result = CUDA_ERROR_ILLEGAL_ADDRESS;
        const Driver driver = FakeDriver();
        FakeCompletions completions;
        std::atomic<uint32_t> marks[5] = {};
        std::atomic<uint64_t> heartbeat{0};
        const Context context = *Context::Retain(driver, 0);
        CompletionPoller poller(driver, context, completions,
                                {CompletionPoller::Watch{nullptr, &marks[0]},
                                 {nullptr, &marks[1]},
                                 {nullptr, &marks[2]},
                                 {nullptr, &marks[3]},
                                 {nullptr, &marks[4]}},
                                heartbeat);
        marks[0] = 1;
        for (uint32_t sequence = 1; sequence <= 3; ++sequence) {
          poller.Begin(CompletionPoller::kCompute, sequence, sequence,
                       "kernel" + std::to_string(sequence));
          poller.Launched(CompletionPoller::kCompute, {absl::OkStatus()});
        }
        poller.Drain();
      },
      ::testing::ExitedWithCode(1),
      "task 1; fatal 2: illegal memory access in `kernel2` .CUDA error 700.");
}

}  // namespace
}  // namespace stride::cuda
