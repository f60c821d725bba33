// Results that a daemon computes on its devices, compared with plain C++.

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "gmock/gmock.h"
#include "stride/v1/kernel_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

class ComputeTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    daemon_ = std::make_unique<Daemon>(std::vector<std::string>{}, Devices{.count = 2});
  }
  static void TearDownTestSuite() { daemon_.reset(); }

  template <typename T>
  Array Put(const std::vector<T>& data, std::vector<int64_t> shape) {
    return Must(client_.Put(data, std::move(shape)));
  }

  static inline std::unique_ptr<Daemon> daemon_;
  Client client_ = daemon_->Connect();
};

template <typename T>
std::vector<T> ValuesOf(const RunReply::Value& value) {
  EXPECT_EQ(value.spec.data_type, DataTypeOf<T>()) << ToString(value.spec);
  std::vector<T> out(value.data.size() / sizeof(T));
  std::memcpy(out.data(), value.data.data(), value.data.size());
  return out;
}

TEST_F(ComputeTest, RunWithInlineArrays) {
  const std::vector<float> x = {0, 1, -2.5f, 1e3f};
  const auto called = std::chrono::system_clock::now();
  const auto reply = Must(client_.Run(
      Operation::Expression("cos(x)**2 + sin(x)**2", {{"x", Operand::Inline<float>(x, {2, 2})}})));
  const auto answered = std::chrono::system_clock::now();
  ASSERT_THAT(reply.values, SizeIs(1));
  EXPECT_EQ(reply.values[0].spec.shape, (std::vector<int64_t>{2, 2}));
  for (float value : ValuesOf<float>(reply.values[0])) EXPECT_NEAR(value, 1, 1e-6);
  std::string kind;
  for (const Device& device : Must(client_.ListDevices())) {
    if (device.name == reply.timeline.device) kind = device.kind;
  }
  EXPECT_EQ(kind, DeviceKind()) << reply.timeline.device;
  EXPECT_GT(reply.timeline.total.count(), 0);
  // The daemon runs on this machine, so its clock is ours.
  EXPECT_GE(reply.timeline.accepted, called);
  EXPECT_GE(reply.timeline.started, reply.timeline.accepted);
  EXPECT_GE(reply.timeline.ended, reply.timeline.started);
  EXPECT_GE(answered, reply.timeline.ended);
}

TEST_F(ComputeTest, RunOnEmptyAndZeroDimensional) {
  const auto empty =
      Must(client_.Run(Operation::Ufunc("add", {Operand::Inline<float>({}, {0, 3}), Operand(1)})));
  EXPECT_EQ(empty.values.at(0).spec.shape, (std::vector<int64_t>{0, 3}));
  const auto one = Must(client_.Run(Operation::Ufunc("add", {Operand(2), Operand(40)})));
  EXPECT_THAT(ValuesOf<int64_t>(one.values.at(0)), ElementsAre(42));
  const auto sum = Must(client_.Run(
      Operation::Reduce(Reduction::kSum, Operand::Inline<float>({}, {0, 3}), {.axes = {0}})));
  EXPECT_THAT(ValuesOf<float>(sum.values.at(0)), ElementsAre(0, 0, 0));
}

TEST_F(ComputeTest, ChainOfAThousand) {
  constexpr int kLength = 1000;
  std::vector<Array> chain;
  chain.push_back(client_.Zeros({DataType::kInt64, {1000}}));
  for (int i = 1; i <= kLength; ++i)
    chain.push_back(client_.Ufunc("add", {chain.back(), Operand(i)}));
  EXPECT_EQ(Get<int64_t>(client_, chain.back()),
            std::vector<int64_t>(1000, int64_t{kLength} * (kLength + 1) / 2));
  EXPECT_EQ(Get<int64_t>(client_, chain[10]), std::vector<int64_t>(1000, 55));
}

TEST_F(ComputeTest, DiamondsOfDependence) {
  Array a = client_.Arange(4096, DataType::kFloat64);
  for (int i = 0; i < 50; ++i) {
    Array left = client_.Ufunc("add", {a, Operand(1.0)});
    Array right = client_.Ufunc("multiply", {a, Operand(0.5)});
    a = client_.Ufunc("subtract", {left, right});
  }
  double want = 4095;
  for (int i = 0; i < 50; ++i) want = (want + 1) - want * 0.5;
  EXPECT_EQ(Get<double>(client_, a)[4095], want);
}

