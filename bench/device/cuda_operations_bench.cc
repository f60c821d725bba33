// cuda_operations_bench: products, expressions, reductions, sorts, scans, masks and groups as the
// CUDA device runs them in a worker, without a daemon, beside what bounds them: cuBLAS called
// directly on the same memory, or the driver's copy of as many bytes. A turn is so many in a row,
// of which the last is waited for; its time is that of one. Ours and the baseline's in turns. Every
// result is checked.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/check.h"
#include "bench/device/cublas.h"
#include "bench/device/cuda_harness.h"
#include "bench/device/cuda_operation.h"
#include "bench/device/main.h"
#include "bench/device/options.h"
#include "bench/device/values.h"
#include "bench/service/report.h"

namespace stride::bench {
namespace {

constexpr char kUsage[] =
    "Usage: cuda_operations_bench [--rounds=N] [--only=ID] [--json=FILE] [--quick]\n"
    "       --only keeps the rows whose id holds the word; --quick: small arrays, to see whether "
    "it "
    "runs\n";

// A turn takes at least so long that the wait at its end does not show, or has so many.
constexpr double kTurnSeconds = 5e-3;
constexpr int kMostInARow = 256;

// Elements after which an input repeats itself.
constexpr int64_t kPeriod = 1 << 20;

struct CudaOptions : Options {
  bool quick = false;
};

std::optional<CudaOptions> Parse(int argc, char** argv) {
  CudaOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (argument == "--quick")
      options.quick = true;
    else if (equals == std::string::npos ||
             !TakeOption(argument.substr(0, equals), argument.substr(equals + 1), &options))
      return std::nullopt;
  }
  return options;
}

// A number of them in a row, until the last is done.
using Work = std::function<void(int)>;

struct Baseline {
  std::string name;
  Work work;
  double share = 1;  // of its time that stands for one of ours
  bool is_limit = false;
};

// An elementwise expression of the inputs x, y and z, and what it comes to.
struct Expression {
  const char* name;
  const char* text;
  int num_inputs;
  double (*expected)(double x, double y, double z);
};

template <typename T>
std::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// What an input has, over and over; the `i`-th input of an operation has values of its own.
template <typename T>
std::vector<T> PatternOf(int i) {
  std::vector<T> values(kPeriod);
  for (int64_t j = 0; j < kPeriod; ++j) values[j] = ValueAt<T>(j + i * 1'000'003);
  return values;
}

void CheckClose(const std::string& id, int64_t place, double got, double want, double tolerance) {
  if (!(std::fabs(got - want) <= tolerance * std::fabs(want)))
    Die(id + ": result " + std::to_string(place) + " is " + std::to_string(got) + ", not " +
        std::to_string(want));
}

class Bench {
 public:
  Bench(CudaHarness& harness, const CudaOptions& options, Report& report)
      : harness_(harness), options_(options), report_(report) {}

  void Run() {
    report_.AddDevice("cuda:0", harness_.description().model());
    report_.Section("Operations on the CUDA device, without a daemon");
    Products<float>();
    Products<double>();
    Expressions();
    Sum();
    MatrixByVector();
    Sorts();
    RunningSums();
    Masked();
    Groups();
  }

 private:
  static int InARow(const Work& work) {
    work(1);
    int count = 1;
    while (count < kMostInARow && SecondsOf([&] { work(count); }) < kTurnSeconds) count *= 2;
    return count;
  }

  void Compare(const std::string& id, const std::string& what, const Work& ours,
               const Baseline& baseline, int64_t bytes = 0) {
    const int count = std::max(InARow(ours), InARow(baseline.work));
    auto turn = [count](const Work& work) { return SecondsOf([&] { work(count); }) / count; };
    turn(ours);
    turn(baseline.work);
    Times our_times, their_times;
    for (int i = 0; i < options_.rounds; ++i) {
      our_times.Add(turn(ours));
      their_times.Add(turn(baseline.work) * baseline.share);
    }
    report_.Add({.id = "device/" + id + "/cuda:0",
                 .what = what + ", one of " + std::to_string(count) + " in a row",
                 .ours = our_times,
                 .baseline_name = baseline.name,
                 .baseline = their_times,
                 .bytes = bytes,
                 .limit_s = baseline.is_limit ? their_times.median() : 0,
                 .limit_name = baseline.name});
  }

  // The driver's copy on the device, at the rate at which it reads and writes an array of many
  // times what caches hold (50 MB on an H100).
  Baseline CopyOf(int64_t bytes) {
    const uint64_t size = options_.quick ? 16 << 20 : 512 << 20;
    if (!copies_) copies_ = Expect(harness_.CreateArena(harness_.NewId(), 2 * size));
    const CUdeviceptr address = copies_->address();
    return {"the driver's copy of as many bytes",
            [this, address, size](int count) {
              for (int i = 0; i < count; ++i) harness_.Copy(address + size, address, size);
              harness_.Synchronize();
            },
            static_cast<double>(bytes) / (2 * static_cast<double>(size)), /*is_limit=*/true};
  }

