"""Distributions that are sampled by rejection, each element from a stream of its own: one kernel for all of them."""

import math

import numpy as np

from stride import _dtypes, _manipulation, _python_kernel, _ufunc
from stride._array import Array, node_of, wrap
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
  __device__ double normal() {  // Box and Muller
    double r = sqrt(-2 * log(uniform()));
    return r * cos(6.283185307179586476925 * uniform());
  }
};

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
__device__ double gamma(Stream& s, double shape, double) {
  if (!(shape >= 0)) return shape - shape + (0.0 / (shape - shape));
  if (shape == 0) return 0;
  double boost = 1;
  if (shape < 1) {
    boost = pow(s.uniform(), 1 / shape);
    shape += 1;
  }
  double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (;;) {
    double x = s.normal(), v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    if (log(s.uniform()) < 0.5 * x * x + d - d * v + d * log(v)) return boost * d * v;
  }
}

// Hormann, "The transformed rejection method for generating Poisson random variables" (1993): PTRS.
__device__ double poisson(Stream& s, double mean, double) {
  if (mean < 10) {
    double limit = exp(-mean), product = s.uniform();
    long long k = 0;
    for (; product > limit; ++k) product *= s.uniform();
    return (double)k;
  }
  double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b, inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), bound = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = s.uniform() - 0.5, v = s.uniform(), us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= bound) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <= k * log(mean) - mean - lgamma(k + 1)) return k;
  }
}

// Inversion for small means; else Hormann's BTRS, "The generation of binomial random variates" (1993).
__device__ double binomial_of_less(Stream& s, double n, double p) {
  double q = 1 - p;
  if (n * p < 10) {
    double ratio = p / q, density = pow(q, n), u = s.uniform();
    double k = 0;
    while (u > density && k < n) {
      u -= density;
      k += 1;
      density *= ratio * (n - k + 1) / k;
    }
    return k;
  }
  double spread = sqrt(n * p * q), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, bound = 0.92 - 4.2 / b;
  double alpha = (2.83 + 5.1 / b) * spread, odds = log(p / q), m = floor((n + 1) * p), h = lgamma(m + 1) + lgamma(n - m + 1);
  for (;;) {
    double u = s.uniform() - 0.5, v = s.uniform(), us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= bound) return k;
    if (k < 0 || k > n) continue;
    if (log(v * alpha / (a / (us * us) + b)) <= h - lgamma(k + 1) - lgamma(n - k + 1) + (k - m) * odds) return k;
  }
}
__device__ double binomial(Stream& s, double n, double p) { return p > 0.5 ? n - binomial_of_less(s, n, 1 - p) : binomial_of_less(s, n, p); }

#define SAMPLER(name, T)                                                                                                                     \
  extern "C" __global__ void sample_##name(const double* first, const double* second, u64 key, u64 counter, u64 stream, T* out,             \
                                           long long first_step, long long second_step, long long count) {                                  \
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x) {               \
      Stream s = {key, counter + i, stream ^ 0x8000000000000000ull, 0, false};                                                              \
      out[i] = (T)name(s, first[i * first_step], second[i * second_step]);                                                                  \
    }                                                                                                                                       \
  }
"""


def sample(name: str, shape: tuple, dtype: np.dtype, key: int, counter: int, stream: int, first, second=0.0) -> Array:
    """`dtype` is float64 for gamma, int64 for the others."""
    text = TEXT + f"SAMPLER({name}, {_ufunc.c_type(dtype)})\n"
    session = next((one.session for one in (first, second) if isinstance(one, Array)), None) or current_session()
    nodes, steps = [], []
    for one in (first, second):
        array = (one if isinstance(one, Array) else wrap(node_of(np.asarray(one, float), session))).astype(_dtypes.float64, copy=False)
        single = array.size == 1
        nodes.append(_python_kernel._plain(_manipulation.reshape(array, (1,))._node if single else array._node, (1,) if single else shape))
        steps.append(0 if single else 1)
    count = math.prod(shape)
    numbers = tuple(Number(np.uint64(one)) for one in (key, counter, stream))
    return _python_kernel._run(text, f"sample_{name}", session, (*nodes, *numbers), [(shape, dtype)], [*steps, count], count)[0]