TEST_F(ComputeTest, FirstErrorIsReportedByEveryLaterUse) {
  Array a = Put(Iota<float>(3), {3});
  Array b = Put(Iota<float>(4), {4});
  Array wrong = client_.Ufunc("add", {a, b});
  Array later = client_.Ufunc("negative", {wrong});
  Array last = client_.Reduce(Reduction::kSum, later);
  for (const Array* array : {&wrong, &later, &last}) {
    const Error error = MustFail(client_.Fetch<float>(*array));
    EXPECT_TRUE(IsError(error, Code::kInvalidArgument, "SHAPE_MISMATCH"));
    EXPECT_THAT(error.message, HasSubstr("(3,)"));
  }
  EXPECT_EQ(Get<float>(client_, a), Iota<float>(3));
}

TEST_F(ComputeTest, ExistingOutput) {
  Array x = Put(Iota<double>(100, 1), {100});
  Array out = client_.Zeros({DataType::kFloat64, {100}});
  Array same = client_.Compute(Operation::Ufunc("sqrt", {x}).ToExisting(out));
  EXPECT_EQ(Get<double>(client_, out)[99], 10);
  // x += x, in place.
  client_.Compute(Operation::Ufunc("add", {x, x}).ToExisting(x));
  EXPECT_EQ(Get<double>(client_, x)[99], 200);
}

TEST_F(ComputeTest, EmptyArrayIsFilledByLaterOperations) {
  Array x = Put(Iota<double>(100000, 1), {100000});
  Array out = client_.Compute(Operation::Empty({DataType::kFloat64, {2, 100000}}));
  EXPECT_EQ(Get<double>(client_, out).size(), 200000);  // any values
  for (int64_t row : {0, 1}) {
    Array part = client_.SliceOf(out, {.axis = 0, .start = row, .stop = row + 1});
    client_.Compute(Operation::Copy(x).ToExisting(part));
  }
  const auto values = Get<double>(client_, out);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[199999], 100000);
}

TEST_F(ComputeTest, OverlappingOutputReadsOldValues) {
  for (int64_t step : {int64_t{1}, int64_t{3}}) {
    auto want = Iota<int64_t>(10000);
    Array x = Put(want, {10000});
    Array head = client_.SliceOf(x, {.axis = 0, .stop = -step});
    Array tail = client_.SliceOf(x, {.axis = 0, .start = step});
    client_.Compute(Operation::Ufunc("add", {head, Operand(1)}).ToExisting(tail));
    for (int64_t i = 9999; i >= step; --i) want[i] = want[i - step] + 1;
    EXPECT_EQ(Get<int64_t>(client_, x), want);
  }
  // The array's own reverse.
  auto want = Iota<int64_t>(10000);
  Array x = Put(want, {10000});
  Array reverse = client_.SliceOf(x, {.axis = 0, .step = -1});
  client_.Compute(Operation::Ufunc("positive", {reverse}).ToExisting(x));
  std::reverse(want.begin(), want.end());
  EXPECT_EQ(Get<int64_t>(client_, x), want);
}

// A write runs after the reads submitted earlier and before those submitted later.
TEST_F(ComputeTest, WritesAndReadsKeepTheirOrder) {
  Array x = client_.Zeros({DataType::kInt32, {5000}});
  std::vector<Array> copies;
  for (int i = 0; i < 100; ++i) {
    copies.push_back(client_.Compute(Operation::Copy(x)));
    client_.Compute(Operation::Ufunc("add", {x, Operand(1)}).ToExisting(x));
  }
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(Get<int32_t>(client_, copies[i]), std::vector<int32_t>(5000, i)) << i;
}

