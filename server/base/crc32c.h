#pragma once

#include <cstddef>
#include <cstdint>

namespace stride {

// CRC-32C (Castagnoli) of the bytes, continued from `crc`. Uses the processor's CRC instruction if
// there is one.
uint32_t Crc32c(const void* data, size_t size, uint32_t crc = 0);

}  // namespace stride
