// Array elements as text.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "stride/data_type.h"

namespace stride::cli {

// Formats one element with the fewest digits that read back as the same value. `data` holds its
// bytes.
std::string FormatElement(DataType type, const std::byte* data);

}  // namespace stride::cli
