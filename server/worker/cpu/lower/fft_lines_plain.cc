// FFT lines for any processor.
#include "server/worker/cpu/lower/fft_lines_by_vectors.h"
#include "server/worker/cpu/lower/fft_passes.h"

namespace stride::cpu {

void RunFftLinesPlain(FftPasses<float> passes, int64_t length, Complex<float>* const* lines,
                      FftLanes<float>* work) {
  RunLines<float>(passes, length, lines, work);
}
void RunFftLinesPlain(FftPasses<double> passes, int64_t length, Complex<double>* const* lines,
                      FftLanes<double>* work) {
  RunLines<double>(passes, length, lines, work);
}

void ConvolveFftLinesPlain(const FftConvolution& convolution, Complex<float>* const* lines,
                           FftLanes<double>* work) {
  ConvolveLines<float>(convolution, lines, work);
}
void ConvolveFftLinesPlain(const FftConvolution& convolution, Complex<double>* const* lines,
                           FftLanes<double>* work) {
  ConvolveLines<double>(convolution, lines, work);
}

}  // namespace stride::cpu
