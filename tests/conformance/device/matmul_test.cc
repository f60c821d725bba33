#include <cstdint>
#include <optional>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

class MatmulTest : public DeviceTest {
 protected:
  // Entries of -1, 0, 1 and 2 (times 1 + i for complex): every sum of a few dozen products is exact
  // in every dtype.
  static HostArray Small(DType dtype, std::vector<int64_t> shape, int seed) {
    return Make(dtype, std::move(shape), [=](int64_t i) {
      const double entry = static_cast<double>((i * 7 + seed * 3 + i / 5) % 4 -
                                               (IsUnsigned(dtype) || IsBool(dtype) ? 0 : 1));
      if (IsBool(dtype)) return Value(entry > 1 ? 1 : 0);
      return IsComplex(dtype) ? Value(entry, (i + seed) % 3 - 1) : Value(entry);
    });
  }

  // Shapes are already broadcast: (batches..., m, k) and (batches..., k, n).
  void ExpectProduct(const HostArray& left, const HostArray& right) {
    auto product = harness().Compute(MatmulOf(), {harness().Put(left), harness().Put(right)});
    ASSERT_TRUE(product.ok()) << product.status() << " for " << Name(left.info.dtype);
    const HostArray got = harness().Get(*product);
    const size_t rank = left.info.shape.size();
    const int64_t m = left.info.shape[rank - 2], k = left.info.shape[rank - 1];
    const int64_t n = right.info.shape[rank - 1];
    ASSERT_EQ(got.info.shape[rank - 2], m);
    ASSERT_EQ(got.info.shape[rank - 1], n);
    const int64_t batches = m * n == 0 ? 0 : got.info.num_elements() / (m * n);
    for (int64_t b = 0; b < batches; ++b) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          Value expected = 0;
          for (int64_t p = 0; p < k; ++p) {
            expected += left.At((b * m + i) * k + p) * right.At((b * k + p) * n + j);
          }
          if (IsBool(left.info.dtype)) expected = expected != 0.0 ? 1 : 0;
          ASSERT_EQ(got.At((b * m + i) * n + j), expected)
              << Name(left.info.dtype) << " batch " << b << " row " << i << " column " << j
              << " of " << m << "x" << k << " by " << k << "x" << n;
        }
      }
    }
    harness().Reset();
  }
};

TEST_F(MatmulTest, MultipliesEveryDType) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    ExpectProduct(Small(dtype, {13, 17}, 1), Small(dtype, {17, 11}, 2));
  }
}

TEST_F(MatmulTest, MultipliesEveryShape) {
  for (int64_t m : {1, 2, 33}) {
    for (int64_t n : {1, 3, 40}) {
      for (int64_t k : {1, 5, 19}) {
        ExpectProduct(Small(DType::kFloat32, {m, k}, 1), Small(DType::kFloat32, {k, n}, 2));
      }
    }
  }
}

// Vectors take other code paths than matrices.
TEST_F(MatmulTest, MultipliesVectors) {
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex64,
                      DType::kComplex128, DType::kInt32}) {
    const HostArray matrix = Small(dtype, {33, 70}, 1),
                    other = Transposed(Small(dtype, {70, 33}, 2));
    const HostArray column = Small(dtype, {70, 1}, 3), row = Small(dtype, {1, 33}, 4);
    const HostArray spread = EverySecond(Small(dtype, {140, 1}, 5), 0),
                    spread_row = EverySecond(Small(dtype, {1, 66}, 6), 1);
    for (const HostArray* left : {&matrix, &other}) {
      for (const HostArray* right : {&column, &spread}) ExpectProduct(*left, *right);
      for (const HostArray* first : {&row, &spread_row}) ExpectProduct(*first, *left);
    }
    ExpectProduct(Small(dtype, {1, 70}, 7), column);
    ExpectProduct(Small(dtype, {3, 5, 70}, 8), Small(dtype, {3, 70, 1}, 9));
    ExpectProduct(EverySecond(matrix, 0), Reversed(column, 0));
  }
  // Rows for several iterations of a block's threads, and one row alone.
  ExpectProduct(Small(DType::kFloat32, {3, 10'001}, 1), Small(DType::kFloat32, {10'001, 1}, 2));
  ExpectProduct(Small(DType::kFloat64, {1, 300'007}, 3), Small(DType::kFloat64, {300'007, 1}, 4));
}

