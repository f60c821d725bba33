#pragma once

#include "server/worker/cpu/lower/fft_types.h"

namespace stride::cpu {

// RunFftLines, each compiled for processors with these vectors.
void RunFftLinesPlain(FftPasses<float> passes, int64_t length, Complex<float>* const* lines,
                      FftLanes<float>* work);
void RunFftLinesPlain(FftPasses<double> passes, int64_t length, Complex<double>* const* lines,
                      FftLanes<double>* work);
void RunFftLinesAvx2(FftPasses<float> passes, int64_t length, Complex<float>* const* lines,
                     FftLanes<float>* work);
void RunFftLinesAvx2(FftPasses<double> passes, int64_t length, Complex<double>* const* lines,
                     FftLanes<double>* work);
void RunFftLinesAvx512(FftPasses<float> passes, int64_t length, Complex<float>* const* lines,
                       FftLanes<float>* work);
void RunFftLinesAvx512(FftPasses<double> passes, int64_t length, Complex<double>* const* lines,
                       FftLanes<double>* work);

// ConvolveFftLines in the same way.
void ConvolveFftLinesPlain(const FftConvolution& convolution, Complex<float>* const* lines,
                           FftLanes<double>* work);
void ConvolveFftLinesPlain(const FftConvolution& convolution, Complex<double>* const* lines,
                           FftLanes<double>* work);
void ConvolveFftLinesAvx2(const FftConvolution& convolution, Complex<float>* const* lines,
                          FftLanes<double>* work);
void ConvolveFftLinesAvx2(const FftConvolution& convolution, Complex<double>* const* lines,
                          FftLanes<double>* work);
void ConvolveFftLinesAvx512(const FftConvolution& convolution, Complex<float>* const* lines,
                            FftLanes<double>* work);
void ConvolveFftLinesAvx512(const FftConvolution& convolution, Complex<double>* const* lines,
                            FftLanes<double>* work);

}  // namespace stride::cpu
