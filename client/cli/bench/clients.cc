#include <algorithm>
#include <cstdio>
#include <map>
#include <thread>

#include "client/cli/bench/bench.h"

namespace stride::cli {
namespace {

// Threads for the clients' answers; the daemon gets the other processors.
int NumThreads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 4, 1, 4);
}

// Results of one number of clients, over all rounds.
struct Measured {
  Samples each;     // time per call of all clients together, one sample per round
  Samples latency;  // time of each call
  Samples echo;     // like `each`, for an empty call
  // Each client over all rounds, since a client of a thousand has few calls per round.
  std::vector<ClientLoad> clients;
  int64_t num_failed = 0;
  std::string first_error;
};

void Note(const LoadResult& load, Measured& measured) {
  measured.each.Add(load.seconds / static_cast<double>(load.latencies.size()));
  for (double seconds : load.latencies) measured.latency.Add(seconds);
  measured.clients.resize(load.clients.size());
  for (size_t i = 0; i < load.clients.size(); ++i) {
    measured.clients[i].calls += load.clients[i].calls;
    measured.clients[i].seconds += load.clients[i].seconds;
  }
  measured.num_failed += load.num_failed;
  if (measured.first_error.empty() && load.num_failed > 0)
    measured.first_error = load.first_error.ToString();
}

// Compares the service that the clients got.
BenchRow Fairness(const Measured& measured) {
  std::vector<double> rates, periods;
  for (const auto& client : measured.clients) {
    rates.push_back(client.calls > 0 ? static_cast<double>(client.calls) / client.seconds : 0);
    if (client.calls > 0) periods.push_back(client.seconds / static_cast<double>(client.calls));
  }
  return {.what = "  the slowest client's mean call",
          .ours = Samples({*std::max_element(periods.begin(), periods.end())}),
          .baseline_name = "the fastest one's",
          .baseline = Samples({*std::min_element(periods.begin(), periods.end())}),
          .more = {{"jain_index", JainIndex(rates)}}};
}

Result<void> MeasureRound(BenchSetup& setup, int num_clients, Measured& measured) {
  auto clients = ManyClients::Open({.connection = setup.connection,
                                    .num_clients = num_clients,
                                    .num_threads = NumThreads(),
                                    .cancellation = setup.context.cancellation()});
  if (!clients) return clients.error();
  (*clients)->SetOperation(SmallAdd(setup.device), kSmallBytes);
  auto load = (*clients)->Run(Load::kRun, setup.options.duration);
  if (!load) return load.error();
  Note(*load, measured);
  auto echo = (*clients)->Run(Load::kEcho, setup.options.duration / 4);
  if (!echo) return echo.error();
  measured.echo.Add(echo->seconds / static_cast<double>(echo->latencies.size()));
  return {};
}

void AddRows(BenchSetup& setup, int num_clients, const Measured& measured, int count_before,
             const Measured* before) {
  const std::string id = std::to_string(num_clients) + "/" + setup.short_device();
  const std::string who = std::to_string(num_clients) + (num_clients == 1 ? " client" : " clients");
  BenchRow row{.id = "clients/" + id,
               .what = "A small Run of " + who + ", one after another",
               .ours = measured.each};
  if (before != nullptr) {
    row.baseline_name = std::to_string(count_before) + (count_before == 1 ? " client" : " clients");
    row.baseline = before->each;
  }
  row.more = {{"calls_per_second", 1 / measured.each.median()}};
  setup.add(std::move(row));
  setup.add({.id = "clients_echo/" + id,
             .what = "  the same, held against empty calls",
             .ours = measured.each,
             .baseline_name = "GetSession of " + who,
             .baseline = measured.echo});
  setup.add({.id = "clients_latency/" + id,
             .what = "  as each client sees it",
             .ours = measured.latency});
  if (num_clients == 1) return;
  BenchRow fairness = Fairness(measured);
  fairness.id = "clients_fair/" + id;
  setup.add(std::move(fairness));
}

}  // namespace

Result<void> BenchClients(BenchSetup& setup) {
  std::map<int, Measured> all;
  // Each round runs all numbers of clients, so that a busy moment affects all of them.
  for (int round = 0; round < setup.options.num_rounds; ++round) {
    for (int num_clients : setup.options.client_counts) {
      if (auto measured = MeasureRound(setup, num_clients, all[num_clients]); !measured)
        return measured;
    }
  }
  const Measured* before = nullptr;
  int count_before = 0;
  for (const auto& [num_clients, measured] : all) {
    AddRows(setup, num_clients, measured, count_before, before);
    if (measured.num_failed > 0)
      std::fprintf(stderr, "stride: with %d clients %lld calls were refused and tried again: %s\n",
                   num_clients, static_cast<long long>(measured.num_failed),
                   measured.first_error.c_str());
    before = &measured;
    count_before = num_clients;
  }
  return {};
}

}  // namespace stride::cli
