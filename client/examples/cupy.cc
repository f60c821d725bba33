// Workloads from CuPy: whole-array arithmetic, and the raw kernel with two mistakes.
#include <cmath>
#include <cstring>

#include "client/examples/demo.h"

namespace stride::demo {
namespace {

constexpr int64_t kCount = 100'000;

Result<Check> ArangeSumNorm(Demo& demo, Phases& phases) {
  DEMO_TRY(x, demo.Compute(Operation::Arange(0, kCount, 1), phases));
  DEMO_TRY(y, demo.Compute(Operation::Ufunc("multiply", {2, x}), phases));
  DEMO_TRY(z, demo.Compute(Operation::Ufunc("add", {x, y}), phases));
  DEMO_TRY(sum, demo.Compute(Operation::Reduce(Reduction::kSum, x), phases));
  DEMO_TRY(norm, demo.Compute(Operation::Reduce(Reduction::kNorm, x), phases));
  DEMO_TRY(z_values, demo.Fetch<int64_t>(z, phases));
  DEMO_TRY(sum_value, demo.Fetch<int64_t>(sum, phases));
  DEMO_TRY(norm_value, demo.Fetch<double>(norm, phases));

  std::vector<int64_t> expected(kCount);
  int64_t total = 0;
  long double squares = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    expected[static_cast<size_t>(i)] = 3 * i;
    total += i;
    squares += static_cast<long double>(i) * static_cast<long double>(i);
  }
  const double expected_norm = static_cast<double>(std::sqrt(squares));
  if (auto same = Same(z_values, expected, ""); !same.good) return same;
  // 704982704 is the value after int32 wraps around.
  if (sum_value[0] != total)
    return Check{false, Text("the sum is %lld, not %lld", static_cast<long long>(sum_value[0]),
                             static_cast<long long>(total))};
  const double error = std::abs(norm_value[0] - expected_norm) / expected_norm;
  return Check{error < 1e-14,
               Text("sum %lld, norm %.8f", static_cast<long long>(sum_value[0]), norm_value[0])};
}

// The kernel of CuPy's tutorial: `int` pointers and no bounds check of the index.
constexpr char kAddWithoutBounds[] =
    R"(extern "C" __global__ void add(const int* a, const int* b, int* c) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  c[i] = a[i] + b[i];
})";

KernelOptions AddLaunch(const Array& a, const Array& b, DataType type, uint32_t blocks,
                        uint32_t threads) {
  KernelOptions launch;
  launch.code = kAddWithoutBounds;
  launch.entry = "add";
  launch.grid = {blocks};
  launch.block = {threads};
  launch.arguments = {a, b, KernelArgument::Out({type, {kCount}})};
  return launch;
}

Result<Check> WrongTypeIsRefused(Demo& demo, Phases& phases) {
  const auto values = Counting<int64_t>(kCount);
  DEMO_TRY(a, demo.Put(values, {kCount}, phases));
  DEMO_TRY(b, demo.Put(values, {kCount}, phases));
  const auto made = demo.client().Kernel(AddLaunch(a, b, DataType::kInt64, 250, 1024));
  const auto ended = made.at(0).Wait();
  if (ended) return Check{false, "int64 arrays were taken for const int*"};
  const Error& error = ended.error();
  return Check{error.code == Code::kInvalidArgument && error.reason == "DATA_TYPE_MISMATCH",
               "refused: " + error.message};
}

// Launches 256,000 threads over 100,000 elements. Every other array must keep its bits and the
// device must keep serving, whether the launch fails or not.
Result<Check> OutOfBoundsIsContained(Demo& demo, Phases& phases, const Device& device) {
  const auto values = Counting<int32_t>(kCount);
  const auto guard = Noise<double>(kCount, 99);
  PutOptions here;
  here.device = device.name;
  // Arrays allocated before, between and after lie on both sides of the output, wherever the
  // allocator places them.
  DEMO_TRY(before, demo.Put(guard, {kCount}, phases, here));
  DEMO_TRY(a, demo.Put(values, {kCount}, phases, here));
  DEMO_TRY(between, demo.Put(guard, {kCount}, phases, here));
  DEMO_TRY(b, demo.Put(values, {kCount}, phases, here));
  DEMO_TRY(after, demo.Put(guard, {kCount}, phases, here));
  const auto wild = demo.client().ComputeAll(
      Operation::Kernel(AddLaunch(a, b, DataType::kInt32, 250, 1024)).OnDevice(device.name));
  const auto ended = wild.at(0).Wait();

  for (const Array* neighbour : {&before, &between, &after}) {
    DEMO_TRY(bits, demo.Fetch<double>(*neighbour, phases));
    if (std::memcmp(bits.data(), guard.data(), guard.size() * sizeof(double)) != 0)
      return Check{false, "a neighbour's array was CHANGED"};
  }
  for (const Array* input : {&a, &b}) {
    DEMO_TRY(bits, demo.Fetch<int32_t>(*input, phases));
    if (bits != values) return Check{false, "an input array was CHANGED"};
  }
  // 125 blocks of 800 threads match the number of elements exactly.
  DEMO_TRY(sum,
           demo.Compute(
               Operation::Kernel(AddLaunch(a, b, DataType::kInt32, 125, 800)).OnDevice(device.name),
               phases));
  DEMO_TRY(sums, demo.Fetch<int32_t>(sum, phases));
  std::vector<int32_t> expected(values);
  for (int32_t& value : expected) value *= 2;
  if (auto same = Same(sums, expected, ""); !same.good) return same;
  const std::string outcome =
      ended ? "the launch ended"
            : "the launch failed (" +
                  (ended.error().reason.empty() ? std::string(Name(ended.error().code))
                                                : ended.error().reason) +
                  ")";
  return Check{true, outcome + "; all 5 other arrays bit-equal, the device goes on"};
}

}  // namespace

void RunCupy(Demo& demo) {
  demo.Run("arange, 2x, add, sum, norm: 100,000 int64",
           [&](Phases& phases) { return ArangeSumNorm(demo, phases); });
  demo.Run("raw kernel, const int* given int64",
           [&](Phases& phases) { return WrongTypeIsRefused(demo, phases); });
  for (const Device& device : demo.devices()) {
    demo.Run("raw kernel, 156,000 threads out of bounds",
             [&](Phases& phases) { return OutOfBoundsIsContained(demo, phases, device); });
  }
}

}  // namespace stride::demo
