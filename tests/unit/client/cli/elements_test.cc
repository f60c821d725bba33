#include "client/cli/elements.h"

#include <gtest/gtest.h>

#include <complex>

#include "client/cli/json.h"

namespace stride::cli {
namespace {

template <typename T>
std::string Text(T value) {
  return FormatElement(DataTypeOf<T>(), reinterpret_cast<const std::byte*>(&value));
}

TEST(ElementsTest, PrintsShortestRoundTrip) {
  EXPECT_EQ(Text(int8_t{-5}), "-5");
  EXPECT_EQ(Text(uint64_t{18446744073709551615u}), "18446744073709551615");
  EXPECT_EQ(Text(0.1f), "0.1");
  EXPECT_EQ(Text(18257281.65280911), "18257281.65280911");
  EXPECT_EQ(Text(true), "true");
  EXPECT_EQ(Text(std::complex<float>(1, -2)), "1-2j");
  EXPECT_EQ(Text(Float16{0x3c00}), "1");
  EXPECT_EQ(Text(Float16{0x0001}), "5.9604645e-08");
  EXPECT_EQ(Text(Float16{0xfc00}), "-inf");
  EXPECT_EQ(Text(Bfloat16{0x4049}), "3.140625");
}

TEST(JsonTest, EscapesAndOrders) {
  EXPECT_EQ(Json::Object({{"b", Json::String("a\"\\\n\x01")},
                          {"a", Json::Array({Json::Integer(1), Json::Null()})}})
                .text(),
            "{\"b\":\"a\\\"\\\\\\n\\u0001\",\"a\":[1,null]}");
  EXPECT_EQ(Json::Number(1.0 / 0.0).text(), "null");
}

}  // namespace
}  // namespace stride::cli
