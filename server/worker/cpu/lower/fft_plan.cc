#include "server/worker/cpu/lower/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stride::cpu {
namespace {

// Beyond it the sum of n terms for each of n elements is slower than a convolution.
constexpr int64_t kMaxRadix = 50;

template <typename T>
Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename T>
Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <typename T>
Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <typename T>
Complex<T> operator*(T a, Complex<T> b) {
  return {a * b.re, a * b.im};
}
template <typename T>
Complex<T> TimesMinusI(Complex<T> a) {
  return {a.im, -a.re};
}
template <typename T>
Complex<T> Conjugate(Complex<T> a) {
  return {a.re, -a.im};
}

// The transform of `radix` numbers, in place.
template <typename T, int kRadix>
struct Butterfly;

template <typename T>
struct Butterfly<T, 2> {
  static void Apply(Complex<T>* a) {
    const Complex<T> sum = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = sum;
  }
};

template <typename T>
struct Butterfly<T, 3> {
  static void Apply(Complex<T>* a) {
    constexpr T kSine = static_cast<T>(0.866025403784438646763723170752936183L);  // of 60 degrees
    const Complex<T> sum = a[1] + a[2];
    const Complex<T> middle = a[0] - T(0.5) * sum;
    const Complex<T> turned = TimesMinusI(kSine * (a[1] - a[2]));
    a[0] = a[0] + sum;
    a[1] = middle + turned;
    a[2] = middle - turned;
  }
};

template <typename T>
struct Butterfly<T, 4> {
  static void Apply(Complex<T>* a) {
    const Complex<T> even = a[0] + a[2], even_difference = a[0] - a[2];
    const Complex<T> odd = a[1] + a[3], odd_difference = TimesMinusI(a[1] - a[3]);
    a[0] = even + odd;
    a[1] = even_difference + odd_difference;
    a[2] = even - odd;
    a[3] = even_difference - odd_difference;
  }
};

template <typename T>
struct Butterfly<T, 5> {
  static void Apply(Complex<T>* a) {
    constexpr T kCos1 = static_cast<T>(0.309016994374947424102293417182819059L);  // 72 degrees
    constexpr T kSin1 = static_cast<T>(0.951056516295153572116439333379382143L);
    constexpr T kCos2 = static_cast<T>(-0.809016994374947424102293417182819059L);  // 144
    constexpr T kSin2 = static_cast<T>(0.587785252292473129168705954639072769L);
    const Complex<T> sum1 = a[1] + a[4], difference1 = a[1] - a[4];
    const Complex<T> sum2 = a[2] + a[3], difference2 = a[2] - a[3];
    const Complex<T> real1 = a[0] + kCos1 * sum1 + kCos2 * sum2;
    const Complex<T> real2 = a[0] + kCos2 * sum1 + kCos1 * sum2;
    const Complex<T> turned1 = TimesMinusI(kSin1 * difference1 + kSin2 * difference2);
    const Complex<T> turned2 = TimesMinusI(kSin2 * difference1 - kSin1 * difference2);
    a[0] = a[0] + sum1 + sum2;
    a[1] = real1 + turned1;
    a[2] = real2 + turned2;
    a[3] = real2 - turned2;
    a[4] = real1 - turned1;
  }
};

// y[k + s (p q + j)] = w^(q j) times the transform of x[k + s (q + m l)] over l, for each q of m
// groups and k of s neighbours.
template <typename T, int kRadix>
void RunPass(int64_t groups, int64_t stride, const Complex<T>* twiddles,
             const Complex<T>* __restrict from, Complex<T>* __restrict to) {
  for (int64_t q = 0; q < groups; ++q) {
    const Complex<T>* w = twiddles + q * (kRadix - 1);
    const Complex<T>* source = from + stride * q;
    Complex<T>* target = to + stride * kRadix * q;
    for (int64_t k = 0; k < stride; ++k) {
      Complex<T> a[kRadix];
      for (int j = 0; j < kRadix; ++j) a[j] = source[k + stride * groups * j];
      Butterfly<T, kRadix>::Apply(a);
      target[k] = a[0];
      for (int j = 1; j < kRadix; ++j) target[k + stride * j] = w[j - 1] * a[j];
    }
  }
}

template <typename T>
void RunAnyPass(int64_t radix, int64_t groups, int64_t stride, const Complex<T>* twiddles,
                const Complex<T>* roots, const Complex<T>* from, Complex<T>* to) {
  for (int64_t q = 0; q < groups; ++q) {
    for (int64_t k = 0; k < stride; ++k) {
      const Complex<T>* source = from + stride * q + k;
      for (int64_t j = 0; j < radix; ++j) {
        Complex<T> sum = source[0];
        int64_t turn = 0;
        for (int64_t l = 1; l < radix; ++l) {
          turn += j;
          if (turn >= radix) turn -= radix;
          sum = sum + roots[turn] * source[stride * groups * l];
        }
        if (j > 0) sum = twiddles[q * (radix - 1) + j - 1] * sum;
        to[stride * (radix * q + j) + k] = sum;
      }
    }
  }
}

// Empty when there is a factor beyond kMaxRadix.
std::vector<int64_t> Factorize(int64_t n) {
  std::vector<int64_t> radices;
  for (int64_t radix : {4, 2, 3, 5}) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  for (int64_t radix = 7; radix <= kMaxRadix && n > 1; radix += 2) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  if (n > 1) radices.clear();
  return radices;
}

// The least length of small factors that is not below n.
int64_t GoodLength(int64_t n) {
  int64_t best = 1;
  while (best < n) best *= 2;
  for (int64_t odd : {3, 5, 9, 15}) {
    int64_t length = odd;
    while (length < n) length *= 2;
    best = std::min(best, length);
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
  // The angle in eighths of 2 pi / n, brought to the first octant, so that symmetric roots are.
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
    Pass pass{radix, n_ / stride / radix, stride, {}, {}};
    pass.twiddles.reserve(pass.num_groups * (radix - 1));
    for (int64_t q = 0; q < pass.num_groups; ++q)
      for (int64_t j = 1; j < radix; ++j) pass.twiddles.push_back(roots.At<T>(q * j * stride));
    if (radix > 5) {
      for (int64_t j = 0; j < radix; ++j) pass.roots.push_back(roots.At<T>(j * (n_ / radix)));
    }
    passes_.push_back(std::move(pass));
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
  for (const Pass& pass : passes_)
    bytes += (pass.twiddles.size() + pass.roots.size()) * sizeof(Complex<T>);
  if (convolution_ == nullptr) return bytes;
  return bytes + convolution_->plan.table_bytes() +
         (convolution_->chirp.size() + convolution_->kernel.size()) * sizeof(Complex<double>);
}

template <typename T>
void FftPlan<T>::Run(Complex<T>* data, std::byte* work) const {
  if (convolution_ != nullptr) return RunConvolution(data, work);
  Complex<T>*from = data, *to = reinterpret_cast<Complex<T>*>(work);
  for (const Pass& pass : passes_) {
    const Complex<T>* twiddles = pass.twiddles.data();
    switch (pass.radix) {
      case 2:
        RunPass<T, 2>(pass.num_groups, pass.stride, twiddles, from, to);
        break;
      case 3:
        RunPass<T, 3>(pass.num_groups, pass.stride, twiddles, from, to);
        break;
      case 4:
        RunPass<T, 4>(pass.num_groups, pass.stride, twiddles, from, to);
        break;
      case 5:
        RunPass<T, 5>(pass.num_groups, pass.stride, twiddles, from, to);
        break;
      default:
        RunAnyPass<T>(pass.radix, pass.num_groups, pass.stride, twiddles, pass.roots.data(), from,
                      to);
    }
    std::swap(from, to);
  }
  if (from != data) std::copy(from, from + n_, data);
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
