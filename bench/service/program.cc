#include "bench/service/bench.h"
#include "bench/service/echo.h"

namespace stride::bench {
namespace {

constexpr int64_t kElements = 1000;
constexpr int kSteps = 50;  // each an addition and a copy, which no loop takes in
constexpr int kAhead = 20;  // calls in a row

ProgramSpec Steps() {
  ProgramSpec spec{.id = "bench-program", .inputs = {{.handle = 1}}};
  uint64_t last = 1;
  for (int i = 0; i < kSteps; ++i) {
    spec.Add(Operation::Ufunc("add", {ProgramSpec::Handle(last), 1.0}), last + 1);
    spec.Add(Operation::Copy(ProgramSpec::Handle(last + 1)), last + 2);
    last += 2;
  }
  spec.outputs = {last};
  return spec;
}

Result<void> MeasureOne(const Transport& transport, const Setup& setup, const std::string& device,
                        Report& report) {
  BENCH_TRY(client, Client::Connect({.address = transport.daemon}));
  EchoClient echo(transport.echo);
  PutOptions put;
  put.device = device;
  BENCH_TRY(start, client.Put(std::vector<float>(kElements, 0.0f), {kElements}, put));
  BENCH_TRY(program, client.CreateProgram(Steps()));
  const double num_ops = 2.0 * kSteps * kAhead;
  Operation call = Operation::Call(program, {start});
  call.OnDevice(device);
  Times ours, theirs, calls, echoes;
  for (int round = 0; round <= setup.num_rounds; ++round) {
    BENCH_OK(client.Synchronize());
    auto begin = Clock::now();
    Array result = client.Compute(call);
    for (int i = 1; i < kAhead; ++i) result = client.Compute(call);
    BENCH_OK(client.Synchronize());
    const double seconds = SecondsSince(begin);
    BENCH_TRY(values, client.Fetch<float>(result));
    if (values.back() != kSteps) return Broken("The program's result is wrong");

    begin = Clock::now();
    for (int i = 0; i < kAhead; ++i) {
      for (int step = 0; step < kSteps; ++step) {
        result = client.Ufunc("add", {step == 0 ? start : result, 1.0});
        result = client.Compute(Operation::Copy(result));
      }
    }
    BENCH_OK(client.Synchronize());
    const double one_by_one = SecondsSince(begin);

    begin = Clock::now();
    BENCH_TRY(once, client.Fetch<float>(client.Compute(call)));
    const double turn = SecondsSince(begin);
    begin = Clock::now();
    if (!echo.Call(64, kElements * sizeof(float))) return Broken("The echo server does not answer");
    if (round == 0) continue;  // warms all
    echoes.Add(SecondsSince(begin));
    calls.Add(turn);
    ours.Add(seconds / num_ops);
    theirs.Add(one_by_one / num_ops);
  }
  BENCH_OK(client.DeleteProgram(program.name));
  const std::string place = transport.name + "/" + ShortName(device);
  report.Add({.id = "program/" + place,
              .what = "Each of " + std::to_string(2 * kSteps) +
                      " operations in a program, calls in a row, " + transport.name + ", " +
                      ShortName(device),
              .ours = ours,
              .baseline_name = "the same one by one",
              .baseline = theirs});
  report.Add(
      {.id = "program_call/" + place,
       .what = "A program's call and its result, " + transport.name + ", " + ShortName(device),
       .ours = calls,
       .baseline_name = "a gRPC echo of the result's bytes",
       .baseline = echoes});
  return {};
}

}  // namespace

Result<void> MeasurePrograms(const Setup& setup, Report& report) {
  for (const Transport& transport : setup.transports) {
    for (const std::string& device : setup.devices)
      BENCH_OK(MeasureOne(transport, setup, device, report));
  }
  return {};
}

}  // namespace stride::bench
