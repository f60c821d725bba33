#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/conformance/device/harness.h"

// Fourier transforms compared with the defining sum in extended precision. An error is relative to
// the largest element: in units of the last place it grows with the logarithm of the length.
namespace stride::conformance {
namespace {

using Real = long double;
using Exact = std::complex<Real>;
using Fft = v1::Fft;

double Epsilon(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kComplex64
             ? std::numeric_limits<float>::epsilon()
             : std::numeric_limits<double>::epsilon();
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

// An array of complex numbers in C order.
struct Grid {
  std::vector<int64_t> shape;
  std::vector<Exact> values;

  int64_t Stride(int axis) const {
    int64_t stride = 1;
    for (size_t i = axis + 1; i < shape.size(); ++i) stride *= shape[i];
    return stride;
  }
};

Grid GridOf(const HostArray& array) {
  Grid grid{array.info.shape, {}};
  for (const Value& value : array.Values()) grid.values.emplace_back(value.real(), value.imag());
  return grid;
}

// Truncated, or padded with zeros, to `length` along an axis.
Grid Resized(const Grid& from, int axis, int64_t length) {
  Grid to{from.shape, {}};
  to.shape[axis] = length;
  const int64_t stride = from.Stride(axis), extent = from.shape[axis];
  const int64_t outer =
      extent == 0 ? 0 : static_cast<int64_t>(from.values.size()) / stride / extent;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t j = 0; j < length; ++j)
      for (int64_t k = 0; k < stride; ++k)
        to.values.push_back(j < extent ? from.values[(o * extent + j) * stride + k] : Exact(0));
  return to;
}

// The defining sum.
Grid Transformed(const Grid& from, int axis, bool inverse) {
  Grid to = from;
  const int64_t n = from.shape[axis], stride = from.Stride(axis);
  std::vector<Exact> roots(n);
  for (int64_t k = 0; k < n; ++k) {
    const Real angle = 2 * 3.14159265358979323846264338327950288L * k / n;
    roots[k] = Exact(std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle));
  }
  for (size_t first = 0; first < from.values.size(); ++first) {
    const auto position = static_cast<int64_t>(first);
    const int64_t k = position / stride % n, start = position - k * stride;
    Exact sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += from.values[start + j * stride] * roots[j * k % n];
    to.values[first] = sum;
  }
  return to;
}

// The second half of a real transform, which is not stored: the conjugate of the first, mirrored in
// every other axis. Only one axis here.
Grid Completed(const Grid& half, int axis, int64_t n) {
  Grid whole = Resized(half, axis, n);
  const int64_t stride = half.Stride(axis);
  for (size_t first = 0; first < whole.values.size(); ++first) {
    const auto position = static_cast<int64_t>(first);
    const int64_t k = position / stride % n;
    if (k == 0 || 2 * k == n) {
      whole.values[first] = whole.values[first].real();
    } else if (2 * k > n) {
      whole.values[first] = std::conj(whole.values[position + (n - 2 * k) * stride]);
    }
  }
  return whole;
}

class FftTest : public DeviceTest {
 protected:
  struct Request {
    Fft::Kind kind = Fft::KIND_COMPLEX;
    std::vector<int32_t> axes;
    std::vector<int64_t> lengths;
    bool inverse = false;
    Fft::Norm norm = Fft::NORM_BACKWARD;
  };
  static v1::Operation OperationOf(const Request& request) {
    v1::Operation operation;
    Fft* fft = operation.mutable_fft();
    fft->set_kind(request.kind);
    fft->mutable_input()->set_handle(1);
    for (int32_t axis : request.axes) fft->add_axes(axis);
    for (int64_t length : request.lengths) fft->add_lengths(length);
    fft->set_inverse(request.inverse);
    fft->set_norm(request.norm);
    operation.add_outputs()->set_handle(100);
    return operation;
  }

  HostArray Compute(const HostArray& input, const Request& request) {
    auto result = harness().Compute(OperationOf(request), {harness().Put(input)});
    EXPECT_TRUE(result.ok()) << result.status() << OperationOf(request).ShortDebugString();
    HostArray got = result.ok() ? harness().Get(*result) : HostArray();
    harness().Reset();
    return got;
  }

