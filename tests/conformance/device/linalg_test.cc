#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/conformance/device/harness.h"

// Decompositions are not unique and libraries differ. Results are checked by their defining
// equation, such as A = QR, within a multiple of the type's rounding.
namespace stride::conformance {
namespace {

using Function = v1::Linalg;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kComplex64,
                            DType::kComplex128};

double Epsilon(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kComplex64
             ? std::numeric_limits<float>::epsilon()
             : std::numeric_limits<double>::epsilon();
}

// A matrix in double precision.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<Value> values;

  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), values(rows * columns) {}
  Value& operator()(int64_t i, int64_t j) { return values[i * columns + j]; }
  Value operator()(int64_t i, int64_t j) const { return values[i * columns + j]; }
};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix product(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t p = 0; p < a.columns; ++p)
      for (int64_t j = 0; j < b.columns; ++j) product(i, j) += a(i, p) * b(p, j);
  return product;
}

Matrix Adjoint(const Matrix& a) {
  Matrix result(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) result(j, i) = std::conj(a(i, j));
  return result;
}

Matrix Identity(int64_t n) {
  Matrix result(n, n);
  for (int64_t i = 0; i < n; ++i) result(i, i) = 1;
  return result;
}

double Norm(const Matrix& a) {
  double sum = 0;
  for (Value value : a.values) sum += std::norm(value);
  return std::sqrt(sum);
}

// Matrix `index` of an array with a batch of them in its last two axes.
Matrix MatrixOf(const HostArray& array, int64_t index = 0) {
  const size_t rank = array.info.shape.size();
  Matrix matrix(array.info.shape[rank - 2], array.info.shape[rank - 1]);
  const int64_t size = matrix.rows * matrix.columns;
  for (int64_t i = 0; i < size; ++i) matrix.values[i] = array.At(index * size + i);
  return matrix;
}

// Diagonal matrix `index` of vectors in the last axis.
Matrix DiagonalOf(const HostArray& array, int64_t rows, int64_t columns, int64_t index = 0) {
  Matrix matrix(rows, columns);
  const int64_t n = array.info.shape.back();
  for (int64_t i = 0; i < n; ++i) matrix(i, i) = array.At(index * n + i);
  return matrix;
}

// Numbers from -1 to 1 that look random and that every dtype represents exactly.
HostArray Random(DType dtype, std::vector<int64_t> shape, uint32_t seed) {
  return Make(dtype, std::move(shape), [=](int64_t i) {
    auto number = [&](uint32_t salt) {
      uint64_t x = (static_cast<uint64_t>(i) * 2 + salt + 1) * 0x9e3779b97f4a7c15u + seed * 77777u;
      x ^= x >> 29;
      x *= 0xbf58476d1ce4e5b9u;
      x ^= x >> 32;
      return static_cast<double>(x & 0xfffff) / 0x80000 - 1;
    };
    return IsComplex(dtype) ? Value(number(0), number(1)) : Value(number(0));
  });
}

// Matrices A + A^H, or A A^H + n, of a batch of random ones; the `hidden` triangle is NaN.
enum class Hidden { kNone, kLower, kUpper };
HostArray Hermitian(DType dtype, std::vector<int64_t> shape, uint32_t seed, bool definite,
                    Hidden hidden = Hidden::kNone) {
  const HostArray random = Random(dtype, shape, seed);
  const int64_t n = shape.back();
  std::vector<Value> values;
  for (int64_t b = 0; b < (n == 0 ? 0 : random.info.num_elements() / (n * n)); ++b) {
    const Matrix a = MatrixOf(random, b), adjoint = Adjoint(a), product = a * adjoint;
    for (int64_t i = 0; i < n * n; ++i) {
      values.push_back(definite ? product.values[i] + Value(i % (n + 1) == 0 ? n : 0)
                                : a.values[i] + adjoint.values[i]);
    }
  }
  return Make(dtype, shape, [&](int64_t position) -> Value {
    const int64_t i = position / n % n, j = position % n;
    if ((hidden == Hidden::kLower && i > j) || (hidden == Hidden::kUpper && i < j))
      return std::numeric_limits<double>::quiet_NaN();
    return values[position];
  });
}

struct Flags {
  bool upper = false, full = false, values_only = false;
};

