// The header of a .npy file, read from and written as bytes. Pure functions: no file, no allocation
// that the bytes choose.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "stride/array.h"

namespace stride::npy {

struct Header {
  ArraySpec spec;
  // Elements lie first axis fastest.
  bool fortran_order = false;
  // Elements are big-endian.
  bool big_endian = false;
  // Where the elements begin.
  size_t data_offset = 0;
};

// Longest header that is read: far above what NumPy writes for 32 axes.
inline constexpr size_t kMaxHeaderBytes = 64 << 10;

// Reads versions 1 to 3. `bytes` is the file's beginning, its header at least. INVALID_ARGUMENT
// with what is wrong and where; UNIMPLEMENTED for what NumPy can store and Stride cannot hold:
// objects (pickles are never read), strings, records, dates, .npz archives.
Result<Header> ParseHeader(std::span<const std::byte> bytes);

// A version 1 header in C order, padded so that elements begin at a multiple of 64 bytes.
// UNIMPLEMENTED for bfloat16, which .npy has no name for.
Result<std::string> FormatHeader(const ArraySpec& spec);

}  // namespace stride::npy
