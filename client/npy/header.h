// Parses and formats the header of a .npy file. Pure functions over bytes: no file access, and no
// allocation of a size that the bytes declare.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "stride/array.h"

namespace stride::npy {

struct Header {
  ArraySpec spec;
  // The first axis is contiguous.
  bool fortran_order = false;
  // Elements are big-endian.
  bool big_endian = false;
  // Offset of the first element in bytes.
  size_t data_offset = 0;
};

// Longest accepted header: far above what NumPy writes for 32 axes.
inline constexpr size_t kMaxHeaderBytes = 64 << 10;

// Parses versions 1 to 3. `bytes` is the beginning of the file and includes the header.
// INVALID_ARGUMENT reports the defect and its position. UNIMPLEMENTED for types that Stride lacks:
// objects (pickles are never read), strings, records, dates, and .npz archives.
Result<Header> ParseHeader(std::span<const std::byte> bytes);

// Formats a version 1 header in C order, padded so that elements begin at a multiple of 64 bytes.
// UNIMPLEMENTED for bfloat16, which .npy has no name for.
Result<std::string> FormatHeader(const ArraySpec& spec);

}  // namespace stride::npy
