"""CUDA C++ text that translated functions call."""

# In front of every kernel: what Python's operators mean where C++ differs.
PRELUDE = r"""
template <class T> __device__ T st_floor_divide(T a, T b) {
  T q = a / b, r = a - q * b;
  return r != 0 && ((r < 0) != (b < 0)) ? q - 1 : q;
}
template <class T> __device__ T st_modulo(T a, T b) {
  T r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
template <class T> __device__ T st_float_modulo(T a, T b) {
  T r = fmod(a, b);
  if (r == 0) return copysign(r, b);
  return (r < 0) != (b < 0) ? r + b : r;
}
template <class T> __device__ T st_float_floor_divide(T a, T b) {
  if (b == 0) return a / b;
  T quotient = (a - st_float_modulo(a, b)) / b, whole = floor(quotient);
  return quotient - whole > (T)0.5 ? whole + 1 : whole;
}
template <class T> __device__ T st_power(T a, long long n) {
  T result = 1;
  for (bool negative = n < 0; n != 0; n /= 2, a *= a) {
    if (n % 2 != 0) result *= a;
    if (negative && n / 2 == 0) return (T)1 / result;
  }
  return result;
}
template <class T> __device__ T st_min(T a, T b) { return b < a ? b : a; }
template <class T> __device__ T st_max(T a, T b) { return b > a ? b : a; }
__device__ inline double st_round(double x, long long digits) {
  double scale = pow(10.0, (double)(digits < 0 ? -digits : digits));
  double scaled = digits < 0 ? x / scale : x * scale;
  if (!isfinite(scaled)) return x;
  return digits < 0 ? rint(scaled) * scale : rint(scaled) / scale;
}
__device__ inline long long st_wrap(long long i, long long extent) { return i < 0 ? i + extent : i; }
"""

# Slices: begin, end and count as Python has them.
SLICES = r"""
#define ST_NONE (-9223372036854775807LL - 1)
__device__ inline long long st_bound(long long i, long long step, long long n) {
  if (i < 0) i += n;
  return step > 0 ? (i < 0 ? 0 : i > n ? n : i) : (i < -1 ? -1 : i > n - 1 ? n - 1 : i);
}
__device__ inline long long st_begin(long long start, long long step, long long n) {
  return start == ST_NONE ? (step > 0 ? 0 : n - 1) : st_bound(start, step, n);
}
__device__ inline long long st_count(long long start, long long stop, long long step, long long n) {
  long long first = st_begin(start, step, n);
  long long last = stop == ST_NONE ? (step > 0 ? n : -1) : stop < -n && step < 0 ? -1 : st_bound(stop, step, n);
  long long count = step > 0 ? (last - first + step - 1) / step : (first - last - step - 1) / -step;
  return count < 0 ? 0 : count;
}
"""

