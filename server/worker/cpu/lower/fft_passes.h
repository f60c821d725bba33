// The passes of FftPlan, on single numbers or on vectors of several lines. Each file that includes
// this has its own copy, for the instruction set that the file is compiled for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "server/worker/cpu/lower/fft_types.h"

namespace stride::cpu {
namespace {

template <typename V>
Complex<V> operator+(Complex<V> a, Complex<V> b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename V>
Complex<V> operator-(Complex<V> a, Complex<V> b) {
  return {a.re - b.re, a.im - b.im};
}
template <typename T, typename V>
Complex<V> operator*(Complex<T> a, Complex<V> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <typename T, typename V, typename = std::enable_if_t<std::is_floating_point_v<T>>>
Complex<V> operator*(T a, Complex<V> b) {
  return {a * b.re, a * b.im};
}
template <typename V>
Complex<V> TimesMinusI(Complex<V> a) {
  return {a.im, -a.re};
}

// The transform of `radix` elements, in place.
template <typename T, int kRadix>
struct Butterfly;

// Pairs of elements of the largest radix without a loop of its own.
constexpr int kMostPairs = kMaxFftRadix / 2;

template <typename T>
struct Butterfly<T, 2> {
  template <typename V>
  static void Apply(Complex<V>* a) {
    const Complex<V> sum = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = sum;
  }
};

template <typename T>
struct Butterfly<T, 3> {
  template <typename V>
  static void Apply(Complex<V>* a) {
    constexpr T kSine = static_cast<T>(0.866025403784438646763723170752936183L);  // sin 60 degrees
    const Complex<V> sum = a[1] + a[2];
    const Complex<V> middle = a[0] - T(0.5) * sum;
    const Complex<V> turned = TimesMinusI(kSine * (a[1] - a[2]));
    a[0] = a[0] + sum;
    a[1] = middle + turned;
    a[2] = middle - turned;
  }
};

template <typename T>
struct Butterfly<T, 4> {
  template <typename V>
  static void Apply(Complex<V>* a) {
    const Complex<V> even = a[0] + a[2], even_difference = a[0] - a[2];
    const Complex<V> odd = a[1] + a[3], odd_difference = TimesMinusI(a[1] - a[3]);
    a[0] = even + odd;
    a[1] = even_difference + odd_difference;
    a[2] = even - odd;
    a[3] = even_difference - odd_difference;
  }
};

template <typename T>
struct Butterfly<T, 5> {
  template <typename V>
  static void Apply(Complex<V>* a) {
    constexpr T kCos1 = static_cast<T>(0.309016994374947424102293417182819059L);  // 72 degrees
    constexpr T kSin1 = static_cast<T>(0.951056516295153572116439333379382143L);
    constexpr T kCos2 = static_cast<T>(-0.809016994374947424102293417182819059L);  // 144 degrees
    constexpr T kSin2 = static_cast<T>(0.587785252292473129168705954639072769L);
    const Complex<V> sum1 = a[1] + a[4], difference1 = a[1] - a[4];
    const Complex<V> sum2 = a[2] + a[3], difference2 = a[2] - a[3];
    const Complex<V> real1 = a[0] + kCos1 * sum1 + kCos2 * sum2;
    const Complex<V> real2 = a[0] + kCos2 * sum1 + kCos1 * sum2;
    const Complex<V> turned1 = TimesMinusI(kSin1 * difference1 + kSin2 * difference2);
    const Complex<V> turned2 = TimesMinusI(kSin2 * difference1 - kSin1 * difference2);
    a[0] = a[0] + sum1 + sum2;
    a[1] = real1 + turned1;
    a[2] = real2 + turned2;
    a[3] = real2 - turned2;
    a[4] = real1 - turned1;
  }
};

// y[k + s (p q + j)] = w^(q j) times the transform of x[k + s (q + m l)] over l, for each q of m
// groups and k of s neighbours.
template <typename T, int kRadix, typename V>
void RunPass(const FftPass<T>& pass, const Complex<V>* __restrict from, Complex<V>* __restrict to) {
  const int64_t groups = pass.num_groups, stride = pass.stride;
  for (int64_t q = 0; q < groups; ++q) {
    const Complex<T>* w = pass.twiddles + q * (kRadix - 1);
    const Complex<V>* source = from + stride * q;
    Complex<V>* target = to + stride * kRadix * q;
    for (int64_t k = 0; k < stride; ++k) {
      Complex<V> a[kRadix];
      for (int j = 0; j < kRadix; ++j) a[j] = source[k + stride * groups * j];
      Butterfly<T, kRadix>::Apply(a);
      target[k] = a[0];
      for (int j = 1; j < kRadix; ++j) target[k + stride * j] = w[j - 1] * a[j];
    }
  }
}

// Any odd radix. Elements l and radix - l are combined, and so are results j and radix - j. With a
// root w = w.re + i w.im, w a + conj(w) b = w.re (a + b) + i w.im (a - b), which has a quarter of
// the products.
template <typename T, typename V>
void RunAnyPass(const FftPass<T>& pass, const Complex<V>* from, Complex<V>* to) {
  const int64_t radix = pass.radix, groups = pass.num_groups, stride = pass.stride;
  const int64_t half = radix / 2;
  Complex<V> sums[kMostPairs + 1], differences[kMostPairs + 1];
  for (int64_t q = 0; q < groups; ++q) {
    const Complex<T>* const twiddles = pass.twiddles + q * (radix - 1);
    for (int64_t k = 0; k < stride; ++k) {
      const Complex<V>* const source = from + stride * q + k;
      Complex<V>* const target = to + stride * radix * q + k;
      const Complex<V> first = source[0];
      Complex<V> total = first;
      for (int64_t l = 1; l <= half; ++l) {
        const Complex<V> a = source[stride * groups * l];
        const Complex<V> b = source[stride * groups * (radix - l)];
        sums[l] = a + b;
        differences[l] = a - b;
        total = total + sums[l];
      }
      target[0] = total;
      for (int64_t j = 1; j <= half; ++j) {
        Complex<V> even = first, odd = pass.roots[j].im * differences[1];
        even = even + pass.roots[j].re * sums[1];
        int64_t turn = j;
        for (int64_t l = 2; l <= half; ++l) {
          turn += j;
          if (turn >= radix) turn -= radix;
          even = even + pass.roots[turn].re * sums[l];
          odd = odd + pass.roots[turn].im * differences[l];
        }
        const Complex<V> turned = TimesMinusI(odd);
        target[stride * j] = twiddles[j - 1] * (even - turned);
        target[stride * (radix - j)] = twiddles[radix - j - 1] * (even + turned);
      }
    }
  }
}

// Returns the buffer with the result: `data` or `work`.
template <typename T, typename V>
Complex<V>* RunPasses(FftPasses<T> passes, Complex<V>* data, Complex<V>* work) {
  Complex<V>*from = data, *to = work;
  for (size_t i = 0; i < passes.count; ++i) {
    const FftPass<T>& pass = passes.passes[i];
    switch (pass.radix) {
      case 2:
        RunPass<T, 2>(pass, from, to);
        break;
      case 3:
        RunPass<T, 3>(pass, from, to);
        break;
      case 4:
        RunPass<T, 4>(pass, from, to);
        break;
      case 5:
        RunPass<T, 5>(pass, from, to);
        break;
      default:
        RunAnyPass<T>(pass, from, to);
    }
    Complex<V>* const done = to;
    to = from;
    from = done;
  }
  return from;
}

// Exchanges the off-diagonal squares of `kSide` columns in two rows.
template <int kSide, typename V>
void ExchangeSquares(V* a, V* b) {
  static_assert(kFftLines == 8);
#define STRIDE_FROM_A(k) ((k)&kSide ? 8 + (k)-kSide : (k))
#define STRIDE_FROM_B(k) ((k)&kSide ? 8 + (k) : (k) + kSide)
#define STRIDE_EIGHT(F) F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7)
  const V first = __builtin_shufflevector(*a, *b, STRIDE_EIGHT(STRIDE_FROM_A));
  *b = __builtin_shufflevector(*a, *b, STRIDE_EIGHT(STRIDE_FROM_B));
  *a = first;
#undef STRIDE_FROM_A
#undef STRIDE_FROM_B
#undef STRIDE_EIGHT
}
template <typename V>
void Transpose(V (&rows)[kFftLines]) {
  for (int i : {0, 1, 2, 3}) ExchangeSquares<4>(&rows[i], &rows[i + 4]);
  for (int i : {0, 1, 4, 5}) ExchangeSquares<2>(&rows[i], &rows[i + 2]);
  for (int i : {0, 2, 4, 6}) ExchangeSquares<1>(&rows[i], &rows[i + 1]);
}

// Converts each line's numbers, two per element, to one vector per number of all lines; and back.
template <typename T>
void GatherLines(Complex<T>* const* lines, int64_t length, FftLanes<T>* to) {
  typedef FftLanes<T> V;
  int64_t j = 0;
  for (; 2 * length - j >= kFftLines; j += kFftLines) {
    V rows[kFftLines];
    for (int i = 0; i < kFftLines; ++i) __builtin_memcpy(&rows[i], &lines[i][j / 2], sizeof(V));
    Transpose(rows);
    for (int i = 0; i < kFftLines; ++i) to[j + i] = rows[i];
  }
  for (; j < 2 * length; j += 2) {
    for (int i = 0; i < kFftLines; ++i) {
      to[j][i] = lines[i][j / 2].re;
      to[j + 1][i] = lines[i][j / 2].im;
    }
  }
}
template <typename T>
void ScatterLines(const FftLanes<T>* from, int64_t length, Complex<T>* const* lines) {
  typedef FftLanes<T> V;
  int64_t j = 0;
  for (; 2 * length - j >= kFftLines; j += kFftLines) {
    V rows[kFftLines];
    for (int i = 0; i < kFftLines; ++i) rows[i] = from[j + i];
    Transpose(rows);
    for (int i = 0; i < kFftLines; ++i)
      __builtin_memcpy(static_cast<void*>(&lines[i][j / 2]), &rows[i], sizeof(V));
  }
  for (; j < 2 * length; j += 2) {
    for (int i = 0; i < kFftLines; ++i) lines[i][j / 2] = {from[j][i], from[j + 1][i]};
  }
}

template <typename T>
void RunLines(FftPasses<T> passes, int64_t length, Complex<T>* const* lines, FftLanes<T>* work) {
  typedef Complex<FftLanes<T>> Element;
  GatherLines<T>(lines, length, work);
  Element* const data = reinterpret_cast<Element*>(work);
  const Element* const result = RunPasses(passes, data, data + length);
  ScatterLines<T>(reinterpret_cast<const FftLanes<T>*>(result), length, lines);
}

template <typename V>
Complex<V> Conjugate(Complex<V> a) {
  return {a.re, -a.im};
}
// Convert lines to vectors of doubles, and back; `room` is as long as `to` or `from`.
inline void GatherDoubles(Complex<double>* const* lines, int64_t length, FftLanes<double>* to,
                          FftLanes<double>*) {
  GatherLines<double>(lines, length, to);
}
inline void GatherDoubles(Complex<float>* const* lines, int64_t length, FftLanes<double>* to,
                          FftLanes<double>* room) {
  auto* const given = reinterpret_cast<FftLanes<float>*>(room);
  GatherLines<float>(lines, length, given);
  for (int64_t j = 0; j < 2 * length; ++j)
    to[j] = __builtin_convertvector(given[j], FftLanes<double>);
}
inline void ScatterDoubles(const FftLanes<double>* from, int64_t length,
                           Complex<double>* const* lines, FftLanes<double>*) {
  ScatterLines<double>(from, length, lines);
}
inline void ScatterDoubles(const FftLanes<double>* from, int64_t length,
                           Complex<float>* const* lines, FftLanes<double>* room) {
  auto* const rounded = reinterpret_cast<FftLanes<float>*>(room);
  for (int64_t j = 0; j < 2 * length; ++j)
    rounded[j] = __builtin_convertvector(from[j], FftLanes<float>);
  ScatterLines<float>(rounded, length, lines);
}

template <typename T>
void ConvolveLines(const FftConvolution& c, Complex<T>* const* lines, FftLanes<double>* work) {
  typedef Complex<FftLanes<double>> Element;
  FftLanes<double>* const second = work + 2 * c.padded;
  GatherDoubles(lines, c.length, work, second);
  Element* const data = reinterpret_cast<Element*>(work);
  for (int64_t j = 0; j < c.length; ++j) data[j] = c.chirp[j] * data[j];
  for (int64_t j = c.length; j < c.padded; ++j) data[j] = Element{};
  Element* const line = RunPasses(c.passes, data, data + c.padded);
  // The inverse transform is the forward one of conjugates, conjugated.
  for (int64_t j = 0; j < c.padded; ++j) line[j] = Conjugate(c.kernel[j] * line[j]);
  Element* const result = RunPasses(c.passes, line, line == data ? data + c.padded : data);
  for (int64_t j = 0; j < c.length; ++j) result[j] = c.chirp[j] * Conjugate(result[j]);
  ScatterDoubles(reinterpret_cast<const FftLanes<double>*>(result), c.length, lines,
                 result == data ? second : work);
}

}  // namespace
}  // namespace stride::cpu
