#include "server/worker/cuda/compile/compile_log.h"

#include <cctype>

namespace stride::cuda {
namespace {

constexpr size_t kMaxLogBytes = 64 << 10;
constexpr std::string_view kCut = "\n[log cut here]\n";

bool PartOfPath(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("/._-+~").find(c) != std::string_view::npos;
}

// A slash that begins an absolute path: not division, a comment or the middle of a relative path.
bool BeginsPath(std::string_view log, size_t at) {
  if (log[at] != '/' || at + 1 >= log.size()) return false;
  const char next = log[at + 1];
  if (std::isalnum(static_cast<unsigned char>(next)) == 0 && next != '.' && next != '_') {
    return false;
  }
  return at == 0 || std::string_view(" \t\n\"'(<").find(log[at - 1]) != std::string_view::npos;
}

}  // namespace

std::string CleanLog(std::string_view log) {
  std::string clean;
  for (size_t at = 0; at < log.size();) {
    if (!BeginsPath(log, at)) {
      clean += log[at++];
      continue;
    }
    size_t end = at;
    while (end < log.size() && PartOfPath(log[end])) ++end;
    // Keep the file's own name.
    const std::string_view path = log.substr(at, end - at);
    clean += path.substr(path.rfind('/') + 1);
    at = end;
  }
  if (clean.size() > kMaxLogBytes) {
    clean.resize(kMaxLogBytes - kCut.size());
    clean += kCut;
  }
  return clean;
}

}  // namespace stride::cuda