COMPLEX = r"""
template <class T> struct alignas(2 * sizeof(T)) st_complex {
  T re, im;
  st_complex() = default;
  __device__ st_complex(T real, T imag = 0) : re(real), im(imag) {}
  template <class U> __device__ explicit st_complex(const st_complex<U>& x) : re((T)x.re), im((T)x.im) {}
  __device__ T real() const { return re; }
  __device__ T imag() const { return im; }
  __device__ void real(T x) { re = x; }
  __device__ void imag(T x) { im = x; }
  friend __device__ st_complex operator+(st_complex a, st_complex b) { return st_complex(a.re + b.re, a.im + b.im); }
  friend __device__ st_complex operator-(st_complex a, st_complex b) { return st_complex(a.re - b.re, a.im - b.im); }
  friend __device__ st_complex operator-(st_complex a) { return st_complex(-a.re, -a.im); }
  friend __device__ st_complex operator*(st_complex a, st_complex b) {
    return st_complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
  }
  friend __device__ st_complex operator/(st_complex a, st_complex b) {
    if (fabs(b.re) >= fabs(b.im)) {
      if (b.re == 0 && b.im == 0) return st_complex(a.re / fabs(b.re), a.im / fabs(b.re));
      T ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
      return st_complex((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale);
    }
    T ratio = b.re / b.im, scale = 1 / (b.re * ratio + b.im);
    return st_complex((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale);
  }
  friend __device__ bool operator==(st_complex a, st_complex b) { return a.re == b.re && a.im == b.im; }
  friend __device__ bool operator!=(st_complex a, st_complex b) { return !(a == b); }
  friend __device__ st_complex& operator+=(st_complex& a, st_complex b) { return a = a + b; }
  friend __device__ st_complex& operator-=(st_complex& a, st_complex b) { return a = a - b; }
  friend __device__ st_complex& operator*=(st_complex& a, st_complex b) { return a = a * b; }
  friend __device__ st_complex& operator/=(st_complex& a, st_complex b) { return a = a / b; }
};
template <class T> __device__ T real(const st_complex<T>& x) { return x.re; }
template <class T> __device__ T imag(const st_complex<T>& x) { return x.im; }
template <class T> __device__ T abs(const st_complex<T>& x) { return hypot(x.re, x.im); }
template <class T> __device__ T arg(const st_complex<T>& x) { return atan2(x.im, x.re); }
template <class T> __device__ T norm(const st_complex<T>& x) { return x.re * x.re + x.im * x.im; }
template <class T> __device__ st_complex<T> conj(const st_complex<T>& x) { return st_complex<T>(x.re, -x.im); }
template <class T> __device__ st_complex<T> polar(T r, T phi) { return st_complex<T>(r * cos(phi), r * sin(phi)); }
template <class T> __device__ st_complex<T> exp(const st_complex<T>& x) {
  T scale = exp(x.re);
  return x.im == 0 ? st_complex<T>(scale, x.im) : st_complex<T>(scale * cos(x.im), scale * sin(x.im));
}
template <class T> __device__ st_complex<T> log(const st_complex<T>& x) { return st_complex<T>(log(abs(x)), arg(x)); }
template <class T> __device__ st_complex<T> log10(const st_complex<T>& x) {
  return log(x) * st_complex<T>((T)0.43429448190325182765);
}
template <class T> __device__ st_complex<T> sqrt(const st_complex<T>& x) {
  if (x.re == 0 && x.im == 0) return st_complex<T>(0, x.im);
  T root = sqrt((fabs(x.re) + abs(x)) / 2);
  T other = x.im / (2 * root);
  return x.re >= 0 ? st_complex<T>(root, other) : st_complex<T>(fabs(other), copysign(root, x.im));
}
template <class T> __device__ st_complex<T> sin(const st_complex<T>& x) {
  return st_complex<T>(sin(x.re) * cosh(x.im), cos(x.re) * sinh(x.im));
}
template <class T> __device__ st_complex<T> cos(const st_complex<T>& x) {
  return st_complex<T>(cos(x.re) * cosh(x.im), -sin(x.re) * sinh(x.im));
}
template <class T> __device__ st_complex<T> sinh(const st_complex<T>& x) {
  return st_complex<T>(sinh(x.re) * cos(x.im), cosh(x.re) * sin(x.im));
}
template <class T> __device__ st_complex<T> cosh(const st_complex<T>& x) {
  return st_complex<T>(cosh(x.re) * cos(x.im), sinh(x.re) * sin(x.im));
}
template <class T> __device__ st_complex<T> tan(const st_complex<T>& x) { return sin(x) / cos(x); }
template <class T> __device__ st_complex<T> tanh(const st_complex<T>& x) { return sinh(x) / cosh(x); }
template <class T> __device__ st_complex<T> pow(const st_complex<T>& x, const st_complex<T>& y) {
  if (y.re == 0 && y.im == 0) return st_complex<T>(1);
  if (x.re == 0 && x.im == 0) return st_complex<T>(0);
  return exp(y * log(x));
}
"""

