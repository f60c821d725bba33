#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stride::identity {

// A bearer token is random text that its holder presents; the daemon stores only its hash. A token
// has 256 random bits, so a plain SHA-256 is as good as a slow hash.

using TokenHash = std::array<uint64_t, 4>;  // the 32 bytes of a SHA-256, for comparison

// `stride_` and 43 characters of base64url, from the kernel's random source.
std::string NewToken();

// Shorter texts are refused as tokens, since they could be guessed.
constexpr size_t kShortestToken = 32;
constexpr size_t kLongestToken = 512;

TokenHash HashToken(std::string_view token);

// Takes the same time for all inputs.
inline bool SameHash(const TokenHash& a, const TokenHash& b) {
  uint64_t differences = 0;
  for (size_t i = 0; i < a.size(); ++i) differences |= a[i] ^ b[i];
  return differences == 0;
}

// `sha256:` and 64 lower-case hexadecimal digits.
std::string ToText(const TokenHash& hash);
std::optional<TokenHash> ParseTokenHash(std::string_view text);

}  // namespace stride::identity
