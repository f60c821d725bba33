// The measurements of service_bench, one file each. All report to one Report and end at the first
// error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/service/report.h"
#include "stride/client.h"

namespace stride::bench {

// One kind of socket: where the daemon listens, and the baselines' servers.
struct Transport {
  std::string name;  // unix or tcp
  std::string daemon;
  std::string echo;
  std::string raw;
};

struct Setup {
  std::vector<Transport> transports;
  // One of each kind, by its place, so that rows have the same ids on every machine.
  std::vector<std::string> devices;
  int64_t transfer_bytes = 0;
  // Turns of what takes microseconds, and of what takes longer than that.
  int num_calls = 0;
  int num_rounds = 0;
  // Elements of the expression; the sum takes three times as many.
  int64_t num_elements = 0;
};

// Small jobs in one round trip, against a gRPC method that does nothing.
Result<void> MeasureLatency(const Setup& setup, Report& report);
// Operations that follow one another down the command stream, against one call each.
Result<void> MeasureChain(const Setup& setup, Report& report);
// Programs, against the same operations one by one, and a gRPC method that does nothing.
Result<void> MeasurePrograms(const Setup& setup, Report& report);
// Arrays' bytes in and out, against bare sockets and memcpy.
Result<void> MeasureTransfer(const Setup& setup, Report& report);
// The same through memory shared with the daemon, with a copy on the client's side and without,
// against bare Unix sockets, memcpy of one thread and of several, and a GPU's own pinned copies.
Result<void> MeasureShared(const Setup& setup, Report& report);
// Operations on arrays that are there.
Result<void> MeasureCompute(const Setup& setup, Report& report);
// Expressions and kernels that the daemon has not seen, against the compiler alone.
Result<void> MeasureCompile(const Setup& setup, Report& report);
// Two tenants that flood one device, and a third that asks for little. Needs a daemon that believes
// the tenant's header.
Result<void> MeasureFairness(const Setup& setup, Report& report);
// Two tenants that send small operations in a row, each to a device of its own, against one of them
// alone. Starts a daemon of its own; where no two devices are of one kind, with two CPU devices.
Result<void> MeasureTenants(const Setup& setup, Report& report);

// Seconds for each of `num_ops` adds, one after the other on one array of 1,000 float32, all sent
// before the first is waited for. `ready` is called before the first, when the array is there.
Result<double> RunChain(Client& client, const PutOptions& put, int num_ops,
                        const std::function<void()>& ready = nullptr);

// `devices/cpu:0` to `cpu:0`.
inline std::string ShortName(const std::string& device) {
  return device.substr(device.find('/') + 1);
}

inline Error Broken(std::string what) {
  return {.code = Code::kUnavailable, .message = std::move(what)};
}

}  // namespace stride::bench

// Takes the value of a Result, or leaves with its error.
#define BENCH_TRY(variable, expression)             \
  auto variable##_or = (expression);                \
  if (!variable##_or) return variable##_or.error(); \
  auto variable = std::move(variable##_or).value()
#define BENCH_OK(expression) \
  if (auto done = (expression); !done) return done.error()
