// Workloads from Numba: custom kernels and ufuncs.
#include <cmath>

#include "client/examples/demo.h"

namespace stride::demo {
namespace {

constexpr char kGridStrideAdd[] =
    R"(extern "C" __global__ void add(const float* x, const float* y, float* out, int n) {
  int start = blockIdx.x * blockDim.x + threadIdx.x;
  int stride = blockDim.x * gridDim.x;
  for (int i = start; i < n; i += stride) out[i] = x[i] + y[i];
})";

constexpr char kIntAdd[] =
    R"(extern "C" __global__ void add(const int* x, const int* y, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
})";

Result<Check> GridStrideAdd(Demo& demo, Phases& phases) {
  constexpr int64_t kCount = 100'000;
  const auto x = Noise<float>(kCount, 1);
  const auto y = Noise<float>(kCount, 2);
  DEMO_TRY(a, demo.Put(x, {kCount}, phases));
  DEMO_TRY(b, demo.Put(y, {kCount}, phases));
  KernelOptions launch;
  launch.code = kGridStrideAdd;
  launch.entry = "add";
  launch.grid = {30};
  launch.block = {128};
  launch.arguments = {a, b, KernelArgument::Out({DataType::kFloat32, {kCount}}),
                      static_cast<int32_t>(kCount)};
  DEMO_TRY(sum, demo.Compute(Operation::Kernel(launch), phases));
  DEMO_TRY(sums, demo.Fetch<float>(sum, phases));
  std::vector<float> expected(x);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += y[i];
  return Same(sums, expected, "3,840 threads, 100,000 sums exact");
}

Result<Check> UfuncAdd(Demo& demo, Phases& phases) {
  constexpr int64_t kCount = 100'000;
  const auto x = Noise<float>(kCount, 3);
  const auto y = Noise<float>(kCount, 4);
  DEMO_TRY(a, demo.Put(x, {kCount}, phases));
  DEMO_TRY(b, demo.Put(y, {kCount}, phases));
  DEMO_TRY(sum, demo.Compute(Operation::Ufunc("add", {a, b}), phases));
  DEMO_TRY(sums, demo.Fetch<float>(sum, phases));
  std::vector<float> expected(x);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += y[i];
  return Same(sums, expected, "exact");
}

// cos^2 + sin^2 is 1 for every x, so the reference needs no other implementation. Arguments up to
// 1e7 need exact range reduction.
Result<Check> CosSin(Demo& demo, Phases& phases) {
  constexpr int64_t kCount = 10'000'000;
  const auto x = Counting<float>(kCount);
  DEMO_TRY(array, demo.Put(x, {kCount}, phases));
  DEMO_TRY(y, demo.Compute(Operation::Expression("cos(x)**2 + sin(x)**2", {{"x", array}}), phases));
  DEMO_TRY(values, demo.Fetch<float>(y, phases));
  if (values.size() != static_cast<size_t>(kCount))
    return Check{false, "the result has another size"};
  double worst = 0;
  for (const float value : values) {
    // The negated comparison also catches NaN.
    const double error = std::abs(static_cast<double>(value) - 1.0);
    if (!(error <= worst)) worst = error;
  }
  constexpr double kUlp = 1.1920928955078125e-7;
  return Check{worst <= 4 * kUlp, Text("1 everywhere, at most %.1f ULP off", worst / kUlp)};
}

// Compares the cosine alone with the C++ library's double: a range reduction that is wrong for both
// functions would pass the test above.
Result<Check> CosOfLargeArguments(Demo& demo, Phases& phases) {
  const int64_t count = 1'000'000;
  std::vector<float> x = Counting<float>(count);
  for (float& value : x) value = value * 10 + 0.5f;
  DEMO_TRY(array, demo.Put(x, {count}, phases));
  DEMO_TRY(y, demo.Compute(Operation::Ufunc("cos", {array}), phases));
  DEMO_TRY(values, demo.Fetch<float>(y, phases));
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double error =
        std::abs(static_cast<double>(values[i]) - std::cos(static_cast<double>(x[i])));
    if (!(error <= worst)) worst = error;
  }
  return Check{values.size() == x.size() && worst <= 2.4e-7,
               Text("at most %.1e from the double's cosine", worst)};
}

Result<Check> IntAdd(Demo& demo, Phases& phases, const std::string& device) {
  constexpr int64_t kCount = 4096;
  DEMO_TRY(a, demo.Put(Counting<int32_t>(kCount), {kCount}, phases));
  DEMO_TRY(b, demo.Put(std::vector<int32_t>(kCount, 1), {kCount}, phases));
  KernelOptions launch;
  launch.code = kIntAdd;
  launch.entry = "add";
  launch.grid = {32};
  launch.block = {128};
  launch.arguments = {a, b, KernelArgument::Out({DataType::kInt32, {kCount}}),
                      static_cast<int32_t>(kCount)};
  DEMO_TRY(sum, demo.Compute(Operation::Kernel(launch).OnDevice(device), phases));
  DEMO_TRY(sums, demo.Fetch<int32_t>(sum, phases));
  std::vector<int32_t> expected(kCount);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<int32_t>(i) + 1;
  return Same(sums, expected, "1..4096");
}

}  // namespace

void RunNumba(Demo& demo) {
  demo.Run("grid-stride add [30, 128]: 100,000 float32",
           [&](Phases& phases) { return GridStrideAdd(demo, phases); });
  demo.Run("ufunc add: 100,000 float32", [&](Phases& phases) { return UfuncAdd(demo, phases); });
  demo.Run("cos(x)**2 + sin(x)**2: 1e7 float32",
           [&](Phases& phases) { return CosSin(demo, phases); });
  demo.Run("cos(x), x up to 1e7: 1e6 float32",
           [&](Phases& phases) { return CosOfLargeArguments(demo, phases); });
  demo.Run("int32 add [32, 128]: 4,096", [&](Phases& phases) { return IntAdd(demo, phases, ""); });
  for (const Device& device : demo.devices()) {
    demo.Run("the same on each device",
             [&](Phases& phases) { return IntAdd(demo, phases, device.name); });
  }
}

}  // namespace stride::demo