v1::Operation LinalgOf(Function::Function function, int num_operands, int num_outputs,
                       Flags flags = {}) {
  v1::Operation operation;
  v1::Linalg* linalg = operation.mutable_linalg();
  linalg->set_function(function);
  for (int i = 0; i < num_operands; ++i) linalg->add_operands()->set_handle(i + 1);
  linalg->set_upper(flags.upper);
  linalg->set_full(flags.full);
  linalg->set_values_only(flags.values_only);
  for (int j = 0; j < num_outputs; ++j) operation.add_outputs()->set_handle(100 + j);
  return operation;
}

class LinalgTest : public DeviceTest {
 protected:
  std::vector<HostArray> Compute(const v1::Operation& operation,
                                 const std::vector<HostArray>& inputs) {
    std::vector<DeviceArray> placed;
    for (const HostArray& input : inputs) placed.push_back(harness().Put(input));
    auto results = harness().ComputeAll(operation, placed);
    EXPECT_TRUE(results.ok()) << results.status() << operation.ShortDebugString();
    std::vector<HostArray> got;
    if (results.ok())
      for (const DeviceArray& result : *results) got.push_back(harness().Get(result));
    harness().Reset();
    return got;
  }
  absl::Status StatusOf(const v1::Operation& operation, const std::vector<HostArray>& inputs) {
    std::vector<DeviceArray> placed;
    for (const HostArray& input : inputs) placed.push_back(harness().Put(input));
    absl::Status status = harness().ComputeAll(operation, placed).status();
    harness().Reset();
    return status;
  }

  // |a - b| within some units of the last place of their inputs.
  static void ExpectNear(const Matrix& a, const Matrix& b, DType dtype, double scale) {
    ASSERT_EQ(a.values.size(), b.values.size());
    Matrix difference = a;
    for (size_t i = 0; i < a.values.size(); ++i) difference.values[i] -= b.values[i];
    const double n = static_cast<double>(std::max({a.rows, a.columns, int64_t{1}}));
    const double distance = Norm(difference);
    EXPECT_LE(distance, 20 * n * Epsilon(dtype) * std::max(scale, 1.0)) << Name(dtype);
  }
  static void ExpectOrthonormalColumns(const Matrix& q, DType dtype) {
    ExpectNear(Adjoint(q) * q, Identity(q.columns), dtype, 1);
  }
  // Checks that elements on one side of the diagonal are exactly zero.
  static void ExpectTriangle(const Matrix& a, bool upper) {
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = 0; j < a.columns; ++j)
        if (upper ? j < i : j > i) ASSERT_EQ(a(i, j), Value(0)) << i << ", " << j;
  }

  void ExpectQr(const HostArray& input) {
    const DType dtype = input.info.dtype;
    const int64_t batches =
        input.info.num_elements() / (MatrixOf(input).rows * MatrixOf(input).columns);
    for (bool full : {false, true}) {
      const auto got = Compute(LinalgOf(Function::FUNCTION_QR, 1, 2, {.full = full}), {input});
      const auto alone = Compute(
          LinalgOf(Function::FUNCTION_QR, 1, 1, {.full = full, .values_only = true}), {input});
      ASSERT_EQ(got.size(), 2u);
      ASSERT_EQ(alone.size(), 1u);
      EXPECT_EQ(alone[0].info.shape, got[1].info.shape);
      for (int64_t b = 0; b < batches; ++b) {
        const Matrix a = MatrixOf(input, b), q = MatrixOf(got[0], b), r = MatrixOf(got[1], b);
        ASSERT_EQ(q.columns, full ? a.rows : std::min(a.rows, a.columns));
        ASSERT_EQ(r.rows, q.columns);
        ExpectNear(q * r, a, dtype, Norm(a));
        ExpectOrthonormalColumns(q, dtype);
        ExpectTriangle(r, true);
        ExpectNear(MatrixOf(alone[0], b), r, dtype, Norm(a));
      }
    }
  }

  void ExpectSvd(const HostArray& input) {
    const DType dtype = input.info.dtype;
    const int64_t batches =
        input.info.num_elements() / (MatrixOf(input).rows * MatrixOf(input).columns);
    for (bool full : {false, true}) {
      const auto got = Compute(LinalgOf(Function::FUNCTION_SVD, 1, 3, {.full = full}), {input});
      ASSERT_EQ(got.size(), 3u);
      for (int64_t b = 0; b < batches; ++b) {
        const Matrix a = MatrixOf(input, b), u = MatrixOf(got[0], b), vh = MatrixOf(got[2], b);
        const int64_t least = std::min(a.rows, a.columns);
        ASSERT_EQ(u.columns, full ? a.rows : least);
        ASSERT_EQ(vh.rows, full ? a.columns : least);
        const Matrix s = DiagonalOf(got[1], u.columns, vh.rows, b);
        ExpectNear(u * s * vh, a, dtype, Norm(a));
        ExpectOrthonormalColumns(u, dtype);
        ExpectOrthonormalColumns(Adjoint(vh), dtype);
        for (int64_t i = 0; i < least; ++i) {
          EXPECT_GE(s(i, i).real(), i + 1 < least ? s(i + 1, i + 1).real() : 0.0) << i;
        }
      }
      const auto alone =
          Compute(LinalgOf(Function::FUNCTION_SVD, 1, 1, {.values_only = true}), {input});
      ASSERT_EQ(alone.size(), 1u);
      for (int64_t i = 0; i < alone[0].info.num_elements(); ++i) {
        EXPECT_NEAR(alone[0].At(i).real(), got[1].At(i).real(),
                    200 * Epsilon(dtype) * Norm(MatrixOf(input)));
      }
    }
  }
};

