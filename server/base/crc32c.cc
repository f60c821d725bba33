#include "server/base/crc32c.h"

#include <array>
#include <cstring>

namespace stride {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // bits reversed

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t ByTable(const unsigned char* bytes, size_t size, uint32_t crc) {
  for (size_t i = 0; i < size; ++i) crc = kTable[(crc ^ bytes[i]) & 0xff] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ByInstruction(const unsigned char* bytes, size_t size,
                                                         uint32_t crc) {
  uint64_t wide = crc;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; size > 0; --size) crc = __builtin_ia32_crc32qi(crc, *bytes++);
  return crc;
}
const bool kHaveInstruction = __builtin_cpu_supports("sse4.2") != 0;
#endif

}  // namespace

uint32_t Crc32c(const void* data, size_t size, uint32_t crc) {
  const auto* bytes = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  if (kHaveInstruction) return ~ByInstruction(bytes, size, ~crc);
#endif
  return ~ByTable(bytes, size, ~crc);
}

}  // namespace stride
