#include "server/worker/cpu/lower/fft_lines.h"

#include "server/worker/cpu/lower/fft_lines_by_vectors.h"

namespace stride::cpu {
namespace {

enum class Vectors { kPlain, kAvx2, kAvx512 };

Vectors FindVectors() {
  if (__builtin_cpu_supports("avx512f")) return Vectors::kAvx512;
  return __builtin_cpu_supports("avx2") ? Vectors::kAvx2 : Vectors::kPlain;
}

template <typename T>
void Run(FftPasses<T> passes, int64_t length, Complex<T>* const* lines, FftLanes<T>* work) {
  static const Vectors vectors = FindVectors();
  switch (vectors) {
    case Vectors::kAvx512:
      return RunFftLinesAvx512(passes, length, lines, work);
    case Vectors::kAvx2:
      return RunFftLinesAvx2(passes, length, lines, work);
    case Vectors::kPlain:
      return RunFftLinesPlain(passes, length, lines, work);
  }
}

template <typename T>
void Convolve(const FftConvolution& convolution, Complex<T>* const* lines, FftLanes<double>* work) {
  static const Vectors vectors = FindVectors();
  switch (vectors) {
    case Vectors::kAvx512:
      return ConvolveFftLinesAvx512(convolution, lines, work);
    case Vectors::kAvx2:
      return ConvolveFftLinesAvx2(convolution, lines, work);
    case Vectors::kPlain:
      return ConvolveFftLinesPlain(convolution, lines, work);
  }
}

}  // namespace

void ConvolveFftLines(const FftConvolution& convolution, Complex<float>* const* lines,
                      FftLanes<double>* work) {
  Convolve<float>(convolution, lines, work);
}
void ConvolveFftLines(const FftConvolution& convolution, Complex<double>* const* lines,
                      FftLanes<double>* work) {
  Convolve<double>(convolution, lines, work);
}

void RunFftLines(FftPasses<float> passes, int64_t length, Complex<float>* const* lines,
                 FftLanes<float>* work) {
  Run<float>(passes, length, lines, work);
}
void RunFftLines(FftPasses<double> passes, int64_t length, Complex<double>* const* lines,
                 FftLanes<double>* work) {
  Run<double>(passes, length, lines, work);
}

}  // namespace stride::cpu