TEST_F(LinalgTest, CholeskyMultipliesToTheMatrix) {
  for (DType dtype : kTypes) {
    for (int64_t n : {1, 2, 7, 40, 150}) {
      for (bool upper : {false, true}) {
        // The triangle that is not read has only NaN.
        const HostArray a =
            Hermitian(dtype, {n, n}, 3, true, upper ? Hidden::kLower : Hidden::kUpper);
        const Matrix whole = MatrixOf(Hermitian(dtype, {n, n}, 3, true));
        const auto got =
            Compute(LinalgOf(Function::FUNCTION_CHOLESKY, 1, 1, {.upper = upper}), {a});
        ASSERT_EQ(got.size(), 1u);
        const Matrix factor = MatrixOf(got[0]);
        ExpectTriangle(factor, upper);
        ExpectNear(upper ? Adjoint(factor) * factor : factor * Adjoint(factor), whole, dtype,
                   Norm(whole));
      }
    }
  }
}

TEST_F(LinalgTest, QrMultipliesToTheMatrix) {
  for (DType dtype : kTypes) {
    for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {5, 5}, {7, 4}, {4, 7}, {1, 6}, {6, 1}, {90, 70}, {70, 90}}) {
      ExpectQr(Random(dtype, {m, n}, 1));
    }
  }
}

TEST_F(LinalgTest, SvdMultipliesToTheMatrix) {
  for (DType dtype : kTypes) {
    for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {5, 5}, {7, 4}, {4, 7}, {1, 6}, {6, 1}, {60, 40}, {40, 60}}) {
      ExpectSvd(Random(dtype, {m, n}, 2));
    }
  }
}

TEST_F(LinalgTest, EigenvectorsSatisfyTheirEquation) {
  for (DType dtype : kTypes) {
    for (int64_t n : {1, 2, 6, 64}) {
      for (bool upper : {false, true}) {
        const HostArray a =
            Hermitian(dtype, {n, n}, 4, false, upper ? Hidden::kLower : Hidden::kUpper);
        const Matrix whole = MatrixOf(Hermitian(dtype, {n, n}, 4, false));
        const auto got = Compute(LinalgOf(Function::FUNCTION_EIGH, 1, 2, {.upper = upper}), {a});
        const auto alone = Compute(
            LinalgOf(Function::FUNCTION_EIGH, 1, 1, {.upper = upper, .values_only = true}), {a});
        ASSERT_EQ(got.size(), 2u);
        ASSERT_EQ(alone.size(), 1u);
        const Matrix v = MatrixOf(got[1]);
        ExpectOrthonormalColumns(v, dtype);
        ExpectNear(whole * v, v * DiagonalOf(got[0], n, n), dtype, Norm(whole));
        for (int64_t i = 0; i < n; ++i) {
          if (i > 0) EXPECT_LE(got[0].At(i - 1).real(), got[0].At(i).real());
          EXPECT_NEAR(alone[0].At(i).real(), got[0].At(i).real(),
                      200 * Epsilon(dtype) * Norm(whole));
        }
      }
    }
  }
}

