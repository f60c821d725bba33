#include "bench/service/bench.h"
#include "bench/service/echo.h"

namespace stride::bench {
namespace {

constexpr int64_t kElements = 1000;

}  // namespace

Result<double> RunChain(Client& client, const PutOptions& put, int num_ops,
                        const std::function<void()>& ready) {
  BENCH_TRY(start_array, client.Put(std::vector<float>(kElements), {kElements}, put));
  BENCH_OK(client.Synchronize());
  if (ready) ready();
  const auto start = Clock::now();
  Array array = std::move(start_array);
  for (int i = 0; i < num_ops; ++i) array = client.Ufunc("add", {array, 1.0});
  BENCH_OK(client.Synchronize());
  const double seconds = SecondsSince(start) / num_ops;
  BENCH_TRY(values, client.Fetch<float>(array));
  if (values.back() != static_cast<float>(num_ops)) return Broken("The chain's result is wrong");
  return seconds;
}

namespace {

Result<void> MeasureOne(const Setup& setup, const Transport& transport, const std::string& device,
                        Report& report) {
  BENCH_TRY(client, Client::Connect({.address = transport.daemon}));
  BENCH_TRY(grpc_client, Client::Connect({.address = transport.daemon, .local_calls = false}));
  // By a Unix socket the client's own choice is a local connection.
  const bool two_ways = transport.name == "unix";
  EchoClient echo(transport.echo);
  PutOptions put;
  put.device = device;
  const int num_ops = setup.num_calls;

  Times ours, by_grpc, theirs;
  for (int round = 0; round <= setup.num_rounds; ++round) {
    BENCH_TRY(seconds, RunChain(client, put, num_ops));
    double grpc_seconds = 0;
    if (two_ways) {
      BENCH_TRY(taken, RunChain(grpc_client, put, num_ops));
      grpc_seconds = taken;
    }
    const auto start = Clock::now();
    for (int i = 0; i < num_ops; ++i) {
      if (!echo.Call(64, 64)) return Broken("The echo server does not answer");
    }
    if (round == 0) continue;  // warms all
    ours.Add(seconds);
    by_grpc.Add(grpc_seconds);
    theirs.Add(SecondsSince(start) / num_ops);
  }
  const std::string where = transport.name + "/" + ShortName(device);
  const std::string what = "Each of " + std::to_string(num_ops) + " adds in a chain, " +
                           transport.name + ", " + ShortName(device);
  report.Add({.id = "chain/" + where,
              .what = what,
              .ours = ours,
              .baseline_name = "a small gRPC echo for each",
              .baseline = theirs});
  if (two_ways) {
    report.Add({.id = "chain_grpc/" + where,
                .what = what + ", by gRPC",
                .ours = by_grpc,
                .baseline_name = "a small gRPC echo for each",
                .baseline = theirs});
  }
  return {};
}

// One operation and its answer, then the next.
Result<void> MeasureRoundTrips(const Setup& setup, const Transport& transport,
                               const std::string& device, Report& report) {
  BENCH_TRY(client, Client::Connect({.address = transport.daemon}));
  EchoClient echo(transport.echo);
  const std::vector<float> zeros(kElements, 0.0f);
  PutOptions put;
  put.device = device;
  BENCH_TRY(array, client.Put(zeros, {kElements}, put));
  Times compute, fetch, theirs;
  std::vector<float> out(kElements);
  const int turns = std::max(setup.num_calls / 10, 10);
  for (int i = 0; i < turns; ++i) {
    auto start = Clock::now();
    Array sum = client.Ufunc("add", {array, 1.0});
    BENCH_OK(client.Synchronize());
    compute.Add(SecondsSince(start));
    start = Clock::now();
    BENCH_OK(client.FetchInto<float>(sum, out));
    fetch.Add(SecondsSince(start));
    start = Clock::now();
    if (!echo.Call(64, kElements * sizeof(float))) return Broken("The echo server does not answer");
    theirs.Add(SecondsSince(start));
  }
  const std::string where = transport.name + "/" + ShortName(device);
  report.Add({.id = "stream_compute/" + where,
              .what = "One add and Synchronize, " + where,
              .ours = compute,
              .baseline_name = "gRPC echo",
              .baseline = theirs});
  report.Add({.id = "stream_fetch/" + where,
              .what = "Fetch of 1000 float32, " + where,
              .ours = fetch,
              .baseline_name = "gRPC echo, same bytes",
              .baseline = theirs});
  return {};
}

}  // namespace

Result<void> MeasureChain(const Setup& setup, Report& report) {
  report.Section("The command stream");
  for (const auto& device : setup.devices) {
    for (const auto& transport : setup.transports) {
      BENCH_OK(MeasureOne(setup, transport, device, report));
      BENCH_OK(MeasureRoundTrips(setup, transport, device, report));
    }
  }
  return {};
}

}  // namespace stride::bench
