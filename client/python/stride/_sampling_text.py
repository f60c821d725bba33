"""The device text of the distributions beyond scaled uniform and normal numbers.

`name(stream, parameters)` gives a number at once. Where numbers may be rejected, `first_name` is one attempt without
loops, and `name` goes on from there until one is accepted. A parameter outside the domain, which only the device knows,
gives NaN, or -1 for counts."""

from typing import Dict

# The blocks of a stream that a first attempt may read: what follows it begins after them.
_AFTER_FIRST = "s.high += 64;\n"

SIMPLE = r"""
__device__ double not_a_number(double x) { return (x - x) / (x - x); }

__device__ double exponential(Stream& s) { return -natural_log(s.uniform()); }
__device__ double laplace(Stream& s) {
  double u = s.uniform() - 0.5, magnitude = -natural_log(1 - 2 * fabs(u));
  return u < 0 ? -magnitude : magnitude;
}
__device__ double logistic(Stream& s) {
  double u = s.uniform();
  return natural_log(u) - natural_log(1 - u);
}
__device__ double gumbel(Stream& s) { return -natural_log(-natural_log(s.uniform())); }
__device__ double cauchy(Stream& s) {
  Pair on = circle(s.uniform());
  return on.b / on.a;
}
__device__ double lognormal(Stream& s, double mean, double sigma) { return natural_exp(mean + sigma * s.normal()); }
__device__ double weibull(Stream& s, double a) {
  double value = power_of(-natural_log(s.uniform()), 1 / a);
  return a == 0 ? 0 : value;
}
__device__ double pareto(Stream& s, double a) { return natural_expm1(-natural_log(s.uniform()) / a); }
__device__ double power(Stream& s, double a) { return power_of(s.uniform(), 1 / a); }
__device__ double geometric(Stream& s, double p) {
  double k = ceil(natural_log(s.uniform()) / natural_log1p(-p));
  k = k < 1 ? 1 : k;
  k = p == 1 ? 1 : k;
  return p > 0 && p <= 1 ? k : -1;
}

// Michael, Schucany and Haas, "Generating random variates using transformations with multiple roots" (1976). The
// smaller root is written without the difference of large numbers.
__device__ double wald(Stream& s, double mean, double scale) {
  double x = normals(s.pair()).a, y = mean * x * x / scale, root = mean * (2 / (2 + y + sqrt(y * (y + 4))));
  double u = s.pair().a, value = u * (mean + root) <= mean ? root : mean * mean / root;
  return mean > 0 && scale > 0 ? value : not_a_number(mean);
}

// Kemp, "Efficient generation of logarithmically distributed pseudo-random variables" (1981).
__device__ double logseries(Stream& s, double p) {
  Pair u = s.pair();
  double q = -natural_expm1(natural_log1p(-p) * u.b), k = floor(1 + natural_log(u.a) / natural_log(q));
  k = k < 1 ? 1 : k > 9223372036854774784.0 ? 9223372036854774784.0 : k;
  k = u.a <= q * q ? k : u.a >= q ? 1 : 2;
  k = u.a >= p ? 1 : k;
  return p >= 0 && p < 1 ? k : -1;
}
"""

