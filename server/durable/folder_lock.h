#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/base/folder.h"
#include "server/base/unique_fd.h"

namespace stride::durable {

// Creates the file `name` and locks it until the descriptor is closed: for one process at a time.
// FAILED_PRECONDITION when another process holds it for longer than a killed daemon takes to end (3
// s).
absl::StatusOr<UniqueFd> LockFolder(const Folder& folder, const std::string& name);

}  // namespace stride::durable
