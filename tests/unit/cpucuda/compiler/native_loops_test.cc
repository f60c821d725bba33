// Generated loops: compiled, linked, loaded and run. The prelude's mathematics is compared with the
// long double libm.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "cpucuda/compiler/compiler.h"
#include "cpucuda/runtime/module.h"

namespace stride::cpucuda {
namespace {

using Loop = void (*)(void**, int64_t, int64_t);

struct Loaded {
  std::unique_ptr<Module> module;
  Loop loop = nullptr;
};

Loaded Build(const std::string& source, std::vector<std::string> options = {}) {
  CompileRequest request{
      .source = source, .kind = SourceKind::kNativeLoops, .options = options, .entries = {"f"}};
  absl::StatusOr<CompileResult> result = Compile(request);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  absl::StatusOr<std::unique_ptr<Module>> module = Module::LoadBytes(result->object);
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return {};
  Loaded loaded{std::move(*module), nullptr};
  loaded.loop = reinterpret_cast<Loop>(loaded.module->Symbol(result->kernels[0].symbol));
  EXPECT_NE(loaded.loop, nullptr);
  return loaded;
}

std::string UnaryLoop(const std::string& type, const std::string& expression) {
  return "extern \"C\" void f(void** args, int64_t begin, int64_t end) {\n  const " + type +
         "* a = (const " + type + "*)args[0];\n  " + type + "* o = (" + type +
         "*)args[1];\n  STRIDE_PARALLEL\n  for (int64_t i = begin; i < end; ++i) { " + type +
         " x = a[i]; o[i] = " + expression + "; }\n}\n";
}

template <class T>
double Ulps(T got, long double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  T rounded = static_cast<T>(want);
  if (got == rounded) return 0;
  if (std::isinf(rounded) || std::isinf(got) || std::isnan(got)) return 1e30;
  int exponent;
  std::frexp(rounded, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  long double unit = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs((static_cast<long double>(got) - want) / unit));
}

struct Function {
  const char* name;
  long double (*reference)(long double);
  double low, high;
  double limit32, limit64;  // ULP
};

long double Exp10(long double x) { return std::pow(10.0L, x); }
long double Rsqrt(long double x) { return 1.0L / std::sqrt(x); }

const Function kFunctions[] = {
    {"sin", std::sin, -1e4, 1e4, 4, 2},     {"cos", std::cos, -1e4, 1e4, 4, 2},
    {"sin", std::sin, -3, 3, 4, 2},         {"cos", std::cos, -3, 3, 4, 2},
    {"tan", std::tan, -100, 100, 4, 2},     {"exp", std::exp, -750, 720, 4, 2},
    {"exp2", std::exp2, -1080, 1030, 4, 2}, {"exp10", Exp10, -330, 310, 4, 2},
    {"expm1", std::expm1, -50, 710, 4, 2},  {"expm1", std::expm1, -1, 1, 4, 2},
    {"log", std::log, 0, 10, 4, 2},         {"log", std::log, 0, 1e300, 4, 2},
    {"log2", std::log2, 0, 10, 4, 2},       {"log10", std::log10, 0, 10, 4, 2},
    {"log1p", std::log1p, -1, 5, 4, 2},     {"log1p", std::log1p, -1e-3, 1e-3, 4, 2},
    {"sinh", std::sinh, -100, 100, 2, 2},   {"cosh", std::cosh, -100, 100, 2, 2},
    {"sinh", std::sinh, -1, 1, 2, 2},       {"tanh", std::tanh, -25, 25, 2, 2},
    {"tanh", std::tanh, -1, 1, 2, 2},       {"asin", std::asin, -1, 1, 4, 2},
    {"acos", std::acos, -1, 1, 4, 2},       {"atan", std::atan, -10, 10, 4, 2},
    {"atan", std::atan, -1e5, 1e5, 4, 2},   {"asinh", std::asinh, -100, 100, 4, 2},
    {"acosh", std::acosh, 1, 100, 4, 2},    {"atanh", std::atanh, -1, 1, 4, 2},
    {"sinh", std::sinh, 1, 712, 2, 2},      {"cosh", std::cosh, 1, 712, 2, 2},
    {"cbrt", std::cbrt, -1000, 1000, 4, 2}, {"sqrt", std::sqrt, 0, 1000, 0.5, 0.5},
    {"rsqrt", Rsqrt, 1e-3, 1000, 4, 2},     {"erf", std::erf, -3, 3, 4, 2},
};

template <class T>
void CheckFunction(const Function& function, double limit) {
  std::string type = sizeof(T) == 4 ? "float" : "double";
  Loaded loaded = Build(UnaryLoop(type, std::string(function.name) + "(x)"));
  ASSERT_NE(loaded.loop, nullptr);
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> spread(function.low, function.high);
  std::vector<T> in, out(20011);
  for (size_t i = 0; i < out.size(); ++i) in.push_back(static_cast<T>(spread(random)));
  const T inf = std::numeric_limits<T>::infinity();
  const T specials[] = {0,
                        -T(0),
                        1,
                        -1,
                        inf,
                        -inf,
                        std::numeric_limits<T>::quiet_NaN(),
                        std::numeric_limits<T>::denorm_min(),
                        std::numeric_limits<T>::min(),
                        std::numeric_limits<T>::max(),
                        T(0.5),
                        T(1e-10),
                        T(-1e-10)};
  std::copy(std::begin(specials), std::end(specials), in.begin() + 100);
  void* args[] = {in.data(), out.data()};
  loaded.loop(args, 0, out.size());
  double worst = 0;
  T at = 0, worst_got = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    double error = Ulps<T>(out[i], function.reference(in[i]));
    if (error > worst) worst = error, at = in[i], worst_got = out[i];
  }
  EXPECT_LE(worst, limit) << type << " " << function.name << "(" << std::hexfloat << at
                          << std::defaultfloat << " = " << at << ") = " << worst_got;
  std::printf("  %-6s %-6s worst %.2f ulp\n", type.c_str(), function.name, worst);
  // The same numbers one by one, without the vector body of the loop.
  std::vector<T> alone(512);
  void* alone_args[] = {in.data(), alone.data()};
  for (size_t i = 0; i < alone.size(); ++i) loaded.loop(alone_args, i, i + 1);
  EXPECT_EQ(std::memcmp(alone.data(), out.data(), alone.size() * sizeof(T)), 0)
      << function.name << " depends on an element's position";
}

TEST(NativeLoops, FloatFunctions) {
  for (const Function& function : kFunctions) {
    Function scaled = function;
    scaled.low = std::max(scaled.low, -1e30), scaled.high = std::min(scaled.high, 1e30);
    CheckFunction<float>(scaled, function.limit32);
  }
}

TEST(NativeLoops, DoubleFunctions) {
  for (const Function& function : kFunctions) CheckFunction<double>(function, function.limit64);
}

// The last arguments with a finite result, those with a denormal result, and their neighbours.
TEST(NativeLoops, EndsOfTheExponentialsRange) {
  const struct {
    const char* name;
    long double (*reference)(long double);
    double most, least;
  } kEnds[] = {{"exp", std::exp, 0x1.62e42fefa39efp+9, -745.1332191019412},
               {"exp2", std::exp2, 1024, -1075},
               {"exp10", Exp10, 0x1.34413509f79fep+8, -323.6072453387798},
               {"sinh", std::sinh, 710.4758600739439, -710.4758600739439},
               {"cosh", std::cosh, 710.4758600739439, -710.4758600739439}};
  for (const auto& function : kEnds) {
    std::vector<double> in;
    for (double end : {function.most, function.least}) {
      double below = end, above = end;
      for (int i = 0; i < 50; ++i) {
        in.push_back(below = std::nextafter(below, -1e300));
        in.push_back(above = std::nextafter(above, 1e300));
        in.push_back(end + (i - 25) * 0.0625);
        in.push_back(end * (1 - i * 1e-3));
      }
    }
    std::vector<double> out(in.size());
    void* args[] = {in.data(), out.data()};
    Loaded loaded = Build(UnaryLoop("double", std::string(function.name) + "(x)"));
    ASSERT_NE(loaded.loop, nullptr);
    loaded.loop(args, 0, static_cast<int64_t>(out.size()));
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_LE(Ulps<double>(out[i], function.reference(in[i])), 2)
          << function.name << "(" << std::hexfloat << in[i] << ") = " << out[i];
    }
  }
}