TEST_F(ComputeTest, ReductionsOverAxes) {
  // [4, 5, 6]
  std::vector<double> data(120);
  for (int i = 0; i < 120; ++i) data[i] = std::sin(i * 1.7) * 10;
  Array x = Put(data, {4, 5, 6});
  auto at = [&](int a, int b, int c) { return data[(a * 5 + b) * 6 + c]; };

  std::vector<double> sum(20), most(30, -INFINITY), mean(4);
  std::vector<double> norm(1);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 5; ++b)
      for (int c = 0; c < 6; ++c) {
        sum[a * 5 + b] += at(a, b, c);
        most[b * 6 + c] = std::max(most[b * 6 + c], at(a, b, c));
        mean[a] += at(a, b, c) / 30;
        norm[0] += at(a, b, c) * at(a, b, c);
      }
  norm[0] = std::sqrt(norm[0]);
  auto near = [](const std::vector<double>& got, const std::vector<double>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
  };
  near(Get<double>(client_, client_.Reduce(Reduction::kSum, x, {.axes = {2}})), sum);
  near(Get<double>(client_, client_.Reduce(Reduction::kSum, x, {.axes = {-1}})), sum);
  near(Get<double>(client_, client_.Reduce(Reduction::kMax, x, {.axes = {0}})), most);
  near(Get<double>(client_, client_.Reduce(Reduction::kMean, x, {.axes = {1, 2}})), mean);
  near(Get<double>(client_, client_.Reduce(Reduction::kNorm, x)), norm);
  Array kept = client_.Reduce(Reduction::kSum, x, {.axes = {0, 2}, .keep_dims = true});
  EXPECT_EQ(Must(kept.Spec()).shape, (std::vector<int64_t>{1, 5, 1}));
  // The input is a view that is not contiguous.
  near(Get<double>(client_, client_.Reduce(Reduction::kSum, client_.Transpose(x), {.axes = {0}})),
       [&] {
         std::vector<double> turned(20);
         for (int a = 0; a < 4; ++a)
           for (int b = 0; b < 5; ++b) turned[b * 4 + a] = sum[a * 5 + b];
         return turned;
       }());
}

TEST_F(ComputeTest, SmallIntegersAreSummedInWiderTypes) {
  Array x = Put(std::vector<int8_t>(100000, 100), {100000});
  Array sum = client_.Reduce(Reduction::kSum, x);
  EXPECT_EQ(Must(sum.Spec()).data_type, DataType::kInt64);
  EXPECT_THAT(Get<int64_t>(client_, sum), ElementsAre(10000000));
  Array product = client_.Reduce(Reduction::kProd, Put<uint8_t>({2, 3, 255}, {3}));
  EXPECT_THAT(Get<uint64_t>(client_, product), ElementsAre(1530));
}

TEST_F(ComputeTest, ArgminAndArgmaxReturnTheFirst) {
  Array x = Put<float>({3, 1, 2, 1, 5, 5}, {2, 3});
  EXPECT_THAT(Get<int64_t>(client_, client_.Reduce(Reduction::kArgmin, x)), ElementsAre(1));
  EXPECT_THAT(Get<int64_t>(client_, client_.Reduce(Reduction::kArgmax, x)), ElementsAre(4));
  EXPECT_THAT(Get<int64_t>(client_, client_.Reduce(Reduction::kArgmin, x, {.axes = {1}})),
              ElementsAre(1, 0));
  EXPECT_THAT(Get<int64_t>(client_, client_.Reduce(Reduction::kArgmax, x, {.axes = {0}})),
              ElementsAre(0, 1, 1));
  // NaN propagates, as in NumPy.
  Array nan = Put<float>({3, NAN, 2}, {3});
  EXPECT_THAT(Get<int64_t>(client_, client_.Reduce(Reduction::kArgmax, nan)), ElementsAre(1));
  EXPECT_TRUE(std::isnan(Get<float>(client_, client_.Reduce(Reduction::kMax, nan))[0]));
}

TEST_F(ComputeTest, AnyAndAll) {
  auto flag = [&](Reduction function, std::vector<float> values) {
    const int64_t size = values.size();
    Array result = client_.Reduce(function, Put(values, {size}));
    bool out[1];
    Must(client_.FetchInto(result, std::span<bool>(out)));
    return out[0];
  };
  EXPECT_TRUE(flag(Reduction::kAny, {0, 0, 2}));
  EXPECT_FALSE(flag(Reduction::kAny, {0, -0.0f}));
  EXPECT_TRUE(flag(Reduction::kAll, {1, NAN, 2}));
  EXPECT_FALSE(flag(Reduction::kAll, {1, 0, 2}));
  EXPECT_TRUE(flag(Reduction::kAll, {}));
}

