#include "server/worker/cpu/lower/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/worker/cpu/lower/fft_lines.h"
#include "server/worker/cpu/lower/fft_passes.h"

namespace stride::cpu {
namespace {

// Maximum bytes of lines that are transformed together, so that they stay in a core's cache.
// Convolved lines take so much longer one by one that they may exceed it.
constexpr size_t kMostTogether = 1 << 20, kMostConvolvedTogether = 8 << 20;

// The radices of n; empty if n has a prime factor beyond kMaxFftRadix.
std::vector<int64_t> Factorize(int64_t n) {
  std::vector<int64_t> radices;
  for (int64_t radix : {4, 2, 3, 5}) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  for (int64_t radix = 7; radix <= kMaxFftRadix && n > 1; radix += 2) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  if (n > 1) radices.clear();
  return radices;
}

// The least length of factors 2, 3 and 5 that is not below n.
int64_t GoodLength(int64_t n) {
  int64_t best = 1;
  while (best < n) best *= 2;
  for (int64_t fives = 1; fives < best; fives *= 5) {
    for (int64_t odd = fives; odd < best; odd *= 3) {
      int64_t length = odd;
      while (length < n) length *= 2;
      best = std::min(best, length);
    }
  }
  return best;
}

}  // namespace

RootTable::RootTable(int64_t n) : n_(n) {
  while (int64_t{1} << 2 * shift_ < n + 1) ++shift_;
  const long double unit = 2 * 3.141592653589793238462643383279502884L / 8 / n;
  auto root = [&](int64_t x) -> Complex<long double> {
    return {std::cos(unit * x), std::sin(unit * x)};
  };
  for (int64_t i = 0; i >> shift_ == 0; ++i) fine_.push_back(root(i));
  for (int64_t i = 0; i <= n >> shift_; ++i) coarse_.push_back(root(i << shift_));
}

Complex<long double> RootTable::Exact(int64_t k) const {
  // The angle in eighths of 2 pi / n, reduced to the first octant, so that symmetric roots have
  // equal values.
  int64_t x = 8 * k;
  const bool below = x > 4 * n_;
  if (below) x = 8 * n_ - x;
  const bool left = x > 2 * n_;
  if (left) x = 4 * n_ - x;
  const bool steep = x > n_;
  if (steep) x = 2 * n_ - x;
  Complex<long double> root = coarse_[x >> shift_] * fine_[x & ((int64_t{1} << shift_) - 1)];
  if (steep) std::swap(root.re, root.im);
  if (left) root.re = -root.re;
  return {root.re, below ? root.im : -root.im};
}

// x[j] exp(-pi i j^2 / n) convolved with exp(+pi i j^2 / n).
template <typename T>
struct FftPlan<T>::Convolution {
  explicit Convolution(int64_t n) : plan(GoodLength(2 * n - 1)), chirp(n), kernel(plan.length()) {
    const RootTable roots(2 * n);
    for (int64_t j = 0; j < n; ++j) {
      const auto square = static_cast<int64_t>(static_cast<unsigned __int128>(j) * j % (2 * n));
      chirp[j] = roots.At<double>(square);
      kernel[j] = Conjugate(chirp[j]);
      if (j > 0) kernel[plan.length() - j] = kernel[j];
    }
    std::vector<std::byte> work(plan.work_bytes());
    plan.Run(kernel.data(), work.data());
    for (auto& one : kernel) one = (1.0 / static_cast<double>(plan.length())) * one;
  }