  static void ExpectNear(const HostArray& got, const Grid& expected, Real scale, double length) {
    ASSERT_EQ(got.info.shape, expected.shape);
    Real largest = 0, error = 0;
    for (int64_t i = 0; i < got.info.num_elements(); ++i) {
      const Value value = got.At(i);
      const Exact wanted = expected.values[i] * scale;
      largest = std::max(largest, std::abs(wanted));
      error = std::max(error, std::abs(Exact(value.real(), value.imag()) - wanted));
    }
    const double units = 3 * (std::log2(length) + 2);
    EXPECT_LE(static_cast<double>(error),
              units * Epsilon(got.info.dtype) * std::max(static_cast<double>(largest), 1e-3))
        << Name(got.info.dtype) << " of length " << length;
  }

  // Along every named axis, compared with the sum.
  void ExpectComplex(const HostArray& input, std::vector<int32_t> axes,
                     std::vector<int64_t> lengths, bool inverse) {
    Grid expected = GridOf(input);
    double count = 1;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t length = lengths.empty() ? input.info.shape[axes[i]] : lengths[i];
      expected = Transformed(Resized(expected, axes[i], length), axes[i], inverse);
      count *= static_cast<double>(length);
    }
    ExpectNear(Compute(input, {Fft::KIND_COMPLEX, axes, lengths, inverse}), expected,
               inverse ? 1 / static_cast<Real>(count) : 1, count);
  }
};

// Powers, products, and primes below and above the lengths with a pass of their own.
constexpr int64_t kLengths[] = {1,  2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,
                                13, 15,  16,  17,  25,  30,  47,  49,  53,  60,  64,  81,
                                97, 100, 127, 128, 180, 211, 243, 256, 343, 360, 509, 625};

TEST_F(FftTest, EveryLength) {
  for (DType dtype : {DType::kComplex64, DType::kComplex128}) {
    for (int64_t n : kLengths) {
      ExpectComplex(Random(dtype, {2, n}, 1), {1}, {}, false);
      ExpectComplex(Random(dtype, {2, n}, 2), {1}, {}, true);
    }
  }
}

TEST_F(FftTest, RealToComplex) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (int64_t n : kLengths) {
      const HostArray input = Random(dtype, {3, n}, 3);
      Grid expected = Transformed(GridOf(input), 1, false);
      ExpectNear(Compute(input, {Fft::KIND_REAL_TO_COMPLEX, {1}}), Resized(expected, 1, n / 2 + 1),
                 1, static_cast<double>(n));
    }
  }
}

TEST_F(FftTest, ComplexToReal) {
  for (DType dtype : {DType::kComplex64, DType::kComplex128}) {
    for (int64_t n : kLengths) {
      // Values of a real signal's transform: the ends are real.
      HostArray input = Random(dtype, {3, n / 2 + 1}, 4);
      for (int64_t i = 0; i < 3; ++i) {
        const int64_t first = i * (n / 2 + 1), last = first + n / 2;
        const int64_t item = ItemSize(dtype);
        Store(dtype, input.At(first).real(), input.buffer.data() + first * item);
        if (n % 2 == 0) Store(dtype, input.At(last).real(), input.buffer.data() + last * item);
      }
      const Grid expected = Transformed(Completed(GridOf(input), 1, n), 1, true);
      ExpectNear(Compute(input, {Fft::KIND_COMPLEX_TO_REAL, {1}, {n}}), expected,
                 1 / static_cast<Real>(n), static_cast<double>(n));
    }
  }
}