TEST_F(ComputeTest, MatmulWithBatches) {
  // (3, 1, 4, 5) x (2, 5, 6) -> (3, 2, 4, 6), whole numbers that float32 holds exactly.
  std::vector<float> a(3 * 4 * 5), b(2 * 5 * 6), want(3 * 2 * 4 * 6);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(int(i * 7 % 11) - 5);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(int(i * 5 % 13) - 6);
  for (int p = 0; p < 3; ++p)
    for (int q = 0; q < 2; ++q)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 6; ++j)
          for (int k = 0; k < 5; ++k)
            want[((p * 2 + q) * 4 + i) * 6 + j] += a[(p * 4 + i) * 5 + k] * b[(q * 5 + k) * 6 + j];
  Array left = Put(a, {3, 1, 4, 5});
  Array right = Put(b, {2, 5, 6});
  Array product = client_.Matmul(left, right);
  EXPECT_EQ(Must(product.Spec()).shape, (std::vector<int64_t>{3, 2, 4, 6}));
  EXPECT_EQ(Get<float>(client_, product), want);
}

TEST_F(ComputeTest, MatmulOfVectorsViewsAndIntegers) {
  Array v = Put<double>({1, 2, 3}, {3});
  EXPECT_THAT(Get<double>(client_, client_.Matmul(v, v)), ElementsAre(14));
  Array m = Put(Iota<double>(6), {2, 3});
  EXPECT_THAT(Get<double>(client_, client_.Matmul(m, v)), ElementsAre(8, 26));
  EXPECT_THAT(Get<double>(client_, client_.Matmul(client_.Transpose(m), Put<double>({1, 10}, {2}))),
              ElementsAre(30, 41, 52));
  Array i = Put(Iota<int32_t>(4), {2, 2});
  EXPECT_THAT(Get<int32_t>(client_, client_.Matmul(i, i)), ElementsAre(2, 3, 6, 11));
  Array e = Put<float>({}, {2, 0});
  EXPECT_THAT(Get<float>(client_, client_.Matmul(e, Put<float>({}, {0, 2}))),
              ElementsAre(0, 0, 0, 0));
}

TEST_F(ComputeTest, Creation) {
  EXPECT_EQ(Get<int64_t>(client_, client_.Arange(5)), Iota<int64_t>(5));
  EXPECT_THAT(Get<double>(client_, client_.Compute(Operation::Arange(1.0, -0.5, -0.5))),
              ElementsAre(1, 0.5, 0));
  EXPECT_THAT(Get<double>(client_, client_.Linspace(0, 1, 5)), ElementsAre(0, 0.25, 0.5, 0.75, 1));
  EXPECT_EQ(Get<uint8_t>(client_, client_.Full({DataType::kUint8, {2, 3}}, 200)),
            std::vector<uint8_t>(6, 200));
  EXPECT_EQ(Get<std::complex<double>>(client_, client_.Full({DataType::kComplex128, {2}},
                                                            Operand(std::complex<double>(1, -2)))),
            std::vector<std::complex<double>>(2, {1, -2}));
  EXPECT_THAT(Get<float>(client_, client_.Zeros({DataType::kFloat32, {}})), ElementsAre(0));
}

TEST_F(ComputeTest, TypesFollowNumPy) {
  auto type_of = [&](const std::vector<Operand>& operands, const char* function) {
    return Must(client_.Ufunc(function, operands).Spec()).data_type;
  };
  Array i8 = client_.Zeros({DataType::kInt8, {2}});
  Array u8 = client_.Zeros({DataType::kUint8, {2}});
  Array f16 = client_.Zeros({DataType::kFloat16, {2}});
  Array i64 = client_.Zeros({DataType::kInt64, {2}});
  Array u64 = client_.Zeros({DataType::kUint64, {2}});
  Array f32 = client_.Zeros({DataType::kFloat32, {2}});
  EXPECT_EQ(type_of({i8, u8}, "add"), DataType::kInt16);
  EXPECT_EQ(type_of({i64, u64}, "add"), DataType::kFloat64);
  EXPECT_EQ(type_of({i8, f16}, "add"), DataType::kFloat16);
  EXPECT_EQ(type_of({i64, f32}, "add"), DataType::kFloat64);
  EXPECT_EQ(type_of({i8, i8}, "true_divide"), DataType::kFloat64);
  EXPECT_EQ(type_of({f32, Operand(2.5)}, "multiply"), DataType::kFloat32);
  EXPECT_EQ(type_of({i8, Operand(1)}, "add"), DataType::kInt8);
  EXPECT_EQ(type_of({i8, Operand(2.5)}, "add"), DataType::kFloat64);
  EXPECT_EQ(type_of({i8, Operand(1).As(DataType::kInt32)}, "add"), DataType::kInt32);
  EXPECT_EQ(type_of({f32, f32}, "less"), DataType::kBool);
}

