// cpu_operations_bench: reductions and products as the CPU device runs them, without a daemon, next
// to their bounds: a plain C++ loop that reads the same bytes, or OpenBLAS called directly. One
// thread against one and all cores against all, in turns, after each of which OpenBLAS's threads
// are given the time that they watch for more work. Every result is checked.
#include <cblas.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>

#include "bench/device/check.h"
#include "bench/device/cpu_operation.h"
#include "bench/device/main.h"
#include "bench/device/options.h"
#include "bench/device/plain.h"
#include "bench/device/values.h"
#include "bench/service/report.h"
#include "server/worker/cpu/lower/blas.h"

namespace stride::bench {
namespace {

using R = v1::Reduction;

constexpr char kUsage[] =
    "Usage: cpu_operations_bench [--side=N] [--rounds=N] [--only=ID] [--json=FILE]\n"
    "       --side: of the square matrices that are reduced; --only keeps the rows whose id holds "
    "the word\n";

constexpr std::chrono::milliseconds kBlasWatches{40};

struct CpuOptions : Options {
  int64_t side = 4000;
};

std::optional<CpuOptions> Parse(int argc, char** argv) {
  CpuOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const std::string name = argument.substr(0, equals), value = argument.substr(equals + 1);
    const int64_t number = std::atoll(value.c_str());
    if (name == "--side" && number > 0 && number <= 1 << 14)
      options.side = number;
    else if (!TakeOption(name, value, &options))
      return std::nullopt;
  }
  return options;
}

template <typename T>
void Fill(T* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = ValueAt<T>(i);
}

// The result for a row or column of `count` values at a stride of `step`.
template <typename T>
double Expected(R::Function function, const T* values, int64_t count, int64_t step) {
  double sum = 0;
  int64_t best = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += static_cast<double>(values[i * step]);
    if (values[i * step] > values[best * step]) best = i;
  }
  if (function == R::FUNCTION_ARGMAX) return static_cast<double>(best);
  return function == R::FUNCTION_MAX ? static_cast<double>(values[best * step]) : sum;
}

class Bench {
 public:
  Bench(const CpuOptions& options, Report& report) : options_(options), report_(report) {}

  void Run() {
    report_.Section("Reductions and products on the CPU device, without a daemon");
    Reductions<float>();
    Reductions<double>();
    Reductions<int32_t>();
    Vectors<float>();
    Vectors<double>();
    for (int64_t side : {64, 128, 256, 512}) {
      Matrices<float>(side);
      Matrices<double>(side);
    }
  }

 private:
  using Work = std::function<void(cpucuda::ThreadPool&)>;

  // Several times a turn what takes microseconds.
  void Compare(const std::string& id, const Work& ours, const std::string& baseline_name,
               const Work& baseline, int64_t bytes, int repeats = 1) {
    const int num_cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    for (int num_threads : num_cores > 1 ? std::vector<int>{1, num_cores} : std::vector<int>{1}) {
      cpucuda::ThreadPool pool(num_threads);
      const auto pause = num_threads > 1 ? kBlasWatches : std::chrono::milliseconds(0);
      auto turn = [&](const Work& work) {
        std::this_thread::sleep_for(pause);
        return SecondsOf([&] {
                 for (int i = 0; i < repeats; ++i) work(pool);
               }) /
               repeats;
      };
      Times our_times, their_times;
      turn(baseline);
      turn(ours);
      for (int i = 0; i < options_.rounds; ++i) {
        our_times.Add(turn(ours));
        their_times.Add(turn(baseline));
      }
      const bool all = num_threads > 1;
      report_.Add({.id = "operation/" + id + (all ? "/all" : "/one") + "/cpu:0",
                   .what = id + (all ? ", all cores" : ", one thread"),
                   .ours = our_times,
                   .baseline_name = baseline_name,
                   .baseline = their_times,
                   .bytes = bytes});
    }
  }

  // Compared with one read of the same memory.
  template <typename T>
  void Reductions() {
    const int64_t side = options_.side;
    const std::string type(Name(TypeOf<T>()));
    constexpr std::pair<R::Function, const char*> kFunctions[] = {
        {R::FUNCTION_SUM, "sum"}, {R::FUNCTION_MAX, "max"}, {R::FUNCTION_ARGMAX, "argmax"}};
    for (const auto& [function, name] : kFunctions) {
      Reduce<T>(std::string(name) + "_" + type, function, {side * side}, 0);
      Reduce<T>(std::string(name) + "_rows_" + type, function, {side, side}, 1);
      Reduce<T>(std::string(name) + "_columns_" + type, function, {side, side}, 0);
    }
    Reduce<T>("sum_short_rows_" + type, R::FUNCTION_SUM, {side * side / 16, 16}, 1);
  }

  template <typename T>
  void Reduce(const std::string& id, R::Function function, const std::vector<int64_t>& shape,
              int axis) {
    if (!options_.Wants(id)) return;
    CpuOperation operation(ReductionOf(function, {axis}), {Contiguous(TypeOf<T>(), shape)});
    T* const values = operation.template Input<T>(0);
    const int64_t count = options_.side * options_.side / shape.back() * shape.back();
    Fill(values, count);
    Compare(
        id, [&](cpucuda::ThreadPool& pool) { operation.Run(pool); }, "a read of the same memory",
        [&](cpucuda::ThreadPool& pool) {
          const int64_t words = count * static_cast<int64_t>(sizeof(T)) / 8;
          pool.ParallelFor(
              words, words / (pool.num_threads() * 4) + 1, [&](int64_t begin, int64_t end, int) {
                seen_ = plain::AllBits(reinterpret_cast<uint64_t*>(values), begin, end);
              });
        },
        count * static_cast<int64_t>(sizeof(T)));
    CheckReduced(id, function, operation, values, shape, axis);
  }

