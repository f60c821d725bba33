#include "server/worker/cuda/print_capture.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>

#include "server/worker/cuda/sandbox_needs.h"
#include "tests/support/inside_sandbox.h"

namespace stride::cuda {
namespace {

// Runs in the sandbox of a worker that serves a GPU.
std::string Inside(const std::function<std::string()>& test) {
  return worker::InsideSandbox(SandboxNeedsOf(worker::WorkerMode::kServe), test);
}

// The driver writes a kernel's text to standard output.
TEST(PrintCaptureTest, CapturesTextInTheSandbox) {
  EXPECT_EQ(Inside([]() -> std::string {
              auto capture = PrintCapture::Start();
              if (!capture.ok()) return std::string(capture.status().message());
              std::printf("first\n");
              if (capture->Take().text != "first\n") return "the first text is missing";
              std::printf("second\n");
              if (capture->Take().text != "second\n") return "the second text is missing";
              return capture->Take().empty() ? "" : "text without a print";
            }),
            "");
}

TEST(PrintCaptureTest, CountsTextBeyondTheFileAsDropped) {
  EXPECT_EQ(Inside([]() -> std::string {
              auto capture = PrintCapture::Start();
              if (!capture.ok()) return std::string(capture.status().message());
              const std::string line(1023, 'x');
              for (uint64_t size = 0; size < PrintCapture::kFileBytes + (1 << 20); size += 1024) {
                std::printf("%s\n", line.c_str());
              }
              const PrintedText printed = capture->Take();
              if (printed.text.empty() || printed.text.size() > kMaxPrintedBytes) {
                return "bytes: " + std::to_string(printed.text.size());
              }
              if (printed.dropped_lines == 0) return "no line counts as dropped";
              std::printf("after\n");
              return capture->Take().text == "after\n" ? "" : "later text is missing";
            }),
            "");
}

}  // namespace
}  // namespace stride::cuda
