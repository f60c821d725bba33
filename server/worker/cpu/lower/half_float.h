#pragma once

#include <bit>
#include <cstdint>

namespace stride::cpu {

// Conversions of 16-bit floats, exact to float and rounding to nearest even from it. Branch-free
// where it matters, so that loops over them are vectorised for any processor.

inline float FromBFloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

inline uint16_t ToBFloat16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  bool nan = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<uint16_t>(nan ? bits >> 16 | 0x40 : rounded);
}

inline float FromFloat16(uint16_t bits) {
  // Shifted into place, exponent and fraction are those of a float 2^112 times too small;
  // subnormals come out right too.
  uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  uint32_t magnitude = uint32_t{bits & 0x7fffu} << 13;
  uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  bool special = (bits & 0x7c00) == 0x7c00;  // infinity or NaN
  return std::bit_cast<float>(sign | (special ? magnitude | 0x7f800000 : scaled));
}

inline uint16_t ToFloat16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  // Normal: the exponent rebased, the fraction rounded at bit 13; a carry runs into the exponent,
  // up to infinity.
  uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // Subnormal: adding 2^-1 * 2^-13 (0.5 scaled) lets the floating-point unit round the fraction at
  // the right bit.
  constexpr float kMagic = 0x1p-1f;
  uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + kMagic) -
                       std::bit_cast<uint32_t>(kMagic);
  uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
  if (magnitude >= (143u << 23)) result = 0x7c00;  // 65536 and above
  if (magnitude > 0x7f800000) result = 0x7e00;     // NaN
  return static_cast<uint16_t>(sign | result);
}

}  // namespace stride::cpu
