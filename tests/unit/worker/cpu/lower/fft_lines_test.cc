// Lines of a Fourier transform, by each vector width of the processor.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <numbers>
#include <vector>

#include "server/worker/cpu/lower/fft_lines_by_vectors.h"
#include "server/worker/cpu/lower/fft_plan.h"

namespace stride::cpu {
namespace {

template <typename T>
using Runner = void (*)(FftPasses<T>, int64_t, Complex<T>* const*, FftLanes<T>*);

template <typename T>
Complex<T> Root(int64_t k, int64_t n) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
}

template <typename T>
struct Passes {
  explicit Passes(const std::vector<int64_t>& radices) : twiddles(radices.size()), roots(twiddles) {
    for (int64_t radix : radices) length *= radix;
    int64_t stride = 1;
    for (size_t i = 0; i < radices.size(); stride *= radices[i], ++i) {
      const int64_t radix = radices[i], groups = length / stride / radix;
      for (int64_t q = 0; q < groups; ++q)
        for (int64_t j = 1; j < radix; ++j) twiddles[i].push_back(Root<T>(q * j * stride, length));
      for (int64_t j = 0; j < radix; ++j) roots[i].push_back(Root<T>(j, radix));
      passes.push_back({radix, groups, stride, twiddles[i].data(), roots[i].data()});
    }
  }
  int64_t length = 1;
  std::vector<std::vector<Complex<T>>> twiddles, roots;
  std::vector<FftPass<T>> passes;
};

template <typename T>
std::vector<Complex<T>> Input(int64_t length) {
  std::vector<Complex<T>> values(kFftLines * length);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = {static_cast<T>(i * 37 % 101) / 50 - 1, static_cast<T>(i * 53 % 97) / 50 - 1};
  return values;
}

template <typename T>
std::vector<Complex<T>> Run(Runner<T> run, const Passes<T>& passes) {
  std::vector<Complex<T>> values = Input<T>(passes.length);
  Complex<T>* lines[kFftLines];
  for (int i = 0; i < kFftLines; ++i) lines[i] = values.data() + i * passes.length;
  std::vector<std::byte> memory((4 * passes.length + 1) * sizeof(FftLanes<T>));
  void* work = memory.data();
  size_t size = memory.size();
  std::align(sizeof(FftLanes<T>), 4 * passes.length * sizeof(FftLanes<T>), work, size);
  run({passes.passes.data(), passes.passes.size()}, passes.length, lines,
      static_cast<FftLanes<T>*>(work));
  return values;
}

template <typename T>
void Check(Runner<T> plain, Runner<T> avx2, Runner<T> avx512) {
  for (const auto& radices : std::vector<std::vector<int64_t>>{
           {2}, {3}, {5, 7}, {4, 3, 5}, {4, 4, 4, 2}, {4, 3, 5, 11}}) {
    const Passes<T> passes(radices);
    const int64_t n = passes.length;
    const auto input = Input<T>(n), got = Run<T>(plain, passes);
    for (int64_t i = 0; i < kFftLines * n; ++i) {
      std::complex<double> sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        const Complex<T> x = input[i / n * n + j];
        const Complex<double> root = Root<double>(i % n * j, n);
        sum += std::complex<double>(x.re, x.im) * std::complex<double>(root.re, root.im);
      }
      const double bound = 10 * std::sqrt(n) * std::numeric_limits<T>::epsilon() * std::log2(n + 2);
      EXPECT_LE(std::abs(std::complex<double>(got[i].re, got[i].im) - sum), bound) << n;
    }
    const size_t bytes = got.size() * sizeof(got[0]);
    if (__builtin_cpu_supports("avx2")) {
      EXPECT_EQ(std::memcmp(Run<T>(avx2, passes).data(), got.data(), bytes), 0) << n;
    }
    if (__builtin_cpu_supports("avx512f")) {
      EXPECT_EQ(std::memcmp(Run<T>(avx512, passes).data(), got.data(), bytes), 0) << n;
    }
  }
}

TEST(FftLines, AllVectorWidthsAreBitIdentical) {
  Check<float>(RunFftLinesPlain, RunFftLinesAvx2, RunFftLinesAvx512);
  Check<double>(RunFftLinesPlain, RunFftLinesAvx2, RunFftLinesAvx512);
}

}  // namespace
}  // namespace stride::cpu