TEST(NativeLoops, LargeArgumentsAreReducedExactly) {
  for (const char* name : {"sin", "cos"}) {
    Loaded single = Build(UnaryLoop("float", std::string(name) + "(x)"));
    Loaded both = Build(UnaryLoop("double", std::string(name) + "(x)"));
    std::mt19937_64 random(3);
    std::vector<float> in32, out32(4000);
    std::vector<double> in64, out64(4000);
    for (int i = 0; i < 4000; ++i) {
      in32.push_back(std::ldexp(1.0f + random() % 8388608 / 8388608.0f, random() % 127));
      in64.push_back(
          std::ldexp(1.0 + random() % (1ull << 52) / 4503599627370496.0, random() % 1023));
    }
    void* args32[] = {in32.data(), out32.data()};
    single.loop(args32, 0, 4000);
    void* args64[] = {in64.data(), out64.data()};
    both.loop(args64, 0, 4000);
    bool sine = name[0] == 's';
    double worst32 = 0, worst64 = 0;
    for (int i = 0; i < 4000; ++i) {
      worst32 = std::max(worst32, Ulps<float>(out32[i], sine ? std::sin(double{in32[i]})
                                                             : std::cos(double{in32[i]})));
      // glibc's double functions are accurate to one ULP and reduce exactly.
      worst64 =
          std::max(worst64, Ulps<double>(out64[i], sine ? std::sin(in64[i]) : std::cos(in64[i])));
    }
    EXPECT_LE(worst32, 4) << name;
    EXPECT_LE(worst64, 3) << name;
  }
}

