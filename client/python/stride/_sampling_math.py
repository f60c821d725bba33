"""The device text under every distribution: a stream of random numbers for each element, and functions of real numbers.

The text computes in integers and IEEE's basic operations alone, without fused multiply-add, so that every device gives
the same bits. Functions have neither loops of unknown length nor early returns where they serve a first attempt, since
a CPU device computes such code several elements at once."""

# Element i reads Philox blocks with the counter's lower half `counter` + i and its upper half `stream` + 2^63 + the
# block's number, where no other
# function of a generator reads.
TEXT = r"""
typedef unsigned int u32;
typedef unsigned long long u64;

struct Words {
  u64 a, b;
};
struct Pair {
  double a, b;
};

// A value, and whether the attempt that made it was accepted.
struct Try {
  double value;
  bool ok;
};

__device__ Words philox(u64 key, u64 low, u64 high) {
  u32 k0 = (u32)key, k1 = (u32)(key >> 32), c0 = (u32)low, c1 = (u32)(low >> 32), c2 = (u32)high,
      c3 = (u32)(high >> 32);
  for (int round = 0; round < 10; ++round) {
    u64 a = (u64)0xD2511F53u * c0, b = (u64)0xCD9E8D57u * c2;
    c0 = (u32)(b >> 32) ^ c1 ^ k0;
    c1 = (u32)b;
    c2 = (u32)(a >> 32) ^ c3 ^ k1;
    c3 = (u32)a;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {(u64)c1 << 32 | c0, (u64)c3 << 32 | c2};
}

// In (0, 1).
__device__ double fraction(u64 word) { return (double)((word >> 12) + 0.5) * (1.0 / 4503599627370496.0); }

struct Stream {
  u64 key, low, high;
  u64 second;
  bool has_second;
  __device__ Words words() { return philox(key, low, high++); }
  __device__ Pair pair() {
    Words two = words();
    return {fraction(two.a), fraction(two.b)};
  }
  __device__ u64 word() {
    if (has_second) {
      has_second = false;
      return second;
    }
    Words two = words();
    has_second = true;
    second = two.b;
    return two.a;
  }
  __device__ double uniform() { return fraction(word()); }
  __device__ double normal();
};

// 2^n times x; n within the exponents of normal numbers.
__device__ double scaled(double x, long long n) { return x * __longlong_as_double((n + 1023) << 52); }

// From the series of 2 artanh((m - 1) / (m + 1)), m from sqrt(1/2) to sqrt(2). For positive normal numbers, whose
// exponent has `more` added.
__device__ double log_of_normal(double x, int more) {
  long long bits = __double_as_longlong(x), exponent = (bits - 0x3FE6A09E667F3BCDll) >> 52;
  double m = __longlong_as_double(bits - (exponent << 52)), f = (m - 1) / (m + 1), s = f * f, sum = 1.0 / 23;
  for (int k = 21; k > 0; k -= 2) sum = sum * s + 1.0 / k;
  return (int)(exponent + more) * 0.69314718055994530942 + 2 * f * sum;
}
__device__ double log_of_normal(double x) { return log_of_normal(x, 0); }
__device__ double natural_log(double x) {
  bool is_tiny = x < 2.2250738585072014e-308;
  double value = log_of_normal(is_tiny ? x * 18014398509481984.0 : x, is_tiny ? -54 : 0);
  value = x > 1.7976931348623157e308 ? x : value;
  value = x > 0 ? value : (x - x) / (x - x);
  return x == 0 ? -1.7976931348623157e308 * 2 : value;
}

// log(1 + x), by Kahan's correction of what 1 + x has lost.
__device__ double natural_log1p(double x) {
  double y = 1 + x;
  return y == 1 ? x : natural_log(y) * (x / (y - 1));
}

// (exp(r) - 1) / r, |r| <= log(2) / 2, by its series.
__device__ double exponential_series(double r) {
  double sum = 1.0 / 6227020800;
  sum = sum * r + 1.0 / 479001600;
  sum = sum * r + 1.0 / 39916800;
  sum = sum * r + 1.0 / 3628800;
  sum = sum * r + 1.0 / 362880;
  sum = sum * r + 1.0 / 40320;
  sum = sum * r + 1.0 / 5040;
  sum = sum * r + 1.0 / 720;
  sum = sum * r + 1.0 / 120;
  sum = sum * r + 1.0 / 24;
  sum = sum * r + 1.0 / 6;
  sum = sum * r + 0.5;
  return sum * r + 1;
}

// exp(x) = 2^n exp(r), |r| <= log(2) / 2; log(2) in two parts, n times the first of which is exact. A sum with 1.5 *
// 2^52 rounds to an integer, whose low bits it ends in. The power of two in two factors: either may be outside the
// range where the product is within.
__device__ double natural_exp(double x) {
  const double whole = 6755399441055744.0;
  x = x < -800 ? -800 : x;
  x = x > 800 ? 800 : x;
  double n = (x * 1.4426950408889634074 + whole) - whole;
  double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  double shifted = n * 0.5 + whole, half = shifted - whole, rest = (n - half) + whole;
  double first = __longlong_as_double((__double_as_longlong(shifted) + 1023) << 52);
  double second = __longlong_as_double((__double_as_longlong(rest) + 1023) << 52);
  return ((r * exponential_series(r) + 1) * first) * second;
}
__device__ double natural_expm1(double x) {
  double small = x < -0.35  ? -0.35
                 : x > 0.35 ? 0.35
                            : x,
         series = small * exponential_series(small), whole = natural_exp(x) - 1;
  return fabs(x) < 0.35 ? series : whole;
}

// x to the power y, for x > 0.
__device__ double power_of(double x, double y) { return natural_exp(y * natural_log(x)); }

// cos and sin of 2 pi u, 0 <= u <= 1: to an eighth of a turn from the next quarter, which is exact, by their series
// there.
__device__ Pair circle(double u) {
  double quarter = (4 * u + 6755399441055744.0) - 6755399441055744.0, x = (u - quarter * 0.25) * 6.28318530717958647693,
         s = x * x;
  double c = -1.0 / 6402373705728000;
  c = c * s + 1.0 / 20922789888000;
  c = c * s - 1.0 / 87178291200;
  c = c * s + 1.0 / 479001600;
  c = c * s - 1.0 / 3628800;
  c = c * s + 1.0 / 40320;
  c = c * s - 1.0 / 720;
  c = c * s + 1.0 / 24;
  c = c * s - 0.5;
  c = c * s + 1;
  double t = 1.0 / 355687428096000;
  t = t * s - 1.0 / 1307674368000;
  t = t * s + 1.0 / 6227020800;
  t = t * s - 1.0 / 39916800;
  t = t * s + 1.0 / 362880;
  t = t * s - 1.0 / 5040;
  t = t * s + 1.0 / 120;
  t = t * s - 1.0 / 6;
  t = (t * s + 1) * x;
  bool is_odd = quarter == 1 || quarter == 3;
  double first = is_odd ? t : c, second = is_odd ? c : t;
  return {quarter == 1 || quarter == 2 ? -first : first, quarter == 2 || quarter == 3 ? -second : second};
}

// For x from -1 to 1: twice the angle whose tangent is y, halved twice before the series of arctan.
__device__ double arc_cosine(double x) {
  double far = 1 - x, near = 1 + x;
  bool is_steep = far > near;
  double y = sqrt((is_steep ? near : far) / (is_steep ? far : near));
  y = y / (1 + sqrt(1 + y * y));
  y = y / (1 + sqrt(1 + y * y));
  double s = y * y, sum = 1.0 / 25;
  for (int k = 23; k > 0; k -= 2) sum = 1.0 / k - sum * s;
  double angle = 8 * y * sum;
  return is_steep ? 3.14159265358979323846 - angle : angle;
}

// The logarithm of the gamma function at x > 0: Stirling's series at 10 or more, carried down by its recurrence.
__device__ double log_gamma(double x) {
  double product = 1;
  for (int k = 0; k < 10; ++k) product *= x + k;
  bool is_small = x < 10;
  product = is_small ? product : 1;
  x = is_small ? x + 10 : x;
  double s = 1 / (x * x);
  double series = (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188))))) / x;
  return (x - 0.5) * log_of_normal(x) - x + 0.91893853320467274178 + series - log_of_normal(product);
}

// Box and Muller's: two independent normal numbers of two uniform ones.
__device__ Pair normals(Pair u) {
  Pair on = circle(u.b);
  double radius = sqrt(-2 * log_of_normal(u.a));
  return {radius * on.a, radius * on.b};
}
__device__ double Stream::normal() { return normals(pair()).a; }
"""
