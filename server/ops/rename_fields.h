#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace stride::ops {

// Renames field paths of an error for a planner that delegates to another planner. The first
// matching prefix of each path is replaced by its pair's second name.
using FieldNames = std::vector<std::pair<std::string_view, std::string_view>>;
absl::Status RenameFields(const absl::Status& status, const FieldNames& names);

}  // namespace stride::ops
