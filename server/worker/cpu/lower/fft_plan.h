#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/worker/cpu/lower/fft_types.h"

namespace stride::cpu {

// The discrete Fourier transform of one length, forward and unscaled: y[k] = sum of x[j] exp(-2 pi
// i j k / n). It runs passes of radix 4, 2, 3, 5 and other small primes between two buffers. A
// length with a large prime factor becomes a convolution (Bluestein) in double precision. Roots of
// unity are correct to the last place. Immutable after construction; any thread.
// docs/decisions/0008 gives the reasons for an implementation of our own.
template <typename T>
class FftPlan {
 public:
  // n >= 1. Takes about as much memory as a line, or 8 times as much with a large prime factor.
  explicit FftPlan(int64_t n);
  ~FftPlan();

  int64_t length() const { return n_; }
  // Bytes of the plan's tables.
  size_t table_bytes() const;
  // Bytes of Run's work memory, with the alignment of AllocateScratch.
  size_t work_bytes() const;
  // In place.
  void Run(Complex<T>* data, std::byte* work) const;

  // Empty where the length is computed as a convolution.
  FftPasses<T> passes() const { return {passes_.data(), passes_.size()}; }

  // Bytes of RunTogether's work memory, with the same alignment; 0 where lines are run one by one.
  size_t together_bytes() const;
  // Transforms kFftLines lines in place, with the same bits as Run.
  void RunTogether(Complex<T>* const* lines, std::byte* work) const;

 private:
  struct Tables {
    std::vector<Complex<T>> twiddles, roots;
  };
  struct Convolution;

  void AddPasses(const std::vector<int64_t>& radices);
  void RunConvolution(Complex<T>* data, std::byte* work) const;

  const int64_t n_;
  std::vector<Tables> tables_;      // one per pass
  std::vector<FftPass<T>> passes_;  // with pointers into tables_
  std::unique_ptr<Convolution> convolution_;
};

// exp(-2 pi i k / n) for any k of [0, n), rounded from extended precision.
class RootTable {
 public:
  explicit RootTable(int64_t n);
  template <typename T>
  Complex<T> At(int64_t k) const {
    const Complex<long double> root = Exact(k);
    return {static_cast<T>(root.re), static_cast<T>(root.im)};
  }

 private:
  Complex<long double> Exact(int64_t k) const;

  const int64_t n_;
  int shift_ = 0;
  // Roots at the angles i and i << shift_, from 0 to an eighth of the circle. The unit is an eighth
  // of the circle's n-th part.
  std::vector<Complex<long double>> fine_, coarse_;
};

}  // namespace stride::cpu
