#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/folder.h"
#include "server/base/unique_fd.h"

namespace stride::durable {

// Tenants' usage, in the state folder: one small file that is replaced as a whole and has a
// checksum. This class does not parse its content (a recovery::UsageRecords). Mode 0600; no link is
// followed. One thread at a time; each method blocks for the disk.
class UsageFile {
 public:
  static constexpr char kName[] = "usage";
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  // `folder` is the state folder, created if absent. FAILED_PRECONDITION when another process has
  // the file.
  static absl::StatusOr<std::unique_ptr<UsageFile>> Open(const std::string& folder);

  // The content of the latest Write. NOT_FOUND: there was none. DATA_LOSS or another error: it is
  // unreadable, and a Write would replace it.
  absl::StatusOr<std::string> Read() const;
  // On disk when it returns OK; otherwise the old content stays. At most kMaxBytes.
  absl::Status Write(std::string_view content) const;
  // Renames the file, also a damaged one; returns the new path.
  absl::StatusOr<std::string> SetAside() const;

  const std::string& path() const { return path_; }

 private:
  UsageFile(Folder folder, UniqueFd lock, std::string path)
      : folder_(std::move(folder)), lock_(std::move(lock)), path_(std::move(path)) {}

  const Folder folder_;
  const UniqueFd lock_;
  const std::string path_;  // for messages
};

}  // namespace stride::durable
