#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace stride {

// NOT_FOUND: the code has no kernel called `entry`, only `known`. Templates are in `known` by their
// plain names.
absl::Status UnknownEntry(const std::string& entry, const std::vector<std::string>& known);
// The same of a variable that launches are to set. It goes by `&name`, since it and a kernel may
// have the same name.
absl::Status UnknownGlobal(const std::string& name, const std::vector<std::string>& known);
// The entry that such a status is about; empty for any other status.
std::string UnknownEntryOf(const absl::Status& status);

}  // namespace stride