GAMMA = r"""
// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). The logarithm, since a small shape
// gives numbers below the range.
__device__ Try first_log_gamma(Stream& s, double shape) {
  double x = normals(s.pair()).a;
  Pair u = s.pair();
  bool is_small = shape < 1;
  double a = is_small ? shape + 1 : shape, d = a - 1.0 / 3, c = 1 / sqrt(9 * d), v = 1 + c * x;
  v = v * v * v;
  double log_v = natural_log(v), boost = natural_log(u.b) / shape;
  bool ok = natural_log(u.a) < 0.5 * x * x + d - d * v + d * log_v;
  double value = natural_log(d) + log_v + (is_small ? boost : 0);
  bool is_special = !(shape > 0 && shape < 1e300);
  return {is_special ? natural_log(shape) : value, ok || is_special};
}
__device__ double log_gamma_variate(Stream& s, double shape) {
  for (;;) {
    Try one = first_log_gamma(s, shape);
    if (one.ok) return one.value;
  }
}

__device__ Try first_gamma(Stream& s, double shape) {
  double x = normals(s.pair()).a;
  Pair u = s.pair();
  bool is_small = shape < 1;
  double a = is_small ? shape + 1 : shape, d = a - 1.0 / 3, c = 1 / sqrt(9 * d), v = 1 + c * x;
  v = v * v * v;
  double boost = power_of(u.b, 1 / shape);
  bool ok = natural_log(u.a) < 0.5 * x * x + d - d * v + d * natural_log(v);
  double value = d * v;
  value = is_small ? value * boost : value;
  value = shape == 0 || shape > 1e300 ? shape : shape > 0 ? value : not_a_number(shape);
  return {value, ok || !(shape > 0 && shape < 1e300)};
}
__device__ double gamma_variate(Stream& s, double shape) {
  for (;;) {
    Try one = first_gamma(s, shape);
    if (one.ok) return one.value;
  }
}
__device__ double gamma(Stream& s, double shape) {
  AFTER_FIRST
  return gamma_variate(s, shape);
}

__device__ double log_gammas(Stream& s, double shape) {
  AFTER_FIRST
  return log_gamma_variate(s, shape);
}
__device__ Try first_log_gammas(Stream& s, double shape) { return first_log_gamma(s, shape); }

// Shapes this small together give what larger ones of the same ratio give, whose logarithms are within the range.
__device__ double into_range(double a, double b) {
  return a < 1e-280 && b < 1e-280 ? 2.037035976334486e90 : 1;
}
__device__ Try first_beta(Stream& s, double a, double b) {
  double by = into_range(a, b);
  a *= by;
  b *= by;
  Try x = first_log_gamma(s, a), y = first_log_gamma(s, b);
  return {1 / (1 + natural_exp(y.value - x.value)), x.ok && y.ok};
}
__device__ double beta(Stream& s, double a, double b) {
  AFTER_FIRST
  double by = into_range(a, b);
  a *= by;
  b *= by;
  double x = log_gamma_variate(s, a);
  return 1 / (1 + natural_exp(log_gamma_variate(s, b) - x));
}

// Neither 0 nor infinite, so that a product with what is one is no NaN.
__device__ double finite_ratio(double a, double b) {
  double ratio = a / b;
  return ratio > 1.7976931348623157e308 ? 1.7976931348623157e308 : ratio == 0 ? 4.9406564584124654e-324 : ratio;
}
__device__ Try first_f(Stream& s, double above, double below) {
  double by = into_range(above, below);
  above *= by;
  below *= by;
  Try x = first_log_gamma(s, above / 2), y = first_log_gamma(s, below / 2);
  return {natural_exp(x.value - y.value) * finite_ratio(below, above), x.ok && y.ok};
}
__device__ double f(Stream& s, double above, double below) {
  AFTER_FIRST
  double by = into_range(above, below);
  above *= by;
  below *= by;
  double x = log_gamma_variate(s, above / 2);
  return natural_exp(x - log_gamma_variate(s, below / 2)) * finite_ratio(below, above);
}

__device__ double t_of(double normal, double gamma, double df) {
  return df > 1e300 ? normal : normal * sqrt(df / 2 / gamma);
}
__device__ Try first_student(Stream& s, double df) {
  double x = normals(s.pair()).a;
  Try y = first_gamma(s, df / 2);
  return {t_of(x, y.value, df), y.ok};
}
__device__ double student(Stream& s, double df) {
  AFTER_FIRST
  double x = normals(s.pair()).a;
  return t_of(x, gamma_variate(s, df / 2), df);
}

// Best and Fisher, "Efficient simulation of the von Mises distribution" (1979). Where the concentration is large the
// distribution is a normal one within what a double holds, where it is small a uniform one.
__device__ double into_turn(double x) {
  const double turn = 6.28318530717958647693;
  return x - turn * ceil(x / turn - 0.5);
}
__device__ Try first_vonmises(Stream& s, double mean, double kappa) {
  Pair u = s.pair(), w = s.pair();
  double flat = 6.28318530717958647693 * u.a - 3.14159265358979323846, narrow = normals(u).a / sqrt(kappa);
  double root = 1 + sqrt(1 + 4 * kappa * kappa), rho = (root - sqrt(2 * root)) / (2 * kappa);
  double r = kappa < 1e-5 ? 1 / kappa + kappa : (1 + rho * rho) / (2 * rho);
  double z = circle(u.a * 0.5).a, f = (1 + r * z) / (r + z), c = kappa * (r - f);
  f = f > 1 ? 1 : f < -1 ? -1 : f;
  bool ok = c * (2 - c) > u.b || natural_log(c / u.b) + 1 >= c;
  double angle = arc_cosine(f);
  angle = w.a < 0.5 ? -angle : angle;
  angle = kappa < 1e-8 ? flat : kappa > 1e6 ? narrow : angle;
  return {kappa >= 0 ? into_turn(mean + angle) : not_a_number(kappa), ok || !(kappa >= 1e-8 && kappa <= 1e6)};
}
__device__ double vonmises(Stream& s, double mean, double kappa) {
  AFTER_FIRST
  for (;;) {
    Try one = first_vonmises(s, mean, kappa);
    if (one.ok) return one.value;
  }
}
"""

