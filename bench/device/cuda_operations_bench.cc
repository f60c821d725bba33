// cuda_operations_bench: a client's operations as the CUDA device runs them in a worker, without a
// daemon, next to the toolkit's libraries on the same memory (CUB, cuBLAS and so on), or the
// driver's copy of as many bytes. A turn is so many in a row, of which the last is waited for; its
// time is that of one. Ours and the baseline's in turns. Every result is checked.
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
#include "bench/device/cuda_program.h"
#include "bench/device/main.h"
#include "bench/device/options.h"
#include "bench/device/routine.h"
#include "bench/device/values.h"
#include "bench/service/report.h"
#if STRIDE_BENCH_CUB
#include "bench/device/cub_work.h"
#include "bench/device/routines.h"
#endif

namespace stride::bench {
namespace {

constexpr char kUsage[] =
    "Usage: cuda_operations_bench [--rounds=N] [--only=WORD,...] [--json=FILE] [--quick] [--plan]\n"
    "       --only keeps the rows whose id holds one of the words; --quick: small arrays, to see\n"
    "       whether it runs; --plan: plans the rows beyond products and expressions and compiles\n"
    "       them for sm_90, without a device\n";

// A turn takes at least so long that the wait at its end does not show, or has so many.
constexpr double kTurnSeconds = 5e-3;
constexpr int kMostInARow = 256;

// Elements after which an input repeats itself.
constexpr int64_t kPeriod = 1 << 20;

struct CudaOptions : Options {
  bool quick = false, plan = false;
};

std::optional<CudaOptions> Parse(int argc, char** argv) {
  CudaOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (argument == "--quick")
      options.quick = true;
    else if (argument == "--plan")
      options.plan = true;
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
  double share = 1;  // the part of its time that one of our operations corresponds to
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

// The repeated values of an input, which differ for each index `i` of an input.
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
    MatrixByVector();
    OtherRoutines();
  }

  // Rows of which the result was wrong.
  bool failed() const { return failed_; }

 private:
  static int InARow(const Work& work, int most) {
    work(1);
    int count = 1;
    while (2 * count <= most && SecondsOf([&] { work(count); }) < kTurnSeconds) count *= 2;
    return count;
  }

  void Compare(const std::string& id, const std::string& what, const Work& ours,
               const Baseline& baseline, int64_t bytes = 0, double copy_seconds = 0,
               int most = kMostInARow) {
    const int count = std::max(InARow(ours, most), InARow(baseline.work, most));
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
                 .limit_s = baseline.is_limit ? their_times.median() : copy_seconds,
                 .limit_name = "the driver's copy of as many bytes"});
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
    // Large arguments 0, 1, 2, ... need range reduction.
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

  void OtherRoutines() {
#if STRIDE_BENCH_CUB
    if (const std::string why = cub_work::Unavailable(); !why.empty()) {
      report_.AddMissing("rows next to CUB: " + why);
      return;
    }
    Libraries libraries(harness_.stream(),
                        [this](CUdeviceptr to, CUdeviceptr from, uint64_t bytes) {
                          harness_.Copy(to, from, bytes);
                        });
    for (const NamedRoutine& row : Routines(options_.quick, libraries)) {
      if (options_.Wants(row.id)) Measure(row.id, row.make());
    }
#else
    report_.AddMissing("rows next to CUB: built without nvcc");
#endif
  }

