// An array in a .npy file or on standard input.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/npy/header.h"

namespace stride::npy {

// Holds the file mapped, or its bytes when it is a pipe or has the other byte order. Move-only;
// views of it end with it. A file that another process shortens while it is mapped ends this
// process (SIGBUS), as with every mapping.
class Reader {
 public:
  // `-` reads standard input to its end.
  static Result<Reader> Open(const std::string& path);
  Reader(Reader&&) = default;
  Reader& operator=(Reader&&) = default;

  const ArraySpec& spec() const { return header_.spec; }
  bool fortran_order() const { return header_.fortran_order; }
  // The elements, little-endian, in the file's order.
  std::span<const std::byte> data() const { return data_; }
  // The elements in C order; a copy when the file is in Fortran order.
  std::vector<std::byte> InCOrder() const;

 private:
  Reader() = default;
  Result<void> SetBytes(std::span<const std::byte> bytes);

  Header header_;
  std::shared_ptr<const void> mapping_;
  std::vector<std::byte> owned_;
  std::span<const std::byte> data_;
};

}  // namespace stride::npy
