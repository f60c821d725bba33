// Workloads from JAX: an expression compiled once and used often; a matrix times a batch of
// vectors.
#include <algorithm>
#include <cmath>

#include "client/examples/demo.h"

namespace stride::demo {
namespace {

Result<Check> Selu(Demo& demo, Phases& phases) {
  constexpr int64_t kCount = 1'000'000;
  auto x = Noise<float>(kCount, 8);
  for (float& value : x) value *= 10;
  DEMO_TRY(array, demo.Put(x, {kCount}, phases));
  const Operation selu =
      Operation::Expression("1.05 * where(x > 0, x, 1.67*exp(x) - 1.67)", {{"x", array}});
  DEMO_TRY(first, demo.Compute(selu, phases));
  DEMO_TRY(values, demo.Fetch<float>(first, phases));
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double v = x[i];
    const double expected = 1.05 * (v > 0 ? v : 1.67 * std::exp(v) - 1.67);
    // Small results are compared absolutely: 1.67*exp(x) - 1.67 cancels, and the constants are
    // rounded to float32.
    const double error = std::abs(values[i] - expected) / std::max(1.0, std::abs(expected));
    if (!(error <= worst)) worst = error;
  }
  // Repeat it with the compiled code cached.
  std::vector<double> replays;
  double recompiled = 0;
  for (int i = 0; i < 10; ++i) {
    Phases again;
    DEMO_TRY(replay, demo.Compute(selu, again));
    replays.push_back(Milliseconds(again.run));
    recompiled += Milliseconds(again.compile);
  }
  std::sort(replays.begin(), replays.end());
  return Check{values.size() == x.size() && worst < 5e-7,
               Text("error %.1e; 10 replays: median %.2f ms, compile %.2f ms in all", worst,
                    replays[5], recompiled)};
}

// vmap: one matrix, a batch of vectors.
Result<Check> BatchedMatvec(Demo& demo, Phases& phases) {
  constexpr int64_t kRows = 150, kColumns = 100, kBatch = 10;
  const auto a = Noise<float>(kRows * kColumns, 9);
  const auto v = Noise<float>(kBatch * kColumns, 10);
  DEMO_TRY(matrix, demo.Put(a, {kRows, kColumns}, phases));
  DEMO_TRY(vectors, demo.Put(v, {kBatch, kColumns, 1}, phases));
  DEMO_TRY(product, demo.Compute(Operation::Matmul(matrix, vectors), phases));
  DEMO_TRY(values, demo.Fetch<float>(product, phases));
  if (values.size() != kBatch * kRows) return Check{false, "the result has another size"};
  double worst = 0;
  for (int64_t g = 0; g < kBatch; ++g) {
    for (int64_t i = 0; i < kRows; ++i) {
      double sum = 0;
      for (int64_t l = 0; l < kColumns; ++l)
        sum += static_cast<double>(a[static_cast<size_t>(i * kColumns + l)]) *
               v[static_cast<size_t>(g * kColumns + l)];
      const double error = std::abs(values[static_cast<size_t>(g * kRows + i)] - sum);
      if (!(error <= worst)) worst = error;
    }
  }
  return Check{worst < 2e-5, Text("largest error %.1e", worst)};
}

}  // namespace

void RunJax(Demo& demo) {
  demo.Run("selu: 1e6 float32", [&](Phases& phases) { return Selu(demo, phases); });
  demo.Run("150x100 matrix by a batch of 10 vectors",
           [&](Phases& phases) { return BatchedMatvec(demo, phases); });
}

}  // namespace stride::demo