  FftPlan<double> plan;
  std::vector<Complex<double>> chirp;
  std::vector<Complex<double>> kernel;  // transformed and scaled
};

template <typename T>
FftPlan<T>::FftPlan(int64_t n) : n_(n) {
  if (n == 1) return;
  const std::vector<int64_t> radices = Factorize(n);
  if (radices.empty()) {
    convolution_ = std::make_unique<Convolution>(n);
  } else {
    AddPasses(radices);
  }
}

template <typename T>
FftPlan<T>::~FftPlan() = default;

template <typename T>
void FftPlan<T>::AddPasses(const std::vector<int64_t>& radices) {
  const RootTable roots(n_);
  int64_t stride = 1;
  for (int64_t radix : radices) {
    const int64_t num_groups = n_ / stride / radix;
    Tables& tables = tables_.emplace_back();
    tables.twiddles.reserve(num_groups * (radix - 1));
    for (int64_t q = 0; q < num_groups; ++q)
      for (int64_t j = 1; j < radix; ++j) tables.twiddles.push_back(roots.At<T>(q * j * stride));
    if (radix > 5) {
      for (int64_t j = 0; j < radix; ++j) tables.roots.push_back(roots.At<T>(j * (n_ / radix)));
    }
    // These pointers stay valid: a move of a vector does not move its elements.
    passes_.push_back({radix, num_groups, stride, tables.twiddles.data(), tables.roots.data()});
    stride *= radix;
  }
}

template <typename T>
size_t FftPlan<T>::work_bytes() const {
  if (convolution_ == nullptr) return n_ * sizeof(Complex<T>);
  return convolution_->plan.length() * sizeof(Complex<double>) + convolution_->plan.work_bytes();
}

template <typename T>
size_t FftPlan<T>::table_bytes() const {
  size_t bytes = sizeof(*this);
  for (const Tables& tables : tables_)
    bytes += (tables.twiddles.size() + tables.roots.size()) * sizeof(Complex<T>);
  if (convolution_ == nullptr) return bytes;
  return bytes + convolution_->plan.table_bytes() +
         (convolution_->chirp.size() + convolution_->kernel.size()) * sizeof(Complex<double>);
}

template <typename T>
void FftPlan<T>::Run(Complex<T>* data, std::byte* work) const {
  if (convolution_ != nullptr) return RunConvolution(data, work);
  const Complex<T>* const result = RunPasses(passes(), data, reinterpret_cast<Complex<T>*>(work));
  if (result != data) std::copy(result, result + n_, data);
}

template <typename T>
size_t FftPlan<T>::together_bytes() const {
  if (convolution_ != nullptr) {
    const size_t bytes = 4 * convolution_->plan.length() * sizeof(FftLanes<double>);
    return bytes <= kMostConvolvedTogether ? bytes : 0;
  }
  const size_t bytes = 4 * n_ * sizeof(FftLanes<T>);
  return n_ > 1 && bytes <= kMostTogether ? bytes : 0;
}

template <typename T>
void FftPlan<T>::RunTogether(Complex<T>* const* lines, std::byte* work) const {
  if (convolution_ != nullptr) {
    const Convolution& c = *convolution_;
    return ConvolveFftLines({c.plan.passes(), n_, c.plan.length(), c.chirp.data(), c.kernel.data()},
                            lines, reinterpret_cast<FftLanes<double>*>(work));
  }
  RunFftLines(passes(), n_, lines, reinterpret_cast<FftLanes<T>*>(work));
}

template <typename T>
void FftPlan<T>::RunConvolution(Complex<T>* data, std::byte* work) const {
  const Convolution& c = *convolution_;
  const int64_t length = c.plan.length();
  auto* line = reinterpret_cast<Complex<double>*>(work);
  std::byte* rest = work + length * sizeof(Complex<double>);
  for (int64_t j = 0; j < n_; ++j)
    line[j] = c.chirp[j] *
              Complex<double>{static_cast<double>(data[j].re), static_cast<double>(data[j].im)};
  std::fill(line + n_, line + length, Complex<double>());
  c.plan.Run(line, rest);
  // The inverse transform is the forward one between conjugates.
  for (int64_t j = 0; j < length; ++j) line[j] = Conjugate(line[j] * c.kernel[j]);
  c.plan.Run(line, rest);
  for (int64_t j = 0; j < n_; ++j) {
    const Complex<double> result = Conjugate(line[j]) * c.chirp[j];
    data[j] = {static_cast<T>(result.re), static_cast<T>(result.im)};
  }
}

template class FftPlan<float>;
template class FftPlan<double>;

}  // namespace stride::cpu