  template <typename T>
  void Products() {
    const std::string type(Name(TypeOf<T>()));
    Multiply<T>("matmul_1024x2048x512_" + type, 1024, 2048, 512);
    if (TypeOf<T>() == DType::kFloat64) Multiply<T>("matmul_1000_" + type, 1000, 1000, 1000);
    for (int side : {512, 1024, 2048, 4096, 8192}) {
      if (!options_.quick || side <= 1024)
        Multiply<T>("matmul_" + std::to_string(side) + "_" + type, side, side, side);
    }
    if (TypeOf<T>() == DType::kFloat32)
      Multiply<T>("matmul_3000_by_its_transpose_" + type, 3000, 3000, 3000, /*by_itself=*/true);
  }

  // m x k by k x n; `by_itself`: by its own transpose, which is a view.
  template <typename T>
  void Multiply(const std::string& id, int m, int k, int n, bool by_itself = false) {
    if (!options_.Wants(id)) return;
    const ArrayInfo left = Contiguous(TypeOf<T>(), {m, k});
    ArrayInfo right = Contiguous(TypeOf<T>(), {k, n});
    if (by_itself) std::swap(right.strides[0], right.strides[1]);
    const DeviceOperation planned(MatmulOf(), {left, right}, by_itself);
    const int64_t num_results = static_cast<int64_t>(m) * n;
    auto operation = Expect(
        CudaOperation::Create(harness_, planned, static_cast<uint64_t>(num_results) * sizeof(T)));
    harness_.Fill(operation->Input(0), left.size_bytes(), BytesOf(PatternOf<T>(0)));
    if (!by_itself)
      harness_.Fill(operation->Input(1), right.size_bytes(), BytesOf(PatternOf<T>(1)));
    if (!cublas_) cublas_.emplace(harness_.stream());
    const Cublas::Product product{
        m, n, k, operation->Input(0), operation->Input(1), operation->Spare(), by_itself};
    const Work cublas = [&](int count) {
      for (int i = 0; i < count; ++i) cublas_->Multiply(TypeOf<T>(), product);
      harness_.Synchronize();
    };
    Compare(id, id, [&](int count) { operation->Run(count); }, {"cuBLAS directly", cublas});
    const std::vector<T> got = Results<T>(operation->Output(), num_results);
    const std::vector<T> want = Results<T>(operation->Spare(), num_results);
    const double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-12;
    for (int64_t i = 0; i < num_results; ++i) CheckClose(id, i, got[i], want[i], tolerance);
  }

  template <typename T>
  std::vector<T> Results(CUdeviceptr from, int64_t count) {
    std::vector<T> values(count);
    harness_.Read(values.data(), from, count * sizeof(T));
    return values;
  }

