// Distinguishes wrong programs from valid ones that need a feature that the library lacks.
#pragma once

#include <string>
#include <string_view>

namespace stride::cpucuda {

// The feature a diagnostic is about, such as "textures and surfaces"; empty when the diagnostic is
// the user's mistake.
std::string UnsupportedFeature(std::string_view diagnostic);

// Whether the compiler's output shows that the source has code for the host: launches, calls of the
// CUDA runtime, containers.
bool LooksLikeHostCode(std::string_view diagnostic);

}  // namespace stride::cpucuda
