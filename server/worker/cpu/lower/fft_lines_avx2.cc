// FFT lines for AVX2.
#include "server/worker/cpu/lower/fft_lines_by_vectors.h"
#include "server/worker/cpu/lower/fft_passes.h"

namespace stride::cpu {

void RunFftLinesAvx2(FftPasses<float> passes, int64_t length, Complex<float>* const* lines,
                     FftLanes<float>* work) {
  RunLines<float>(passes, length, lines, work);
}
void RunFftLinesAvx2(FftPasses<double> passes, int64_t length, Complex<double>* const* lines,
                     FftLanes<double>* work) {
  RunLines<double>(passes, length, lines, work);
}

void ConvolveFftLinesAvx2(const FftConvolution& convolution, Complex<float>* const* lines,
                          FftLanes<double>* work) {
  ConvolveLines<float>(convolution, lines, work);
}
void ConvolveFftLinesAvx2(const FftConvolution& convolution, Complex<double>* const* lines,
                          FftLanes<double>* work) {
  ConvolveLines<double>(convolution, lines, work);
}

}  // namespace stride::cpu
