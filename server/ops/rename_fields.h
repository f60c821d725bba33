#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace stride::ops {

// For a planner that plans by another one: in each field path of the error the first of these that
// it begins with becomes what stands beside it.
using FieldNames = std::vector<std::pair<std::string_view, std::string_view>>;
absl::Status RenameFields(const absl::Status& status, const FieldNames& names);

}  // namespace stride::ops
