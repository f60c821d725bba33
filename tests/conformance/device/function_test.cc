#include <cmath>

#include "tests/conformance/device/harness.h"

// Client functions: their texts within generated code.
namespace stride::conformance {
namespace {

v1::FunctionBody Text(const std::string& source, const std::string& entry) {
  v1::FunctionBody body;
  body.mutable_device_function()->set_source(source);
  body.mutable_device_function()->set_entry(entry);
  return body;
}

v1::FunctionBody Formula(const std::string& text, const std::vector<std::string>& parameters) {
  v1::FunctionBody body;
  body.mutable_expression()->set_text(text);
  for (const std::string& name : parameters) body.mutable_expression()->add_parameters(name);
  return body;
}

v1::Function UfuncWith(const std::vector<std::string>& signatures, v1::FunctionBody body) {
  v1::Function function;
  for (const std::string& signature : signatures)
    function.mutable_ufunc()->add_signatures(signature);
  *function.mutable_ufunc()->mutable_body() = std::move(body);
  return function;
}

v1::Function GufuncWith(const std::string& layout, const std::string& signature,
                        const std::string& source) {
  v1::Function function;
  function.mutable_gufunc()->set_layout(layout);
  function.mutable_gufunc()->add_signatures(signature);
  function.mutable_gufunc()->mutable_body()->set_source(source);
  function.mutable_gufunc()->mutable_body()->set_entry("body");
  return function;
}

v1::Operation ReduceBy(const std::string& name, std::vector<int32_t> axes, int more_inputs = 0) {
  v1::Operation operation;
  operation.mutable_reduction()->set_function_name(name);
  operation.mutable_reduction()->mutable_axes()->Assign(axes.begin(), axes.end());
  operation.mutable_reduction()->mutable_input()->set_handle(1);
  for (int i = 0; i < more_inputs; ++i) operation.mutable_reduction()->add_more_inputs();
  operation.add_outputs()->set_handle(100);
  return operation;
}

v1::Operation GufuncOf(const std::string& name, int num_inputs, int num_outputs = 1) {
  v1::Operation operation;
  operation.mutable_gufunc()->set_function(name);
  for (int i = 0; i < num_inputs; ++i) operation.mutable_gufunc()->add_inputs()->set_handle(1 + i);
  for (int j = 0; j < num_outputs; ++j) operation.add_outputs()->set_handle(100 + j);
  return operation;
}

class FunctionTest : public DeviceTest {
 protected:
  void Define(const v1::Function& function, const std::string& id) {
    const absl::Status status = harness().Define(function, id);
    ASSERT_TRUE(status.ok()) << status;
  }
  HostArray Compute(const v1::Operation& operation, const std::vector<HostArray>& inputs) {
    std::vector<DeviceArray> placed;
    for (const HostArray& input : inputs) placed.push_back(harness().Put(input));
    auto result = harness().Compute(operation, placed);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? harness().Get(*result) : HostArray{Contiguous(DType::kBool, {0}), ""};
  }
};

constexpr char kMix[] = R"(
__device__ float weight() { return 0.25f; }
__device__ float mix(float a, float b) { return a * weight() + b * (1.0f - weight()); }
__device__ double mix(double a, double b) { return a * 0.25 + b * 0.75; }
)";

TEST_F(FunctionTest, TextRunsInEveryLayout) {
  Define(UfuncWith({"float32,float32->float32", "float64,float64->float64"}, Text(kMix, "mix")),
         "mix");
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const HostArray a =
        Transposed(Make(dtype, {3, 70, 50}, [](int64_t i) { return Value(i % 97); }));
    const HostArray b = Reversed(Make(dtype, {50, 70}, [](int64_t i) { return Value(i % 89); }), 1);
    const HostArray got = Compute(UfuncOf("mix", 2), {a, b});
    ASSERT_EQ(got.info.shape, (std::vector<int64_t>{3, 50, 70}));
    ASSERT_EQ(got.info.dtype, dtype);
    for (int64_t i = 0; i < 3 * 50 * 70; ++i)
      ASSERT_EQ(got.At(i), a.At(i) * 0.25 + b.At(i % 3500) * 0.75) << Name(dtype) << " " << i;
  }
}