TEST_F(MatmulTest, AcceptsTransposedFactors) {
  for (DType dtype :
       {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kInt32}) {
    const HostArray a = Small(dtype, {13, 17}, 1), b = Small(dtype, {17, 11}, 2);
    const HostArray at = Transposed(Small(dtype, {17, 13}, 3)),
                    bt = Transposed(Small(dtype, {11, 17}, 4));
    ExpectProduct(at, b);
    ExpectProduct(a, bt);
    ExpectProduct(at, bt);
  }
}

TEST_F(MatmulTest, AcceptsStridesOutsideTheLibrary) {
  for (DType dtype : {DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex128}) {
    const HostArray a = Small(dtype, {13, 17}, 1), b = Small(dtype, {17, 11}, 2);
    ExpectProduct(Reversed(a, 0), b);
    ExpectProduct(Reversed(a, 1), b);
    ExpectProduct(a, Reversed(Reversed(b, 0), 1));
    ExpectProduct(EverySecond(EverySecond(Small(dtype, {26, 34}, 5), 0), 1), b);
    ExpectProduct(Repeated(Small(dtype, {17}, 6), {13, 17}), b);
    ExpectProduct(a, Repeated(Small(dtype, {17, 1}, 7), {17, 11}));
  }
}

TEST_F(MatmulTest, MultipliesBatches) {
  for (DType dtype : {DType::kFloat32, DType::kComplex64, DType::kInt64}) {
    const HostArray a = Small(dtype, {3, 4, 5, 6}, 1), b = Small(dtype, {3, 4, 6, 7}, 2);
    ExpectProduct(a, b);
    ExpectProduct(a, Repeated(Small(dtype, {6, 7}, 3), {3, 4, 6, 7}));
    ExpectProduct(a, Repeated(Small(dtype, {3, 1, 6, 7}, 4), {3, 4, 6, 7}));
    ExpectProduct(Repeated(Small(dtype, {4, 5, 6}, 5), {3, 4, 5, 6}), b);
    ExpectProduct(Reversed(a, 0), Reversed(b, 1));
    ExpectProduct(Transposed(Small(dtype, {3, 4, 6, 5}, 6)), Reversed(b, 3));
  }
}

// The low bits of a number as a value of the type that a double can represent.
double Wrapped(uint64_t bits, DType dtype) {
  const int unused = 64 - 8 * static_cast<int>(ItemSize(dtype));
  const uint64_t low = bits << unused >> unused;
  if (IsUnsigned(dtype)) return static_cast<double>(low);
  return static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
}

uint64_t Bits(const HostArray& array, int64_t i) {
  return static_cast<uint64_t>(static_cast<int64_t>(array.At(i).real()));
}

// Every value of a byte, and wider integers some of which wrap.
HostArray Integers(DType dtype, std::vector<int64_t> shape, int seed) {
  return Make(dtype, std::move(shape), [=](int64_t i) {
    const uint64_t mixed = static_cast<uint64_t>(i * 37 + seed * 101 + i / 7 * 11);
    if (IsBool(dtype)) return Value(mixed % 16 == 0 ? 1 : 0);
    // 2^64 is a product of two of these; the rest of the sum is representable as a double.
    if (ItemSize(dtype) == 8) return Value(4294967296.0 + static_cast<double>(mixed % 4));
    return Value(Wrapped(mixed * (ItemSize(dtype) == 4 ? 40503 : 1), dtype));
  });
}

