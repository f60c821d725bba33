#include <cmath>

#include "bench/service/bench.h"

namespace stride::bench {
namespace {

struct Measured {
  Times wall;
  Times on_device;
};

// `wall` is from the call to the end of the work, as the client sees it.
Result<Measured> Repeat(Client& client, const Operation& operation, int rounds) {
  Measured measured;
  for (int i = 0; i <= rounds; ++i) {
    ComputeOptions options;
    options.timeline = true;
    const auto start = Clock::now();
    Array array = client.Compute(operation, options);
    BENCH_TRY(timeline, array.Timeline());
    if (i == 0) continue;  // compiles, and touches the result's memory
    measured.wall.Add(SecondsSince(start));
    measured.on_device.Add(std::chrono::duration<double>(timeline.run).count());
  }
  return measured;
}

void AddBoth(Report& report, const std::string& id, const std::string& what,
             const Measured& measured, const char* baseline_name, const Times& baseline,
             int64_t bytes) {
  report.Add({id, what + ", as the client sees it", measured.wall, baseline_name, baseline, bytes});
  report.Add({id + "/device", what + ", on the device", measured.on_device, baseline_name, baseline,
              bytes});
}

Result<void> MeasureExpression(const Setup& setup, Client& client, const std::string& device,
                               Report& report) {
  const int64_t count = setup.num_elements;
  std::vector<float> x(count), out(count);
  for (int64_t i = 0; i < count; ++i) x[i] = static_cast<float>(i % 1000) * 0.01f;
  PutOptions put;
  put.device = device;
  BENCH_TRY(array, client.Put(x, {count}, put));
  const auto operation = Operation::Expression("cos(x)**2 + sin(x)**2", {{"x", array}});
  BENCH_TRY(measured, Repeat(client, Operation(operation).OnDevice(device), setup.num_rounds));
  Times plain;
  for (int i = 0; i < setup.num_rounds; ++i) {
    plain.Add(SecondsOf([&] {
      for (int64_t j = 0; j < count; ++j) {
        const float c = std::cos(x[j]), s = std::sin(x[j]);
        out[j] = c * c + s * s;
      }
      // Keeps the loop.
      asm volatile("" : : "r"(out.data()) : "memory");
    }));
  }
  AddBoth(report, "expression/" + ShortName(device),
          "cos(x)**2 + sin(x)**2, " + std::to_string(count) + " float32, " + ShortName(device),
          measured, "C++ loop, one thread", plain, 2 * count * sizeof(float));
  return {};
}

Result<void> MeasureSum(const Setup& setup, Client& client, const std::string& device,
                        Report& report) {
  const int64_t count = 3 * setup.num_elements;
  std::vector<float> x(count, 0.5f);
  PutOptions put;
  put.device = device;
  BENCH_TRY(array, client.Put(x, {count}, put));
  const auto operation = Operation::Reduce(Reduction::kSum, array);
  BENCH_TRY(measured, Repeat(client, Operation(operation).OnDevice(device), setup.num_rounds));
  Times plain;
  for (int i = 0; i < setup.num_rounds; ++i) {
    plain.Add(SecondsOf([&] {
      // Eight at once, which a compiler may not do on its own.
      float sums[8] = {};
      for (int64_t j = 0; j + 8 <= count; j += 8) {
        for (int k = 0; k < 8; ++k) sums[k] += x[j + k];
      }
      asm volatile("" : : "r"(sums) : "memory");
    }));
  }
  AddBoth(report, "sum/" + ShortName(device),
          "sum, " + std::to_string(count) + " float32, " + ShortName(device), measured,
          "C++ loop, one thread", plain, count * sizeof(float));
  return {};
}

}  // namespace

Result<void> MeasureCompute(const Setup& setup, Report& report) {
  report.Section("Work on arrays that are there");
  BENCH_TRY(client, Client::Connect({.address = setup.transports[0].daemon}));
  for (const auto& device : setup.devices) {
    BENCH_OK(MeasureExpression(setup, client, device, report));
    BENCH_OK(MeasureSum(setup, client, device, report));
  }
  return {};
}

}  // namespace stride::bench