TEST_F(FunctionTest, FirstSafeLoopIsChosen) {
  Define(UfuncWith({"int16->int16", "float32->float32", "float64->float64"},
                   Text("template <class T> __device__ T twice(T x) { return x + x; }", "twice")),
         "twice");
  const std::pair<DType, DType> kTypes[] = {
      {DType::kBool, DType::kInt16},      {DType::kUInt8, DType::kInt16},
      {DType::kInt16, DType::kInt16},     {DType::kUInt16, DType::kFloat32},
      {DType::kFloat16, DType::kFloat32}, {DType::kInt64, DType::kFloat64}};
  for (const auto& [from, to] : kTypes) {
    const HostArray got =
        Compute(UfuncOf("twice", 1), {Make(from, {10}, [](int64_t i) { return Value(i % 2); })});
    EXPECT_EQ(got.info.dtype, to) << Name(from);
    EXPECT_EQ(got.At(1), Value(2)) << Name(from);
  }
}

TEST_F(FunctionTest, HalfAndComplexUseTheLanguageTypes) {
  Define(UfuncWith({"float16->float16"},
                   Text("__device__ float half_of(float x) { return x * 0.5f; }", "half_of")),
         "half_of");
  const HostArray half = Compute(UfuncOf("half_of", 1),
                                 {Make(DType::kFloat16, {9}, [](int64_t i) { return Value(i); })});
  ASSERT_EQ(half.info.dtype, DType::kFloat16);
  EXPECT_EQ(half.At(7), Value(3.5));
  Define(UfuncWith({"complex64->complex64", "complex128->complex128"},
                   Text("__device__ float2 turn(float2 z) { return make_float2(-z.y, z.x); }\n"
                        "__device__ double2 turn(double2 z) { return make_double2(-z.y, z.x); }",
                        "turn")),
         "turn");
  for (DType dtype : {DType::kComplex64, DType::kComplex128}) {
    const HostArray got =
        Compute(UfuncOf("turn", 1), {Make(dtype, {5}, [](int64_t i) { return Value(i, 2 * i); })});
    EXPECT_EQ(got.At(3), Value(-6, 3)) << Name(dtype);
  }
}

TEST_F(FunctionTest, ExpressionMixesFormulasAndTexts) {
  Define(UfuncWith({}, Formula("where(x > 0, x, 1.67 * exp(x) - 1.67) * 1.05", {"x"})), "selu");
  Define(UfuncWith({"float32->float32"},
                   Text("__device__ float cube(float x) { return x * x * x; }", "cube")),
         "cube");
  v1::Operation operation;
  operation.mutable_expression()->set_text("selu(x) + cube(x) * 2");
  (*operation.mutable_expression()->mutable_inputs())["x"].set_handle(1);
  operation.add_outputs()->set_handle(100);
  const HostArray x =
      Make(DType::kFloat32, {1000}, [](int64_t i) { return Value(i - 500) / 100.0; });
  const HostArray got = Compute(operation, {x});
  ASSERT_EQ(got.info.dtype, DType::kFloat32);
  for (int64_t i = 0; i < 1000; ++i) {
    const double v = x.At(i).real();
    const double expected = 1.05 * (v > 0 ? v : 1.67 * std::exp(v) - 1.67) + 2 * v * v * v;
    ASSERT_NEAR(got.At(i).real(), expected, 1e-5 * (1 + std::abs(expected))) << i;
  }
}

TEST_F(FunctionTest, InvalidTextIsInvalidArgument) {
  Define(UfuncWith({"float32->float32"},
                   Text("__device__ float wrong(float x) {\n  return y;\n}", "wrong")),
         "wrong");
  auto result = harness().Compute(
      UfuncOf("wrong", 1),
      {harness().Put(Make(DType::kFloat32, {4}, [](int64_t i) { return Value(i); }))});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
  // The line of the client's own text.
  EXPECT_NE(result.status().message().find("function"), absl::string_view::npos) << result.status();
}

TEST_F(FunctionTest, ReducesByMapCombineAndFinish) {
  v1::Function function;
  auto* norm = function.mutable_reduction();
  norm->add_signatures("float32->float64->float32");
  *norm->mutable_map() = Formula("x * x * 1.0", {"x"});
  *norm->mutable_combine() =
      Text("__device__ double join(double a, double b) { return a + b; }", "join");
  *norm->mutable_finish() = Formula("sqrt(s)", {"s"});
  norm->mutable_identity()->set_int_value(0);
  Define(function, "own_norm");
  for (int64_t n : {0, 1, 100, 3000, 300000}) {
    const HostArray x = Make(DType::kFloat32, {n}, [](int64_t i) { return Value(i % 7); });
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::norm(x.At(i));
    const HostArray got = Compute(ReduceBy("own_norm", {}), {x});
    ASSERT_EQ(got.info.dtype, DType::kFloat32);
    EXPECT_FLOAT_EQ(static_cast<float>(got.At(0).real()), static_cast<float>(std::sqrt(sum))) << n;
    harness().Reset();
  }
}

