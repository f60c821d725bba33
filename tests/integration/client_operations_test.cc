// Every kind of operation that the C++ client supports, through a daemon, compared with results
// computed by hand.

#include <cmath>
#include <complex>

#include "gmock/gmock.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"

namespace stride::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ClientOperationsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    daemon_ = std::make_unique<Daemon>(std::vector<std::string>{}, Devices{.count = 1});
  }
  static void TearDownTestSuite() { daemon_.reset(); }

  template <typename T>
  Array Put(const std::vector<T>& data, std::vector<int64_t> shape) {
    return Must(client_.Put(data, std::move(shape)));
  }
  template <typename T>
  Array Put(const std::vector<T>& data) {
    return Put(data, {static_cast<int64_t>(data.size())});
  }
  template <typename T>
  std::vector<T> Value(const Operation& operation) {
    return Get<T>(client_, client_.Compute(operation));
  }

  static inline std::unique_ptr<Daemon> daemon_;
  Client client_ = daemon_->Connect();
};

TEST_F(ClientOperationsTest, UfuncWithCastingAndWhere) {
  const Array x = Put<float>({1, 2, 3, 4});
  std::vector<uint8_t> mask = {1, 0, 0, 1};
  const Array where =
      Must(client_.PutBytes(std::as_bytes(std::span(mask)), {DataType::kBool, {4}}));
  EXPECT_THAT(Value<float>(Operation::Ufunc("negative", {x}, UfuncOptions{.where = where})),
              ElementsAre(-1, 0, 0, -4));
  const auto refused = MustFail(client_.Fetch<int32_t>(client_.Compute(Operation::Ufunc(
      "add", {x, x}, UfuncOptions{.data_type = DataType::kInt32, .casting = Casting::kSafe}))));
  EXPECT_EQ(refused.code, Code::kInvalidArgument);
}

TEST_F(ClientOperationsTest, Reductions) {
  const Array x = Put<double>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_THAT(Value<double>(Operation::Reduce("maximum", {x}, {.axes = {1}})), ElementsAre(3, 6));
  EXPECT_THAT(Value<int64_t>(Operation::Reduce(Reduction::kCountNonzero, x)), ElementsAre(6));
  EXPECT_THAT(
      Value<double>(Operation::Reduce(Reduction::kMax, "-2 * x + 1", {{"x", x}}, {.axes = {1}})),
      ElementsAre(-1, -7));
  EXPECT_THAT(Value<double>(Operation::ReduceAt("add", x, Put<int64_t>({0, 1}), 1)),
              ElementsAre(1, 5, 4, 11));
}

