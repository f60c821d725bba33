// The wall clock steps. It may only supply times that people read and times that survive a reboot.
// No wait may depend on it (server/base/steady_time.h). A new use needs an entry in this list, with
// its reason.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace stride {
namespace {

namespace fs = std::filesystem;

// Functions that read the wall clock or wait by it.
const std::vector<std::string>& WallClockWords() {
  static const std::vector<std::string> words = {
      "absl::Now(",         "GetCurrentTimeNanos(", "WithTimeout(",    "WithDeadline(",
      "system_clock::now(", "CLOCK_REALTIME",       "time(nullptr)",   "time(NULL)",
      "std::time(",         "gettimeofday(",        "timespec_get(",   "ToChronoTime(",
      "time.time()",        "datetime.now(",        "datetime.utcnow("};
  return words;
}

const std::map<std::string, std::string>& Reasons() {
  static const std::map<std::string, std::string> reasons = {
      {"server/base/environment.cc", "WallNow() reads it for all"},
      {"server/base/steady_wait.cc", "makes the library's timed waits steady ones"},
      {"bench/service/latency.cc", "compares the client's dates with the daemon's"},
      {"bench/report/machine.py", "dates a report"},
  };
  return reasons;
}

std::string Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ClockUseTest, OnlyTheListedFilesUseTheWallClock) {
  const fs::path root = STRIDE_SOURCE_FOLDER;
  if (!fs::exists(root / "server")) GTEST_SKIP() << "the sources are not on this machine";
  const std::set<std::string> kinds = {".cc", ".h", ".cu", ".cuh", ".c", ".py"};
  std::set<std::string> found;
  int num_files = 0;
  for (const char* folder : {"server", "client", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || kinds.count(entry.path().extension().string()) == 0) continue;
      ++num_files;
      const std::string text = Read(entry.path());
      const std::string name = fs::relative(entry.path(), root).string();
      for (const std::string& word : WallClockWords()) {
        if (text.find(word) == std::string::npos) continue;
        found.insert(name);
        EXPECT_EQ(Reasons().count(name), 1) << name << " uses the wall clock: " << word;
      }
    }
  }
  EXPECT_GT(num_files, 100);
  for (const auto& [name, reason] : Reasons()) {
    EXPECT_EQ(found.count(name), 1) << name << " uses it no more: take it from the list";
  }
}

}  // namespace
}  // namespace stride
