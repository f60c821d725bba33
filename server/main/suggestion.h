#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stride {

// The word that `text` was probably meant to be; empty when none is near.
std::string Suggest(std::string_view text, const std::vector<std::string>& words);

}  // namespace stride