TEST_F(ComputeTest, BroadcastAndWhere) {
  Array column = Put<float>({-1, 0, 1}, {3, 1});
  Array row = Put<float>({10, 20}, {2});
  EXPECT_THAT(Get<float>(client_, client_.Ufunc("add", {column, row})),
              ElementsAre(9, 19, 10, 20, 11, 21));
  Array y = client_.Expression("where(c > 0, r * 2, -r) + 0.5", {{"c", column}, {"r", row}});
  EXPECT_THAT(Get<float>(client_, y), ElementsAre(-9.5, -19.5, -9.5, -19.5, 20.5, 40.5));
}

TEST_F(ComputeTest, ArraysMoveBetweenDevices) {
  STRIDE_NEEDS_DEVICES(2);
  const auto data = Iota<int64_t>(100000);
  Array x = Put(data, {100000});
  Array on0 = client_.CopyTo(x, DeviceName(0));
  Array on1 = client_.CopyTo(x, DeviceName(1));
  Must(client_.Synchronize());
  EXPECT_THAT(Must(on0.Describe()).devices, ElementsAre(DeviceName(0)));
  EXPECT_THAT(Must(on1.Describe()).devices, ElementsAre(DeviceName(1)));
  // Each runs on the requested device, wherever its inputs are.
  for (const std::string& device : {DeviceName(0), DeviceName(1)}) {
    Array sum = client_.Compute(Operation::Ufunc("add", {on0, on1}).OnDevice(device),
                                ComputeOptions{.timeline = true});
    EXPECT_EQ(Get<int64_t>(client_, sum)[99999], 2 * 99999);
    EXPECT_EQ(Must(sum.Timeline()).device, device);
  }
  EXPECT_THAT(Must(on0.Describe()).devices, SizeIs(2)) << "the copy made for the sum is kept";
  // A write leaves one copy, the new one.
  client_.Compute(
      Operation::Ufunc("add", {on0, Operand(1)}).OnDevice(DeviceName(1)).ToExisting(on0));
  EXPECT_EQ(Get<int64_t>(client_, on0)[0], 1);
  EXPECT_THAT(Must(on0.Describe()).devices, ElementsAre(DeviceName(1)));
}

TEST_F(ComputeTest, MoveTransfersTheOnlyCopy) {
  STRIDE_NEEDS_DEVICES(2);
  const auto data = Iota<float>(5000);
  Array x = Put(data, {5000});
  for (const std::string& device : {DeviceName(1), DeviceName(0), DeviceName(1)}) {
    Array moved = client_.Compute(Operation::Move(x).OnDevice(device));
    EXPECT_EQ(Get<float>(client_, moved), data);
    EXPECT_THAT(Must(x.Describe()).devices, ElementsAre(device));
  }
  EXPECT_EQ(Get<float>(client_, x), data);
}

TEST_F(ComputeTest, ChainAcrossDevices) {
  STRIDE_NEEDS_DEVICES(2);
  Array x = client_.Zeros({DataType::kInt32, {1000}});
  for (int i = 0; i < 60; ++i) {
    const std::string device = DeviceName(i % 2);
    x = client_.Compute(Operation::Ufunc("add", {x, Operand(i)}).OnDevice(device));
  }
  EXPECT_EQ(Get<int32_t>(client_, x), std::vector<int32_t>(1000, 1770));
}