// Returns whether the device's library supports them: a CUDA toolkit before 12.8 does not, and
// reports it by name.
bool HasGeneralEigenvalues(Harness& harness) {
  const HostArray one = Make(DType::kFloat64, {1, 1}, [](int64_t) { return Value(3); });
  const auto values = harness.Compute(LinalgOf(Function::FUNCTION_EIG, 1, 1, {.values_only = true}),
                                      {harness.Put(one)});
  if (values.ok()) return true;
  EXPECT_NE(harness.subject().description.kind(), "cpu") << values.status();
  EXPECT_EQ(values.status().code(), absl::StatusCode::kUnimplemented) << values.status();
  EXPECT_NE(values.status().message().find("cusolverDnXgeev"), absl::string_view::npos);
  return false;
}

TEST_F(LinalgTest, GeneralMatricesHaveComplexEigenvectors) {
  if (!HasGeneralEigenvalues(harness())) GTEST_SKIP() << "the library has none";
  for (DType dtype : kTypes) {
    for (int64_t n : {1, 2, 7, 50}) {
      const HostArray a = Transposed(Random(dtype, {2, n, n}, 21));
      const auto got = Compute(LinalgOf(Function::FUNCTION_EIG, 1, 2), {a});
      const auto alone =
          Compute(LinalgOf(Function::FUNCTION_EIG, 1, 1, {.values_only = true}), {a});
      ASSERT_EQ(got.size(), 2u);
      ASSERT_EQ(alone.size(), 1u);
      EXPECT_TRUE(IsComplex(got[0].info.dtype) && IsComplex(got[1].info.dtype));
      for (int64_t b = 0; b < 2; ++b) {
        const Matrix whole = MatrixOf(a, b), v = MatrixOf(got[1], b);
        Matrix values(n, n);
        Value trace = 0, sum = 0;
        for (int64_t i = 0; i < n; ++i) {
          values(i, i) = got[0].At(b * n + i);
          trace += whole(i, i);
          sum += alone[0].At(b * n + i);
          double norm = 0;
          for (int64_t j = 0; j < n; ++j) norm += std::norm(v(j, i));
          EXPECT_NEAR(norm, 1, 200 * Epsilon(dtype));
        }
        ExpectNear(whole * v, v * values, dtype, 4 * Norm(whole));
        EXPECT_NEAR(std::abs(sum - trace), 0, 400 * Epsilon(dtype) * Norm(whole) * n);
      }
    }
  }
  // A rotation has a pair of conjugates.
  HostArray rotation = Make(DType::kFloat64, {2, 2}, [](int64_t i) {
    return Value(i == 1 ? -1 : i == 2 ? 1 : 0);
  });
  const auto pair =
      Compute(LinalgOf(Function::FUNCTION_EIG, 1, 1, {.values_only = true}), {rotation});
  ASSERT_EQ(pair.size(), 1u);
  EXPECT_NEAR(std::abs(pair[0].At(0) * pair[0].At(1) - 1.0), 0, 1e-14);
  EXPECT_NEAR(std::abs(pair[0].At(0).imag()), 1, 1e-14);
}

TEST_F(LinalgTest, SolvesAndInverts) {
  for (DType dtype : kTypes) {
    for (int64_t n : {1, 3, 50, 140}) {
      const HostArray a = Hermitian(dtype, {n, n}, 5, true), b = Random(dtype, {n, 3}, 6);
      const Matrix whole = MatrixOf(a);
      const auto x = Compute(LinalgOf(Function::FUNCTION_SOLVE, 2, 1), {a, b});
      const auto inverse = Compute(LinalgOf(Function::FUNCTION_INVERSE, 1, 1), {a});
      const auto vector =
          Compute(LinalgOf(Function::FUNCTION_SOLVE, 2, 1), {a, Random(dtype, {n}, 6)});
      ASSERT_TRUE(x.size() == 1 && inverse.size() == 1 && vector.size() == 1);
      const double scale = Norm(whole) * Norm(MatrixOf(x[0]));
      ExpectNear(whole * MatrixOf(x[0]), MatrixOf(b), dtype, scale);
      ExpectNear(whole * MatrixOf(inverse[0]), Identity(n), dtype,
                 Norm(whole) * Norm(MatrixOf(inverse[0])));
      EXPECT_EQ(vector[0].info.shape, (std::vector<int64_t>{n}));
      Matrix column(n, 1);
      for (int64_t i = 0; i < n; ++i) column(i, 0) = vector[0].At(i);
      const HostArray right = Random(dtype, {n}, 6);
      Matrix expected(n, 1);
      for (int64_t i = 0; i < n; ++i) expected(i, 0) = right.At(i);
      ExpectNear(whole * column, expected, dtype, Norm(whole) * Norm(column));
    }
  }
}

