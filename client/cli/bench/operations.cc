#include <unistd.h>

#include "client/cli/bench/bench.h"

namespace stride::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSteps = 50;  // per program: an addition and a copy, which no fused loop includes
constexpr int kAhead = 20;  // calls in flight

ProgramSpec Steps() {
  ProgramSpec spec{.id = "stride-bench-" + std::to_string(getpid()), .inputs = {{.handle = 1}}};
  uint64_t last = 1;
  for (int i = 0; i < kSteps; ++i) {
    spec.Add(Operation::Ufunc("add", {ProgramSpec::Handle(last), 1.0}), last + 1);
    spec.Add(Operation::Copy(ProgramSpec::Handle(last + 1)), last + 2);
    last += 2;
  }
  spec.outputs = {last};
  return spec;
}

Result<void> Expect(Client& client, const Array& array, float expected,
                    const TransferOptions& options) {
  auto values = client.Fetch<float>(array, options);
  if (!values) return values.error();
  if (values->size() == kSmallElements && values->back() == expected) return {};
  return Error{.code = Code::kInternal, .message = "The daemon's result is wrong"};
}

Result<void> Measure(BenchSetup& setup, const Program& program, const Array& start) {
  Client& client = setup.client;
  const auto options = setup.context.Call();
  const auto fetch = setup.context.Call<TransferOptions>();
  Operation call = Operation::Call(program, {start});
  call.OnDevice(setup.device);
  Samples adds, replayed, answers;
  const int num_adds = setup.options.num_calls;
  for (int round = -1; round < setup.options.num_rounds; ++round) {
    auto before = Clock::now();
    if (auto done = client.Synchronize(options); !done) return done;
    const auto answer = Clock::now() - before;

    before = Clock::now();
    Array array = client.Ufunc("add", {start, 1.0});
    for (int i = 1; i < num_adds; ++i) array = client.Ufunc("add", {array, 1.0});
    if (auto done = client.Synchronize(options); !done) return done;
    const auto chain = Clock::now() - before;
    auto right = Expect(client, array, static_cast<float>(num_adds), fetch);
    if (!right) return right;

    before = Clock::now();
    for (int i = 0; i < kAhead; ++i) array = client.Compute(call);
    if (auto done = client.Synchronize(options); !done) return done;
    const auto calls = Clock::now() - before;
    right = Expect(client, array, kSteps, fetch);
    if (!right) return right;
    if (round < 0) continue;  // the first round compiles and touches the results' memory
    answers.Add(answer);
    adds.Add(chain / num_adds);
    replayed.Add(calls / (2 * kSteps * kAhead));
  }
  const std::string device = setup.short_device();
  setup.add({.id = "cli_add/" + device,
             .what = "Each of " + std::to_string(num_adds) + " adds in a row, " + device,
             .ours = adds,
             .baseline_name = "an empty answer",
             .baseline = answers});
  setup.add({.id = "cli_program/" + device,
             .what = "Each of " + std::to_string(2 * kSteps) + " in a program's calls, " + device,
             .ours = replayed,
             .baseline_name = "an add in a row",
             .baseline = adds});
  return {};
}

}  // namespace

Result<void> BenchOperations(BenchSetup& setup) {
  PutOptions put = setup.context.Call<PutOptions>();
  put.device = setup.device;
  auto start = setup.client.Put(std::vector<float>(kSmallElements, 0.0f), {kSmallElements}, put);
  if (!start) return start.error();
  auto program = setup.client.CreateProgram(Steps(), setup.context.Call());
  if (!program) return program.error();
  auto measured = Measure(setup, *program, *start);
  auto deleted = setup.client.DeleteProgram(program->name, setup.context.Call());
  return measured ? deleted : measured;
}

}  // namespace stride::cli