  template <typename T>
  void CheckReduced(const std::string& id, R::Function function, CpuOperation& operation,
                    const T* values, const std::vector<int64_t>& shape, int axis) {
    const bool rows = axis == static_cast<int>(shape.size()) - 1;
    const int64_t num_results = shape.size() == 1 ? 1 : shape[1 - axis];
    for (int64_t i = 0; i < num_results; ++i) {
      const double want = Expected(function, values + (rows ? i * shape.back() : i), shape[axis],
                                   rows ? 1 : shape.back());
      const bool widens =
          function == R::FUNCTION_ARGMAX || (function == R::FUNCTION_SUM && std::is_integral_v<T>);
      const double got = widens ? static_cast<double>(operation.Output<int64_t>()[i])
                                : static_cast<double>(operation.template Output<T>()[i]);
      if (!(std::fabs(got - want) <= 1e-6 * std::fabs(want)))
        Die(id + ": result " + std::to_string(i) + " is " + std::to_string(got) + ", not " +
            std::to_string(want));
    }
  }

  // Matrix by vector, vector by matrix, vector by vector; compared with OpenBLAS.
  template <typename T>
  void Vectors() {
    const int64_t side = options_.side;
    const std::string type(Name(TypeOf<T>()));
    const ArrayInfo matrix = Contiguous(TypeOf<T>(), {side, side});
    const ArrayInfo vector = Contiguous(TypeOf<T>(), {side});
    const int n = static_cast<int>(side);
    Multiply<T>("matvec_" + type, matrix, vector, [n](const T* a, const T* x, T* y) {
      if constexpr (sizeof(T) == 4)
        cblas_sgemv(CblasRowMajor, CblasNoTrans, n, n, 1, a, n, x, 1, 0, y, 1);
      else
        cblas_dgemv(CblasRowMajor, CblasNoTrans, n, n, 1, a, n, x, 1, 0, y, 1);
    });
    Multiply<T>("vecmat_" + type, vector, matrix, [n](const T* x, const T* a, T* y) {
      if constexpr (sizeof(T) == 4)
        cblas_sgemv(CblasRowMajor, CblasTrans, n, n, 1, a, n, x, 1, 0, y, 1);
      else
        cblas_dgemv(CblasRowMajor, CblasTrans, n, n, 1, a, n, x, 1, 0, y, 1);
    });
    const ArrayInfo line = Contiguous(TypeOf<T>(), {side * side});
    Multiply<T>("vecdot_" + type, line, line, [n](const T* a, const T* b, T* y) {
      if constexpr (sizeof(T) == 4)
        *y = cblas_sdot(n * n, a, 1, b, 1);
      else
        *y = cblas_ddot(n * n, a, 1, b, 1);
    });
  }

  template <typename T>
  void Matrices(int64_t side) {
    const ArrayInfo matrix = Contiguous(TypeOf<T>(), {side, side});
    const int n = static_cast<int>(side);
    Multiply<T>(
        "matmul_" + std::to_string(side) + "_" + std::string(Name(TypeOf<T>())), matrix, matrix,
        [n](const T* a, const T* b, T* c) {
          if constexpr (sizeof(T) == 4)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
          else
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
        });
  }

  template <typename T>
  void Multiply(const std::string& id, const ArrayInfo& left, const ArrayInfo& right,
                const std::function<void(const T*, const T*, T*)>& baseline) {
    if (!options_.Wants(id)) return;
    CpuOperation operation(MatmulOf(), {left, right});
    Fill(operation.template Input<T>(0), left.num_elements());
    Fill(operation.template Input<T>(1), right.num_elements());
    std::vector<T> want(left.num_elements());
    const double multiplications =
        static_cast<double>(left.num_elements()) * (right.shape.size() > 1 ? right.shape[1] : 1);
    Compare(
        id, [&](cpucuda::ThreadPool& pool) { operation.Run(pool); }, "OpenBLAS directly",
        [&](cpucuda::ThreadPool& pool) {
          cpu::SetBlasThreads(pool.num_threads());
          baseline(operation.template Input<T>(0), operation.template Input<T>(1), want.data());
        },
        left.size_bytes() + right.size_bytes(),
        static_cast<int>(std::max(1.0, 1e7 / multiplications)));
    const int64_t num_results = left.shape.size() + right.shape.size() == 4   ? left.num_elements()
                                : left.shape.size() + right.shape.size() == 3 ? options_.side
                                                                              : 1;
    for (int64_t i = 0; i < num_results; ++i) {
      const double got = static_cast<double>(operation.template Output<T>()[i]);
      if (!(std::fabs(got - static_cast<double>(want[i])) <= 1e-3 * std::fabs(got)))
        Die(id + ": result " + std::to_string(i) + " is " + std::to_string(got) + ", not " +
            std::to_string(want[i]));
    }
  }

  const CpuOptions options_;
  Report& report_;
  std::atomic<uint64_t> seen_{0};
};

}  // namespace
}  // namespace stride::bench

int main(int argc, char** argv) {
  using namespace stride::bench;
  return RunProgram(Parse(argc, argv), kUsage, [](const CpuOptions& options, Report& report) {
    Bench(options, report).Run();
  });
}
