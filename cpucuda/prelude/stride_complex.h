// std::complex and cuda::std::complex of float and double.
#pragma once

#include "stride_std.h"

namespace std {

template <class T>
struct complex {
  typedef T value_type;
  T re, im;
  STRIDE_EITHER constexpr complex(T re = 0, T im = 0) : re(re), im(im) {}
  template <class U>
  STRIDE_EITHER constexpr complex(const complex<U>& other) : re((T)other.re), im((T)other.im) {}
  STRIDE_EITHER constexpr T real() const { return re; }
  STRIDE_EITHER constexpr T imag() const { return im; }
  STRIDE_EITHER void real(T value) { re = value; }
  STRIDE_EITHER void imag(T value) { im = value; }
  STRIDE_EITHER complex& operator+=(const complex& b) { return *this = *this + b; }
  STRIDE_EITHER complex& operator-=(const complex& b) { return *this = *this - b; }
  STRIDE_EITHER complex& operator*=(const complex& b) { return *this = *this * b; }
  STRIDE_EITHER complex& operator/=(const complex& b) { return *this = *this / b; }

  friend STRIDE_EITHER constexpr complex operator+(const complex& a, const complex& b) {
    return complex(a.re + b.re, a.im + b.im);
  }
  friend STRIDE_EITHER constexpr complex operator-(const complex& a, const complex& b) {
    return complex(a.re - b.re, a.im - b.im);
  }
  friend STRIDE_EITHER constexpr complex operator*(const complex& a, const complex& b) {
    return complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
  }
  // By the larger part of the divisor (Smith), so that no square overflows.
  friend STRIDE_EITHER constexpr complex operator/(const complex& a, const complex& b) {
    if ((b.re < 0 ? -b.re : b.re) >= (b.im < 0 ? -b.im : b.im)) {
      T ratio = b.im / b.re, divisor = b.re + b.im * ratio;
      return complex((a.re + a.im * ratio) / divisor, (a.im - a.re * ratio) / divisor);
    }
    T ratio = b.re / b.im, divisor = b.re * ratio + b.im;
    return complex((a.re * ratio + a.im) / divisor, (a.im * ratio - a.re) / divisor);
  }
  friend STRIDE_EITHER constexpr complex operator-(const complex& a) {
    return complex(-a.re, -a.im);
  }
  friend STRIDE_EITHER constexpr complex operator+(const complex& a) { return a; }
  friend STRIDE_EITHER constexpr bool operator==(const complex& a, const complex& b) {
    return a.re == b.re && a.im == b.im;
  }
  friend STRIDE_EITHER constexpr bool operator!=(const complex& a, const complex& b) {
    return !(a == b);
  }
};

template <class T>
STRIDE_DEVICE T real(const complex<T>& z) {
  return z.re;
}
template <class T>
STRIDE_DEVICE T imag(const complex<T>& z) {
  return z.im;
}
template <class T>
STRIDE_DEVICE T norm(const complex<T>& z) {
  return z.re * z.re + z.im * z.im;
}
template <class T>
STRIDE_DEVICE T abs(const complex<T>& z) {
  return ::hypot(z.re, z.im);
}
template <class T>
STRIDE_DEVICE T arg(const complex<T>& z) {
  return ::atan2(z.im, z.re);
}
template <class T>
STRIDE_DEVICE complex<T> conj(const complex<T>& z) {
  return complex<T>(z.re, -z.im);
}
template <class T>
STRIDE_DEVICE complex<T> polar(T radius, T angle = 0) {
  return complex<T>(radius * ::cos(angle), radius * ::sin(angle));
}
template <class T>
STRIDE_DEVICE complex<T> exp(const complex<T>& z) {
  return polar(::exp(z.re), z.im);
}
template <class T>
STRIDE_DEVICE complex<T> log(const complex<T>& z) {
  return complex<T>(::log(abs(z)), arg(z));
}
template <class T>
STRIDE_DEVICE complex<T> sqrt(const complex<T>& z) {
  if (z.re == 0 && z.im == 0) return complex<T>(0, z.im);
  T t = ::sqrt((::fabs(z.re) + abs(z)) / 2);
  if (z.re >= 0) return complex<T>(t, z.im / (2 * t));
  return complex<T>(::fabs(z.im) / (2 * t), ::copysign(t, z.im));
}
template <class T>
STRIDE_DEVICE complex<T> pow(const complex<T>& z, const complex<T>& w) {
  if (z.re == 0 && z.im == 0) return complex<T>(w.re == 0 && w.im == 0 ? 1 : 0);
  return exp(w * log(z));
}
template <class T>
STRIDE_DEVICE complex<T> pow(const complex<T>& z, T w) {
  return pow(z, complex<T>(w));
}
template <class T>
STRIDE_DEVICE complex<T> sin(const complex<T>& z) {
  return complex<T>(::sin(z.re) * ::cosh(z.im), ::cos(z.re) * ::sinh(z.im));
}
template <class T>
STRIDE_DEVICE complex<T> cos(const complex<T>& z) {
  return complex<T>(::cos(z.re) * ::cosh(z.im), -::sin(z.re) * ::sinh(z.im));
}

}  // namespace std
