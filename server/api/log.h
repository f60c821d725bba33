#pragma once

#include <string>

namespace stride::api {

// Write to the process's log. They keep the logging library's headers out of files that also
// include gRPC's.
void LogDebug(const std::string& text);
void LogInfo(const std::string& text);
void LogWarning(const std::string& text);
void LogError(const std::string& text);
bool DebugLogged();

}  // namespace stride::api
