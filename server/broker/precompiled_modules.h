#pragma once

#include <optional>
#include <string>
#include <unordered_set>

#include "absl/status/status.h"
#include "server/base/folder.h"
#include "server/broker/module_files.h"

namespace stride::broker {

// Modules that were compiled when the product was built: files of ModuleFiles' format, by key, in a
// folder next to the workers. The key has the compiler's and the worker's build, so files of
// another version are never found. Only read. Immutable after construction; any thread.
class PrecompiledModules {
 public:
  // An empty name, or a folder that does not exist: there are none. A folder that others than this
  // user or root own, or may write, is not used, since code from it is run: `status` has the
  // reason.
  explicit PrecompiledModules(const std::string& folder);

  const absl::Status& status() const { return status_; }
  // Files in the folder, of whatever version.
  size_t size() const { return names_.size(); }
  // Whether there is a file of this key, whole or not. No file is opened.
  bool Has(const std::string& key) const { return names_.count(ModuleFileName(key)) > 0; }

  // Nothing when there is none of this key, when the file is damaged, or when others than this user
  // or root own it or may write it.
  std::optional<ModuleFiles::Entry> Read(const std::string& key) const;

 private:
  std::optional<Folder> folder_;
  absl::Status status_;
  std::unordered_set<std::string> names_;  // of files, as the folder had them at the start
};

}  // namespace stride::broker