TEST_F(FunctionTest, ReducesWithoutAnIdentityAlongAnyAxis) {
  v1::Function function = UfuncWith(
      {"int32,int32->int32"},
      Text("__device__ int greatest(int a, int b) { return a > b ? a : b; }", "greatest"));
  function.mutable_ufunc()->set_associative(true);
  Define(function, "greatest");
  const HostArray x = Make(DType::kInt32, {40, 700}, [](int64_t i) {
    return Value(static_cast<double>(i * 2654435761u % 1000) - 5000);
  });
  for (int32_t axis : {0, 1}) {
    const HostArray got = Compute(ReduceBy("greatest", {axis}), {x});
    const int64_t kept = axis == 0 ? 700 : 40, reduced = axis == 0 ? 40 : 700;
    ASSERT_EQ(got.info.shape, (std::vector<int64_t>{kept}));
    for (int64_t k = 0; k < kept; ++k) {
      double expected = -1e9;
      for (int64_t r = 0; r < reduced; ++r)
        expected = std::max(expected, x.At(axis == 0 ? r * 700 + k : k * 700 + r).real());
      ASSERT_EQ(got.At(k), Value(expected)) << axis << " " << k;
    }
  }
  // It also accumulates.
  v1::Operation accumulate;
  accumulate.mutable_accumulation()->set_function("greatest");
  accumulate.mutable_accumulation()->set_axis(1);
  accumulate.add_outputs()->set_handle(100);
  const HostArray running = Compute(accumulate, {x});
  double expected = -1e9;
  for (int64_t i = 0; i < 700; ++i) {
    expected = std::max(expected, x.At(700 + i).real());
    ASSERT_EQ(running.At(700 + i), Value(expected)) << i;
  }
}

TEST_F(FunctionTest, ReducesSeveralInputsTogether) {
  v1::Function function;
  auto* dot = function.mutable_reduction();
  dot->add_signatures("float64,float64->float64");
  *dot->mutable_map() = Formula("x * y", {"x", "y"});
  *dot->mutable_combine() = Formula("a + b", {"a", "b"});
  dot->mutable_identity()->set_int_value(0);
  Define(function, "own_dot");
  const HostArray x = Make(DType::kFloat64, {30, 50}, [](int64_t i) { return Value(i % 11); });
  const HostArray y = Make(DType::kFloat64, {50}, [](int64_t i) { return Value(i % 13); });
  const HostArray got = Compute(ReduceBy("own_dot", {1}, 1), {x, y});
  for (int64_t k = 0; k < 30; ++k) {
    Value expected = 0;
    for (int64_t i = 0; i < 50; ++i) expected += x.At(k * 50 + i) * y.At(i);
    ASSERT_EQ(got.At(k), expected) << k;
  }
}

constexpr char kMatvec[] = R"(
template <class A, class X, class Y>
__device__ void body(A a, X x, Y y) {
  for (long long i = 0; i < a.size(0); ++i) {
    float sum = 0;
    for (long long j = 0; j < a.size(1); ++j) sum += a(i, j) * x(j);
    y(i) = sum;
  }
}
)";

TEST_F(FunctionTest, GufuncReadsCoresInAnyLayout) {
  Define(GufuncWith("(m,n),(n)->(m)", "float32,float32->float32", kMatvec), "own_matvec");
  const HostArray a = Transposed(
      Make(DType::kFloat32, {4, 1, 6, 5}, [](int64_t i) { return Value(i % 17); }));  // 4 1 5 6
  const HostArray x =
      Reversed(Make(DType::kFloat32, {7, 6}, [](int64_t i) { return Value(i % 5); }), 1);
  const HostArray got = Compute(GufuncOf("own_matvec", 2), {a, x});
  ASSERT_EQ(got.info.shape, (std::vector<int64_t>{4, 7, 5}));
  for (int64_t b = 0; b < 4; ++b) {
    for (int64_t c = 0; c < 7; ++c) {
      for (int64_t i = 0; i < 5; ++i) {
        Value expected = 0;
        for (int64_t j = 0; j < 6; ++j) expected += a.At((b * 5 + i) * 6 + j) * x.At(c * 6 + j);
        ASSERT_EQ(got.At((b * 7 + c) * 5 + i), expected);
      }
    }
  }
}

