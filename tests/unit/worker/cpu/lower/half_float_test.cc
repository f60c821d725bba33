#include "server/worker/cpu/lower/half_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stride::cpu {
namespace {

// The compiler's own conversions are the reference.
float ReferenceFrom(uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
uint16_t ReferenceTo(float value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }

TEST(HalfFloatTest, EveryFloat16IsExact) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = FromFloat16(static_cast<uint16_t>(bits));
    float reference = ReferenceFrom(static_cast<uint16_t>(bits));
    if (std::isnan(reference)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(FromFloat16(ToFloat16(value))));
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(reference)) << bits;
      EXPECT_EQ(ToFloat16(value), bits);
    }
  }
}

TEST(HalfFloatTest, RoundsToNearestEven) {
  std::mt19937 random(1);
  for (int i = 0; i < 2'000'000; ++i) {
    uint32_t bits = random();
    if (i % 2 == 0)
      bits = (bits & 0x80001fffu) | ((100 + random() % 48) << 23) | (random() & 0x7fe000);
    float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    ASSERT_EQ(ToFloat16(value), ReferenceTo(value)) << value;
  }
  for (float value : {65504.0f, 65519.99f, 65520.0f, 65536.0f, 1e10f, INFINITY, 0x1p-24f, 0x1p-25f,
                      0x1.8p-25f, 0x1.ffcp-15f, 0x1.ffep-15f, -0.0f}) {
    EXPECT_EQ(ToFloat16(value), ReferenceTo(value)) << value;
  }
}

TEST(HalfFloatTest, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(FromBFloat16(0x3f80), 1.0f);
  EXPECT_EQ(ToBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(ToBFloat16(std::bit_cast<float>(0x3f808000u)), 0x3f80) << "a tie goes to even";
  EXPECT_EQ(ToBFloat16(std::bit_cast<float>(0x3f818000u)), 0x3f82) << "a tie goes to even";
  EXPECT_EQ(ToBFloat16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(ToBFloat16(INFINITY), 0x7f80);
  EXPECT_EQ(ToBFloat16(3.4e38f), 0x7f80) << "overflow rounds to infinity";
  EXPECT_TRUE(std::isnan(FromBFloat16(ToBFloat16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace stride::cpu
