#include <algorithm>
#include <cstring>

#include "client/cli/bench/bench.h"

namespace stride::cli {
namespace {

using Clock = std::chrono::steady_clock;

// All alternatives alternate in blocks of this many calls, so that a busy moment affects all of
// them.
constexpr int kBlock = 100;
constexpr auto kLongest = std::chrono::seconds(60);  // limit of a block

struct Runs {
  Client* client;
  Samples whole;
  Samples inside;  // from acceptance to end, as the daemon reports
};

Result<void> Repeat(Runs& runs, const Operation& operation, int times, Context& context) {
  for (int i = -1; i < times; ++i) {
    const auto start = Clock::now();
    auto reply = runs.client->Run(operation, context.Call());
    const auto took = Clock::now() - start;
    if (!reply) return reply.error();
    float first = 0;
    if (reply->values.size() == 1 && reply->values[0].data.size() == kSmallBytes)
      std::memcpy(&first, reply->values[0].data.data(), sizeof(first));
    if (first != 3.75f)
      return Error{.code = Code::kInternal, .message = "The daemon's sum is wrong"};
    if (i < 0) continue;  // the first call may compile, and finds cold caches
    runs.whole.Add(took);
    runs.inside.Add(reply->timeline.total);
  }
  return {};
}

}  // namespace

Operation SmallAdd(const std::string& device) {
  const std::vector<float> a(kSmallElements, 1.5f), b(kSmallElements, 2.25f);
  return Operation::Ufunc("add", {Operand::Inline<float>(a, {kSmallElements}),
                                  Operand::Inline<float>(b, {kSmallElements})})
      .OnDevice(device);
}

Result<void> BenchLatency(BenchSetup& setup) {
  auto echo = ManyClients::Open({.connection = setup.connection,
                                 .num_clients = 1,
                                 .cancellation = setup.context.cancellation()});
  if (!echo) return echo.error();
  // Over a Unix socket the client chooses a local connection by default.
  const bool two_ways = setup.client.address().starts_with("unix:");
  ConnectOptions without = setup.connection;
  without.local_calls = false;
  auto grpc_client = Client::Connect(without);
  if (!grpc_client) return grpc_client.error();
  const Operation operation = SmallAdd(setup.device);
  Runs ours{.client = &setup.client}, by_grpc{.client = &*grpc_client};
  Samples floor;
  const int block = std::min(kBlock, setup.options.num_calls);
  while (static_cast<int>(ours.whole.count()) < setup.options.num_calls) {
    if (auto done = Repeat(ours, operation, block, setup.context); !done) return done;
    if (two_ways) {
      if (auto done = Repeat(by_grpc, operation, block, setup.context); !done) return done;
    }
    auto answers = (*echo)->Run(Load::kEcho, kLongest, block);
    if (!answers) return answers.error();
    for (double seconds : answers->latencies) floor.Add(seconds);
  }
  const std::string device = setup.short_device();
  const std::string what = "Run of add, 1000 float32 in and out, " + device;
  setup.add({.id = "cli_run/" + device,
             .what = what,
             .ours = ours.whole,
             .baseline_name = "GetSession",
             .baseline = floor});
  setup.add({.id = "cli_run_inside/" + device,
             .what = "  of that, from acceptance to end",
             .ours = ours.inside});
  if (two_ways) {
    setup.add({.id = "cli_run_grpc/" + device,
               .what = what + ", by gRPC",
               .ours = by_grpc.whole,
               .baseline_name = "GetSession",
               .baseline = floor});
  }
  return {};
}

}  // namespace stride::cli