COUNTS = r"""
// Where a second attempt on all elements costs less than to go on, one by one, with those that the first rejected.
__device__ Try either(Try first, Try second) { return {first.ok ? first.value : second.value, first.ok || second.ok}; }

// Inversion, for means below 10. Beyond the rounds of a first attempt the same number is searched on.
__device__ Try first_poisson_small(Stream& s, double mean) {
  double u = s.pair().a, density = natural_exp(-mean), sum = density, k = u > sum ? 1 : 0;
#pragma unroll
  for (int j = 1; j < 24; ++j) {
    density *= mean * (1.0 / j);
    sum += density;
    k += u > sum ? 1 : 0;
  }
  return {mean >= 0 ? k : -1, !(u > sum)};
}
__device__ double poisson_small(Stream& s, double mean) {
  double u = s.pair().a, density = natural_exp(-mean), sum = density;
  double k = 0;
  // The sum ends below 1 by its rounding: what is left is one further number.
  while (u > sum && k < 200) {
    k += 1;
    density *= mean * (1.0 / k);
    sum += density;
  }
  return mean >= 0 ? k : -1;
}

// Hormann, "The transformed rejection method for generating Poisson random variables" (1993): PTRS.
__device__ Try first_poisson_large(Stream& s, double mean) {
  Pair two = s.pair();
  double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b, inverse_alpha = 1.1239 + 1.1328 / (b - 3.4),
         bound = 0.9277 - 3.6224 / (b - 2);
  double u = two.a - 0.5, v = two.b, us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + mean + 0.43);
  double positive = k < 0 ? 0 : k;
  bool is_below = natural_log(v * inverse_alpha / (a / (us * us) + b)) <=
                  positive * natural_log(mean) - mean - log_gamma(positive + 1);
  bool ok = (us >= 0.07 && v <= bound) || (k >= 0 && !(us < 0.013 && v > us) && is_below);
  bool is_within = mean >= 0 && mean < 9e18;
  return {is_within ? k : -1, ok || !is_within};
}
__device__ double poisson_large(Stream& s, double mean) {
  AFTER_FIRST
  for (;;) {
    Try one = first_poisson_large(s, mean);
    if (one.ok) return one.value;
  }
}
__device__ Try first_poisson(Stream& s, double mean) {
  Stream other = s;
  Try small = first_poisson_small(other, mean < 10 ? mean : 1), large = first_poisson_large(s, mean < 10 ? 10 : mean);
  bool is_small = mean < 10;
  return {is_small ? mean >= 0 ? small.value : -1 : large.value, is_small ? small.ok : large.ok};
}
__device__ double poisson(Stream& s, double mean) {
  return mean < 10 ? poisson_small(s, mean) : poisson_large(s, mean);
}

// For p up to 1/2. Inversion for means below 10; else Hormann's BTRS, "The generation of binomial random variates"
// (1993).
__device__ Try first_binomial_less_small(Stream& s, double n, double p) {
  double ratio = p / (1 - p), density = natural_exp(n * natural_log1p(-p)), u = s.pair().a, sum = density,
         k = u > sum ? 1 : 0;
#pragma unroll
  for (int j = 1; j < 24; ++j) {
    density *= ratio * (n - (j - 1)) * (1.0 / j);
    density = density > 0 ? density : 0;
    sum += density;
    k += u > sum ? 1 : 0;
  }
  return {k < n ? k : n, !(u > sum) || k >= n};
}
__device__ double binomial_less_small(Stream& s, double n, double p) {
  double ratio = p / (1 - p), density = natural_exp(n * natural_log1p(-p)), u = s.pair().a, sum = density;
  double k = 0;
  while (u > sum && k < n && k < 200) {
    k += 1;
    density *= ratio * (n - (k - 1)) * (1.0 / k);
    sum += density;
  }
  return k;
}
__device__ Try first_binomial_less_large(Stream& s, double n, double p) {
  Pair two = s.pair();
  double q = 1 - p, spread = sqrt(n * p * q), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p,
         c = n * p + 0.5, bound = 0.92 - 4.2 / b;
  double alpha = (2.83 + 5.1 / b) * spread, odds = natural_log(p / q), m = floor((n + 1) * p),
         h = log_gamma(m + 1) + log_gamma(n - m + 1);
  double u = two.a - 0.5, v = two.b, us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + c);
  bool is_within = k >= 0 && k <= n;
  double inner = is_within ? k : m;
  bool is_below = natural_log(v * alpha / (a / (us * us) + b)) <=
                  h - log_gamma(inner + 1) - log_gamma(n - inner + 1) + (inner - m) * odds;
  return {k, (us >= 0.07 && v <= bound) || (is_within && is_below)};
}
__device__ double binomial_less(Stream& s, double n, double p) {
  if (n * p < 10) return binomial_less_small(s, n, p);
  AFTER_FIRST
  for (;;) {
    Try one = first_binomial_less_large(s, n, p);
    if (one.ok) return one.value;
  }
}
__device__ bool is_binomial(double n, double p) { return n >= 0 && n < 9e15 && p >= 0 && p <= 1; }
__device__ Try first_binomial_small(Stream& s, double n, double p) {
  bool is_more = p > 0.5, is_one = is_binomial(n, p);
  Try one = first_binomial_less_small(s, n, is_more ? 1 - p : p);
  return {is_one ? is_more ? n - one.value : one.value : -1, one.ok || !is_one};
}
__device__ Try first_binomial_large(Stream& s, double n, double p) {
  bool is_more = p > 0.5, is_one = is_binomial(n, p);
  double less = is_more ? 1 - p : p;
  Try first = first_binomial_less_large(s, n, less), second = first_binomial_less_large(s, n, less),
      one = either(first, second);
  return {is_one ? is_more ? n - one.value : one.value : -1, one.ok || !is_one};
}
__device__ Try first_binomial(Stream& s, double n, double p) {
  bool is_small = n * (p > 0.5 ? 1 - p : p) < 10;
  Stream other = s;
  Try small = first_binomial_small(other, is_small ? n : 1, is_small ? p : 0.25),
      large = first_binomial_large(s, is_small ? 100 : n, is_small ? 0.5 : p);
  return {is_small ? small.value : large.value, is_small ? small.ok : large.ok};
}
__device__ double binomial(Stream& s, double n, double p) {
  if (!is_binomial(n, p)) return -1;
  return p > 0.5 ? n - binomial_less(s, n, 1 - p) : binomial_less(s, n, p);
}
__device__ double binomial_small(Stream& s, double n, double p) { return binomial(s, n, p); }
__device__ double binomial_large(Stream& s, double n, double p) { return binomial(s, n, p); }

// Devroye, "Non-Uniform Random Variate Generation" (1986), chapter X.6.
__device__ Try first_zipf(Stream& s, double a) {
  Pair u = s.pair();
  double less = a - 1, b = power_of(2, less), least = power_of(9223372036854774784.0, -less),
         w = u.a * least + (1 - u.a);
  double x = floor(power_of(w, -1 / less)), t = power_of(1 + 1 / x, less);
  bool ok = x >= 1 && x < 9223372036854774784.0 && u.b * x * (t - 1) / (b - 1) <= t / b;
  x = a >= 1025 ? 1 : x;
  return {a > 1 ? x : -1, ok || !(a > 1 && a < 1025)};
}
__device__ double zipf(Stream& s, double a) {
  AFTER_FIRST
  for (;;) {
    Try one = first_zipf(s, a);
    if (one.ok) return one.value;
  }
}

// Up to 10 are drawn one by one; else Stadlober, "The ratio of uniforms approach for generating discrete random
// variates" (1990): HRUA.
__device__ bool is_hypergeometric(double good, double bad, double draws) {
  return good >= 0 && bad >= 0 && draws >= 0 && draws <= good + bad;
}
__device__ Try first_hypergeometric_small(Stream& s, double good, double bad, double draws) {
  double left = good, total = good + bad, taken = 0;
  for (int j = 0; j < 10; j += 2) {
    Pair u = s.pair();
    bool first = j < draws && u.a * total < left;
    taken += first ? 1 : 0;
    left -= first ? 1 : 0;
    total -= 1;
    bool second = j + 1 < draws && u.b * total < left;
    taken += second ? 1 : 0;
    left -= second ? 1 : 0;
    total -= 1;
  }
  return {is_hypergeometric(good, bad, draws) ? taken : -1, true};
}
__device__ Try first_hypergeometric_large(Stream& s, double good, double bad, double draws) {
  Pair u = s.pair();
  double total = good + bad, less = good < bad ? good : bad, more = good < bad ? bad : good,
         m = draws < total - draws ? draws : total - draws;
  double p = less / total, center = m * p + 0.5, spread = sqrt(m * (total - m) * p * (1 - p) / (total - 1) + 0.5);
  double height = 1.7155277699214135 * spread + 0.8989161620588988, mode = floor((m + 1) * (less + 1) / (total + 2));
  double g =
      log_gamma(mode + 1) + log_gamma(less - mode + 1) + log_gamma(m - mode + 1) + log_gamma(more - m + mode + 1);
  double most = floor(center + 16 * spread), end = (m < less ? m : less) + 1;
  end = end < most ? end : most;
  double w = center + height * (u.b - 0.5) / u.a;
  bool is_within = w >= 0 && w < end;
  double k = floor(w), inner = is_within ? k : mode;
  double t = g - log_gamma(inner + 1) - log_gamma(less - inner + 1) - log_gamma(m - inner + 1) -
             log_gamma(more - m + inner + 1);
  bool ok = is_within && 2 * natural_log(u.a) <= t;
  k = good > bad ? m - k : k;
  k = m < draws ? good - k : k;
  return {is_hypergeometric(good, bad, draws) ? k : -1, ok || !is_hypergeometric(good, bad, draws)};
}
__device__ double hypergeometric(Stream& s, double good, double bad, double draws) {
  if (!is_hypergeometric(good, bad, draws)) return -1;
  if (draws == 0 || good == 0) return 0;
  if (bad == 0) return draws;
  if (draws <= 10) return first_hypergeometric_small(s, good, bad, draws).value;
  if (good + bad - draws <= 10) return good - first_hypergeometric_small(s, good, bad, good + bad - draws).value;
  AFTER_FIRST
  for (;;) {
    Try one = first_hypergeometric_large(s, good, bad, draws);
    if (one.ok) return one.value;
  }
}
__device__ Try first_hypergeometric(Stream& s, double good, double bad, double draws) {
  Try first = first_hypergeometric_large(s, good, bad, draws), second = first_hypergeometric_large(s, good, bad, draws),
      one = either(first, second);
  return {one.value, one.ok && draws > 10 && good + bad - draws > 10 && good > 0 && bad > 0};
}
__device__ double hypergeometric_small(Stream& s, double good, double bad, double draws) {
  return hypergeometric(s, good, bad, draws);
}
"""