TEST_F(LinalgTest, LuMultipliesToThePermutedMatrix) {
  for (DType dtype : kTypes) {
    for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {5, 5}, {9, 4}, {4, 9}}) {
      const HostArray input = Random(dtype, {2, m, n}, 7);
      const auto got = Compute(LinalgOf(Function::FUNCTION_LU, 1, 2), {input});
      ASSERT_EQ(got.size(), 2u);
      const int64_t least = std::min(m, n);
      for (int64_t b = 0; b < 2; ++b) {
        const Matrix lu = MatrixOf(got[0], b);
        Matrix exchanged = MatrixOf(input, b), lower(m, least), upper(least, n);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            if (j < i && j < least) lower(i, j) = lu(i, j);
            if (j >= i && i < least) upper(i, j) = lu(i, j);
          }
        for (int64_t i = 0; i < least; ++i) {
          lower(i, i) = 1;
          const auto other = static_cast<int64_t>(got[1].At(b * least + i).real()) - 1;
          ASSERT_TRUE(other >= i && other < m) << other;
          for (int64_t j = 0; j < n; ++j) std::swap(exchanged(i, j), exchanged(other, j));
        }
        ExpectNear(lower * upper, exchanged, dtype, Norm(exchanged));
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < least; ++j) EXPECT_LE(std::abs(lower(i, j)), 1.5);
      }
    }
  }
}

TEST_F(LinalgTest, AcceptsBatchesOfAnyLayout) {
  for (DType dtype : {DType::kFloat32, DType::kComplex128}) {
    const HostArray a = Random(dtype, {3, 2, 6, 4}, 8);
    ExpectQr(Transposed(a));
    ExpectQr(Reversed(Reversed(a, 0), 2));
    ExpectQr(EverySecond(EverySecond(Random(dtype, {3, 12, 8}, 9), 1), 2));
    ExpectSvd(Transposed(Reversed(a, 1)));
    ExpectSvd(a);
    ExpectQr(Repeated(Random(dtype, {6, 4}, 9), {5, 6, 4}));

    // One matrix, three right-hand sides; and three matrices, one right-hand side.
    const HostArray one = Hermitian(dtype, {5, 5}, 10, true);
    const HostArray three = Hermitian(dtype, {3, 5, 5}, 11, true);
    const HostArray right = Random(dtype, {3, 5, 2}, 12), vector = Random(dtype, {5}, 13);
    const auto x = Compute(LinalgOf(Function::FUNCTION_SOLVE, 2, 1), {one, Reversed(right, 2)});
    const auto y = Compute(LinalgOf(Function::FUNCTION_SOLVE, 2, 1), {Transposed(three), vector});
    ASSERT_TRUE(x.size() == 1 && y.size() == 1);
    EXPECT_EQ(x[0].info.shape, (std::vector<int64_t>{3, 5, 2}));
    EXPECT_EQ(y[0].info.shape, (std::vector<int64_t>{3, 5}));
    for (int64_t b = 0; b < 3; ++b) {
      const Matrix solution = MatrixOf(x[0], b);
      ExpectNear(MatrixOf(one) * solution, MatrixOf(Reversed(right, 2), b), dtype,
                 Norm(MatrixOf(one)) * Norm(solution));
      Matrix column(5, 1), expected(5, 1);
      for (int64_t i = 0; i < 5; ++i) {
        column(i, 0) = y[0].At(b * 5 + i);
        expected(i, 0) = vector.At(i);
      }
      ExpectNear(MatrixOf(Transposed(three), b) * column, expected, dtype,
                 Norm(MatrixOf(three, b)) * Norm(column));
    }
  }
}

