// Workloads from CUDA.jl, for one device or many: a split product, a long sum, slices of one array.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "client/examples/demo.h"

namespace stride::demo {
namespace {

constexpr int64_t kPeriod = 1009;

// Element of the matrix of MatvecByColumns: exact in float32, and cheap to compute on client and
// device.
double Element(int64_t i, int64_t j) {
  return static_cast<double>((i * 7 + j * 13) % kPeriod - 504) / 512;
}

struct MatvecSize {
  int64_t rows, columns;
};

// The full size is 12 GB. Each device takes an equal share, at most an eighth of its memory, since
// a CPU device shares the host's memory.
MatvecSize ScaledSize(const Demo& demo) {
  const int64_t rows = demo.quick() ? 1000 : 10'000;
  const int64_t full = demo.quick() ? 10'000 : 300'000;
  int64_t share = INT64_MAX;
  for (const Device& device : demo.devices())
    share = std::min(share, device.memory_total_bytes / 8);
  const auto num_devices = static_cast<int64_t>(demo.devices().size());
  const int64_t fitting = share / (rows * 4) * num_devices;
  const int64_t columns = std::clamp<int64_t>(fitting, num_devices, full);
  if (columns < 300'000 || rows < 10'000) {
    std::printf("  The split product is scaled from 10000x300000 to %lldx%lld: %s.\n",
                static_cast<long long>(rows), static_cast<long long>(columns),
                demo.quick() ? "--quick" : "an eighth of each device's memory");
  }
  return {rows, columns};
}

// y = A x with columns split over all devices. The original workload did not sum the partial
// products.
Result<Check> MatvecByColumns(Demo& demo, Phases& phases, MatvecSize size) {
  const auto x = Noise<float>(size.columns, 11);
  const auto num_devices = static_cast<int64_t>(demo.devices().size());
  std::vector<Array> blocks, pieces;
  std::vector<const Device*> owners;
  for (int64_t d = 0; d < num_devices; ++d) {
    const int64_t begin = size.columns * d / num_devices;
    const int64_t end = size.columns * (d + 1) / num_devices;
    const Device& device = demo.devices()[static_cast<size_t>(d)];
    DEMO_TRY(piece, demo.Put(std::vector<float>(x.begin() + begin, x.begin() + end), {end - begin},
                             phases));
    // Generate the block on its device: the matrix itself is never transferred.
    const Array i = demo.client().Compute(
        Operation::Arange(0, size.rows, 1, DataType::kFloat32).OnDevice(device.name));
    const Array j = demo.client().Compute(
        Operation::Arange(begin, end, 1, DataType::kFloat32).OnDevice(device.name));
    const Array column = demo.client().Reshape(i, {size.rows, 1});
    DEMO_TRY(block,
             demo.Compute(Operation::Expression("((i * 7 + j * 13) % 1009 - 504) * 0.001953125",
                                                {{"i", column}, {"j", j}}, DataType::kFloat32)
                              .OnDevice(device.name),
                          phases));
    blocks.push_back(std::move(block));
    pieces.push_back(std::move(piece));
    owners.push_back(&device);
  }
  // Launch all before waiting for any, so that devices work concurrently.
  const auto start = std::chrono::steady_clock::now();
  std::vector<Array> partial;
  for (size_t d = 0; d < blocks.size(); ++d) {
    partial.push_back(
        demo.client().Compute(Operation::Matmul(blocks[d], pieces[d]).OnDevice(owners[d]->name)));
  }
  Array y = std::move(partial[0]);
  for (size_t d = 1; d < partial.size(); ++d) y = demo.client().Ufunc("add", {y, partial[d]});
  DEMO_TRY(values, demo.Fetch<float>(y, phases));
  const auto took = std::chrono::steady_clock::now() - start;

  if (values.size() != static_cast<size_t>(size.rows))
    return Check{false, "the result has another size"};
  // Rows repeat with kPeriod, so the reference computes only that many rows.
  const int64_t distinct = std::min(size.rows, kPeriod);
  std::vector<double> expected(static_cast<size_t>(distinct)), scale(static_cast<size_t>(distinct));
  for (int64_t i = 0; i < distinct; ++i) {
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < size.columns; ++j) {
      const double product = Element(i, j) * x[static_cast<size_t>(j)];
      sum += product;
      squares += product * product;
    }
    expected[static_cast<size_t>(i)] = sum;
    scale[static_cast<size_t>(i)] = std::sqrt(squares);
  }
  // Random rounding error grows with the root of the count; sequential summation may add another
  // root.
  const double unit = 4 * std::sqrt(static_cast<double>(size.columns)) * 6e-8;
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i % static_cast<size_t>(distinct);
    const double error = std::abs(values[i] - expected[row]) / (unit * scale[row]);
    if (!(error <= worst)) worst = error;
  }
  return Check{worst <= 1,
               Text("%lld device(s), product and sum of parts in %.2f ms, error %.2f of the bound",
                    static_cast<long long>(num_devices), Milliseconds(took), worst)};
}

