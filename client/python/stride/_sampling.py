"""Distributions beyond scaled uniform and normal numbers, each element from a stream of its own. The kernels compute in integers and IEEE's basic operations
alone, with functions of their own for logarithms and the like and no fused multiply-add, so that every device gives the same bits."""

import math

import numpy as np

from stride import _dtypes, _manipulation, _python_kernel, _ufunc
from stride._array import Array, host_array, node_of, wrap
from stride._graph import Number
from stride._session import current_session

# Element i reads Philox blocks with the counter's lower half `counter` + i and its upper half `stream` + 2^63 + the block's number, where no other
# function of a generator reads.
TEXT = r"""
typedef unsigned int u32;
typedef unsigned long long u64;

struct Stream {
  u64 key, low, high;
  double second;
  bool has_second;
  __device__ double uniform() {  // (0, 1)
    if (has_second) {
      has_second = false;
      return second;
    }
    u32 k0 = (u32)key, k1 = (u32)(key >> 32), c0 = (u32)low, c1 = (u32)(low >> 32), c2 = (u32)high, c3 = (u32)(high >> 32);
    for (int round = 0; round < 10; ++round) {
      u64 a = (u64)0xD2511F53u * c0, b = (u64)0xCD9E8D57u * c2;
      c0 = (u32)(b >> 32) ^ c1 ^ k0;
      c1 = (u32)b;
      c2 = (u32)(a >> 32) ^ c3 ^ k1;
      c3 = (u32)a;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    ++high;
    has_second = true;
    second = (double)((((u64)c3 << 32 | c2) >> 12) + 0.5) * (1.0 / 4503599627370496.0);
    return (double)((((u64)c1 << 32 | c0) >> 12) + 0.5) * (1.0 / 4503599627370496.0);
  }
  __device__ double normal();
};

// 2^n times x; n within the exponents of normal numbers.
__device__ double scaled(double x, int n) { return x * __longlong_as_double((long long)(n + 1023) << 52); }

// From the series of 2 artanh((m - 1) / (m + 1)), m from sqrt(1/2) to sqrt(2).
__device__ double natural_log(double x) {
  if (!(x > 0)) return x == 0 ? -1 / x : (x - x) / (x - x);
  if (x > 1.7976931348623157e308) return x;
  int exponent = 0;
  if (x < 2.2250738585072014e-308) {
    x *= 18014398509481984.0;
    exponent = -54;
  }
  long long bits = __double_as_longlong(x);
  exponent += (int)(bits >> 52) - 1022;
  double m = __longlong_as_double((bits & 0x000FFFFFFFFFFFFFll) | 0x3FE0000000000000ll);
  if (m < 0.70710678118654752440) {
    m *= 2;
    exponent -= 1;
  }
  double f = (m - 1) / (m + 1), s = f * f, sum = 1.0 / 23;
  for (int k = 21; k > 0; k -= 2) sum = sum * s + 1.0 / k;
  return exponent * 0.69314718055994530942 + 2 * f * sum;
}

// log(1 + x), by Kahan's correction of what 1 + x has lost.
__device__ double natural_log1p(double x) {
  double y = 1 + x;
  return y == 1 ? x : natural_log(y) * (x / (y - 1));
}

// The series of exp(r) - 1.
__device__ double exponential_series(double r) {
  double sum = 1;
  for (int k = 17; k > 1; --k) sum = sum * r / k + 1;
  return r * sum;
}

// exp(x) = 2^n exp(r), |r| <= log(2) / 2; log(2) in two parts, n times the first of which is exact.
__device__ double natural_exp(double x) {
  if (x != x) return x;
  if (x > 709.78271289338397) return 1.7976931348623157e308 * 2;
  if (x < -745.13321910194122) return 0;
  double n = floor(x * 1.4426950408889634074 + 0.5);
  double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  int half = (int)n / 2;
  return scaled(scaled(1 + exponential_series(r), half), (int)n - half);
}
__device__ double natural_expm1(double x) { return fabs(x) < 0.35 ? exponential_series(x) : natural_exp(x) - 1; }

// Of x > 0 to the power y.
__device__ double power_of(double x, double y) { return natural_exp(y * natural_log(x)); }

// The logarithm of the gamma function at x > 0: Stirling's series at 10 or more, carried down by its recurrence.
__device__ double log_gamma(double x) {
  double product = 1;
  for (; x < 10; x += 1) product *= x;
  double s = 1 / (x * x);
  double series = (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188))))) / x;
  return (x - 0.5) * natural_log(x) - x + 0.91893853320467274178 + series - natural_log(product);
}

__device__ double Stream::normal() {  // Marsaglia's polar method
  for (;;) {
    double x = 2 * uniform() - 1, y = 2 * uniform() - 1, square = x * x + y * y;
    if (square < 1) return x * sqrt(-2 * natural_log(square) / square);
  }
}

__device__ double exponential(Stream& s, double, double) { return -natural_log(s.uniform()); }
__device__ double laplace(Stream& s, double, double) {
  double u = s.uniform() - 0.5, magnitude = -natural_log(1 - 2 * fabs(u));
  return u < 0 ? -magnitude : magnitude;
}
__device__ double logistic(Stream& s, double, double) {
  double u = s.uniform();
  return natural_log(u) - natural_log(1 - u);
}
__device__ double gumbel(Stream& s, double, double) { return -natural_log(-natural_log(s.uniform())); }
__device__ double cauchy(Stream& s, double, double) {
  double above = s.normal();
  return above / s.normal();
}
__device__ double lognormal(Stream& s, double mean, double sigma) { return natural_exp(mean + sigma * s.normal()); }
__device__ double weibull(Stream& s, double a, double) { return a == 0 ? 0 : power_of(-natural_log(s.uniform()), 1 / a); }
__device__ double pareto(Stream& s, double a, double) { return natural_expm1(-natural_log(s.uniform()) / a); }
__device__ double power(Stream& s, double a, double) { return power_of(s.uniform(), 1 / a); }
__device__ double geometric(Stream& s, double p, double) {
  if (!(p > 0 && p <= 1)) return -1;
  if (p == 1) return 1;
  return fmin(fmax(ceil(natural_log(s.uniform()) / natural_log1p(-p)), 1.0), 9223372036854774784.0);
}

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
__device__ double gamma(Stream& s, double shape, double) {
  if (!(shape >= 0)) return shape - shape + (0.0 / (shape - shape));
  if (shape == 0 || shape > 1e300) return shape;
  double boost = 1;
  if (shape < 1) {
    boost = power_of(s.uniform(), 1 / shape);
    shape += 1;
  }
  double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (;;) {
    double x = s.normal(), v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    if (natural_log(s.uniform()) < 0.5 * x * x + d - d * v + d * natural_log(v)) return boost * d * v;
  }
}

// Hormann, "The transformed rejection method for generating Poisson random variables" (1993): PTRS.
__device__ double poisson(Stream& s, double mean, double) {
  if (!(mean >= 0 && mean < 9e18)) return -1;
  if (mean < 10) {
    double limit = natural_exp(-mean), product = s.uniform();
    long long k = 0;
    for (; product > limit; ++k) product *= s.uniform();
    return (double)k;
  }
  double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b, inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), bound = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = s.uniform() - 0.5, v = s.uniform(), us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= bound) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (natural_log(v) + natural_log(inverse_alpha) - natural_log(a / (us * us) + b) <= k * natural_log(mean) - mean - log_gamma(k + 1)) return k;
  }
}

// Inversion for small means; else Hormann's BTRS, "The generation of binomial random variates" (1993).
__device__ double binomial_of_less(Stream& s, double n, double p) {
  double q = 1 - p;
  if (n * p < 10) {
    double ratio = p / q, density = power_of(q, n), u = s.uniform();
    double k = 0;
    while (u > density && k < n) {
      u -= density;
      k += 1;
      density *= ratio * (n - k + 1) / k;
    }
    return k;
  }
  double spread = sqrt(n * p * q), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, bound = 0.92 - 4.2 / b;
  double alpha = (2.83 + 5.1 / b) * spread, odds = natural_log(p / q), m = floor((n + 1) * p), h = log_gamma(m + 1) + log_gamma(n - m + 1);
  for (;;) {
    double u = s.uniform() - 0.5, v = s.uniform(), us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= bound) return k;
    if (k < 0 || k > n) continue;
    if (natural_log(v * alpha / (a / (us * us) + b)) <= h - log_gamma(k + 1) - log_gamma(n - k + 1) + (k - m) * odds) return k;
  }
}
__device__ double binomial(Stream& s, double n, double p) {
  if (!(n >= 0 && n < 9e15 && p >= 0 && p <= 1)) return -1;
  return p > 0.5 ? n - binomial_of_less(s, n, 1 - p) : binomial_of_less(s, n, p);
}

#define SAMPLER(name, T)                                                                                                                     \
  extern "C" __global__ void sample_##name(const double* first, const double* second, u64 key, u64 counter, u64 stream, T* out,             \
                                           long long first_step, long long second_step, long long count) {                                  \
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x) {               \
      Stream s = {key, counter + i, stream ^ 0x8000000000000000ull, 0, false};                                                              \
      out[i] = (T)name(s, first[i * first_step], second[i * second_step]);                                                                  \
    }                                                                                                                                       \
  }
"""


def sample(name: str, shape: tuple, dtype: np.dtype, key: int, counter: int, stream: int, first=0.0, second=0.0) -> Array:
    """`dtype` is float64, or int64 for counts. A parameter on the device that the distribution does not allow gives NaN, or for counts -1."""
    text = TEXT + f"SAMPLER({name}, {_ufunc.c_type(dtype)})\n"
    session = next((one.session for one in (first, second) if isinstance(one, Array)), None) or current_session()
    nodes, steps = [], []
    for one in (first, second):
        array = (one if isinstance(one, Array) else wrap(node_of(host_array(one).astype(float), session))).astype(
            _dtypes.float64, copy=False
        )
        single = array.size == 1
        nodes.append(_python_kernel._plain(_manipulation.reshape(array, (1,))._node if single else array._node, (1,) if single else shape))
        steps.append(0 if single else 1)
    count = math.prod(shape)
    numbers = tuple(Number(np.uint64(one)) for one in (key, counter, stream))
    return _python_kernel._run(text, f"sample_{name}", session, (*nodes, *numbers), [(shape, dtype)], [*steps, count], count,
                                options=("--fmad=false",))[0]