TEST_F(LinalgTest, ManySmallMatrices) {
  const int64_t count = 300;
  const HostArray a = Hermitian(DType::kFloat64, {count, 3, 3}, 14, true);
  const auto inverse = Compute(LinalgOf(Function::FUNCTION_INVERSE, 1, 1), {a});
  ASSERT_EQ(inverse.size(), 1u);
  for (int64_t b = 0; b < count; ++b) {
    ExpectNear(MatrixOf(a, b) * MatrixOf(inverse[0], b), Identity(3), DType::kFloat64,
               Norm(MatrixOf(a, b)) * Norm(MatrixOf(inverse[0], b)));
  }
}

// Sizes at which a library works in blocks and needs its own work memory: residuals are applied to
// one vector.
class RealSizesTest : public LinalgTest, public testing::WithParamInterface<DType> {
 protected:
  // A CPU device is slower, and the Python client's tests sweep its sizes.
  std::vector<int64_t> Sizes() {
    if (harness().subject().description.kind() == "cpu") return {127, 300};
    return {127, 500, 512, 1000};
  }
  static Matrix Probe(int64_t n) { return MatrixOf(Random(DType::kFloat64, {n, 1}, 91)); }
  static Matrix Scaled(const HostArray& diagonal, Matrix x) {
    for (int64_t i = 0; i < x.rows; ++i) x(i, 0) *= diagonal.At(i);
    return x;
  }
  // |a - b| <= 30 n eps scale
  static void ExpectClose(const Matrix& a, const Matrix& b, DType dtype, int64_t n, double scale,
                          const char* what) {
    ASSERT_EQ(a.values.size(), b.values.size());
    Matrix difference = a;
    for (size_t i = 0; i < a.values.size(); ++i) difference.values[i] -= b.values[i];
    EXPECT_LE(Norm(difference), 30.0 * static_cast<double>(n) * Epsilon(dtype) * scale)
        << what << " " << n << " " << Name(dtype);
  }
  static void ExpectOrthonormal(const Matrix& q, DType dtype, const char* what) {
    const Matrix w = Probe(q.columns);
    ExpectClose(Adjoint(q) * (q * w), w, dtype, q.rows, Norm(w), what);
  }
  static HostArray Symmetrized(const HostArray& random, double shift) {
    const int64_t n = random.info.shape.back();
    return Make(random.info.dtype, random.info.shape, [&](int64_t at) {
      const int64_t i = at / n, j = at % n;
      return (random.At(at) + std::conj(random.At(j * n + i))) / 2.0 + Value(i == j ? shift : 0);
    });
  }
};

