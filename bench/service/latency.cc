#include "bench/service/bench.h"
#include "bench/service/echo.h"

namespace stride::bench {
namespace {

constexpr int64_t kElements = 1000;
// All are measured in turns this long, so that a busy moment of the machine meets all.
constexpr int kBlock = 100;

// Message sizes: the elements, plus names, shapes and the timeline.
constexpr uint32_t kRequestBytes = 2 * kElements * sizeof(float) + 64;
constexpr uint32_t kReplyBytes = kElements * sizeof(float) + 128;

// An addition of two inline arrays.
Operation SmallAdd(const std::string& device) {
  const std::vector<float> a(kElements, 1.5f), b(kElements, 2.25f);
  return Operation::Ufunc("add", {Operand::Inline<float>(a, {kElements}),
                                  Operand::Inline<float>(b, {kElements})})
      .OnDevice(device);
}

class SmallRuns {
 public:
  SmallRuns(Client client, const std::string& device)
      : client_(std::move(client)), operation_(SmallAdd(device)) {}

  Result<void> Repeat(int times) {
    for (int i = 0; i < times; ++i) BENCH_OK(Once());
    return {};
  }
  void Forget() { whole = before = inside = after = {}; }

  Times whole;
  Times before, inside, after;  // acceptance by the daemon, and its end

 private:
  Result<void> Once() {
    const auto start = Clock::now();
    const auto sent = std::chrono::system_clock::now();
    BENCH_TRY(reply, client_.Run(operation_));
    const auto answered = std::chrono::system_clock::now();
    whole.Add(SecondsSince(start));
    const bool good = reply.values.size() == 1 &&
                      reply.values[0].data.size() == kElements * sizeof(float) &&
                      *reinterpret_cast<const float*>(reply.values[0].data.data()) == 3.75f;
    if (!good) return Broken("The daemon's sum is wrong");
    const Timeline& timeline = reply.timeline;
    before.Add(std::chrono::duration<double>(timeline.accepted - sent).count());
    inside.Add(std::chrono::duration<double>(timeline.total).count());
    after.Add(std::chrono::duration<double>(answered - timeline.ended).count());
    return {};
  }

  Client client_;
  const Operation operation_;
};

Result<void> Repeat(EchoClient& echo, Times& times) {
  for (int i = 0; i < kBlock; ++i) {
    const auto start = Clock::now();
    if (!echo.Call(kRequestBytes, kReplyBytes)) return Broken("The echo server does not answer");
    times.Add(SecondsSince(start));
  }
  return {};
}

Result<void> MeasureRun(const Setup& setup, const Transport& transport, const std::string& device,
                        Report& report) {
  BENCH_TRY(client, Client::Connect({.address = transport.daemon}));
  BENCH_TRY(grpc_client, Client::Connect({.address = transport.daemon, .local_calls = false}));
  // By a Unix socket the client's own choice is a local connection.
  const bool two_ways = transport.name == "unix";
  SmallRuns ours(std::move(client), device), by_grpc(std::move(grpc_client), device);
  EchoClient echo(transport.echo);
  Times theirs;
  // The first round warms all.
  for (bool warm = false; static_cast<int>(ours.whole.count()) < setup.num_calls; warm = true) {
    BENCH_OK(ours.Repeat(kBlock));
    if (two_ways) BENCH_OK(by_grpc.Repeat(kBlock));
    BENCH_OK(Repeat(echo, theirs));
    if (warm) continue;
    ours.Forget();
    by_grpc.Forget();
    theirs = {};
  }
  const std::string where = "/" + transport.name + "/" + ShortName(device);
  const std::string what = "Run add, 1000 float32, " + transport.name + ", " + ShortName(device);
  report.Add({.id = "run" + where,
              .what = what,
              .ours = ours.whole,
              .baseline_name = "gRPC echo, same bytes",
              .baseline = theirs});
  report.Add({.id = "run_inside" + where,
              .what = "  of that, acceptance to end in daemon and worker",
              .ours = ours.inside});
  report.Add({.id = "run_before" + where,
              .what = "  of that, the client's call to acceptance",
              .ours = ours.before});
  report.Add({.id = "run_after" + where,
              .what = "  of that, the end to the client's answer",
              .ours = ours.after});
  if (two_ways) {
    report.Add({.id = "run_grpc" + where,
                .what = what + ", by gRPC",
                .ours = by_grpc.whole,
                .baseline_name = "gRPC echo, same bytes",
                .baseline = theirs});
  }
  return {};
}

}  // namespace

Result<void> MeasureLatency(const Setup& setup, Report& report) {
  report.Section("One small job in one call");
  for (const auto& device : setup.devices) {
    for (const auto& transport : setup.transports)
      BENCH_OK(MeasureRun(setup, transport, device, report));
  }
  return {};
}

}  // namespace stride::bench
