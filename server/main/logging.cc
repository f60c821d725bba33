#include "server/main/logging.h"

#include <grpc/support/log.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace stride {
namespace {

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

void LogForGrpc(gpr_log_func_args* args) {
  // INFO of gRPC is about its own workings.
  auto level =
      args->severity == GPR_LOG_SEVERITY_ERROR ? spdlog::level::warn : spdlog::level::debug;
  spdlog::log(level, "grpc: {}", args->message);
}

}  // namespace

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
}

}  // namespace stride
