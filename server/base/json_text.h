#pragma once

#include <string>
#include <string_view>

namespace stride {

// `text`, escaped for the inside of a JSON string.
std::string EscapeJson(std::string_view text);

}  // namespace stride
