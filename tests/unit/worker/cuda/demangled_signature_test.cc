#include "server/worker/cuda/compile/demangled_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/store/dtype.h"

namespace stride::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using wire::Parameter;

TEST(SplitArgumentsTest, RespectsBrackets) {
  EXPECT_THAT(SplitArguments(""), IsEmpty());
  EXPECT_THAT(SplitArguments("int"), ElementsAre("int"));
  EXPECT_THAT(SplitArguments("int, a<b, c>*, void (*)(int, int), float (*) [3]"),
              ElementsAre("int", "a<b, c>*", "void (*)(int, int)", "float (*) [3]"));
}

TEST(ParseSignatureTest, ReadsTypesAndSizes) {
  // Lowered names as produced by NVRTC 13.0.
  auto types = ParseSignature(
      "_Z16stride_signatureIPFvPKfPf3Big5ColorbxPvcE14stride_numbersIJLj16ELj16ELj64ELj9ELj2ELj16E"
      "Lj16ELj2EEEE");
  ASSERT_TRUE(types.has_value());
  ASSERT_EQ(types->size(), 8u);
  EXPECT_EQ((*types)[0].spelling, "float const*");
  EXPECT_EQ((*types)[2].spelling, "Big");
  EXPECT_EQ((*types)[2].size, 32u);
  EXPECT_FALSE((*types)[2].is_enum);
  EXPECT_EQ((*types)[3].spelling, "Color");
  EXPECT_EQ((*types)[3].size, 4u);
  EXPECT_TRUE((*types)[3].is_enum);
}

TEST(ParseSignatureTest, RefusesOtherNames) {
  EXPECT_FALSE(ParseSignature("saxpy").has_value());
  EXPECT_FALSE(ParseSignature("_Z5plainPKi").has_value());
  EXPECT_FALSE(ParseSignature("").has_value());
}

struct Row {
  const char* spelling;
  Parameter::Kind kind;
  DType pointee;  // pointers only
  bool pointee_const;
  bool is_signed;
  const char* type;
};
constexpr DType kNone = static_cast<DType>(0);

class DescribeTypeTest : public testing::TestWithParam<Row> {};
TEST_P(DescribeTypeTest, DescribesType) {
  const Row& row = GetParam();
  const Parameter parameter = DescribeType({row.spelling, 8, false});
  EXPECT_EQ(parameter.kind(), row.kind) << row.spelling;
  EXPECT_EQ(parameter.pointee_dtype(), static_cast<int>(row.pointee)) << row.spelling;
  EXPECT_EQ(parameter.pointee_const(), row.pointee_const) << row.spelling;
  EXPECT_EQ(parameter.is_signed(), row.is_signed) << row.spelling;
  EXPECT_EQ(parameter.type(), row.type);
}
INSTANTIATE_TEST_SUITE_P(
    All, DescribeTypeTest,
    testing::Values(
        Row{"int", Parameter::KIND_INTEGER, kNone, false, true, "int"},
        Row{"unsigned long", Parameter::KIND_INTEGER, kNone, false, false, "unsigned long"},
        Row{"char", Parameter::KIND_INTEGER, kNone, false, true, "char"},
        Row{"bool", Parameter::KIND_BOOL, kNone, false, false, "bool"},
        Row{"float", Parameter::KIND_FLOAT, kNone, false, false, "float"},
        Row{"double", Parameter::KIND_FLOAT, kNone, false, false, "double"},
        Row{"float2", Parameter::KIND_AGGREGATE, kNone, false, false, "float2"},
        Row{"float*", Parameter::KIND_POINTER, DType::kFloat32, false, false, "float*"},
        Row{"int const*", Parameter::KIND_POINTER, DType::kInt32, true, false, "const int*"},
        Row{"double const volatile*", Parameter::KIND_POINTER, DType::kFloat64, true, false,
            "const double*"},
        Row{"long long*", Parameter::KIND_POINTER, DType::kInt64, false, false, "long long*"},
        Row{"unsigned char const*", Parameter::KIND_POINTER, DType::kUInt8, true, false,
            "const unsigned char*"},
        Row{"__half*", Parameter::KIND_POINTER, DType::kFloat16, false, false, "__half*"},
        Row{"__nv_bfloat16 const*", Parameter::KIND_POINTER, DType::kBFloat16, true, false,
            "const __nv_bfloat16*"},
        Row{"cuda::std::__4::complex<float>*", Parameter::KIND_POINTER, DType::kComplex64, false,
            false, "cuda::std::__4::complex<float>*"},
        Row{"thrust::complex<double> const*", Parameter::KIND_POINTER, DType::kComplex128, true,
            false, "const thrust::complex<double>*"},
        Row{"void*", Parameter::KIND_POINTER, kNone, false, false, "void*"},
        Row{"void const*", Parameter::KIND_POINTER, kNone, true, false, "const void*"},
        Row{"float**", Parameter::KIND_POINTER, kNone, false, false, "float**"},
        Row{"float* const*", Parameter::KIND_POINTER, kNone, true, false, "float* const*"},
        Row{"float (*) [3]", Parameter::KIND_POINTER, kNone, false, false, "float (*) [3]"},
        Row{"point<float>*", Parameter::KIND_POINTER, kNone, false, false, "point<float>*"}));

TEST(DescribeTypeTest, TreatsEnumerationsAsIntegers) {
  EXPECT_EQ(DescribeType({"Color", 4, true}).kind(), Parameter::KIND_INTEGER);
  EXPECT_EQ(DescribeType({"Color", 4, false}).kind(), Parameter::KIND_AGGREGATE);
}

}  // namespace
}  // namespace stride::cuda
