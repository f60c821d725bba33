#include "server/main/logging.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/environment.h"

namespace stride {
namespace {

constexpr absl::Duration kComplaintWindow = absl::Seconds(10);
constexpr int64_t kComplaintsInWindow = 5;
constexpr size_t kMaxComplaint = 200;

class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromChrono(message.time),
                                        absl::UTCTimeZone());
    auto level = spdlog::level::to_string_view(message.level);
    std::string line = absl::StrCat(
        R"({"time":")", time, R"(","level":")", absl::string_view(level.data(), level.size()),
        R"(","message":")", EscapeJson({message.payload.data(), message.payload.size()}), "\"}\n");
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

// A client can make libraries complain arbitrarily often about its input, so limit the lines.
bool ComplaintAllowed(SteadyTime now, int64_t* unsaid) {
  static absl::Mutex mutex(absl::kConstInit);
  static SteadyTime window_end;
  static int64_t in_window = 0, left_out = 0;
  absl::MutexLock lock(&mutex);
  if (now >= window_end) {
    window_end = now + kComplaintWindow;
    in_window = 0;
  }
  if (++in_window > kComplaintsInWindow) {
    ++left_out;
    return false;
  }
  *unsaid = std::exchange(left_out, 0);
  return true;
}

void LogComplaint(const char* library, std::string_view text) {
  int64_t unsaid = 0;
  if (!ComplaintAllowed(Now(), &unsaid)) return;
  if (unsaid > 0) spdlog::warn("{} complaints of libraries left out", unsaid);
  spdlog::warn("{}: {}", library, PrintableComplaint(text));
}

void LogForGrpc(gpr_log_func_args* args) {
  // gRPC's INFO lines are about its internals.
  if (args->severity == GPR_LOG_SEVERITY_ERROR) {
    LogComplaint("grpc", args->message);
  } else if (spdlog::should_log(spdlog::level::debug)) {
    spdlog::debug("grpc: {}", PrintableComplaint(args->message));
  }
}

void LogForProtobuf(google::protobuf::LogLevel level, const char* file, int line,
                    const std::string& message) {
  if (level != google::protobuf::LOGLEVEL_INFO) LogComplaint("protobuf", message);
}

}  // namespace

std::string PrintableComplaint(std::string_view text) {
  absl::string_view shown(text.data(), std::min(text.size(), kMaxComplaint));
  return absl::StrCat(absl::CHexEscape(shown), text.size() > kMaxComplaint ? "..." : "");
}

void SetUpLogging(const Config& config) {
  bool text = config.log_format == LogFormat::kText ||
              (config.log_format == LogFormat::kAuto && isatty(STDERR_FILENO) != 0);
  auto logger = std::make_shared<spdlog::logger>("strided",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (text) {
    logger->set_pattern("%H:%M:%S.%e %^%l%$ %v");
  } else {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  }
  logger->set_level(spdlog::level::from_str(config.log_level));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
  gpr_set_log_function(LogForGrpc);
  google::protobuf::SetLogHandler(LogForProtobuf);
}

}  // namespace stride