class IntegerMatmulTest : public MatmulTest {
 protected:
  // The sums of products modulo 2^bits of `dtype`; unspecified: the factors' common type.
  void ExpectWrapped(const HostArray& left, const HostArray& right,
                     std::optional<DType> dtype = std::nullopt) {
    v1::Operation operation = MatmulOf();
    if (dtype) operation.mutable_matmul()->set_data_type(static_cast<v1::DataType>(*dtype));
    auto product = harness().Compute(operation, {harness().Put(left), harness().Put(right)});
    ASSERT_TRUE(product.ok()) << product.status() << " for " << Name(left.info.dtype);
    const HostArray got = harness().Get(*product);
    ASSERT_EQ(got.info.dtype, dtype.value_or(got.info.dtype));
    const size_t rank = left.info.shape.size();
    const int64_t m = left.info.shape[rank - 2], k = left.info.shape[rank - 1];
    const int64_t n = right.info.shape[rank - 1], batches = got.info.num_elements() / (m * n);
    for (int64_t b = 0; b < batches; ++b) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          uint64_t sum = 0;
          for (int64_t p = 0; p < k; ++p)
            sum += Bits(left, (b * m + i) * k + p) * Bits(right, (b * k + p) * n + j);
          const double expected =
              IsBool(got.info.dtype) ? (sum != 0 ? 1 : 0) : Wrapped(sum, got.info.dtype);
          ASSERT_EQ(got.At((b * m + i) * n + j).real(), expected)
              << Name(left.info.dtype) << " by " << Name(right.info.dtype) << " in "
              << Name(got.info.dtype) << " batch " << b << " row " << i << " column " << j << " of "
              << m << "x" << k << " by " << k << "x" << n;
        }
      }
    }
    harness().Reset();
  }
};

// A GPU's tiles are 128 x 128 x 64 for bytes, and 64 x 64 x 16 or 16 x 16 x 16 for wider integers.
TEST_F(IntegerMatmulTest, WrapsInEverySize) {
  const std::vector<std::vector<int64_t>> sizes = {{1, 1, 1},      {16, 8, 32},    {33, 70, 5},
                                                   {128, 128, 64}, {130, 129, 65}, {1, 300, 200},
                                                   {300, 1, 200},  {257, 66, 131}};
  for (DType dtype : {DType::kBool, DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16,
                      DType::kInt32, DType::kUInt32}) {
    for (const auto& size : sizes)
      ExpectWrapped(Integers(dtype, {size[0], size[2]}, 1), Integers(dtype, {size[2], size[1]}, 2));
  }
  // Large tiles, for wider integers with 16 of them or more.
  for (DType dtype : {DType::kInt16, DType::kInt32, DType::kUInt32})
    ExpectWrapped(Integers(dtype, {259, 35}, 1), Integers(dtype, {35, 250}, 2));
  for (DType dtype : {DType::kInt64, DType::kUInt64}) {
    ExpectWrapped(Integers(dtype, {20, 3}, 1), Integers(dtype, {3, 30}, 2));
    ExpectWrapped(Integers(dtype, {259, 3}, 1), Integers(dtype, {3, 250}, 2));
  }
}

TEST_F(IntegerMatmulTest, AcceptsEveryLayout) {
  for (DType dtype : {DType::kInt8, DType::kBool, DType::kInt32}) {
    const HostArray a = Integers(dtype, {150, 100}, 1), b = Integers(dtype, {100, 140}, 2);
    const HostArray at = Transposed(Integers(dtype, {100, 150}, 3)),
                    bt = Transposed(Integers(dtype, {140, 100}, 4));
    for (const HostArray* left : {&a, &at}) {
      for (const HostArray* right : {&b, &bt}) ExpectWrapped(*left, *right);
    }
    ExpectWrapped(Reversed(a, 0), Reversed(b, 1));
    ExpectWrapped(Reversed(a, 1), Reversed(b, 0));
    ExpectWrapped(EverySecond(Integers(dtype, {150, 200}, 5), 1),
                  EverySecond(Integers(dtype, {100, 280}, 6), 1));
    ExpectWrapped(EverySecond(Integers(dtype, {300, 100}, 5), 0),
                  EverySecond(Integers(dtype, {200, 140}, 6), 0));
    ExpectWrapped(Repeated(Integers(dtype, {100}, 7), {150, 100}), b);
  }
}

