// Cost of new code and of code in the daemon's cache.
#include <algorithm>
#include <chrono>

#include "bench/service/bench.h"
#include "bench/service/nvrtc.h"

namespace stride::bench {
namespace {

// Each is new to the daemon when it comes first.
constexpr const char* kExpressions[] = {"sin(x) + cos(x) * x",       "exp(x) - x * x * x",
                                        "sqrt(x * x + 1) / (x + 4)", "tanh(x) * sin(x) + x",
                                        "log(x * x + 2) - x",        "cos(x) / (x * x + 1)",
                                        "x * exp(-x * x) + sin(x)",  "sinh(x) - x + cos(x)"};
// The daemon's own measurement: from the compiler's request to its answer.
constexpr char kCompiler[] = "its compiler process alone";
constexpr int kKernels = 8;
constexpr uint32_t kElements = 256;

struct Costs {
  Times cold, compiler, cached;
};

// The same operation twice, the first time unknown.
Result<void> MeasureTwice(Client& client, const Operation& operation, Costs& costs) {
  for (Times* times : {&costs.cold, &costs.cached}) {
    ComputeOptions options;
    options.timeline = true;
    const auto start = Clock::now();
    Array result = client.Compute(operation, options);
    BENCH_TRY(timeline, result.Timeline());
    times->Add(SecondsSince(start));
    if (times == &costs.cold)
      costs.compiler.Add(std::chrono::duration<double>(timeline.compile).count());
  }
  return {};
}

void AddRows(Report& report, const std::string& id, const std::string& what,
             const std::string& device, const Costs& costs, const std::string& baseline_name,
             const Times& baseline) {
  report.Add({.id = id + "_cold/" + device,
              .what = "New " + what + ", whole call, " + device,
              .ours = costs.cold,
              .baseline_name = baseline_name,
              .baseline = baseline});
  report.Add({.id = id + "_cached/" + device,
              .what = "  the same again, whole call",
              .ours = costs.cached});
}

Result<void> MeasureExpressions(Client& client, const std::string& device, Report& report) {
  const std::vector<float> x(16, 0.5f);
  PutOptions put;
  put.device = device;
  BENCH_TRY(array, client.Put(x, {16}, put));
  Costs costs;
  for (const char* text : kExpressions) {
    const auto operation = Operation::Expression(text, {{"x", array}}).OnDevice(device);
    BENCH_OK(MeasureTwice(client, operation, costs));
  }
  AddRows(report, "compile", "expression", ShortName(device), costs, kCompiler, costs.compiler);
  return {};
}

// Shared memory and a barrier, as kernels have them. `number` makes it new.
std::string Source(int64_t number) {
  return "__global__ void reduce(const float* x, float* out, int n) {\n"
         "  __shared__ float part[256];\n"
         "  const int t = threadIdx.x;\n"
         "  float sum = 0;\n"
         "  for (int i = t; i < n; i += 256) sum += x[i] * x[i] + " +
         std::to_string(number % 1'000'000) +
         "e-9f;\n"
         "  part[t] = sum;\n"
         "  __syncthreads();\n"
         "  for (int half = 128; half > 0; half /= 2) {\n"
         "    if (t < half) part[t] += part[t + half];\n"
         "    __syncthreads();\n"
         "  }\n"
         "  if (t == 0) out[0] = part[0];\n"
         "}\n";
}

Result<void> MeasureKernels(Client& client, const Device& device, Report& report) {
  const std::vector<float> x(kElements, 0.5f);
  PutOptions put;
  put.device = device.name;
  BENCH_TRY(array, client.Put(x, {kElements}, put));
  const auto nvrtc = BareNvrtc::Open(device.target);
  // A daemon that runs for long may know what an earlier run of this program sent.
  const int64_t seed = std::chrono::steady_clock::now().time_since_epoch().count() / 1000;
  Costs costs;
  Times bare;
  for (int i = 0; i < kKernels; ++i) {
    const std::string source = Source(seed + i);
    const auto operation =
        Operation::Kernel({.code = source,
                           .entry = "reduce",
                           .grid = {1},
                           .block = {256},
                           .arguments = {array, KernelArgument::Out({DataType::kFloat32, {1}}),
                                         static_cast<int32_t>(kElements)}})
            .OnDevice(device.name);
    BENCH_OK(MeasureTwice(client, operation, costs));
    if (!nvrtc) continue;
    const auto seconds = nvrtc->Compile(source);
    if (!seconds) return Broken("NVRTC does not compile the kernel");
    bare.Add(*seconds);
  }
  AddRows(report, "kernel", "kernel of CUDA C++", ShortName(device.place()), costs,
          nvrtc ? "bare NVRTC in a warm process" : kCompiler, nvrtc ? bare : costs.compiler);
  return {};
}

}  // namespace

Result<void> MeasureCompile(const Setup& setup, Report& report) {
  report.Section("Code that is new, and code that is known");
  BENCH_TRY(client, Client::Connect({.address = setup.transports[0].daemon}));
  BENCH_TRY(devices, client.ListDevices());
  for (const Device& device : devices) {
    if (std::find(setup.devices.begin(), setup.devices.end(), device.place()) ==
        setup.devices.end())
      continue;
    BENCH_OK(MeasureExpressions(client, device.place(), report));
    BENCH_OK(MeasureKernels(client, device, report));
  }
  return {};
}

}  // namespace stride::bench
