// The text that follows a client's source: it instantiates the requested kernels and gives each a
// plain entry point.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace stride::cpucuda {

// Prefix of EntrySymbol.
inline constexpr char kEntryPrefix[] = "__stride_entry_";

// Prefix of GlobalSymbol.
inline constexpr char kGlobalPrefix[] = "__stride_global_";

// The entry point of the kernel at `index`.
std::string EntrySymbol(size_t index);
// The variable at `index`.
std::string GlobalSymbol(size_t index);

// INVALID_ARGUMENT unless `name` can only be a name or a template name expression.
absl::Status CheckNameExpression(const std::string& name);

// The function that a name expression is about: `scale` for `::scale<float>`.
std::string PlainName(const std::string& name);

// A compiler's log without references to the text added here: notes that lead there are dropped,
// and entry points have the names that the request gave.
std::string WithoutOurNames(const std::string& log, const std::vector<std::string>& names);

// One function for each variable, which returns its address. So the variable exists, and both the
// syntax tree and the code identify it.
std::string GlobalText(const std::vector<std::string>& names);

// One entry function for each name. Parameters are read from the packed buffer by offset, so that
// structs passed by value need no calling convention.
std::string EntryText(const std::vector<std::string>& names);

}  // namespace stride::cpucuda
