#include "server/worker/runtime/landlock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "server/base/unique_fd.h"

namespace stride::worker {
namespace {

// <linux/landlock.h> as of version 6: Debian 12's header knows version 2.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kAskVersion = 1;
constexpr int kRulePathBeneath = 1;
struct RulesetAttributes {
  uint64_t handled_files;
  uint64_t handled_network;  // version 4
  uint64_t scoped;           // version 6
};
struct __attribute__((packed)) PathBeneath {
  uint64_t allowed;
  int32_t parent;
};

constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadFolder = 1 << 3;
constexpr uint64_t kVersion1 = (1 << 13) - 1, kRefer = 1 << 13, kTruncate = 1 << 14,
                   kDeviceIoctl = 1 << 15;
constexpr uint64_t kBindTcp = 1 << 0, kConnectTcp = 1 << 1;
constexpr uint64_t kAbstractSockets = 1 << 0, kSignals = 1 << 1;

RulesetAttributes AttributesFor(int version) {
  RulesetAttributes attributes{kVersion1, 0, 0};
  if (version >= 2) attributes.handled_files |= kRefer;
  if (version >= 3) attributes.handled_files |= kTruncate;
  if (version >= 4) attributes.handled_network = kBindTcp | kConnectTcp;
  if (version >= 5) attributes.handled_files |= kDeviceIoctl;
  if (version >= 6) attributes.scoped = kAbstractSockets | kSignals;
  return attributes;
}

absl::Status AddPath(int ruleset, const std::string& path, uint64_t allowed) {
  UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat info = {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return absl::OkStatus();  // not there
  // Folder rights are invalid for files.
  if (!S_ISDIR(info.st_mode))
    allowed &= kExecute | kWriteFile | kReadFile | kTruncate | kDeviceIoctl;
  PathBeneath rule{allowed, fd.get()};
  if (syscall(kAddRule, ruleset, kRulePathBeneath, &rule, 0) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("allowing ", path));
}

}  // namespace

absl::StatusOr<int> RestrictFiles(const LandlockPaths& paths) {
  const long version = syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  if (version < 1) return absl::ErrnoToStatus(errno, "the kernel offers no Landlock");
  RulesetAttributes attributes = AttributesFor(static_cast<int>(version));
  // Older kernels accept a larger structure if its unknown part is zero.
  UniqueFd ruleset(static_cast<int>(syscall(kCreateRuleset, &attributes, sizeof(attributes), 0)));
  if (!ruleset.valid()) return absl::ErrnoToStatus(errno, "making a Landlock ruleset");
  const uint64_t handled = attributes.handled_files;
  for (const std::string& path : paths.read_only) {
    absl::Status status = AddPath(ruleset.get(), path, handled & (kReadFile | kReadFolder));
    if (!status.ok()) return status;
  }
  for (const std::string& path : paths.read_write) {
    absl::Status status =
        AddPath(ruleset.get(), path,
                handled & (kReadFile | kReadFolder | kWriteFile | kTruncate | kDeviceIoctl));
    if (!status.ok()) return status;
  }
  if (syscall(kRestrictSelf, ruleset.get(), 0) != 0) {
    return absl::ErrnoToStatus(errno, "entering Landlock");
  }
  return static_cast<int>(version);
}

}  // namespace stride::worker
