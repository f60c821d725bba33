#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/folder.h"
#include "server/wire/worker.pb.h"

namespace stride::broker {

// Compiled modules on disk, one file each, named by key. Files appear whole or not at all; a
// damaged file is removed when it is read and counts as absent. The checksum detects damage, not
// malice: write access to the folder means running code as any tenant's worker, so the folder is
// created for its owner alone. Beyond the bound, the files unused for longest are removed.
// Thread-safe.
class ModuleFiles {
 public:
  struct Entry {
    wire::CompileReply reply;  // log, size and description
    std::string object;
  };

  // An empty folder name disables the store; so does a folder that other users can write
  // (base/folder.h), which the daemon's start refuses. `compress`: objects are written compressed.
  // Large ones are not, since each start reads them. Files of either form are read.
  ModuleFiles(const std::string& folder, uint64_t max_bytes, bool compress = false);

  std::optional<Entry> Read(const std::string& key);
  absl::Status Write(const std::string& key, const wire::CompileReply& reply,
                     std::string_view object);

 private:
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::optional<Folder> folder_;  // nullopt: the store is disabled
  const uint64_t max_bytes_;
  const bool compress_;
  absl::Mutex mutex_;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // total size of the files, as far as known
};

// A module's file name, and a file's content: nullopt where it is damaged.
std::string ModuleFileName(const std::string& key);
std::optional<ModuleFiles::Entry> ReadModuleFile(int fd);

}  // namespace stride::broker