constexpr char kProduct[] = R"(
__device__ void body(stride_view<const double, 2> a, stride_view<const double, 2> b,
                     stride_view<double, 2> c) {
  for (int i = 0; i < a.size(0); ++i)
    for (int j = 0; j < b.size(1); ++j)
      for (int k = 0; k < b.size(0); ++k) c(i, j) += a(i, k) * b(k, j);
}
)";

TEST_F(FunctionTest, OptionalDimensionsMayBeOmitted) {
  Define(GufuncWith("(m?,n),(n,p?)->(m?,p?)", "float64,float64->float64", kProduct), "own_product");
  const HostArray matrix = Make(DType::kFloat64, {3, 4}, [](int64_t i) { return Value(i); });
  const HostArray vector = Make(DType::kFloat64, {4}, [](int64_t i) { return Value(i + 1); });
  const HostArray right = Make(DType::kFloat64, {4, 2}, [](int64_t i) { return Value(2 * i); });
  struct Case {
    HostArray left, right;
    std::vector<int64_t> shape;
  };
  for (const Case& c : {Case{matrix, right, {3, 2}}, Case{vector, right, {2}},
                        Case{matrix, vector, {3}}, Case{vector, vector, {}}}) {
    const DeviceArray left = harness().Put(c.left), other = harness().Put(c.right);
    // The body adds to the existing values, which are zeros in a new output.
    const DeviceArray target =
        harness().Put(Make(DType::kFloat64, c.shape, [](int64_t) { return Value(0); }));
    auto result = harness().Compute(GufuncOf("own_product", 2), {left, other}, &target);
    ASSERT_TRUE(result.ok()) << result.status();
    const HostArray got = harness().Get(*result);
    const int64_t rows = c.left.info.shape.size() == 2 ? 3 : 1;
    const int64_t columns = c.right.info.shape.size() == 2 ? 2 : 1;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        Value expected = 0;
        for (int64_t k = 0; k < 4; ++k)
          expected += c.left.At(i * 4 + k) * c.right.At(k * columns + j);
        ASSERT_EQ(got.At(i * columns + j), expected);
      }
    }
  }
}

TEST_F(FunctionTest, GufuncWithFixedSizesAndTwoResults) {
  Define(GufuncWith("(3),(3)->(3),()", "int32,int32->int32,int64", R"(
__device__ void body(stride_view<const int, 1> a, stride_view<const int, 1> b,
                     stride_view<int, 1> cross, stride_view<long long, 0> dot) {
  long long sum = 0;
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    cross(i) = a(j) * b(k) - a(k) * b(j);
    sum += a(i) * b(i);
  }
  dot() = sum;
}
)"),
         "products");
  const HostArray a = Make(DType::kInt32, {2000, 3}, [](int64_t i) { return Value(i % 19); });
  const HostArray b = Make(DType::kInt32, {3}, [](int64_t i) { return Value(i * i + 1); });
  auto result =
      harness().ComputeAll(GufuncOf("products", 2, 2), {harness().Put(a), harness().Put(b)});
  ASSERT_TRUE(result.ok()) << result.status();
  const HostArray cross = harness().Get((*result)[0]), dot = harness().Get((*result)[1]);
  ASSERT_EQ(cross.info.shape, (std::vector<int64_t>{2000, 3}));
  ASSERT_EQ(dot.info.shape, (std::vector<int64_t>{2000}));
  for (int64_t i = 0; i < 2000; ++i) {
    ASSERT_EQ(dot.At(i),
              a.At(3 * i) * b.At(0) + a.At(3 * i + 1) * b.At(1) + a.At(3 * i + 2) * b.At(2));
    ASSERT_EQ(cross.At(3 * i), a.At(3 * i + 1) * b.At(2) - a.At(3 * i + 2) * b.At(1));
  }
}