TEST_F(ClientOperationsTest, AccumulateAndOuter) {
  const Array x = Put<int64_t>({1, 2, 3, 4});
  EXPECT_THAT(Value<int64_t>(Operation::Accumulate("add", x)), ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(Value<int64_t>(Operation::Accumulate("multiply", x, {.include_initial = true})),
              ElementsAre(1, 1, 2, 6, 24));
  EXPECT_THAT(
      Value<int64_t>(Operation::Outer("subtract", Put<int64_t>({10, 20}), Put<int64_t>({1, 2}))),
      ElementsAre(9, 8, 19, 18));
}

TEST_F(ClientOperationsTest, Indices) {
  const Array x = Put<float>({0, 10, 20, 30, 40, 50}, {2, 3});
  const Array columns = Put<int64_t>({2, 0, -1});
  EXPECT_THAT(Value<float>(Operation::Gather(x, {columns}, {.axis = 1})),
              ElementsAre(20, 0, 20, 50, 30, 50));
  Array y = Put<float>({0, 0, 0});
  client_.Compute(Operation::Scatter(Put<float>({1, 2}), {Put<int64_t>({2, 0})}).ToExisting(y));
  EXPECT_THAT(Get<float>(client_, y), ElementsAre(2, 0, 1));
  client_.Compute(
      Operation::ApplyAt("add", Put<float>({5, 5, 5}), {Put<int64_t>({1, 1, 0})}).ToExisting(y));
  EXPECT_THAT(Get<float>(client_, y), ElementsAre(7, 10, 1));
  EXPECT_THAT(
      Value<float>(Operation::Gather(y, {Put<int64_t>({3, 4})}, {.mode = IndexMode::kWrap})),
      ElementsAre(7, 10));
  const Error outside =
      MustFail(client_.Fetch<float>(client_.Compute(Operation::Gather(y, {Put<int64_t>({3})}))));
  EXPECT_TRUE(IsError(outside, Code::kOutOfRange, "DATA_OUT_OF_RANGE"));
}

TEST_F(ClientOperationsTest, MasksAndOrder) {
  const Array x = Put<int32_t>({5, 0, 7, 0, 9});
  const Array mask = client_.Ufunc("not_equal", {x, Operand(0)});
  EXPECT_THAT(Value<int32_t>(Operation::Compress(x, mask, 3)), ElementsAre(5, 7, 9));
  const auto places = client_.ComputeAll(Operation::Nonzero(x, 3, 1));
  ASSERT_THAT(places, SizeIs(1));
  EXPECT_THAT(Get<int64_t>(client_, places[0]), ElementsAre(0, 2, 4));
  EXPECT_THAT(Value<int32_t>(Operation::Sort(x, {.descending = true})), ElementsAre(9, 7, 5, 0, 0));
  EXPECT_THAT(Value<int64_t>(Operation::Sort(x, {.indices = true})), ElementsAre(1, 3, 0, 2, 4));
  EXPECT_THAT(Value<int64_t>(Operation::SearchSorted(Put<int32_t>({1, 3, 5}), Put<int32_t>({3, 6}),
                                                     /*right=*/true)),
              ElementsAre(2, 3));
}

TEST_F(ClientOperationsTest, SelectionAndKeys) {
  const double nan = std::nan("");
  const Array x = Put<double>({5, nan, 7, 0, 9});
  EXPECT_THAT(Value<double>(Operation::Select(x, Put<int64_t>({0, 2, -2}))), ElementsAre(0, 7, 9));
  const Error outside =
      MustFail(client_.Fetch<double>(client_.Compute(Operation::Select(x, Put<int64_t>({5})))));
  EXPECT_TRUE(IsError(outside, Code::kOutOfRange, "DATA_OUT_OF_RANGE"));
  EXPECT_EQ(Value<double>(Operation::Partition(x, {2}))[2], 7);
  EXPECT_EQ(Value<int64_t>(Operation::Partition(x, {0}, {.indices = true}))[0], 3);
  const Array names = Put<int32_t>({2, 1, 2, 1}), years = Put<int32_t>({9, 8, 7, 6});
  EXPECT_THAT(Value<int64_t>(Operation::Sort(names, {.indices = true, .more_keys = {years}})),
              ElementsAre(3, 1, 2, 0));
  EXPECT_THAT(Value<double>(Operation::Reduce(Reduction::kMean, x, {.skip_nan = true})),
              ElementsAre(5.25));
}

TEST_F(ClientOperationsTest, InterpolationAndConvolution) {
  const Array known = Put<double>({1, 2, 4}), values = Put<double>({10, 20, 0});
  const Array at = Put<double>({0, 1.5, 3, 9});
  EXPECT_THAT(Value<double>(Operation::Interpolate(at, known, values)), ElementsAre(10, 15, 10, 0));
  EXPECT_THAT(Value<double>(Operation::Interpolate(
                  at, known, values, {.left = Operand(-1.0), .right = Operand(-2.0)})),
              ElementsAre(-1, 15, 10, -2));
  const Array row = Put<int32_t>({1, 2, 3}), other = Put<int32_t>({0, 1, 5});
  EXPECT_THAT(Value<int32_t>(Operation::Correlate(row, other)), ElementsAre(17));
  EXPECT_THAT(Value<int32_t>(Operation::Convolve(row, other)), ElementsAre(0, 1, 7, 13, 15));
  EXPECT_THAT(Value<int32_t>(Operation::Convolve(row, other, CorrelateMode::kSame)),
              ElementsAre(1, 7, 13));
}

TEST_F(ClientOperationsTest, LinearAlgebra) {
  const Array a = Put<double>({4, 2, 2, 3}, {2, 2});
  EXPECT_THAT(Value<double>(Operation::Solve(a, Put<double>({8, 7}))),
              ElementsAre(::testing::DoubleNear(1.25, 1e-14), ::testing::DoubleNear(1.5, 1e-14)));
  EXPECT_NEAR(Value<double>(Operation::Cholesky(a))[0], 2, 1e-14);
  EXPECT_NEAR(Value<double>(Operation::Inverse(a))[0], 3.0 / 8, 1e-14);
  EXPECT_THAT(client_.ComputeAll(Operation::Qr(a)), SizeIs(2));
  const auto svd = client_.ComputeAll(Operation::Svd(a));
  ASSERT_THAT(svd, SizeIs(3));
  const auto singular = Get<double>(client_, svd[1]);
  EXPECT_NEAR(singular[0] * singular[1], 8, 1e-13);  // |det|
  const auto eigh = Value<double>(Operation::Eigh(a, {.values_only = true}));
  EXPECT_NEAR(eigh[0] + eigh[1], 7, 1e-14);  // the trace
  const auto lu = client_.ComputeAll(Operation::Lu(a));
  ASSERT_THAT(lu, SizeIs(2));
  EXPECT_THAT(Get<int64_t>(client_, lu[1]), ElementsAre(1, 2));
}

TEST_F(ClientOperationsTest, Transforms) {
  const Array x = Put<double>({1, 2, 3, 4});
  using Complex = std::complex<double>;
  const Complex want[] = {{10, 0}, {-2, 2}, {-2, 0}};
  const auto half = Value<Complex>(Operation::RealFft(x));
  ASSERT_THAT(half, SizeIs(3));
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(std::abs(half[i] - want[i]), 0, 1e-14);
  const Array spectrum = client_.Compute(Operation::RealFft(x));
  const auto back = Value<double>(Operation::InverseRealFft(spectrum));
  ASSERT_THAT(back, SizeIs(4));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(back[i], i + 1, 1e-14);
  const auto orthonormal =
      Value<Complex>(Operation::Fft(x, {.lengths = {2}, .norm = FftNorm::kForward}));
  ASSERT_THAT(orthonormal, SizeIs(2));
  EXPECT_NEAR(orthonormal[0].real(), 1.5, 1e-15);
  const auto inverse = Value<Complex>(Operation::InverseFft(x));
  EXPECT_NEAR(inverse[0].real(), 2.5, 1e-15);
}

TEST_F(ClientOperationsTest, RandomNumbers) {
  // The published result of Threefry-2x32-20 for a key and counter of zeros.
  EXPECT_THAT(Value<uint32_t>(Operation::Random(
                  {DataType::kUint32, {2}}, {.generator = RandomStream::Generator::kThreefry2x32},
                  RandomBits{})),
              ElementsAre(0x6b200159, 0x99ba4efe));
  const auto uniform =
      Value<float>(Operation::Random({DataType::kFloat32, {1000}}, {.key = 7}, Uniform{2, 3}));
  for (float value : uniform) EXPECT_TRUE(value >= 2 && value <= 3) << value;
  const auto again =
      Value<float>(Operation::Random({DataType::kFloat32, {1000}}, {.key = 7}, Uniform{2, 3}));
  EXPECT_EQ(uniform, again);
  for (int64_t value : Value<int64_t>(
           Operation::Random({DataType::kInt64, {1000}}, {.key = 7}, RandomIntegers{-3, 4})))
    EXPECT_TRUE(value >= -3 && value < 4) << value;
  EXPECT_THAT(
      Value<double>(Operation::Random({DataType::kFloat64, {100}}, {.key = 7}, Normal{5, 0})),
      ::testing::Each(5.0));
}

TEST_F(ClientOperationsTest, ClientFunctions) {
  const std::string mix = Must(client_.CreateFunction(
      {.id = "mix",
       .definition = UfuncDefinition{
           .signatures = {"float32,float32->float32"},
           .body = FunctionBody::DeviceFunction(
               "__device__ float mix(float a, float b) { return 2 * a + b; }", "mix")}}));
  EXPECT_THAT(Must(client_.ListFunctions()), ElementsAre(mix));
  const Array x = Put<float>({1, 2}), y = Put<float>({10, 20});
  EXPECT_THAT(Value<float>(Operation::Ufunc("mix", {x, y})), ElementsAre(12, 24));
  Must(client_.CreateFunction(
      {.id = "sum_squares",
       .definition = ReductionDefinition{.signatures = {"float32->float32"},
                                         .map = FunctionBody::Expression({"a * a"}, {"a"}),
                                         .combine = FunctionBody::Expression({"a + b"}, {"a", "b"}),
                                         .identity = Operand(0)}}));
  EXPECT_THAT(Value<float>(Operation::Reduce("sum_squares", {x})), ElementsAre(5));
  Must(client_.CreateFunction(
      {.id = "first_of",
       .definition = GufuncDefinition{
           .layout = "(n)->()",
           .signatures = {"float32->float32"},
           .body = FunctionBody::DeviceFunction(
               "__device__ void first_of(stride_view<const float, 1> in, stride_view<float, 0> "
               "out) { out() = in(0); }",
               "first_of")}}));
  EXPECT_THAT(Value<float>(Operation::Gufunc("first_of", {Put<float>({1, 2, 3, 4}, {2, 2})})),
              ElementsAre(1, 3));
  Must(client_.DeleteFunction(mix));
  const Error gone = MustFail(client_.Fetch<float>(client_.Ufunc("mix", {x, y})));
  EXPECT_EQ(gone.code, Code::kInvalidArgument) << gone.ToString();
}

TEST_F(ClientOperationsTest, BuiltInGufuncs) {
  const Array m = Put<double>({1, 2, 3, 4}, {2, 2}), v = Put<double>({1, 10});
  EXPECT_THAT(Value<double>(Operation::Gufunc("matvec", {m, v})), ElementsAre(21, 43));
  EXPECT_THAT(Value<double>(Operation::Gufunc("vecdot", {m, v})), ElementsAre(21, 43));
}

}  // namespace
}  // namespace stride::testing
