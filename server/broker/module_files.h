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
// damaged one is removed when it is met and counts as absent. The checksum tells damage, not
// malice: who can write the folder can run code as any tenant's worker, so it is made for its owner
// alone. When the files outgrow the bound, those not used for longest go. Thread-safe.
class ModuleFiles {
 public:
  struct Entry {
    wire::CompileReply reply;  // log, size and description
    std::string object;
  };

  // An empty folder name keeps nothing, as one does that is not the daemon's alone
  // (base/folder.h), which the daemon's start refuses.
  // `compress`: objects are written compressed, unless they are large, which are read at every
  // start. Files of either form are read.
  ModuleFiles(const std::string& folder, uint64_t max_bytes, bool compress = false);

  std::optional<Entry> Read(const std::string& key);
  absl::Status Write(const std::string& key, const wire::CompileReply& reply,
                     std::string_view object);

 private:
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::optional<Folder> folder_;  // none: nothing is kept
  const uint64_t max_bytes_;
  const bool compress_;
  absl::Mutex mutex_;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of all files, as far as we know
};

// The name of such a file, and the content of one: nothing where it is damaged.
std::string ModuleFileName(const std::string& key);
std::optional<ModuleFiles::Entry> ReadModuleFile(int fd);

}  // namespace stride::broker
