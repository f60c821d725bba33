#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stride {

// Where the workers of a daemon that lies in `folder` may lie: beside it, as in a build tree, and
// in
// ../lib/stride, as `cmake --install` and the packages put them.
std::vector<std::string> WorkerFoldersOf(std::string_view folder);

// The first of these folders that holds a stride-worker-* program; NOT_FOUND names them all.
absl::StatusOr<std::string> FindWorkerFolder(const std::vector<std::string>& folders);

// For the program that runs. Links to it are followed: workers lie with the program itself.
absl::StatusOr<std::string> FindOwnWorkerFolder();

}  // namespace stride
