// Matrix products, timed with and without copies.
#include <cmath>
#include <limits>

#include "client/examples/demo.h"

namespace stride::demo {
namespace {

// Rows to check: all rows of small products, and of large ones few enough to keep the client fast.
std::vector<int64_t> RowsToCheck(int64_t rows, int64_t work_per_row) {
  constexpr int64_t kMaxWork = 300'000'000;
  const int64_t count = std::max<int64_t>(4, std::min(rows, kMaxWork / work_per_row));
  std::vector<int64_t> picked;
  for (int64_t i = 0; i < std::min(rows, count); ++i)
    picked.push_back(i * rows / std::min(rows, count));
  return picked;
}

// Compares with sums in double. The bound is eight times the random rounding error of T, so a
// product in a shorter type (TF32) fails.
template <typename T>
Check CompareRows(const std::vector<T>& got, const std::vector<T>& a, const std::vector<T>& b,
                  int64_t m, int64_t k, int64_t n) {
  if (got.size() != static_cast<size_t>(m * n)) return {false, "the result has another size"};
  const double unit = 8 * std::sqrt(static_cast<double>(k)) * std::numeric_limits<T>::epsilon();
  double worst = 0;
  const auto rows = RowsToCheck(m, k * n);
  std::vector<double> sum(static_cast<size_t>(n));
  std::vector<double> size(static_cast<size_t>(n));
  for (const int64_t i : rows) {
    std::fill(sum.begin(), sum.end(), 0);
    std::fill(size.begin(), size.end(), 0);
    for (int64_t l = 0; l < k; ++l) {
      const double left = a[static_cast<size_t>(i * k + l)];
      const T* right = b.data() + l * n;
      for (int64_t j = 0; j < n; ++j) {
        const double product = left * right[j];
        sum[static_cast<size_t>(j)] += product;
        size[static_cast<size_t>(j)] = std::max(size[static_cast<size_t>(j)], std::abs(product));
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      const double error =
          std::abs(got[static_cast<size_t>(i * n + j)] - sum[static_cast<size_t>(j)]);
      const double relative =
          error /
          (unit * std::sqrt(static_cast<double>(k)) * size[static_cast<size_t>(j)] + 1e-300);
      if (!(relative <= worst)) worst = relative;
    }
  }
  return {worst <= 1, Text("%zu of %lld rows checked, error %.2f of the bound", rows.size(),
                           static_cast<long long>(m), worst)};
}

// Rate of the run time alone, and the time with both copies.
std::string Rates(const Phases& phases, int64_t m, int64_t k, int64_t n) {
  const double flop =
      2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  const double run = Milliseconds(phases.run);
  return Text("%.0f GFLOP/s in %.2f ms, with copies %.2f ms; ", run > 0 ? flop / run / 1e6 : 0, run,
              Milliseconds(phases.Total()));
}

template <typename T>
Result<Check> Product(Demo& demo, Phases& phases, int64_t m, int64_t k, int64_t n) {
  const auto a = Noise<T>(m * k, 5);
  const auto b = Noise<T>(k * n, 6);
  DEMO_TRY(left, demo.Put(a, {m, k}, phases));
  DEMO_TRY(right, demo.Put(b, {k, n}, phases));
  DEMO_TRY(product, demo.Compute(Operation::Matmul(left, right), phases));
  DEMO_TRY(values, demo.Fetch<T>(product, phases));
  Check check = CompareRows(values, a, b, m, k, n);
  check.text = Rates(phases, m, k, n) + check.text;
  return check;
}

Result<Check> TimesTranspose(Demo& demo, Phases& phases, int64_t n) {
  const auto a = Noise<float>(n * n, 7);
  DEMO_TRY(left, demo.Put(a, {n, n}, phases));
  const Array right = demo.client().Transpose(left);
  DEMO_TRY(product, demo.Compute(Operation::Matmul(left, right), phases));
  DEMO_TRY(values, demo.Fetch<float>(product, phases));
  std::vector<float> transposed(a.size());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j)
      transposed[static_cast<size_t>(j * n + i)] = a[static_cast<size_t>(i * n + j)];
  }
  Check check = CompareRows(values, a, transposed, n, n, n);
  check.text = Rates(phases, n, n, n) + check.text;
  return check;
}

}  // namespace

void RunMatmul(Demo& demo) {
  demo.Run("matmul 1024x2048 by 2048x512 float32",
           [&](Phases& p) { return Product<float>(demo, p, 1024, 2048, 512); });
  demo.Run("matmul 1024x2048 by 2048x512 float64",
           [&](Phases& p) { return Product<double>(demo, p, 1024, 2048, 512); });
  demo.Run("matmul 1000x1000 float64",
           [&](Phases& p) { return Product<double>(demo, p, 1000, 1000, 1000); });
  for (const int64_t n : {64, 256, 1024, 4096}) {
    if (demo.quick() && n > 1024) continue;
    demo.Run(Text("matmul %lld squared float32", static_cast<long long>(n)),
             [&](Phases& p) { return Product<float>(demo, p, n, n, n); });
  }
  const int64_t n = demo.quick() ? 600 : 3000;
  demo.Run(Text("matmul %lld squared by its transpose float32", static_cast<long long>(n)),
           [&](Phases& p) { return TimesTranspose(demo, p, n); });
}

}  // namespace stride::demo
