// Writes an array to a .npy file or to standard output.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "client/npy/header.h"

namespace stride::npy {

// Writes the file atomically: elements go to a mapped temporary file in the same folder, which
// Commit renames. Pipes, devices and `-` (standard output) are buffered and written by Commit.
// Without Commit, the destructor deletes the temporary file.
class Writer {
 public:
  // `raw` writes only the elements, without a header, in any type.
  static Result<Writer> Create(const std::string& path, const ArraySpec& spec, bool raw = false);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();

  // Memory of the elements, in C order.
  std::span<std::byte> data();
  Result<void> Commit();

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stride::npy
