// Constraints of inline PTX in the letters of the host's processor.
#pragma once

#include <string>

namespace stride::cpucuda {

// `source` with the constraints "f", "d" and "h" of its asm statements replaced by letters that
// Clang takes for the same types on this processor. The text keeps its length: each letter becomes
// one letter. The statements themselves are later replaced (inline_ptx.h), so only the types count.
std::string WithHostConstraints(std::string source);

}  // namespace stride::cpucuda
