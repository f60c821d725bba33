#include "bench/service/bench.h"
#include "bench/service/echo.h"

namespace stride::bench {
namespace {

constexpr int64_t kElements = 1000;
// Both are measured in turns this long, so that a busy moment of the machine meets both.
constexpr int kBlock = 100;

Result<void> MeasureRun(const Setup& setup, const Transport& transport, const std::string& device,
                        Report& report) {
  BENCH_TRY(client, Client::Connect({.address = transport.daemon}));
  EchoClient echo(transport.echo);
  const std::vector<float> a(kElements, 1.5f), b(kElements, 2.25f);
  const auto operation = Operation::Ufunc("add", {Operand::Inline<float>(a, {kElements}),
                                                  Operand::Inline<float>(b, {kElements})})
                             .OnDevice(device);
  // What the messages carry beside the elements: names, shapes, the timeline.
  constexpr uint32_t kRequestBytes = 2 * kElements * sizeof(float) + 64;
  constexpr uint32_t kReplyBytes = kElements * sizeof(float) + 128;
  Times before, inside, after;
  auto run = [&]() -> Result<void> {
    const auto sent = std::chrono::system_clock::now();
    BENCH_TRY(reply, client.Run(operation));
    const auto answered = std::chrono::system_clock::now();
    const bool good = reply.values.size() == 1 &&
                      reply.values[0].data.size() == kElements * sizeof(float) &&
                      *reinterpret_cast<const float*>(reply.values[0].data.data()) == 3.75f;
    if (!good) return Broken("The daemon's sum is wrong");
    const Timeline& timeline = reply.timeline;
    before.Add(std::chrono::duration<double>(timeline.accepted - sent).count());
    inside.Add(std::chrono::duration<double>(timeline.total).count());
    after.Add(std::chrono::duration<double>(answered - timeline.ended).count());
    return {};
  };

  Times ours, theirs;
  for (int i = 0; i < kBlock; ++i) {  // warms both
    BENCH_OK(run());
    if (!echo.Call(kRequestBytes, kReplyBytes)) return Broken("The echo server does not answer");
  }
  before = inside = after = {};
  while (static_cast<int>(ours.count()) < setup.num_calls) {
    for (int i = 0; i < kBlock; ++i) {
      const auto start = Clock::now();
      BENCH_OK(run());
      ours.Add(SecondsSince(start));
    }
    for (int i = 0; i < kBlock; ++i) {
      const auto start = Clock::now();
      if (!echo.Call(kRequestBytes, kReplyBytes)) return Broken("The echo server does not answer");
      theirs.Add(SecondsSince(start));
    }
  }
  report.Add({.id = "run/" + transport.name + "/" + ShortName(device),
              .what = "Run add, 1000 float32, " + transport.name + ", " + ShortName(device),
              .ours = ours,
              .baseline_name = "gRPC echo, same bytes",
              .baseline = theirs});
  report.Add({.id = "run_inside/" + transport.name + "/" + ShortName(device),
              .what = "  of that, acceptance to end in daemon and worker",
              .ours = inside});
  report.Add({.id = "run_before/" + transport.name + "/" + ShortName(device),
              .what = "  of that, the client's call to acceptance",
              .ours = before});
  report.Add({.id = "run_after/" + transport.name + "/" + ShortName(device),
              .what = "  of that, the end to the client's answer",
              .ours = after});
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
