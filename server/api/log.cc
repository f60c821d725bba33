#include "server/api/log.h"

#include <spdlog/spdlog.h>

namespace stride::api {

void LogDebug(const std::string& text) { spdlog::debug("{}", text); }
void LogInfo(const std::string& text) { spdlog::info("{}", text); }
void LogWarning(const std::string& text) { spdlog::warn("{}", text); }
void LogError(const std::string& text) { spdlog::error("{}", text); }
bool DebugLogged() { return spdlog::should_log(spdlog::level::debug); }

}  // namespace stride::api