// Some lines are transformed together. cuFFT chooses its kernels, and with them its rounding, by
// the number of lines.
TEST_F(FftTest, BatchedLinesAreBitIdenticalToSingleLines) {
  if (!harness().subject().description.host_memory()) GTEST_SKIP() << "of cuFFT this is not true";
  constexpr int64_t kLines = 11;
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128}) {
    const std::vector<Fft::Kind> kinds =
        IsComplex(dtype) ? std::vector<Fft::Kind>{Fft::KIND_COMPLEX, Fft::KIND_COMPLEX_TO_REAL}
                         : std::vector<Fft::Kind>{Fft::KIND_REAL_TO_COMPLEX};
    for (int64_t n : {2, 3, 4, 5, 7, 12, 30, 47, 49, 53, 64, 111, 210, 647, 1000, 1024, 2310}) {
      const HostArray input = Random(dtype, {kLines, n}, 13);
      for (Fft::Kind kind : kinds) {
        const HostArray all = Compute(input, {kind, {1}});
        const size_t from_bytes = input.buffer.size() / kLines;
        const size_t to_bytes = all.buffer.size() / kLines;
        for (size_t i = 0; i < kLines; ++i) {
          HostArray line = Random(dtype, {1, n}, 13);
          line.buffer.assign(input.buffer, i * from_bytes, from_bytes);
          EXPECT_EQ(Compute(line, {kind, {1}}).buffer, all.buffer.substr(i * to_bytes, to_bytes))
              << Name(dtype) << ", line " << i << " of length " << n;
        }
      }
    }
  }
}

TEST_F(FftTest, SeveralAxes) {
  for (DType dtype : {DType::kComplex64, DType::kComplex128}) {
    const HostArray cube = Random(dtype, {4, 6, 5}, 5);
    for (std::vector<int32_t> axes : std::vector<std::vector<int32_t>>{
             {0}, {1}, {2}, {0, 1}, {1, 2}, {2, 0}, {0, 1, 2}, {2, 1, 0}}) {
      ExpectComplex(cube, axes, {}, false);
      ExpectComplex(cube, axes, {}, true);
    }
    ExpectComplex(Random(dtype, {3, 2, 8, 4, 3}, 6), {1, 3}, {}, false);
  }
  // A real transform and its inverse, in two and three axes.
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const HostArray input = Random(dtype, {3, 5, 8, 6}, 7);
    Grid expected = GridOf(input);
    for (int axis : {3, 2, 1}) expected = Transformed(expected, axis, false);
    const HostArray half = Compute(input, {Fft::KIND_REAL_TO_COMPLEX, {1, 2, 3}});
    ExpectNear(half, Resized(expected, 3, 4), 1, 240);
    ExpectNear(Compute(half, {Fft::KIND_COMPLEX_TO_REAL, {1, 2, 3}}), GridOf(input), 1, 240);
    // The real axis need not be the last of the array.
    const HostArray other = Compute(input, {Fft::KIND_REAL_TO_COMPLEX, {3, 1}});
    Grid wanted = Transformed(Transformed(GridOf(input), 1, false), 3, false);
    ExpectNear(other, Resized(wanted, 1, 3), 1, 30);
    ExpectNear(Compute(other, {Fft::KIND_COMPLEX_TO_REAL, {3, 1}, {6, 5}}), GridOf(input), 1, 30);
  }
}

TEST_F(FftTest, TruncatesAndPads) {
  const HostArray input = Random(DType::kComplex128, {4, 6}, 8);
  for (int64_t n : {1, 3, 6, 7, 16}) {
    ExpectComplex(input, {1}, {n}, false);
    ExpectComplex(input, {0}, {n}, true);
    ExpectComplex(input, {0, 1}, {n, 5}, false);
    const HostArray real = Random(DType::kFloat64, {4, 6}, 9);
    const Grid expected = Transformed(Resized(GridOf(real), 1, n), 1, false);
    ExpectNear(Compute(real, {Fft::KIND_REAL_TO_COMPLEX, {1}, {n}}),
               Resized(expected, 1, n / 2 + 1), 1, static_cast<double>(n));
  }
}