// Rows of bytes that begin at any address.
TEST_F(IntegerMatmulTest, AcceptsEveryAlignment) {
  for (int64_t k : {61, 62, 63, 64, 67}) {
    ExpectWrapped(Integers(DType::kInt8, {40, k}, 1), Integers(DType::kInt8, {k, k}, 2));
    ExpectWrapped(Transposed(Integers(DType::kUInt8, {k, k}, 1)),
                  Transposed(Integers(DType::kUInt8, {33, k}, 2)));
  }
}

TEST_F(IntegerMatmulTest, MultipliesBatches) {
  for (DType dtype : {DType::kInt8, DType::kInt16}) {
    const HostArray a = Integers(dtype, {3, 4, 50, 60}, 1), b = Integers(dtype, {3, 4, 60, 70}, 2);
    ExpectWrapped(a, b);
    ExpectWrapped(a, Repeated(Integers(dtype, {60, 70}, 3), {3, 4, 60, 70}));
    ExpectWrapped(Reversed(a, 0), Reversed(b, 1));
  }
}

TEST_F(IntegerMatmulTest, SumsBytesInTheRequestedType) {
  for (DType left : {DType::kInt8, DType::kUInt8}) {
    for (DType right : {DType::kInt8, DType::kUInt8}) {
      const HostArray a = Integers(left, {150, 300}, 1), b = Integers(right, {300, 140}, 2);
      ExpectWrapped(a, b);  // common type of both: int16
      for (DType dtype : {DType::kInt32, DType::kUInt32}) ExpectWrapped(a, b, dtype);
    }
  }
  // Sums beyond 2^31: products of -128 and -128.
  auto least = [](std::vector<int64_t> shape) {
    return Make(DType::kInt8, std::move(shape), [](int64_t) { return Value(-128); });
  };
  ExpectWrapped(least({3, 131'073}), least({131'073, 2}), DType::kInt32);
}

TEST_F(MatmulTest, EmptySumsAreZero) {
  // So that zeros must be written, not found.
  harness().Put(Make(DType::kFloat32, {100000}, [](int64_t) { return Value(7); }));
  harness().Reset();
  ExpectProduct(Small(DType::kFloat32, {9, 0}, 1), Small(DType::kFloat32, {0, 8}, 2));
  ExpectProduct(Small(DType::kInt32, {9, 0}, 1), Small(DType::kInt32, {0, 8}, 2));
  ExpectProduct(Small(DType::kInt8, {9, 0}, 1), Small(DType::kInt8, {0, 8}, 2));
  ExpectProduct(Small(DType::kFloat32, {0, 5}, 1), Small(DType::kFloat32, {5, 8}, 2));
  ExpectProduct(Small(DType::kFloat32, {0, 4, 5}, 1), Small(DType::kFloat32, {0, 5, 8}, 2));
}

TEST_F(MatmulTest, Float32IsFullPrecision) {
  // 1 + 2^-12 squared needs 24 bits; ten-bit arithmetic would give 1.
  const double x = 1 + 1.0 / 4096;
  auto array = [&] {
    return Make(DType::kFloat32, {64, 64}, [&](int64_t i) { return Value(i % 65 == 0 ? x : 0); });
  };
  auto product = harness().Compute(MatmulOf(), {harness().Put(array()), harness().Put(array())});
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(harness().Get(*product).At(0).real(), static_cast<double>(static_cast<float>(x * x)));
}

TEST_F(MatmulTest, OperandsOutsideTheirArenaAreRefused) {
  auto array = harness().Put(Small(DType::kFloat32, {16, 16}, 1));
  DeviceArray output;
  auto task = harness().Prepare(MatmulOf(), {array, array}, nullptr, &output);
  ASSERT_TRUE(task.ok()) << task.status();
  wire::Task bad = *task;
  bad.mutable_matmul()->mutable_right()->set_offset(Harness::kArenaBytes - 1020);
  EXPECT_REFUSED(harness().Run(bad));
  bad = *task;
  bad.mutable_matmul()->mutable_output()->set_offset(Harness::kArenaBytes - 1020);
  EXPECT_REFUSED(harness().Run(bad));
  EXPECT_TRUE(harness().Run(*task).ok());
}

}  // namespace
}  // namespace stride::conformance