TEST_F(FunctionTest, BuiltInProductsOfVectors) {
  for (DType dtype : {DType::kInt32, DType::kFloat64, DType::kComplex128}) {
    auto make = [&](std::vector<int64_t> shape, int64_t period) {
      return Make(dtype, std::move(shape),
                  [&](int64_t i) { return Value(i % period, IsComplex(dtype) ? i % 3 - 1 : 0); });
    };
    const HostArray m = make({2, 5, 6}, 7), v = make({6}, 5), w = make({2, 5}, 4);
    const HostArray dot = Compute(GufuncOf("vecdot", 2), {m, v});
    const HostArray matvec = Compute(GufuncOf("matvec", 2), {m, v});
    const HostArray vecmat = Compute(GufuncOf("vecmat", 2), {w, m});
    ASSERT_EQ(dot.info.shape, (std::vector<int64_t>{2, 5}));
    ASSERT_EQ(matvec.info.shape, (std::vector<int64_t>{2, 5}));
    ASSERT_EQ(vecmat.info.shape, (std::vector<int64_t>{2, 6}));
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t i = 0; i < 5; ++i) {
        Value conjugated = 0, plain = 0;
        for (int64_t k = 0; k < 6; ++k) {
          conjugated += std::conj(m.At((b * 5 + i) * 6 + k)) * v.At(k);
          plain += m.At((b * 5 + i) * 6 + k) * v.At(k);
        }
        EXPECT_EQ(dot.At(b * 5 + i), conjugated) << Name(dtype);
        EXPECT_EQ(matvec.At(b * 5 + i), plain) << Name(dtype);
      }
      for (int64_t k = 0; k < 6; ++k) {
        Value expected = 0;
        for (int64_t i = 0; i < 5; ++i)
          expected += std::conj(w.At(b * 5 + i)) * m.At((b * 5 + i) * 6 + k);
        EXPECT_EQ(vecmat.At(b * 6 + k), expected) << Name(dtype);
      }
    }
  }
}

TEST_F(FunctionTest, GufuncAcceptsAxesAtAnyPosition) {
  Define(GufuncWith("(m?,n),(n,p?)->(m?,p?)", "float64,float64->float64", kProduct),
         "placed_product");
  const HostArray a = Make(DType::kFloat64, {2, 5, 3}, [](int64_t i) { return Value(i % 7); });
  const HostArray b = Make(DType::kFloat64, {4, 3, 5}, [](int64_t i) { return Value(i % 5); });
  for (const char* name : {"placed_product", "matmul"}) {
    v1::Operation operation = GufuncOf(name, 2);
    for (auto [first, second] : {std::pair{0, -1}, {1, 0}, {-1, 0}}) {
      auto* axes = operation.mutable_gufunc()->add_axes();
      axes->add_axes(first);
      axes->add_axes(second);
    }
    // out[p, l, m] = sum over n of a[m, l, n] b[p, n, l]
    DeviceArray target =
        harness().Put(Make(DType::kFloat64, {4, 5, 2}, [](int64_t) { return Value(0); }));
    auto result = harness().Compute(operation, {harness().Put(a), harness().Put(b)},
                                    name[0] == 'm' ? nullptr : &target);
    ASSERT_TRUE(result.ok()) << result.status();
    const HostArray got = harness().Get(*result);
    ASSERT_EQ(got.info.shape, (std::vector<int64_t>{4, 5, 2}));
    for (int64_t p = 0; p < 4; ++p) {
      for (int64_t l = 0; l < 5; ++l) {
        for (int64_t m = 0; m < 2; ++m) {
          Value expected = 0;
          for (int64_t n = 0; n < 3; ++n)
            expected += a.At((m * 5 + l) * 3 + n) * b.At((p * 3 + n) * 5 + l);
          ASSERT_EQ(got.At((p * 5 + l) * 2 + m), expected) << name;
        }
      }
    }
  }
  v1::Operation dot = GufuncOf("vecdot", 2);
  dot.mutable_gufunc()->set_axis(1);
  dot.mutable_gufunc()->set_keep_dims(true);
  const HostArray got = Compute(dot, {a, a});
  ASSERT_EQ(got.info.shape, (std::vector<int64_t>{2, 1, 3}));
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t k = 0; k < 3; ++k) {
      Value expected = 0;
      for (int64_t j = 0; j < 5; ++j) expected += std::norm(a.At((i * 5 + j) * 3 + k));
      EXPECT_EQ(got.At(i * 3 + k), expected);
    }
  }
}