// Arguments of few periods, and those nearest to multiples of pi/2.
template <class T>
void CheckFewTurns(double limit) {
  const struct {
    const char* name;
    long double (*reference)(long double);
  } kFunctions[] = {{"sin", std::sin}, {"cos", std::cos}, {"tan", std::tan}};
  std::vector<T> in = {0, -T(0), T(0x1.fffffep29), T(0x1p30), T(-0x1p40), T(1e-30)};
  std::mt19937_64 random(9);
  for (int i = 0; i < 20000; ++i) {
    const int64_t quarters = i < 5000 ? i : static_cast<int64_t>(random() % 683000000);
    in.push_back(static_cast<T>(quarters * 1.57079632679489661923132169163975144L));
    in.push_back(-std::nextafter(in.back(), T(0)));
    in.push_back(static_cast<T>(std::ldexp(random() * 0x1p-64, i % 32)));
  }
  std::vector<T> any(in.size()), few(in.size());
  const std::string type = sizeof(T) == 4 ? "float" : "double";
  for (const auto& function : kFunctions) {
    for (auto [suffix, out] : {std::pair("any", &any), std::pair("few", &few)}) {
      Loaded loaded = Build(
          UnaryLoop(type, std::string("__stride::") + function.name + "_of_" + suffix + "(x)"));
      ASSERT_NE(loaded.loop, nullptr);
      void* args[] = {in.data(), out->data()};
      loaded.loop(args, 0, static_cast<int64_t>(in.size()));
    }
    for (size_t i = 0; i < in.size(); ++i) {
      // The reduction of long double is exact up to 2^63.
      EXPECT_LE(Ulps<T>(any[i], function.reference(in[i])), limit)
          << function.name << "(" << std::hexfloat << in[i] << ") = " << any[i];
      EXPECT_EQ(std::signbit(any[i]), std::signbit(function.reference(in[i]))) << in[i];
      if (std::abs(in[i]) >= T(0x1p30)) continue;
      EXPECT_EQ(std::memcmp(&any[i], &few[i], sizeof(T)), 0) << function.name << " " << in[i];
    }
  }
}
TEST(NativeLoops, SmallMultiplesOfHalfPiFloat) { CheckFewTurns<float>(4); }
TEST(NativeLoops, SmallMultiplesOfHalfPiDouble) { CheckFewTurns<double>(2); }