# One stream, or none, for each row.
ROWS = r"""
// exp(x) of each, over their sum.
extern "C" __global__ void shares(const double* __restrict__ logs, double* __restrict__ out, long long k,
                                  long long count) {
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += (long long)gridDim.x * blockDim.x) {
    double most = logs[i * k], total = 0;
    for (long long j = 1; j < k; ++j) most = logs[i * k + j] > most ? logs[i * k + j] : most;
    for (long long j = 0; j < k; ++j) {
      double one = most < -1.7976931348623157e308 ? 0 : natural_exp(logs[i * k + j] - most);
      out[i * k + j] = one;
      total += one;
    }
    for (long long j = 0; j < k; ++j) out[i * k + j] /= total == 0 ? 1 : total;
  }
}

// Each count is a binomial one of what is left.
extern "C" __global__ void sample_multinomial(const long long* __restrict__ n, const double* __restrict__ p, u64 key,
                                              u64 counter, u64 stream, long long* __restrict__ out, long long n_step,
                                              long long p_step, long long k, long long count) {
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += (long long)gridDim.x * blockDim.x) {
    Stream s = {key, counter + i, stream ^ 0x8000000000000000ull, 0, false};
    double left = 1;
    long long rest = n[i * n_step];
    for (long long j = 0; j + 1 < k; ++j) {
      double one = p[i * p_step + j], ratio = one >= left ? 1 : one / left;
      long long drawn = rest > 0 && one > 0 ? (long long)binomial(s, (double)rest, ratio) : 0;
      out[i * k + j] = drawn;
      rest -= drawn;
      left -= one;
    }
    if (k > 0) out[i * k + k - 1] = rest;
  }
}

// Each count is a hypergeometric one of this color and those after it.
extern "C" __global__ void sample_colors(const long long* __restrict__ colors, u64 key, u64 counter, u64 stream,
                                         long long* __restrict__ out, long long draws, long long total, long long k,
                                         long long count) {
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += (long long)gridDim.x * blockDim.x) {
    Stream s = {key, counter + i, stream ^ 0x8000000000000000ull, 0, false};
    long long rest = draws, others = total;
    for (long long j = 0; j < k; ++j) {
      long long here = colors[j];
      others -= here;
      long long drawn = rest > 0 ? (long long)hypergeometric(s, (double)here, (double)others, (double)rest) : 0;
      out[i * k + j] = drawn;
      rest -= drawn;
    }
  }
}

// Lemire, "Fast random integer generation in an interval" (2019). `span` is how many integers there are; 0 means all
// 2^64.
__device__ u64 high_product(u64 a, u64 b) {
  u64 a0 = (u32)a, a1 = a >> 32, b0 = (u32)b, b1 = b >> 32, low = a0 * b0, first = a1 * b0 + (low >> 32),
      second = a0 * b1 + (u32)first;
  return a1 * b1 + (first >> 32) + (second >> 32);
}
extern "C" __global__ void sample_integers(const u64* __restrict__ low, const u64* __restrict__ span, u64 key,
                                           u64 counter, u64 stream, u64* __restrict__ out, long long count) {
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += (long long)gridDim.x * blockDim.x) {
    Stream s = {key, counter + i, stream ^ 0x8000000000000000ull, 0, false};
    u64 n = span[i], word = s.word(), product = word * n;
    if (product < n) {
      u64 least = (0 - n) % n;
      while (product < least) {
        word = s.word();
        product = word * n;
      }
    }
    out[i] = low[i] + (n == 0 ? word : high_product(word, n));
  }
}
"""

_GAMMA, _COUNTS = (one.replace("AFTER_FIRST", _AFTER_FIRST) for one in (GAMMA, COUNTS))
ROWS_TEXT = SIMPLE + _GAMMA + _COUNTS + ROWS
# The text that holds a distribution; those that may reject have a first attempt.
SIMPLE_NAMES = (
    "exponential",
    "laplace",
    "logistic",
    "gumbel",
    "cauchy",
    "lognormal",
    "weibull",
    "pareto",
    "power",
    "geometric",
    "wald",
    "logseries",
)
TEXTS: Dict[str, str] = {
    **{name: SIMPLE for name in SIMPLE_NAMES},
    **{name: SIMPLE + _GAMMA for name in ("gamma", "log_gammas", "beta", "f", "student", "vonmises")},
    **{
        name: SIMPLE + _COUNTS
        for name in (
            "poisson",
            "poisson_small",
            "poisson_large",
            "binomial",
            "binomial_small",
            "binomial_large",
            "zipf",
            "hypergeometric",
            "hypergeometric_small",
        )
    },
}