KernelOptions Launch(std::string source, std::string entry, Dim3 grid, Dim3 block,
                     std::vector<KernelArgument> arguments) {
  KernelOptions options;
  options.code = std::move(source);
  options.entry = std::move(entry);
  options.grid = grid;
  options.block = block;
  options.arguments = std::move(arguments);
  return options;
}

TEST_F(ComputeTest, KernelWithSharedMemoryAndBarriers) {
  const char* source = R"(
    extern "C" __global__ void block_sums(const int* x, int* out, int n) {
      extern __shared__ int partial[];
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      partial[threadIdx.x] = i < n ? x[i] : 0;
      __syncthreads();
      for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
      }
      if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
    })";
  const int n = 10000, blocks = (n + 127) / 128;
  const auto data = Iota<int32_t>(n);
  KernelOptions launch =
      Launch(source, "block_sums", {uint32_t(blocks)}, {128},
             {Put(data, {n}), KernelArgument::Out({DataType::kInt32, {blocks}}), n});
  launch.shared_memory_bytes = 128 * sizeof(int);
  std::vector<int32_t> want(blocks);
  for (int i = 0; i < n; ++i) want[i / 128] += i;
  auto out = client_.Kernel(launch);
  ASSERT_THAT(out, SizeIs(1));
  EXPECT_EQ(Get<int32_t>(client_, out[0]), want);
}

TEST_F(ComputeTest, KernelWithAtomics) {
  const char* source = R"(
    extern "C" __global__ void histogram(const unsigned char* x, unsigned int* bins, float* total, int n) {
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&bins[x[i]], 1u);
        atomicAdd(total, 1.0f);
      }
    })";
  std::vector<uint8_t> data(50000);
  std::vector<uint32_t> want(256);
  for (size_t i = 0; i < data.size(); ++i) ++want[data[i] = static_cast<uint8_t>(i * i / 7)];
  auto out =
      client_.Kernel(Launch(source, "histogram", {8}, {64},
                            {Put(data, {50000}), KernelArgument::Out({DataType::kUint32, {256}}),
                             KernelArgument::Out({DataType::kFloat32, {}}), 50000}));
  ASSERT_THAT(out, SizeIs(2));
  EXPECT_EQ(Get<uint32_t>(client_, out[0]), want);
  EXPECT_THAT(Get<float>(client_, out[1]), ElementsAre(50000));
}

TEST_F(ComputeTest, KernelAcceptsStructByValue) {
  const char* source = R"(
    struct Line { double slope; int offset; char sign; };
    extern "C" __global__ void evaluate(Line line, double* y) {
      int i = threadIdx.x;
      y[i] = (line.sign == '-' ? -1 : 1) * (line.slope * i + line.offset);
    })";
  struct Line {
    double slope;
    int offset;
    char sign;
  } line{};
  line.slope = 2.5;
  line.offset = 7;
  line.sign = '-';
  auto out = client_.Kernel(
      Launch(source, "evaluate", {1}, {4},
             {KernelArgument::Raw(std::string(reinterpret_cast<const char*>(&line), sizeof(line))),
              KernelArgument::Out({DataType::kFloat64, {4}})}));
  EXPECT_THAT(Get<double>(client_, out.at(0)), ElementsAre(-7, -9.5, -12, -14.5));
}

TEST_F(ComputeTest, TemplateByNameExpression) {
  const char* source = R"(
    template <typename T, int N> __global__ void scale(T* x, T by) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      x[i] = x[i] * by + N;
    })";
  Array f = Put<float>({1, 2}, {2});
  client_.Kernel(Launch(source, "scale<float, 3>", {1}, {2}, {f, 1.5}));
  EXPECT_THAT(Get<float>(client_, f), ElementsAre(4.5, 6));
  Array i = Put<int32_t>({1, 2}, {2});
  client_.Kernel(Launch(source, "scale<int, -1>", {1}, {2}, {i, 10}));
  EXPECT_THAT(Get<int32_t>(client_, i), ElementsAre(9, 19));
}

