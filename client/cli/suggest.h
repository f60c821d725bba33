// Suggests a similar name for an unknown one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stride::cli {

// Returns the candidate with the smallest edit distance (insert, delete, replace, swap neighbours);
// empty when none is similar.
std::string Suggest(std::string_view word, std::span<const std::string> candidates);

}  // namespace stride::cli
