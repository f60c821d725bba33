#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stride {

// Folders that may contain the workers of a daemon in `folder`: the same folder, as in a build
// tree, and ../lib/stride, where `cmake --install` and the packages install them. The first one
// with a worker is used.
std::vector<std::string> WorkerFoldersOf(std::string_view folder);

// The first of these folders that contains a stride-worker-* program; NOT_FOUND names them all.
absl::StatusOr<std::string> FindWorkerFolder(const std::vector<std::string>& folders);

// The workers' folder of the running program. Links to the program are followed: workers lie next
// to the file itself.
absl::StatusOr<std::string> FindOwnWorkerFolder();

}  // namespace stride
