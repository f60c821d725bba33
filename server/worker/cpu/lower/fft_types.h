// Values that the plan of a transform, its passes and the loops over several lines share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stride::cpu {

// A complex number without the checks for NaN that std::complex's product has.
template <typename T>
struct Complex {
  T re{}, im{};
};

// One pass of a transform (fft_plan.h).
template <typename T>
struct FftPass {
  int64_t radix = 0;
  int64_t num_groups = 0;  // length divided by the radices so far, this one included
  int64_t stride = 0;      // product of the radices before
  const Complex<T>* twiddles = nullptr;
  const Complex<T>* roots = nullptr;  // for a radix without a loop of its own
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

// A transform as a convolution (fft_plan.h), whose own passes are of double precision.
struct FftConvolution {
  FftPasses<double> passes;
  int64_t length = 0, padded = 0;  // line and passes, in elements
  const Complex<double>*chirp = nullptr, *kernel = nullptr;
};

}  // namespace stride::cpu
