#include "bench/device/routine_inputs.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stride::bench {
namespace {

// After so many elements an input that need not be all different repeats itself.
constexpr int64_t kPeriod = (1 << 20) + 7;

// splitmix64 of Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
uint64_t Hash(uint64_t i, uint64_t seed) {
  uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u + seed * 0xD1B54A32D192ED03u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

int64_t NumElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

// The sum of four uniform numbers, with the variance of one normal number.
double AboutNormal(uint64_t i, uint64_t seed) {
  const uint64_t word = Hash(i, seed), fine = Hash(i, seed + 1000);
  double sum = 0;
  for (int part = 0; part < 4; ++part) sum += static_cast<double>(word >> (16 * part) & 0xFFFF);
  return ((sum + static_cast<double>(fine >> 32) * 0x1p-32) / 65536 - 2) * std::sqrt(3.0);
}

template <typename T, typename Make>
Given Made(DType dtype, std::vector<int64_t> shape, int64_t count, Make make) {
  std::vector<T> elements(count);
  for (int64_t i = 0; i < count; ++i) elements[i] = make(i);
  return Holding(dtype, std::move(shape), elements);
}

template <typename T>
std::string Compare(const std::vector<T>& got, const std::vector<T>& want, double tolerance) {
  if (got.size() != want.size())
    return std::to_string(got.size()) + " elements, not " + std::to_string(want.size());
  double greatest = 0;
  for (T one : want) greatest = std::max(greatest, std::fabs(static_cast<double>(one)));
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = static_cast<double>(got[i]) - static_cast<double>(want[i]);
    if (!(std::fabs(difference) <= tolerance * greatest))
      return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
             std::to_string(want[i]);
  }
  return "";
}

}  // namespace

Given Uniforms(std::vector<int64_t> shape, uint64_t seed) {
  const int64_t count = std::min(NumElements(shape), kPeriod);
  return Made<float>(DType::kFloat32, std::move(shape), count, [seed](int64_t i) {
    return static_cast<float>(Hash(i, seed) >> 54) * 0x1p-10f;
  });
}

Given Normals(std::vector<int64_t> shape, uint64_t seed) {
  const int64_t count = NumElements(shape);
  return Made<float>(DType::kFloat32, std::move(shape), count,
                     [seed](int64_t i) { return static_cast<float>(AboutNormal(i, seed)); });
}

Given Normals64(std::vector<int64_t> shape, uint64_t seed) {
  const int64_t count = NumElements(shape);
  return Made<double>(DType::kFloat64, std::move(shape), count,
                      [seed](int64_t i) { return AboutNormal(i, seed); });
}

Given Complexes(std::vector<int64_t> shape, uint64_t seed) {
  Given parts = Uniforms({2 * NumElements(shape)}, seed);
  // A whole number of elements to a period.
  auto whole = std::make_shared<std::string>(*parts.elements);
  whole->resize(whole->size() / 8 * 8);
  return {Contiguous(DType::kComplex64, std::move(shape)), std::move(whole)};
}

Given Integers(int64_t count, int64_t end, uint64_t seed) {
  return Made<int64_t>(DType::kInt64, {count}, count, [end, seed](int64_t i) {
    return static_cast<int64_t>(Hash(i, seed) % static_cast<uint64_t>(end));
  });
}

Given Integers32(int64_t count, int32_t end, uint64_t seed) {
  return Made<int32_t>(DType::kInt32, {count}, std::min(count, kPeriod), [end, seed](int64_t i) {
    return static_cast<int32_t>(Hash(i, seed) % static_cast<uint64_t>(end));
  });
}

Given LargeIntegers(std::vector<int64_t> shape, uint64_t seed) {
  return Integers(shape[0], int64_t{1} << 60, seed);
}

Given Mask(int64_t count, uint64_t seed) {
  return Made<uint8_t>(DType::kBool, {count}, count,
                       [seed](int64_t i) { return static_cast<uint8_t>(Hash(i, seed) >> 63); });
}

Given Sorted(int64_t count, uint64_t seed) {
  std::vector<float> values = Elements<float>(*Normals({count}, seed).elements);
  std::sort(values.begin(), values.end());
  return Holding(DType::kFloat32, {count}, values);
}

Given Steps(int64_t count, float first, float last) {
  return Made<float>(DType::kFloat32, {count}, count, [=](int64_t i) {
    return first + (last - first) * static_cast<float>(i) / static_cast<float>(count - 1);
  });
}

Judge Same() {
  return [](const std::string& got, const std::string& want) -> std::string {
    if (got == want) return "";
    if (got.size() != want.size()) return "another number of elements";
    const auto differ = std::mismatch(got.begin(), got.end(), want.begin());
    return "byte " + std::to_string(differ.first - got.begin()) + " differs";
  };
}

template <typename T>
Judge Near(double tolerance) {
  return [tolerance](const std::string& got, const std::string& want) {
    return Compare(Elements<T>(got), Elements<T>(want), tolerance);
  };
}

template Judge Near<float>(double);
template Judge Near<double>(double);

Judge NearTo(std::vector<double> want, double tolerance) {
  return [want = std::move(want), tolerance](const std::string& got, const std::string&) {
    const std::vector<float> values = Elements<float>(got);
    return Compare(std::vector<double>(values.begin(), values.end()), want, tolerance);
  };
}

}  // namespace stride::bench
