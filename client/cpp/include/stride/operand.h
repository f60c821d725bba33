// Inputs of operations.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "stride/array.h"

namespace stride {

// An array, or a number. Plain C++ numbers are weak, like Python's in NumPy 2: they take the type
// of the arrays in the same operation. Copies share one state, which keeps an array's handle alive.
class Operand {
 public:
  struct Impl;

  Operand(const Array& array);
  Operand(bool value);
  Operand(const char*) = delete;  // would convert to bool
  template <std::signed_integral T>
  Operand(T value) : Operand(FromInt(value)) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Operand(T value) : Operand(FromUint(value)) {}
  Operand(double value);
  Operand(std::complex<double> value);

  // An array by its full name, `tenants/{tenant}/arrays/{id}`.
  static Operand Named(std::string name);
  // A handle created by an earlier operation of the same job.
  static Operand JobHandle(uint64_t handle);
  // Bytes that are sent in the request itself; at most 4 MiB per message in total. Copied.
  static Operand Inline(std::span<const std::byte> data, const ArraySpec& spec);
  template <typename T>
  static Operand Inline(std::span<const T> data, std::vector<int64_t> shape) {
    return Inline(std::as_bytes(data), {DataTypeOf<T>(), std::move(shape)});
  }
  // A copy with exactly this type. Numbers only; others are returned unchanged.
  Operand As(DataType type) const;

  const Impl& impl() const { return *impl_; }

 private:
  Operand() = default;
  static Operand FromInt(int64_t value);
  static Operand FromUint(uint64_t value);

  std::shared_ptr<const Impl> impl_;
};

}  // namespace stride
