// "Did you mean ...?"
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stride::cli {

// The candidate nearest to `word` in edits (insert, delete, replace, swap neighbours); empty when
// none is near enough to be meant.
std::string Suggest(std::string_view word, std::span<const std::string> candidates);

}  // namespace stride::cli
