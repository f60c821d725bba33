#include "server/worker/cuda/print_capture.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <string>

#include "server/worker/cuda/sandbox_needs.h"

namespace stride::cuda {
namespace {

// Runs `test` in a process of its own, inside the sandbox of a worker that serves a GPU. Returns
// the failure that `test` returns, or how the process ended.
std::string InsideWorkersSandbox(const std::function<std::string()>& test) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    signal(SIGXFSZ, SIG_IGN);  // as PrepareProcess does
    worker::EnterSandbox(worker::SandboxMode::kTry, SandboxNeedsOf(worker::WorkerMode::kServe));
    const std::string text = test();
    (void)!write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t size; (size = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, size);
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    text += "ended with " + std::to_string(status);
  return text;
}

// A kernel's text comes from the driver, which writes it to standard output.
TEST(PrintCaptureTest, TakesTextInTheSandbox) {
  EXPECT_EQ(InsideWorkersSandbox([]() -> std::string {
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

TEST(PrintCaptureTest, CountsTextBeyondItsFileAsDropped) {
  EXPECT_EQ(InsideWorkersSandbox([]() -> std::string {
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