Result<Check> LongSum(Demo& demo, Phases& phases) {
  const int64_t count = demo.quick() ? 3'000'000 : 30'000'000;
  auto x = Noise<float>(count, 12);
  long double expected = 0;
  for (float& value : x) {
    value = std::abs(value);
    expected += value;
  }
  DEMO_TRY(array, demo.Put(x, {count}, phases));
  DEMO_TRY(sum, demo.Compute(Operation::Reduce(Reduction::kSum, array), phases));
  DEMO_TRY(value, demo.Fetch<float>(sum, phases));
  double error = std::abs(static_cast<double>(value[0]) - static_cast<double>(expected)) /
                 static_cast<double>(expected);
  std::vector<double> times;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    DEMO_TRY(again, demo.client().Fetch<float>(demo.client().Reduce(Reduction::kSum, array)));
    times.push_back(Milliseconds(std::chrono::steady_clock::now() - start));
    // The order of additions depends on the device, so compare with a tolerance.
    error =
        std::max(error, std::abs(static_cast<double>(again[0]) - static_cast<double>(expected)) /
                            static_cast<double>(expected));
  }
  std::sort(times.begin(), times.end());
  return Check{error < 1e-6, Text("relative error %.1e; 20 times: median %.2f ms, slowest %.2f ms",
                                  error, times[10], times[19])};
}

// Sums the same numbers in one part per device.
Result<Check> LongSumOverDevices(Demo& demo, Phases& phases) {
  const int64_t count = demo.quick() ? 3'000'000 : 30'000'000;
  auto x = Noise<float>(count, 12);
  long double expected = 0;
  for (float& value : x) {
    value = std::abs(value);
    expected += value;
  }
  const auto num_devices = static_cast<int64_t>(demo.devices().size());
  std::vector<Array> parts;
  for (int64_t d = 0; d < num_devices; ++d) {
    const auto begin = x.begin() + count * d / num_devices;
    const auto end = x.begin() + count * (d + 1) / num_devices;
    PutOptions options;
    options.device = demo.devices()[static_cast<size_t>(d)].name;
    DEMO_TRY(part, demo.Put(std::vector<float>(begin, end), {end - begin}, phases, options));
    parts.push_back(std::move(part));
  }
  std::vector<double> times;
  double error = 0;
  for (int round = 0; round < 20; ++round) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<Array> sums;
    for (size_t d = 0; d < parts.size(); ++d) {
      sums.push_back(demo.client().Compute(
          Operation::Reduce(Reduction::kSum, parts[d]).OnDevice(demo.devices()[d].name)));
    }
    double total = 0;
    for (const Array& sum : sums) {
      DEMO_TRY(value, demo.client().Fetch<float>(sum));
      total += value[0];
    }
    times.push_back(Milliseconds(std::chrono::steady_clock::now() - start));
    error = std::max(
        error, std::abs(total - static_cast<double>(expected)) / static_cast<double>(expected));
  }
  phases.device = "all";
  std::sort(times.begin(), times.end());
  return Check{error < 1e-6, Text("relative error %.1e; 20 times: median %.2f ms, slowest %.2f ms",
                                  error, times[10], times[19])};
}

// c[:,:,g] = a[:,:,g] + b[:,:,g] with one device per g: several devices write views of one array.
Result<Check> Slices(Demo& demo, Phases& phases) {
  const int64_t n = demo.quick() ? 100 : 1000;
  const auto num_slices = std::max<int64_t>(3, static_cast<int64_t>(demo.devices().size()));
  const int64_t count = n * n * num_slices;
  const auto x = Noise<float>(count, 13);
  const auto y = Noise<float>(count, 14);
  const std::vector<int64_t> shape = {n, n, num_slices};
  DEMO_TRY(a, demo.Put(x, shape, phases));
  DEMO_TRY(b, demo.Put(y, shape, phases));
  const Array c = demo.client().Zeros({DataType::kFloat32, shape});
  for (int64_t g = 0; g < num_slices; ++g) {
    const ViewSteps slice = ViewSteps().Index(2, g);
    const Array a_g = demo.client().View(a, slice);
    const Array b_g = demo.client().View(b, slice);
    const Array c_g = demo.client().View(c, slice);
    const Device& device = demo.devices()[static_cast<size_t>(g) % demo.devices().size()];
    DEMO_TRY(done,
             demo.Compute(Operation::Ufunc("add", {a_g, b_g}).ToExisting(c_g).OnDevice(device.name),
                          phases));
  }
  DEMO_TRY(values, demo.Fetch<float>(c, phases));
  std::vector<float> expected(x);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += y[i];
  return Same(values, expected, Text("%lld slices exact", static_cast<long long>(num_slices)));
}

}  // namespace

void RunJulia(Demo& demo) {
  const MatvecSize size = ScaledSize(demo);
  demo.Run(Text("%lldx%lld float32 by a vector, split", static_cast<long long>(size.rows),
                static_cast<long long>(size.columns)),
           [&](Phases& phases) { return MatvecByColumns(demo, phases, size); });
  demo.Run(Text("sum of %s float32", demo.quick() ? "3e6" : "3e7"),
           [&](Phases& phases) { return LongSum(demo, phases); });
  if (demo.devices().size() > 1) {
    demo.Run("the same sum over all devices",
             [&](Phases& phases) { return LongSumOverDevices(demo, phases); });
  }
  demo.Run("c[:,:,g] = a[:,:,g] + b[:,:,g]", [&](Phases& phases) { return Slices(demo, phases); });
}

}  // namespace stride::demo