  void Measure(const std::string& id, const Routine& routine) {
    std::vector<ArrayInfo> inputs;
    for (const Given& given : routine.inputs) inputs.push_back(given.info);
    CudaProgram program(harness_, routine.operations, inputs, routine.in_place ? 1 : 100);
    const uint64_t result_bytes = program.result().size_bytes();
    Places places{.result = program.Spare()};
    for (size_t i = 0; i < inputs.size(); ++i) {
      places.inputs.push_back(program.Input(static_cast<int>(i)));
      harness_.Fill(places.inputs.back(), inputs[i].size_bytes(), *routine.inputs[i].elements);
    }
    if (routine.in_place) harness_.Copy(program.Spare(), program.Input(0), result_bytes);
    harness_.Synchronize();
    if (const absl::Status status = program.Run(1); !status.ok()) {
      Failed(id, status.ToString());
      return;
    }
    std::string want;
    Baseline baseline = CopyOf(routine.moved);
    const double copy_seconds = SecondsOfCopy() * static_cast<double>(routine.moved);
    if (routine.baseline) {
      baseline = {routine.baseline_name, [this, enqueue = routine.baseline(places)](int count) {
                    for (int i = 0; i < count; ++i) enqueue();
                    harness_.Synchronize();
                  }};
      baseline.work(1);
      want = BytesAt(program.Spare(), result_bytes);
    }
    if (const std::string error = routine.judge(BytesAt(program.Result(), result_bytes), want);
        !error.empty())
      Failed(id, error);
    const int64_t elements =
        inputs.empty() ? program.result().num_elements() : inputs[0].num_elements();
    Compare(
        id, routine.what + ", " + std::to_string(elements) + " elements",
        [&](int times) { Check(program.Run(times)); }, baseline, routine.moved, copy_seconds,
        std::max(1, kMostInARow / program.num_tasks()));
    // Measured rows stay where a later row ends the process.
    if (!options_.json.empty()) report_.WriteJson(options_.json);
  }

  void Failed(const std::string& id, const std::string& why) {
    report_.AddMissing("WRONG: " + id + ": " + why);
    failed_ = true;
  }

  std::string BytesAt(CUdeviceptr from, uint64_t count) {
    std::string bytes(count, 0);
    harness_.Read(bytes.data(), from, count);
    return bytes;
  }

  // For one byte, read or written, at the rate of CopyOf.
  double SecondsOfCopy() {
    if (seconds_of_copy_ > 0) return seconds_of_copy_;
    const Baseline copy = CopyOf(1);
    Times times;
    for (int i = 0; i < 6; ++i) {
      const double seconds = SecondsOf([&] { copy.work(8); }) / 8;
      if (i > 0) times.Add(seconds * copy.share);
    }
    return seconds_of_copy_ = times.median();
  }

  CudaHarness& harness_;
  const CudaOptions options_;
  Report& report_;
  std::optional<Cublas> cublas_;
  std::optional<cuda::ArenaMapping> copies_;
  double seconds_of_copy_ = 0;
  bool failed_ = false;
};

// Exit code. Every row is planned and compiled as it would be for a device.
int PlanRows(const CudaOptions& options) {
#if STRIDE_BENCH_CUB
  Libraries none(nullptr, nullptr);
  cuda::CudaCompiler compiler;
  for (const NamedRoutine& row : Routines(options.quick, none)) {
    if (!options.Wants(row.id)) continue;
    const Routine routine = row.make();
    std::vector<ArrayInfo> inputs;
    for (const Given& given : routine.inputs) inputs.push_back(given.info);
    const ops::ProgramGraph plan = PlanOf(routine.operations, inputs, routine.in_place ? 1 : 100);
    for (const wire::Code& code : plan.codes) Expect(compiler.Compile("cuda:sm_90", code));
    std::printf("%s: %zu tasks, %zu codes, %lld bytes moved, %lld bytes of results\n",
                row.id.c_str(), plan.steps.size(), plan.codes.size(),
                static_cast<long long>(routine.moved),
                static_cast<long long>(plan.outputs[0].info.size_bytes()));
  }
#else
  std::printf("missing: rows next to CUB: built without nvcc\n");
#endif
  return 0;
}

}  // namespace
}  // namespace stride::bench

int main(int argc, char** argv) {
  using namespace stride::bench;
  const std::optional<CudaOptions> options = Parse(argc, argv);
  if (options && options->plan) return PlanRows(*options);
  bool failed = false;
  const int code = RunProgram(options, kUsage, [&](const CudaOptions& given, Report& report) {
    const auto harness = CudaHarness::Start();
    if (!harness.ok()) {
      report.AddMissing("operations on a GPU: no device of kind cuda: " +
                        std::string(harness.status().message()));
      return;
    }
    Bench bench(**harness, given, report);
    bench.Run();
    failed = bench.failed();
  });
  return failed ? 1 : code;
}
