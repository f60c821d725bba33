#pragma once

#include <cstddef>
#include <cstdint>

namespace stride {

// CRC-32C (Castagnoli) of the bytes, going on from `crc`. By the processor's own instruction where
// it has one.
uint32_t Crc32c(const void* data, size_t size, uint32_t crc = 0);

}  // namespace stride
