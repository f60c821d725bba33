#include "server/identity/token.h"

#include <openssl/sha.h>
#include <sys/random.h>

#include <cstring>

namespace stride::identity {
namespace {

constexpr std::string_view kPrefix = "stride_";
constexpr std::string_view kHashPrefix = "sha256:";
constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr char kHex[] = "0123456789abcdef";

using Bytes = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string NewToken() {
  Bytes bytes;
  size_t have = 0;
  while (have < bytes.size()) {
    ssize_t got = getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (got > 0) have += static_cast<size_t>(got);
  }
  std::string token(kPrefix);
  uint32_t bits = 0;
  int num_bits = 0;
  for (unsigned char byte : bytes) {
    bits = bits << 8 | byte;
    for (num_bits += 8; num_bits >= 6; num_bits -= 6) token += kBase64[bits >> (num_bits - 6) & 63];
  }
  return token + kBase64[bits << (6 - num_bits) & 63];
}

TokenHash HashToken(std::string_view token) {
  Bytes bytes;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), bytes.data());
  TokenHash hash;
  std::memcpy(hash.data(), bytes.data(), bytes.size());
  return hash;
}

std::string ToText(const TokenHash& hash) {
  Bytes bytes;
  std::memcpy(bytes.data(), hash.data(), bytes.size());
  std::string text(kHashPrefix);
  for (unsigned char byte : bytes) text += {kHex[byte >> 4], kHex[byte & 15]};
  return text;
}

std::optional<TokenHash> ParseTokenHash(std::string_view text) {
  Bytes bytes;
  if (text.substr(0, kHashPrefix.size()) != kHashPrefix) return std::nullopt;
  text.remove_prefix(kHashPrefix.size());
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  for (size_t i = 0; i < bytes.size(); ++i) {
    int high = HexValue(text[2 * i]), low = HexValue(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<unsigned char>(high << 4 | low);
  }
  TokenHash hash;
  std::memcpy(hash.data(), bytes.data(), bytes.size());
  return hash;
}

}  // namespace stride::identity