ATOMICS = r"""
template <class T, class Bits, class Combine> __device__ T st_atomic_loop(T* p, Combine combine) {
  Bits old = *(volatile Bits*)p, seen;
  for (;;) {
    seen = old;
    T before;
    memcpy(&before, &seen, sizeof before);
    T after = combine(before);
    Bits next;
    memcpy(&next, &after, sizeof next);
    old = atomicCAS((Bits*)p, seen, next);
    if (old == seen) return before;
  }
}
template <class T> __device__ T st_atomic_add(T* p, T v) { return atomicAdd(p, v); }
template <> __device__ inline long long st_atomic_add(long long* p, long long v) {
  return (long long)atomicAdd((unsigned long long*)p, (unsigned long long)v);
}
template <class T> __device__ T st_atomic_sub(T* p, T v) { return st_atomic_add(p, (T)-v); }
template <class T> __device__ T st_atomic_min(T* p, T v) { return atomicMin(p, v); }
template <class T> __device__ T st_atomic_max(T* p, T v) { return atomicMax(p, v); }
template <> __device__ inline float st_atomic_min(float* p, float v) {
  return st_atomic_loop<float, unsigned>(p, [v](float a) { return v < a || a != a ? v : a; });
}
template <> __device__ inline float st_atomic_max(float* p, float v) {
  return st_atomic_loop<float, unsigned>(p, [v](float a) { return v > a || a != a ? v : a; });
}
template <> __device__ inline double st_atomic_min(double* p, double v) {
  return st_atomic_loop<double, unsigned long long>(p, [v](double a) { return v < a || a != a ? v : a; });
}
template <> __device__ inline double st_atomic_max(double* p, double v) {
  return st_atomic_loop<double, unsigned long long>(p, [v](double a) { return v > a || a != a ? v : a; });
}
#define ST_ATOMIC_BITS(name, function)                                                         \
  template <class T> __device__ T name(T* p, T v) { return function(p, v); }                   \
  template <> __device__ inline long long name(long long* p, long long v) {                    \
    return (long long)function((unsigned long long*)p, (unsigned long long)v);                 \
  }
ST_ATOMIC_BITS(st_atomic_and_, atomicAnd)
ST_ATOMIC_BITS(st_atomic_or_, atomicOr)
ST_ATOMIC_BITS(st_atomic_xor, atomicXor)
__device__ inline unsigned st_atomic_inc(unsigned* p, unsigned v) { return atomicInc(p, v); }
__device__ inline unsigned st_atomic_dec(unsigned* p, unsigned v) { return atomicDec(p, v); }
__device__ inline unsigned long long st_atomic_inc(unsigned long long* p, unsigned long long v) {
  return st_atomic_loop<unsigned long long, unsigned long long>(p,
      [v](unsigned long long a) { return a >= v ? 0 : a + 1; });
}
__device__ inline unsigned long long st_atomic_dec(unsigned long long* p, unsigned long long v) {
  return st_atomic_loop<unsigned long long, unsigned long long>(
      p, [v](unsigned long long a) { return a == 0 || a > v ? v : a - 1; });
}
template <class T> __device__ T st_atomic_exch(T* p, T v) { return atomicExch(p, v); }
template <> __device__ inline long long st_atomic_exch(long long* p, long long v) {
  return (long long)atomicExch((unsigned long long*)p, (unsigned long long)v);
}
template <> __device__ inline double st_atomic_exch(double* p, double v) {
  return st_atomic_loop<double, unsigned long long>(p, [v](double) { return v; });
}
template <class T> __device__ T st_atomic_cas(T* p, T expected, T v) { return atomicCAS(p, expected, v); }
template <> __device__ inline long long st_atomic_cas(long long* p, long long expected, long long v) {
  return (long long)atomicCAS((unsigned long long*)p, (unsigned long long)expected, (unsigned long long)v);
}
"""
