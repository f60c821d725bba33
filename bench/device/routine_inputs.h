// Arrays that routines are given, and judges of their results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/device/routine.h"

namespace stride::bench {

// Uniform in [0, 1), multiples of 2^-10, so that sums of few have no rounding errors.
Given Uniforms(std::vector<int64_t> shape, uint64_t seed);
// About normal, with few equal ones.
Given Normals(std::vector<int64_t> shape, uint64_t seed);
Given Normals64(std::vector<int64_t> shape, uint64_t seed);
// Real and imaginary parts as of Uniforms.
Given Complexes(std::vector<int64_t> shape, uint64_t seed);
// Integers in [0, end).
Given Integers(int64_t count, int64_t end, uint64_t seed);
Given Integers32(int64_t count, int32_t end, uint64_t seed);
// Integers in [0, 2^60), along the first axis alone.
Given LargeIntegers(std::vector<int64_t> shape, uint64_t seed);
// True for about half.
Given Mask(int64_t count, uint64_t seed);
// Ascending.
Given Sorted(int64_t count, uint64_t seed);
Given Steps(int64_t count, float first, float last);

template <typename T>
Given Holding(DType dtype, std::vector<int64_t> shape, const std::vector<T>& elements) {
  return {Contiguous(dtype, std::move(shape)),
          std::make_shared<const std::string>(reinterpret_cast<const char*>(elements.data()),
                                              elements.size() * sizeof(T))};
}

// Elements of a given array, of a result, or of a baseline's.
template <typename T>
std::vector<T> Elements(const std::string& bytes) {
  const auto* data = reinterpret_cast<const T*>(bytes.data());
  return std::vector<T>(data, data + bytes.size() / sizeof(T));
}

// The same bytes.
Judge Same();
// Floats, real or pairs of them, that differ by no more than `tolerance` of the greatest.
template <typename T>
Judge Near(double tolerance);
extern template Judge Near<float>(double);
extern template Judge Near<double>(double);
// As Near, of values that are known.
Judge NearTo(std::vector<double> want, double tolerance);

}  // namespace stride::bench
