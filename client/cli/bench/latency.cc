#include <algorithm>
#include <cstring>

#include "client/cli/bench/bench.h"

namespace stride::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Both are measured in turns this long, so that a busy moment of the machine meets both.
constexpr int kBlock = 100;
constexpr auto kLongest = std::chrono::seconds(60);  // of a block

}  // namespace

Operation SmallAdd(const std::string& device) {
  const std::vector<float> a(kSmallElements, 1.5f), b(kSmallElements, 2.25f);
  return Operation::Ufunc("add", {Operand::Inline<float>(a, {kSmallElements}),
                                  Operand::Inline<float>(b, {kSmallElements})})
      .OnDevice(device);
}

Result<void> BenchLatency(BenchSetup& setup) {
  auto echo = internal::ManyClients::Open({.connection = setup.connection,
                                           .num_clients = 1,
                                           .cancellation = setup.context.cancellation()});
  if (!echo) return echo.error();
  const Operation operation = SmallAdd(setup.device);
  Samples run, inside, floor;
  const int block = std::min(kBlock, setup.options.num_calls);
  while (static_cast<int>(run.count()) < setup.options.num_calls) {
    for (int i = -1; i < block; ++i) {
      const auto start = Clock::now();
      auto reply = setup.client.Run(operation, setup.context.Call());
      const auto took = Clock::now() - start;
      if (!reply) return reply.error();
      float first = 0;
      if (reply->values.size() == 1 && reply->values[0].data.size() == kSmallBytes)
        std::memcpy(&first, reply->values[0].data.data(), sizeof(first));
      if (first != 3.75f)
        return Error{.code = Code::kInternal, .message = "The daemon's sum is wrong"};
      if (i < 0) continue;  // a first one may compile, and finds cold caches
      run.Add(took);
      inside.Add(reply->timeline.total);
    }
    auto answers = (*echo)->Run(internal::Load::kEcho, kLongest, block);
    if (!answers) return answers.error();
    for (double seconds : answers->latencies) floor.Add(seconds);
  }
  const std::string device = setup.short_device();
  setup.add({.id = "cli_run/" + device,
             .what = "Run of add, 1000 float32 in and out, " + device,
             .ours = run,
             .baseline_name = "GetSession",
             .baseline = floor});
  setup.add({.id = "cli_run_inside/" + device,
             .what = "  of that, from acceptance to end",
             .ours = inside});
  return {};
}

}  // namespace stride::cli
