#include "server/base/crash_point.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace stride {
namespace {

constexpr char kVariable[] = "STRIDE_CRASH_POINT";

// Set once, before any thread is started.
std::string armed_name;
std::atomic<int> passes_left{0};

}  // namespace

void ArmCrashPointsFromEnvironment() {
  const char* list = std::getenv(kVariable);
  crash_point_armed = false;
  if (list == nullptr || *list == '\0') return;
  std::string first(list);
  first = first.substr(0, first.find(','));
  size_t colon = first.find(':');
  armed_name = first.substr(0, colon);
  passes_left = colon == std::string::npos ? 1 : std::atoi(first.c_str() + colon + 1);
  crash_point_armed = !armed_name.empty();
}

void NextCrashPoint() {
  const char* list = std::getenv(kVariable);
  if (list == nullptr) return;
  std::string rest(list);
  size_t comma = rest.find(',');
  setenv(kVariable, comma == std::string::npos ? "" : rest.substr(comma + 1).c_str(), 1);
}

void PassCrashPoint(const char* name) {
  if (armed_name != name || --passes_left != 0) return;
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

}  // namespace stride