TEST(NativeLoops, SumOfSquaresIsOne) {
  Loaded loaded = Build(UnaryLoop("float", "cos(x) * cos(x) + sin(x) * sin(x)"));
  std::vector<float> in(10000000), out(in.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  void* args[] = {in.data(), out.data()};
  loaded.loop(args, 0, in.size());
  float worst = 0;
  for (float value : out) worst = std::max(worst, std::fabs(value - 1.0f));
  EXPECT_LE(worst, 4 * 1.1920929e-7f);
}

template <class T>
void CheckPower(double limit) {
  std::string type = sizeof(T) == 4 ? "float" : "double";
  Loaded loaded = Build("extern \"C\" void f(void** args, int64_t begin, int64_t end) {\n const " +
                        type + "* a = (const " + type + "*)args[0];\n const " + type +
                        "* b = (const " + type + "*)args[1];\n " + type + "* o = (" + type +
                        "*)args[2];\n STRIDE_PARALLEL\n for (int64_t i = begin; i < end; ++i) o[i] "
                        "= pow(a[i], b[i]);\n}\n");
  ASSERT_NE(loaded.loop, nullptr);
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> base(0, 20), power(-30, 30);
  std::vector<T> a, b;
  for (int i = 0; i < 20000; ++i) a.push_back(base(random)), b.push_back(power(random));
  const T inf = std::numeric_limits<T>::infinity();
  const T edges[] = {0,
                     -T(0),
                     1,
                     -1,
                     inf,
                     -inf,
                     std::numeric_limits<T>::quiet_NaN(),
                     T(0.5),
                     T(-0.5),
                     2,
                     -2,
                     3,
                     -3,
                     T(1e30),
                     T(-1e30),
                     std::numeric_limits<T>::max(),
                     std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::denorm_min()};
  for (T x : edges) {
    for (T y : edges) a.push_back(x), b.push_back(y);
  }
  std::vector<T> out(a.size());
  void* args[] = {a.data(), b.data(), out.data()};
  loaded.loop(args, 0, out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    double error =
        Ulps<T>(out[i], std::pow(static_cast<long double>(a[i]), static_cast<long double>(b[i])));
    ASSERT_LE(error, limit) << type << " pow(" << a[i] << ", " << b[i] << ") = " << out[i];
  }
}

TEST(NativeLoops, PowerFloat) { CheckPower<float>(2); }
TEST(NativeLoops, PowerDouble) { CheckPower<double>(2); }

TEST(NativeLoops, Atan2CoversThePlane) {
  Loaded loaded = Build(
      "extern \"C\" void f(void** args, int64_t begin, int64_t end) {\n const double* a = (const "
      "double*)args[0];\n"
      " const double* b = (const double*)args[1];\n double* o = (double*)args[2];\n "
      "STRIDE_PARALLEL\n"
      " for (int64_t i = begin; i < end; ++i) o[i] = atan2(a[i], b[i]);\n}\n");
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> spread(-3, 3);
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> a, b;
  for (int i = 0; i < 20000; ++i) a.push_back(spread(random)), b.push_back(spread(random));
  const double edges[] = {0.0, -0.0, 1, -1, inf, -inf, 1e300, -1e300, 1e-300, -1e-300, 5e-324};
  for (double y : edges) {
    for (double x : edges) a.push_back(y), b.push_back(x);
  }
  std::vector<double> out(a.size());
  void* args[] = {a.data(), b.data(), out.data()};
  loaded.loop(args, 0, out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    long double want = std::atan2(static_cast<long double>(a[i]), static_cast<long double>(b[i]));
    ASSERT_LE(Ulps<double>(out[i], want), 2)
        << "atan2(" << a[i] << ", " << b[i] << ") = " << out[i];
    ASSERT_EQ(std::signbit(out[i]), std::signbit(want)) << "atan2(" << a[i] << ", " << b[i] << ")";
  }
}

TEST(NativeLoops, EdgesOfAcoshAndHypot) {
  Loaded loaded = Build(
      "extern \"C\" void f(void** args, int64_t begin, int64_t end) {\n const float* a = (const "
      "float*)args[0];\n"
      " const float* b = (const float*)args[1];\n float* o = (float*)args[2];\n STRIDE_PARALLEL\n"
      " for (int64_t i = begin; i < end; ++i) { o[2 * i] = acoshf(a[i]); o[2 * i + 1] = "
      "hypotf(a[i], b[i]); }\n}\n");
  ASSERT_NE(loaded.loop, nullptr);
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  const float most = std::numeric_limits<float>::max();
  std::vector<float> a = {-most, inf, nan, -inf, -1, nan, 3}, b = {0, nan, -inf, 1, nan, 1, 4};
  std::vector<float> out(2 * a.size());
  void* args[] = {a.data(), b.data(), out.data()};
  loaded.loop(args, 0, a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    float acosh = std::acosh(a[i]), hypot = std::hypot(a[i], b[i]);
    EXPECT_TRUE(std::isnan(acosh) ? std::isnan(out[2 * i]) : Ulps<float>(out[2 * i], acosh) <= 2)
        << "acosh " << a[i] << " = " << out[2 * i];
    EXPECT_TRUE(std::isnan(hypot) ? std::isnan(out[2 * i + 1]) : out[2 * i + 1] == hypot)
        << "hypot " << a[i] << ", " << b[i];
  }
}

TEST(NativeLoops, HalfAndBfloat16RoundToNearest) {
  Loaded loaded = Build(
      "extern \"C\" void f(void** args, int64_t begin, int64_t end) {\n const float* a = (const "
      "float*)args[0];\n"
      " __half* h = (__half*)args[1];\n __nv_bfloat16* b = (__nv_bfloat16*)args[2];\n"
      " for (int64_t i = begin; i < end; ++i) { h[i] = __half(a[i]); b[i] = __nv_bfloat16(a[i]); "
      "}\n}\n");
  std::vector<float> in = {1.0f, 65504.0f, 1e6f, 0.333251953125f, 1.00390625f, -2.5f, 1.01171875f};
  std::vector<uint16_t> half(in.size()), brain(in.size());
  void* args[] = {in.data(), half.data(), brain.data()};
  loaded.loop(args, 0, in.size());
  EXPECT_EQ(half, (std::vector<uint16_t>{0x3c00, 0x7bff, 0x7c00, 0x3555, 0x3c04, 0xc100, 0x3c0c}));
  EXPECT_EQ(brain, (std::vector<uint16_t>{0x3f80, 0x4780, 0x4974, 0x3eab, 0x3f80, 0xc020, 0x3f82}));
}

TEST(NativeLoops, CompilesForOtherProcessors) {
  for (const char* cpu : {"x86-64-v3", "x86-64-v4", "native"}) {
    CompileRequest request{.source = UnaryLoop("float", "sin(x) + exp(x)"),
                           .kind = SourceKind::kNativeLoops,
                           .entries = {"f"},
                           .cpu = cpu};
    EXPECT_TRUE(Compile(request).ok()) << cpu;
  }
  CompileRequest request{.source = "", .kind = SourceKind::kNativeLoops, .cpu = "z80"};
  EXPECT_EQ(Compile(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(NativeLoops, MistakesAreExplained) {
  CompileRequest request{
      .source = "extern \"C\" void f(void**, int64_t, int64_t) { undefined_name(); }\n",
      .kind = SourceKind::kNativeLoops};
  absl::Status status = Compile(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("kernel.cu:1:47: error"), std::string::npos)
      << status;
}

}  // namespace
}  // namespace stride::cpucuda
