#pragma once

#include <cstddef>
#include <cstdint>

namespace stride::cpu {

template <typename T>
struct Complex;

// One pass of a transform (fft_plan.h).
template <typename T>
struct FftPass {
  int64_t radix = 0;
  int64_t num_groups = 0;  // what is left of the length after it
  int64_t stride = 0;      // product of the radices before
  const Complex<T>* twiddles = nullptr;
  const Complex<T>* roots = nullptr;  // of a radix without a loop of its own
};

// Greater factors of a length make its transform a convolution: beyond it the sum of n terms for
// each of n elements is slower.
inline constexpr int64_t kMaxFftRadix = 50;

// Pointer and count, not a vector: no code shared with other files is compiled for other
// processors.
template <typename T>
struct FftPasses {
  const FftPass<T>* passes;
  size_t count;
};

// Lines that are transformed together: an element of each in one vector.
inline constexpr int kFftLines = 8;
template <typename T>
struct FftLanesOf {
  typedef T type __attribute__((vector_size(kFftLines * sizeof(T))));
};
template <typename T>
using FftLanes = typename FftLanesOf<T>::type;

// Transforms kFftLines lines in place by the widest vectors of this processor. Each line's result
// is that of the passes on it alone, to the bit. `work`: 4 * length vectors, aligned to their size.
void RunFftLines(FftPasses<float> passes, int64_t length, Complex<float>* const* lines,
                 FftLanes<float>* work);
void RunFftLines(FftPasses<double> passes, int64_t length, Complex<double>* const* lines,
                 FftLanes<double>* work);

// A transform as a convolution (fft_plan.h), whose own passes are of double precision.
struct FftConvolution {
  FftPasses<double> passes;
  int64_t length = 0, padded = 0;  // of a line, and of the passes
  const Complex<double>*chirp = nullptr, *kernel = nullptr;
};
// As RunFftLines. `work`: 4 * padded vectors.
void ConvolveFftLines(const FftConvolution& convolution, Complex<float>* const* lines,
                      FftLanes<double>* work);
void ConvolveFftLines(const FftConvolution& convolution, Complex<double>* const* lines,
                      FftLanes<double>* work);

}  // namespace stride::cpu
