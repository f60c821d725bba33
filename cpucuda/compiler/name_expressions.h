// The text put after a client's source that makes the kernels asked for exist and gives each a
// plain entry point.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace stride::cpucuda {

// What EntrySymbol begins with.
inline constexpr char kEntryPrefix[] = "__stride_entry_";

// What GlobalSymbol begins with.
inline constexpr char kGlobalPrefix[] = "__stride_global_";

// The entry point of the kernel at `index`.
std::string EntrySymbol(size_t index);
// The variable at `index`.
std::string GlobalSymbol(size_t index);

// INVALID_ARGUMENT unless `name` can only be a name or a template name expression.
absl::Status CheckNameExpression(const std::string& name);

// The function that a name expression is about: `scale` for `::scale<float>`.
std::string PlainName(const std::string& name);

// A compiler's log without what stands only in our text: notes that lead there are dropped, and
// entry points go by the names that were asked for.
std::string WithoutOurNames(const std::string& log, const std::vector<std::string>& names);

// One function for each variable, which returns its address: so it exists, and both the syntax tree
// and the code tell which one the name expression names.
std::string GlobalText(const std::vector<std::string>& names);

// One entry function for each name. Parameters are read from the packed buffer by offset, so that
// structs passed by value need no calling convention.
std::string EntryText(const std::vector<std::string>& names);

}  // namespace stride::cpucuda
