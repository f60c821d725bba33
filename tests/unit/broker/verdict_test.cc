#include "server/broker/verdict.h"

#include <gtest/gtest.h>

#include <csignal>

#include "server/base/error.h"

namespace stride::broker {
namespace {

struct Case {
  ChildExit exit;
  bool in_task;
  absl::StatusCode code;
  v1::ErrorReason reason;
};

TEST(VerdictTest, ExitsAndSignals) {
  using Code = absl::StatusCode;
  const Case cases[] = {
      {{true, SIGSEGV}, true, Code::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT},
      {{true, SIGBUS}, true, Code::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT},
      {{true, SIGFPE}, true, Code::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT},
      {{true, SIGILL}, true, Code::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT},
      {{true, SIGABRT}, true, Code::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT},
      {{true, SIGSYS}, true, Code::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT},
      {{true, SIGSEGV}, false, Code::kAborted, v1::ERROR_REASON_WORKER_LOST},
      {{true, SIGKILL}, true, Code::kAborted, v1::ERROR_REASON_WORKER_LOST},
      {{true, SIGTERM}, true, Code::kAborted, v1::ERROR_REASON_WORKER_LOST},
      {{false, 3}, true, Code::kAborted, v1::ERROR_REASON_WORKER_LOST},
      {{false, 0}, false, Code::kAborted, v1::ERROR_REASON_WORKER_LOST},
  };
  for (const Case& c : cases) {
    absl::Status status = JudgeExit(c.exit, c.in_task, false);
    EXPECT_EQ(status.code(), c.code) << c.exit.code;
    EXPECT_EQ(ReasonOf(status), c.reason) << c.exit.code;
    EXPECT_EQ(status.message().find('/'), absl::string_view::npos) << "a path: " << status;
  }
}

TEST(VerdictTest, RequestedExitIsNoError) {
  EXPECT_TRUE(JudgeExit({false, 0}, false, true).ok());
  EXPECT_FALSE(JudgeExit({false, 1}, false, true).ok());
  EXPECT_FALSE(JudgeExit({true, SIGSEGV}, false, true).ok());
}

}  // namespace
}  // namespace stride::broker
