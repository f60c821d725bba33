#include "server/main/worker_folder.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stride {
namespace {

namespace fs = std::filesystem;

bool HoldsWorker(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->path().filename().string().starts_with("stride-worker-") &&
        it->is_regular_file(ignored) && access(it->path().c_str(), X_OK) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> WorkerFoldersOf(std::string_view folder) {
  const fs::path own(folder);
  return {own.string(), (own.parent_path() / "lib" / "stride").string()};
}

absl::StatusOr<std::string> FindWorkerFolder(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    if (HoldsWorker(folder)) return folder;
  }
  return absl::NotFoundError(absl::StrCat(
      "no device can be served: there is no stride-worker-* program in ",
      absl::StrJoin(folders, " or "), "; install the workers there, or give --worker-dir"));
}

absl::StatusOr<std::string> FindOwnWorkerFolder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return absl::InternalError("cannot find the folder of strided; give --worker-dir");
  return FindWorkerFolder(WorkerFoldersOf(self.parent_path().string()));
}

}  // namespace stride