  void Expressions() {
    constexpr Expression kExpressions[] = {
        {"add", "x + y", 2, [](double x, double y, double) { return x + y; }},
        {"multiply_add", "x + y * z", 3, [](double x, double y, double z) { return x + y * z; }},
        {"choose", "where(x > 128, y, z)", 3,
         [](double x, double y, double z) { return x > 128 ? y : z; }},
    };
    for (const Expression& expression : kExpressions)
      Elementwise(expression, options_.quick ? 1'000'000 : 100'000'000,
                  {PatternOf<float>(0), PatternOf<float>(1), PatternOf<float>(2)});
    // Of 0, 1, 2, ..., which have to be brought into a period.
    std::vector<float> ramp(options_.quick ? 100'000 : 10'000'000);
    std::iota(ramp.begin(), ramp.end(), 0.0f);
    Elementwise(
        {"trigonometric", "cos(x)**2 + sin(x)**2", 1, [](double, double, double) { return 1.0; }},
        static_cast<int64_t>(ramp.size()), {ramp});
  }

  // `patterns` has at least as many as the expression has inputs.
  void Elementwise(const Expression& expression, int64_t count,
                   const std::vector<std::vector<float>>& patterns) {
    const std::string id = expression.name;
    if (!options_.Wants(id)) return;
    const ArrayInfo array = Contiguous(DType::kFloat32, {count});
    const DeviceOperation planned(ExpressionOf(expression.text, expression.num_inputs),
                                  std::vector<ArrayInfo>(expression.num_inputs, array));
    auto operation = Expect(CudaOperation::Create(harness_, planned));
    for (int i = 0; i < expression.num_inputs; ++i)
      harness_.Fill(operation->Input(i), array.size_bytes(), BytesOf(patterns[i]));
    const int64_t bytes = (expression.num_inputs + 1) * array.size_bytes();
    Compare(
        id, std::string(expression.text) + ", " + std::to_string(count) + " float32",
        [&](int times) { operation->Run(times); }, CopyOf(bytes), bytes);
    const std::vector<float> got = Results<float>(operation->Output(), count);
    auto value = [&](size_t input, int64_t i) {
      return input < patterns.size() ? patterns[input][i % patterns[input].size()] : 0;
    };
    for (int64_t i = 0; i < count; ++i)
      CheckClose(id, i, got[i], expression.expected(value(0, i), value(1, i), value(2, i)), 1e-6);
  }

  void Sum() {
    const std::string id = "sum";
    if (!options_.Wants(id)) return;
    const ArrayInfo array = Contiguous(DType::kFloat32, {options_.quick ? 1'000'000 : 30'000'000});
    auto operation = Expect(CudaOperation::Create(
        harness_, DeviceOperation(ReductionOf(v1::Reduction::FUNCTION_SUM, {}), {array})));
    const std::vector<float> pattern = PatternOf<float>(0);
    harness_.Fill(operation->Input(0), array.size_bytes(), BytesOf(pattern));
    Compare(
        id, "sum, " + std::to_string(array.num_elements()) + " float32",
        [&](int times) { operation->Run(times); }, CopyOf(array.size_bytes()), array.size_bytes());
    double want = 0;
    for (int64_t i = 0; i < array.num_elements(); ++i) want += pattern[i % kPeriod];
    CheckClose(id, 0, Results<float>(operation->Output(), 1)[0], want, 1e-5);
  }

  // With fewer rows where the device has no room for all.
  void MatrixByVector() {
    const std::string id = "matvec";
    if (!options_.Wants(id)) return;
    const int64_t most_rows = options_.quick ? 100 : 10'000, columns = 300'000;
    const ArrayInfo vector = Contiguous(DType::kFloat32, {columns});
    int64_t rows = most_rows;
    auto create = [&] {
      const ArrayInfo matrix = Contiguous(DType::kFloat32, {rows, columns});
      return CudaOperation::Create(harness_, DeviceOperation(MatmulOf(), {matrix, vector}));
    };
    const int64_t bytes_of_row = columns * static_cast<int64_t>(sizeof(float));
    CopyOf(0);  // which needs memory too
    auto made = create();
    for (; absl::IsResourceExhausted(made.status()) && rows > 1; made = create()) rows /= 2;
    auto operation = Expect(std::move(made));
    const std::vector<float> matrix = PatternOf<float>(0), factors = PatternOf<float>(1);
    harness_.Fill(operation->Input(0), rows * bytes_of_row, BytesOf(matrix));
    harness_.Fill(operation->Input(1), vector.size_bytes(), BytesOf(factors));
    const int64_t bytes = (rows + 1) * bytes_of_row + rows * static_cast<int64_t>(sizeof(float));
    const std::string what =
        std::to_string(rows) + "x" + std::to_string(columns) + " float32 by a vector" +
        (rows < most_rows ? " (" + std::to_string(most_rows) + " rows do not fit)" : "");
    Compare(
        id, what, [&](int times) { operation->Run(times); }, CopyOf(bytes), bytes);
    const std::vector<float> got = Results<float>(operation->Output(), rows);
    for (int64_t row = 0; row < rows; row += std::max<int64_t>(1, rows / 64)) {
      double want = 0;
      for (int64_t i = 0; i < columns; ++i)
        want += static_cast<double>(matrix[(row * columns + i) % kPeriod]) * factors[i];
      CheckClose(id, row, got[row], want, 1e-4);
    }
  }

  int64_t Count(int64_t count) const { return options_.quick ? count / 10 : count; }

  // One operation beside the copy of the bytes that it has to read and write at least.
  template <typename T>
  std::vector<T> Routine(const std::string& id, const v1::Operation& described,
                         const std::vector<ArrayInfo>& inputs,
                         const std::vector<std::string_view>& patterns, int64_t num_results) {
    auto operation = Expect(CudaOperation::Create(harness_, DeviceOperation(described, inputs)));
    int64_t bytes = num_results * static_cast<int64_t>(sizeof(T));
    for (size_t i = 0; i < inputs.size(); ++i) {
      harness_.Fill(operation->Input(static_cast<int>(i)), inputs[i].size_bytes(), patterns[i]);
      bytes += inputs[i].size_bytes();
    }
    Compare(
        id, id + ", " + std::to_string(inputs[0].num_elements()) + " elements",
        [&](int times) { operation->Run(times); }, CopyOf(bytes), bytes);
    return Results<T>(operation->Output(), num_results);
  }

  // Elements without a pattern, as a sort sees them.
  template <typename T>
  std::vector<T> Shuffled(int64_t count) {
    std::vector<T> values(count);
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<T>(static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u >> 40);
    return values;
  }

  void Sorts() {
    const int64_t count = Count(10'000'000);
    const std::vector<float> values = Shuffled<float>(count);
    const ArrayInfo array = Contiguous(DType::kFloat32, {count});
    v1::Operation sort;
    sort.mutable_sort()->mutable_input()->set_handle(1);
    sort.add_outputs()->set_handle(100);
    if (options_.Wants("sort")) {
      const auto got = Routine<float>("sort", sort, {array}, {BytesOf(values)}, count);
      for (int64_t i = 1; i < count; ++i)
        if (!(got[i - 1] <= got[i])) Die("sort: result " + std::to_string(i) + " is less");
    }
    if (options_.Wants("argsort")) {
      sort.mutable_sort()->set_indices(true);
      const auto got = Routine<int64_t>("argsort", sort, {array}, {BytesOf(values)}, count);
      for (int64_t i = 1; i < count; ++i) {
        const float before = values[got[i - 1]], after = values[got[i]];
        if (before > after || (before == after && got[i - 1] > got[i]))
          Die("argsort: result " + std::to_string(i) + " is out of order");
      }
    }
  }

  void RunningSums() {
    if (!options_.Wants("cumsum")) return;
    const int64_t count = Count(30'000'000);
    const std::vector<float> pattern = PatternOf<float>(0);
    v1::Operation operation;
    operation.mutable_accumulation()->set_function("add");
    operation.mutable_accumulation()->mutable_input()->set_handle(1);
    operation.add_outputs()->set_handle(100);
    const auto got = Routine<float>("cumsum", operation, {Contiguous(DType::kFloat32, {count})},
                                    {BytesOf(pattern)}, count);
    double want = 0;
    for (int64_t i = 0; i < count; ++i) {
      want += pattern[i % kPeriod];
      if (i % 1000 == 0) CheckClose("cumsum", i, got[i], want, 1e-4);
    }
  }

  void Masked() {
    if (!options_.Wants("compress")) return;
    const int64_t count = Count(10'000'000);
    const std::vector<float> values = Shuffled<float>(count);
    std::vector<uint8_t> mask(count);
    std::vector<float> want;
    for (int64_t i = 0; i < count; ++i) {
      mask[i] = static_cast<int64_t>(values[i]) % 2 != 0;
      if (mask[i] != 0) want.push_back(values[i]);
    }
    v1::Operation operation;
    operation.mutable_compress()->mutable_input()->set_handle(1);
    operation.mutable_compress()->mutable_mask()->set_handle(2);
    operation.mutable_compress()->set_count(static_cast<int64_t>(want.size()));
    operation.add_outputs()->set_handle(100);
    const auto got =
        Routine<float>("compress", operation,
                       {Contiguous(DType::kFloat32, {count}), Contiguous(DType::kBool, {count})},
                       {BytesOf(values), BytesOf(mask)}, static_cast<int64_t>(want.size()));
    if (got != want) Die("compress: the elements differ");
  }

  void Groups() {
    if (!options_.Wants("group_sum")) return;
    constexpr int64_t kGroups = 1000;
    const int64_t count = Count(10'000'000);
    std::vector<int64_t> groups = Shuffled<int64_t>(count);
    std::vector<double> want(kGroups);
    const std::vector<float> pattern = PatternOf<float>(0);
    for (int64_t i = 0; i < count; ++i) {
      groups[i] %= kGroups;
      want[groups[i]] += pattern[i % kPeriod];
    }
    v1::Operation operation;
    auto* reduce = operation.mutable_group_reduce();
    reduce->set_function("add");
    reduce->mutable_values()->set_handle(1);
    reduce->mutable_groups()->set_handle(2);
    reduce->set_num_groups(kGroups);
    operation.add_outputs()->set_handle(100);
    const auto got =
        Routine<float>("group_sum", operation,
                       {Contiguous(DType::kFloat32, {count}), Contiguous(DType::kInt64, {count})},
                       {BytesOf(pattern), BytesOf(groups)}, kGroups);
    for (int64_t i = 0; i < kGroups; ++i) CheckClose("group_sum", i, got[i], want[i], 1e-4);
  }

  CudaHarness& harness_;
  const CudaOptions options_;
  Report& report_;
  std::optional<Cublas> cublas_;
  std::optional<cuda::ArenaMapping> copies_;
};

}  // namespace
}  // namespace stride::bench

int main(int argc, char** argv) {
  using namespace stride::bench;
  return RunProgram(Parse(argc, argv), kUsage, [](const CudaOptions& options, Report& report) {
    const auto harness = CudaHarness::Start();
    if (harness.ok())
      Bench(**harness, options, report).Run();
    else
      report.AddMissing("operations on a GPU: no device of kind cuda: " +
                        std::string(harness.status().message()));
  });
}