TEST_F(ComputeTest, KernelAcceptsEveryNumberType) {
  const char* source = R"(
    extern "C" __global__ void mix(bool b, signed char i8, unsigned short u16, int i32, long long i64,
                                   unsigned long long u64, float f, double d, double* out) {
      out[0] = b; out[1] = i8; out[2] = u16; out[3] = i32; out[4] = (double)i64; out[5] = (double)(u64 >> 1);
      out[6] = f; out[7] = d;
    })";
  auto out = client_.Kernel(
      Launch(source, "mix", {1}, {1},
             {Operand(true), -100, 60000, -2000000000, int64_t{1} << 52, uint64_t{1} << 63, 0.5,
              1e300, KernelArgument::Out({DataType::kFloat64, {8}})}));
  EXPECT_THAT(Get<double>(client_, out.at(0)),
              ElementsAre(1, -100, 60000, -2e9, 0x1p52, 0x1p62, 0.5, 1e300));
}

TEST_F(ComputeTest, KernelOrderAmongReadersAndWriters) {
  const char* source = R"(
    extern "C" __global__ void bump(int* x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
    extern "C" __global__ void read(const int* x, int* out) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      out[i] = x[i];
    })";
  Array x = client_.Zeros({DataType::kInt32, {256}});
  std::vector<Array> seen;
  for (int i = 0; i < 40; ++i) {
    client_.Kernel(Launch(source, "bump", {4}, {64}, {x}));
    auto out = client_.Kernel(
        Launch(source, "read", {4}, {64}, {x, KernelArgument::Out({DataType::kInt32, {256}})}));
    seen.push_back(std::move(out.at(0)));
  }
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(Get<int32_t>(client_, seen[i]), std::vector<int32_t>(256, i + 1)) << i;
}

TEST_F(ComputeTest, ModuleIsKeptUnderItsName) {
  const char* source = R"(
    #ifndef STEP
    #error "STEP is an option"
    #endif
    extern "C" __global__ void step(int* x) { x[threadIdx.x] += STEP; }
    extern "C" __global__ void zero(int* x) { x[threadIdx.x] = 0; })";
  const Module module =
      Must(client_.CreateModule({.code = source, .compiler_options = {"-DSTEP=5"}, .id = "steps"}));
  EXPECT_EQ(module.name, "tenants/default/modules/steps");
  ASSERT_THAT(module.kernels, SizeIs(2));
  for (const KernelInfo& kernel : module.kernels) {
    EXPECT_THAT(kernel.target, HasSubstr(DeviceKind() + ":"));
    EXPECT_THAT(kernel.parameter_types, ElementsAre(HasSubstr("int")));
  }
  Array x = Put<int32_t>({1, 2, 3}, {3});
  KernelOptions launch = Launch(module.name, "step", {1}, {3}, {x});
  launch.code_kind = CodeKind::kModule;
  client_.Kernel(launch);
  client_.Kernel(launch);
  EXPECT_THAT(Get<int32_t>(client_, x), ElementsAre(11, 12, 13));
  launch.entry = "zero";
  client_.Kernel(launch);
  EXPECT_THAT(Get<int32_t>(client_, x), ElementsAre(0, 0, 0));
  // Another session of the tenant sees it too.
  EXPECT_EQ(Must(daemon_->Connect().GetModule(module.name)).kernels.size(), 2u);
  EXPECT_THAT(Must(client_.ListModules()), SizeIs(1));
  Must(client_.DeleteModule(module.name));
  EXPECT_TRUE(
      IsError(MustFail(client_.GetModule(module.name)), Code::kNotFound, "MODULE_NOT_FOUND"));
}

