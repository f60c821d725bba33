// Reads an array from a .npy file or from standard input.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/npy/header.h"

namespace stride::npy {

// Maps the file, or owns its bytes when it is a pipe or big-endian. Move-only; its spans end with
// it. A file that another process truncates while it is mapped ends this process (SIGBUS).
class Reader {
 public:
  // `-` reads standard input to its end.
  static Result<Reader> Open(const std::string& path);
  Reader(Reader&&) = default;
  Reader& operator=(Reader&&) = default;

  const ArraySpec& spec() const { return header_.spec; }
  bool fortran_order() const { return header_.fortran_order; }
  // Little-endian elements in the file's order.
  std::span<const std::byte> data() const { return data_; }
  // Copies the elements into C order.
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
