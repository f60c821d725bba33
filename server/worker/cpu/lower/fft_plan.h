#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/worker/cpu/lower/fft_types.h"

namespace stride::cpu {

// The discrete Fourier transform of one length, forward and not scaled: y[k] = sum of
// x[j] exp(-2 pi i j k / n). Passes of radix 4, 2, 3, 5 and other small primes between two buffers;
// a length with a large prime factor is made a convolution (Bluestein), which is done in double
// precision. Roots of unity are right to the last place. Made once, then immutable; any thread.
// docs/decisions/0008 tells why it is our own.
template <typename T>
class FftPlan {
 public:
  // n >= 1. Takes memory of about 1 (with a large prime factor 8) times the line's.
  explicit FftPlan(int64_t n);
  ~FftPlan();

  int64_t length() const { return n_; }
  // What the plan itself holds.
  size_t table_bytes() const;
  // Memory that Run works in, aligned as AllocateScratch does.
  size_t work_bytes() const;
  // In place.
  void Run(Complex<T>* data, std::byte* work) const;

  // None where the length is made a convolution.
  FftPasses<T> passes() const { return {passes_.data(), passes_.size()}; }

  // Memory that RunTogether works in, aligned in the same way; 0 where lines are run one by one.
  size_t together_bytes() const;
  // kFftLines lines in place. The same bits as Run's.
  void RunTogether(Complex<T>* const* lines, std::byte* work) const;

 private:
  struct Tables {
    std::vector<Complex<T>> twiddles, roots;
  };
  struct Convolution;

  void AddPasses(const std::vector<int64_t>& radices);
  void RunConvolution(Complex<T>* data, std::byte* work) const;

  const int64_t n_;
  std::vector<Tables> tables_;      // of the passes
  std::vector<FftPass<T>> passes_;  // point into them
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
  // Of the angles from 0 to an eighth of the circle, in eighths of its n-th part: i and
  // i << shift_.
  std::vector<Complex<long double>> fine_, coarse_;
};

}  // namespace stride::cpu