TEST_F(ComputeTest, ModuleReportsKernelAttributes) {
  v1::CreateModuleRequest request;
  request.mutable_module()->set_source(R"(
    extern "C" __global__ void __launch_bounds__(256) shared(const float* x, char c, double* y) {
      __shared__ float tile[64];
      tile[threadIdx.x % 64] = x[threadIdx.x] * c;
      __syncthreads();
      y[threadIdx.x] = tile[63 - threadIdx.x % 64];
    }
    extern "C" __global__ void plain() {})");
  const auto response =
      Rpc(daemon_->address()).Get<v1::CreateModuleResponse>("KernelService/CreateModule", request);
  ASSERT_EQ(response.module().kernels_size(), 2);
  const v1::KernelInfo& shared = response.module().kernels(0);
  EXPECT_EQ(shared.entry(), "shared");
  EXPECT_EQ(shared.shared_bytes(), 256u);
  EXPECT_EQ(shared.max_threads_per_block(), 256u);
  ASSERT_EQ(shared.parameters_size(), 3);
  EXPECT_EQ(shared.parameters(0).type(), "const float*");
  EXPECT_EQ(shared.parameters(1).offset_bytes(), 8u);
  EXPECT_EQ(shared.parameters(1).size_bytes(), 1u);
  EXPECT_EQ(shared.parameters(2).offset_bytes(), 16u);
  const v1::KernelInfo& plain = response.module().kernels(1);
  EXPECT_TRUE(plain.has_shared_bytes());
  EXPECT_EQ(plain.max_threads_per_block(), 1024u);
  // A CPU device has no such attributes.
  const bool is_gpu = DeviceKind() == "cuda";
  for (const v1::KernelInfo& kernel : response.module().kernels()) {
    EXPECT_THAT(kernel.target(), StartsWith(DeviceKind() + ":"));
    EXPECT_EQ(kernel.has_registers(), is_gpu);
    EXPECT_EQ(kernel.has_local_bytes(), is_gpu);
    EXPECT_EQ(kernel.has_constant_bytes(), is_gpu);
    EXPECT_EQ(kernel.has_max_active_blocks(), is_gpu);
  }
}

TEST_F(ComputeTest, MatmulOfDifferentTypes) {
  const Array left = Put<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Array right = Put<float>({0.5f, 1, 2}, {3});
  const Array product = client_.Matmul(left, right);
  EXPECT_EQ(Must(product.Spec()).data_type, DataType::kFloat64) << "as int32 with float32";
  EXPECT_THAT(Get<double>(client_, product), ElementsAre(8.5, 19));
  const Array bytes = client_.Matmul(Put<int8_t>({100, 100}, {2}), Put<uint8_t>({200, 200}, {2}));
  EXPECT_THAT(Get<int16_t>(client_, bytes), ElementsAre(int16_t(40000 - 65536)));
  const Array too_short = client_.Matmul(Put<int8_t>({1, 0}, {2}), right);
  EXPECT_EQ(MustFail(client_.Fetch<float>(too_short)).reason, "SHAPE_MISMATCH");
}

TEST_F(ComputeTest, MatmulIntoAnExistingOutput) {
  const Array a = Put<float>({1, 2, 3, 4}, {2, 2});
  const Array b = Put<int16_t>({1, 1, 0, 1}, {2, 2});  // a @ b = [[1, 3], [3, 7]]
  // Into a transposed view with gaps around it, of a wider type.
  const Array whole = Put<double>(std::vector<double>(9, -1), {3, 3});
  const Array inner = client_.View(
      whole, ViewSteps().Transpose().Slice({.axis = 0, .stop = 2}).Slice({.axis = 1, .start = 1}));
  client_.ComputeAll(Operation::Matmul(a, b).ToExisting(inner));
  EXPECT_THAT(Get<double>(client_, whole), ElementsAre(-1, -1, -1, 1, 3, -1, 3, 7, -1));
  // Into one of its own inputs.
  client_.ComputeAll(Operation::Matmul(a, b).ToExisting(a));
  EXPECT_THAT(Get<float>(client_, a), ElementsAre(1, 3, 3, 7));
  // A cast that NumPy refuses.
  EXPECT_EQ(MustFail(client_.Run(Operation::Matmul(a, b).ToExisting(b))).reason,
            "DATA_TYPE_MISMATCH");
}

TEST_F(ComputeTest, NamedResult) {
  client_.Compute(Operation::Arange(0, 10, 1).ToName("tenants/default/arrays/ten"));
  Must(client_.Synchronize());
  Client other = daemon_->Connect();
  EXPECT_EQ(Get<int64_t>(other, other.Open("tenants/default/arrays/ten")), Iota<int64_t>(10));
  Must(other.DeleteArray("tenants/default/arrays/ten"));
}

TEST_F(ComputeTest, ManyClientsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      Client client = daemon_->Connect();
      Array x = client.Full({DataType::kInt64, {1000}}, t);
      for (int i = 0; i < 100; ++i) x = client.Ufunc("add", {x, Operand(t)});
      EXPECT_EQ(Get<int64_t>(client, x), std::vector<int64_t>(1000, 101 * t));
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace stride::testing
