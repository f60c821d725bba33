#pragma once

#include <optional>
#include <string>
#include <unordered_set>

#include "absl/status/status.h"
#include "server/base/folder.h"
#include "server/broker/module_files.h"

namespace stride::broker {

// Modules that were compiled when the product was built: files of ModuleFiles' format, by key, in a
// folder next to the workers. The key contains the builds of the compiler and the worker, so files
// of another version are never found. Read-only. Immutable after construction; any thread.
class PrecompiledModules {
 public:
  // An empty name or an absent folder means no modules. Code from the folder is executed, so a
  // folder is not used if users other than this one or root own it or may write it: `status` has
  // the reason.
  explicit PrecompiledModules(const std::string& folder);

  const absl::Status& status() const { return status_; }
  // Number of files in the folder, of any version.
  size_t size() const { return names_.size(); }
  // Whether there is a file for this key, valid or not. Opens no file.
  bool Has(const std::string& key) const { return names_.count(ModuleFileName(key)) > 0; }

  // nullopt when there is no such file, when it is damaged, or when users other than this one or
  // root own it or may write it.
  std::optional<ModuleFiles::Entry> Read(const std::string& key) const;

 private:
  std::optional<Folder> folder_;
  absl::Status status_;
  std::unordered_set<std::string> names_;  // file names, listed once at the start
};

}  // namespace stride::broker
