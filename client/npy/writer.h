// A .npy file in the making.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "client/npy/header.h"

namespace stride::npy {

// The file appears whole or not at all: elements are put in a mapped file beside it, which Commit
// renames. Pipes, devices and `-` (standard output) are buffered and written by Commit. Destroying
// it before Commit leaves nothing behind.
class Writer {
 public:
  // `raw`: elements alone, without a header, in any type.
  static Result<Writer> Create(const std::string& path, const ArraySpec& spec, bool raw = false);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();

  // Where the elements go, in C order.
  std::span<std::byte> data();
  Result<void> Commit();

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stride::npy
