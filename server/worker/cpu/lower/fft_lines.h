#pragma once

#include <cstdint>

#include "server/worker/cpu/lower/fft_types.h"

namespace stride::cpu {

// Transforms kFftLines lines in place by the widest vectors of this processor. Each line's result
// is that of the passes on it alone, to the bit. `work`: 4 * length vectors, aligned to their size.
void RunFftLines(FftPasses<float> passes, int64_t length, Complex<float>* const* lines,
                 FftLanes<float>* work);
void RunFftLines(FftPasses<double> passes, int64_t length, Complex<double>* const* lines,
                 FftLanes<double>* work);

// As RunFftLines. `work`: 4 * padded vectors.
void ConvolveFftLines(const FftConvolution& convolution, Complex<float>* const* lines,
                      FftLanes<double>* work);
void ConvolveFftLines(const FftConvolution& convolution, Complex<double>* const* lines,
                      FftLanes<double>* work);

}  // namespace stride::cpu