TEST_F(FunctionTest, GufuncAcceptsHalfAndScalars) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const std::string name(Name(dtype)), id = "scaled_" + name;
    const std::string type = dtype == DType::kFloat16 ? "stride_float16" : "stride_bfloat16";
    const std::string source = "__device__ void body(stride_view<const " + type +
                               ", 1> x, stride_view<const " + type + ", 0> factor, stride_view<" +
                               type + R"(, 0> y) {
  float sum = 0;
  for (int i = 0; i < x.size(0); ++i) sum += x(i) * factor();
  y() = sum;
  y() += 1;
  y() = y() * 2 - 2;
}
)";
    const std::string signature = name + "," + name + "->" + name;
    Define(GufuncWith("(n),()->()", signature.c_str(), source.c_str()), id);
    const HostArray x = Make(dtype, {300, 4}, [](int64_t i) { return Value(i % 9); });
    v1::Operation operation = GufuncOf(id, 2);
    operation.mutable_gufunc()->mutable_inputs(1)->mutable_scalar()->set_float_value(0.5);
    auto result = harness().Compute(operation, {harness().Put(x), DeviceArray()});
    ASSERT_TRUE(result.ok()) << result.status();
    const HostArray got = harness().Get(*result);
    ASSERT_EQ(got.info.dtype, dtype);
    for (int64_t r = 0; r < 300; ++r) {
      Value sum = 0;
      for (int64_t i = 0; i < 4; ++i) sum += x.At(r * 4 + i);
      ASSERT_EQ(got.At(r), sum) << r;
    }
  }
}

TEST_F(FunctionTest, UfuncHasSeveralResults) {
  Define(UfuncWith({"float32->float32,int32,complex64", "float64->float64,int32,complex128"},
                   Text(R"(
__device__ void split(float x, float* part, int* whole, float2* both) {
  *whole = (int)x;
  *part = x - *whole;
  *both = make_float2(*whole, *part);
}
__device__ void split(double x, double* part, int* whole, double2* both) {
  *whole = (int)x;
  *part = x - *whole;
  *both = make_double2(*whole, *part);
}
)",
                        "split")),
         "split");
  v1::Function formulas = UfuncWith({}, Formula("a + b", {"a", "b"}));
  formulas.mutable_ufunc()->mutable_body()->mutable_expression()->add_more_texts("a > b");
  Define(formulas, "sum_and_order");
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32}) {
    const HostArray x = Make(dtype, {50, 7}, [](int64_t i) { return Value(i * 0.25); });
    v1::Operation operation = UfuncOf("split", 1);
    operation.add_outputs()->set_handle(101);
    operation.add_outputs()->set_handle(102);
    // The second result into an existing array, where the mask is true.
    const HostArray mask = Make(DType::kBool, {7}, [](int64_t i) { return Value(i % 2); });
    operation.mutable_ufunc()->mutable_where()->set_handle(3);
    const DeviceArray target =
        harness().Put(Make(DType::kInt64, {50, 7}, [](int64_t) { return Value(-5); }));
    auto results = harness().ComputeAll(operation, {harness().Put(x), harness().Put(mask)},
                                        {nullptr, &target, nullptr});
    ASSERT_TRUE(results.ok()) << results.status();
    const HostArray part = harness().Get((*results)[0]), whole = harness().Get(target),
                    both = harness().Get((*results)[2]);
    EXPECT_EQ(part.info.dtype, dtype == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64);
    EXPECT_EQ(both.info.dtype, dtype == DType::kFloat32 ? DType::kComplex64 : DType::kComplex128);
    for (int64_t i = 0; i < 350; ++i) {
      const double value = x.At(i).real(), floor = std::floor(value);
      const bool taken = i % 7 % 2 != 0;
      ASSERT_EQ(part.At(i), Value(taken ? value - floor : 0)) << i;
      ASSERT_EQ(whole.At(i), Value(taken ? floor : -5)) << i;
      ASSERT_EQ(both.At(i), taken ? Value(floor, value - floor) : Value(0)) << i;
    }
    v1::Operation pair = UfuncOf("sum_and_order", 2);
    pair.add_outputs()->set_handle(101);
    results = harness().ComputeAll(pair, {harness().Put(x), harness().Put(x)});
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)[0].info.dtype, dtype);
    EXPECT_EQ((*results)[1].info.dtype, DType::kBool);
    EXPECT_EQ(harness().Get((*results)[0]).At(9), x.At(9) * 2.0);
    harness().Reset();
  }
  // Neither reduces nor appears in an expression.
  auto refused = harness().Compute(
      ReduceBy("sum_and_order", {}),
      {harness().Put(Make(DType::kInt8, {4}, [](int64_t i) { return Value(i); }))});
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
}

}  // namespace
}  // namespace stride::conformance