TEST_F(FftTest, AcceptsAnyLayout) {
  for (DType dtype : {DType::kComplex64, DType::kComplex128}) {
    const HostArray input = Random(dtype, {4, 6, 10}, 10);
    for (const HostArray& view :
         {Transposed(input), Reversed(Reversed(input, 1), 2), EverySecond(input, 2),
          Repeated(Random(dtype, {6, 10}, 11), {3, 6, 10}),
          Repeated(Random(dtype, {4, 6, 1}, 12), {4, 6, 9})}) {
      ExpectComplex(view, {2}, {}, false);
      ExpectComplex(view, {1}, {}, true);
      ExpectComplex(view, {0, 2}, {}, false);
    }
  }
}

TEST_F(FftTest, Norms) {
  const HostArray input = Random(DType::kComplex128, {12}, 13);
  const Grid forward = Transformed(GridOf(input), 0, false),
             inverse = Transformed(GridOf(input), 0, true);
  const Real root = 1 / std::sqrt(static_cast<Real>(12)), whole = static_cast<Real>(1) / 12;
  ExpectNear(Compute(input, {Fft::KIND_COMPLEX, {0}, {}, false, Fft::NORM_ORTHO}), forward, root,
             12);
  ExpectNear(Compute(input, {Fft::KIND_COMPLEX, {0}, {}, false, Fft::NORM_FORWARD}), forward, whole,
             12);
  ExpectNear(Compute(input, {Fft::KIND_COMPLEX, {0}, {}, true, Fft::NORM_ORTHO}), inverse, root,
             12);
  ExpectNear(Compute(input, {Fft::KIND_COMPLEX, {0}, {}, true, Fft::NORM_FORWARD}), inverse, 1, 12);
}

// A long line there and back, and one whose length is a large prime.
TEST_F(FftTest, LongLines) {
  for (int64_t n : {1 << 18, 100003}) {
    for (DType dtype : {DType::kComplex64, DType::kComplex128}) {
      const HostArray input = Random(dtype, {n}, 14);
      const HostArray there = Compute(input, {Fft::KIND_COMPLEX, {0}});
      ExpectNear(Compute(there, {Fft::KIND_COMPLEX, {0}, {}, true}), GridOf(input), 1,
                 static_cast<double>(n));
      // Parseval: the sum of squares is n times as large.
      double before = 0, after = 0;
      for (const Value& value : input.Values()) before += std::norm(value);
      for (const Value& value : there.Values()) after += std::norm(value);
      EXPECT_NEAR(after / before / static_cast<double>(n), 1, 1e-4);
    }
  }
}

TEST_F(FftTest, EmptyArrays) {
  EXPECT_EQ(Compute(Random(DType::kComplex64, {0, 4}, 1), {Fft::KIND_COMPLEX, {1}}).info.shape,
            (std::vector<int64_t>{0, 4}));
  // Only the padding.
  const HostArray zeros =
      Compute(Random(DType::kComplex64, {0, 4}, 1), {Fft::KIND_COMPLEX, {0}, {3}});
  ASSERT_EQ(zeros.info.shape, (std::vector<int64_t>{3, 4}));
  for (const Value& value : zeros.Values()) EXPECT_EQ(value, Value(0));
}

TEST_F(FftTest, OperandsOutsideTheirArenaAreRefused) {
  const DeviceArray input = harness().Put(Random(DType::kComplex64, {16, 16}, 1));
  DeviceArray output;
  auto task =
      harness().Prepare(OperationOf({Fft::KIND_COMPLEX, {0, 1}}), {input}, nullptr, &output);
  ASSERT_TRUE(task.ok()) << task.status();
  wire::Task bad = *task;
  bad.mutable_fft()->mutable_input()->set_offset(Harness::kArenaBytes - 1024);
  EXPECT_REFUSED(harness().Run(bad));
  bad = *task;
  bad.mutable_fft()->mutable_output()->set_offset(Harness::kArenaBytes - 1024);
  EXPECT_REFUSED(harness().Run(bad));
  bad = *task;
  bad.mutable_fft()->set_axes(0, 7);
  EXPECT_REFUSED(harness().Run(bad));
  EXPECT_TRUE(harness().Run(*task).ok());
}

}  // namespace
}  // namespace stride::conformance