TEST_P(RealSizesTest, EveryFunctionAtLibrarySizes) {
  const DType dtype = GetParam();
  const bool has_eig = HasGeneralEigenvalues(harness());
  for (int64_t n : Sizes()) {
    const HostArray input = Random(dtype, {n, n}, 31), right = Random(dtype, {n, 2}, 32);
    const Matrix a = MatrixOf(input), w = Probe(n);
    const double norm = Norm(a) * Norm(w) / std::sqrt(static_cast<double>(n));
    const auto x = Compute(LinalgOf(Function::FUNCTION_SOLVE, 2, 1), {input, right});
    ASSERT_EQ(x.size(), 1u);
    ExpectClose(
        a * MatrixOf(x[0]), MatrixOf(right), dtype, n,
        Norm(a) * Norm(MatrixOf(x[0])) / std::sqrt(static_cast<double>(n)) + Norm(MatrixOf(right)),
        "solve");
    const auto inverse = Compute(LinalgOf(Function::FUNCTION_INVERSE, 1, 1), {input});
    ASSERT_EQ(inverse.size(), 1u);
    const Matrix y = MatrixOf(inverse[0]);
    ExpectClose(a * (y * w), w, dtype, n, norm * Norm(y) / std::sqrt(static_cast<double>(n)),
                "inverse");
    const auto qr = Compute(LinalgOf(Function::FUNCTION_QR, 1, 2), {input});
    ASSERT_EQ(qr.size(), 2u);
    ExpectClose(MatrixOf(qr[0]) * (MatrixOf(qr[1]) * w), a * w, dtype, n, norm, "qr");
    ExpectOrthonormal(MatrixOf(qr[0]), dtype, "Q");
    // Diagonally dominant, and not.
    const HostArray definite = Symmetrized(input, 2.0 * static_cast<double>(n)),
                    hermitian = Symmetrized(input, 0);
    const Matrix d = MatrixOf(definite), h = MatrixOf(hermitian);
    const auto cholesky = Compute(LinalgOf(Function::FUNCTION_CHOLESKY, 1, 1), {definite});
    ASSERT_EQ(cholesky.size(), 1u);
    const Matrix factor = MatrixOf(cholesky[0]);
    ExpectClose(factor * (Adjoint(factor) * w), d * w, dtype, n, Norm(d * w), "cholesky");
    const auto eigh = Compute(LinalgOf(Function::FUNCTION_EIGH, 1, 2), {hermitian});
    const auto eigvalsh =
        Compute(LinalgOf(Function::FUNCTION_EIGH, 1, 1, {.values_only = true}), {hermitian});
    ASSERT_TRUE(eigh.size() == 2 && eigvalsh.size() == 1);
    const Matrix v = MatrixOf(eigh[1]);
    ExpectClose(h * (v * w), v * Scaled(eigh[0], w), dtype, n, norm, "eigh");
    ExpectOrthonormal(v, dtype, "eigenvectors");
    for (int64_t i = 0; i < n; ++i)
      ASSERT_NEAR(eigh[0].At(i).real(), eigvalsh[0].At(i).real(), 30.0 * n * Epsilon(dtype) * norm);
    for (auto [rows, columns] : {std::pair(n, n), std::pair(n, n / 3), std::pair(n / 3, n)}) {
      const HostArray part = Random(dtype, {rows, columns}, 33);
      const Matrix b = MatrixOf(part), probe = Probe(columns);
      const auto svd = Compute(LinalgOf(Function::FUNCTION_SVD, 1, 3), {part});
      const auto values =
          Compute(LinalgOf(Function::FUNCTION_SVD, 1, 1, {.values_only = true}), {part});
      ASSERT_TRUE(svd.size() == 3 && values.size() == 1);
      const Matrix u = MatrixOf(svd[0]), vh = MatrixOf(svd[2]);
      ExpectClose(u * Scaled(svd[1], vh * probe), b * probe, dtype, n, norm, "svd");
      ExpectOrthonormal(u, dtype, "U");
      ExpectOrthonormal(Adjoint(vh), dtype, "Vh");
      for (int64_t i = 0; i < std::min(rows, columns); ++i)
        ASSERT_NEAR(svd[1].At(i).real(), values[0].At(i).real(), 30.0 * n * Epsilon(dtype) * norm);
    }
    if (!has_eig) continue;
    const auto eig = Compute(LinalgOf(Function::FUNCTION_EIG, 1, 2), {input});
    ASSERT_EQ(eig.size(), 2u);
    const Matrix z = MatrixOf(eig[1]);
    ExpectClose(a * (z * w), z * Scaled(eig[0], w), dtype, n, 2 * norm, "eig");
  }
}

std::string NameOfType(const testing::TestParamInfo<DType>& info) {
  return std::string(Name(info.param));
}
INSTANTIATE_TEST_SUITE_P(Types, RealSizesTest, testing::ValuesIn(kTypes), NameOfType);

TEST_F(LinalgTest, NonFiniteMatrixHasNoEigenvalues) {
  if (!HasGeneralEigenvalues(harness())) GTEST_SKIP() << "the library has none";
  for (DType dtype : kTypes) {
    HostArray a = Random(dtype, {3, 40, 40}, 22);
    Store(dtype, std::numeric_limits<double>::infinity(),
          a.buffer.data() + (2 * 40 * 40 - 1) * ItemSize(dtype));
    const absl::Status status = StatusOf(LinalgOf(Function::FUNCTION_EIG, 1, 2), {a});
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    EXPECT_NE(std::string(status.message()).find("from 0: 1"), std::string::npos) << status;
  }
}

