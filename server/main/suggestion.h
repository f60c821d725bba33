#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stride {

// The known word closest to `text`; empty when none is close.
std::string Suggest(std::string_view text, const std::vector<std::string>& words);

}  // namespace stride