TEST_F(LinalgTest, SingularDataFailsTheTask) {
  for (DType dtype : kTypes) {
    // A column of zeros in the third of four: no order of elimination finds a pivot.
    HostArray a = Hermitian(dtype, {4, 3, 3}, 15, true);
    for (int64_t i = 0; i < 3; ++i)
      Store(dtype, 0, a.buffer.data() + (2 * 9 + i * 3 + 1) * ItemSize(dtype));
    const HostArray b = Random(dtype, {3}, 16);
    for (const absl::Status& status :
         {StatusOf(LinalgOf(Function::FUNCTION_INVERSE, 1, 1), {a}),
          StatusOf(LinalgOf(Function::FUNCTION_SOLVE, 2, 1), {a, b})}) {
      EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
      EXPECT_NE(std::string(status.message()).find("singular"), std::string::npos) << status;
      EXPECT_NE(std::string(status.message()).find("from 0: 2"), std::string::npos) << status;
    }
    EXPECT_TRUE(StatusOf(LinalgOf(Function::FUNCTION_LU, 1, 2), {a}).ok());
    // -1 in the corner: the first minor.
    HostArray indefinite = Hermitian(dtype, {3, 3}, 17, true);
    Store(dtype, -1, indefinite.buffer.data());
    const absl::Status status = StatusOf(LinalgOf(Function::FUNCTION_CHOLESKY, 1, 1), {indefinite});
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    EXPECT_NE(std::string(status.message()).find("positive definite"), std::string::npos) << status;
    // No trace of it remains.
    EXPECT_TRUE(StatusOf(LinalgOf(Function::FUNCTION_INVERSE, 1, 1),
                         {Hermitian(dtype, {4, 3, 3}, 15, true)})
                    .ok());
  }
}

TEST_F(LinalgTest, EmptyMatrices) {
  const HostArray none = Random(DType::kFloat32, {2, 3, 0}, 1);
  const auto qr = Compute(LinalgOf(Function::FUNCTION_QR, 1, 2, {.full = true}), {none});
  ASSERT_EQ(qr.size(), 2u);
  EXPECT_EQ(qr[0].info.shape, (std::vector<int64_t>{2, 3, 3}));
  const auto svd = Compute(LinalgOf(Function::FUNCTION_SVD, 1, 3, {.full = true}), {none});
  ASSERT_EQ(svd.size(), 3u);
  for (int64_t b = 0; b < 2; ++b) {
    ExpectNear(MatrixOf(qr[0], b), Identity(3), DType::kFloat32, 0);
    ExpectNear(MatrixOf(svd[0], b), Identity(3), DType::kFloat32, 0);
  }
  const HostArray empty = Random(DType::kFloat64, {2, 0, 0}, 1),
                  no_batch = Random(DType::kFloat64, {0, 3, 3}, 1);
  const bool has_eig = HasGeneralEigenvalues(harness());
  for (const HostArray& array : {empty, no_batch}) {
    EXPECT_EQ(Compute(LinalgOf(Function::FUNCTION_INVERSE, 1, 1), {array}).size(), 1u);
    EXPECT_EQ(Compute(LinalgOf(Function::FUNCTION_CHOLESKY, 1, 1), {array}).size(), 1u);
    EXPECT_EQ(Compute(LinalgOf(Function::FUNCTION_EIGH, 1, 2), {array}).size(), 2u);
    if (has_eig) {
      EXPECT_EQ(Compute(LinalgOf(Function::FUNCTION_EIG, 1, 2), {array}).size(), 2u);
    }
    EXPECT_EQ(Compute(LinalgOf(Function::FUNCTION_LU, 1, 2), {array}).size(), 2u);
  }
  EXPECT_EQ(
      Compute(LinalgOf(Function::FUNCTION_SOLVE, 2, 1),
              {Hermitian(DType::kFloat64, {3, 3}, 1, true), Random(DType::kFloat64, {3, 0}, 1)})
          .size(),
      1u);
}

TEST_F(LinalgTest, OperandsOutsideTheirArenaAreRefused) {
  const DeviceArray a = harness().Put(Hermitian(DType::kFloat32, {16, 16}, 1, true));
  std::vector<DeviceArray> outputs;
  auto task =
      harness().Prepare(LinalgOf(Function::FUNCTION_EIGH, 1, 2), {a}, {nullptr, nullptr}, &outputs);
  ASSERT_TRUE(task.ok()) << task.status();
  wire::Task bad = *task;
  bad.mutable_linalg()->mutable_inputs(0)->set_offset(Harness::kArenaBytes - 1020);
  EXPECT_REFUSED(harness().Run(bad));
  bad = *task;
  bad.mutable_linalg()->mutable_outputs(1)->set_offset(Harness::kArenaBytes - 1020);
  EXPECT_REFUSED(harness().Run(bad));
  bad = *task;
  bad.mutable_linalg()->set_n(17);
  EXPECT_REFUSED(harness().Run(bad));
  EXPECT_TRUE(harness().Run(*task).ok());
}

}  // namespace
}  // namespace stride::conformance
