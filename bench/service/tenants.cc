#include <unistd.h>

#include <fstream>
#include <latch>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "bench/service/bench.h"
#include "bench/service/process.h"

namespace stride::bench {
namespace {

// Tenants of the benchmark's own daemon, which has the SHA-256 of their tokens.
struct Tenant {
  const char* name;
  const char* token;
  const char* hash;
};
constexpr Tenant kTenants[] = {
    {"a", "stride-bench-tenant-a-of-the-benchmarks-own-daemon",
     "6ff12c2d6a42e94f9d16eb9c25b425edf106cebf5a8a29de68a6a6870b3c6e99"},
    {"b", "stride-bench-tenant-b-of-the-benchmarks-own-daemon",
     "3b72a42dacd9e0c03c2e45eb23746040a98c49c35cc76b0a3c44140527692149"},
};

struct Daemon {
  TemporaryFolder folder;
  std::unique_ptr<Process> process;
  std::string address = "unix:" + folder.path() + "/daemon";

  // With what devices this machine has, or as `flags` say.
  Result<void> Start(const std::vector<std::string>& flags) {
    const std::string file = folder.path() + "/tenants.conf";
    std::ofstream tenants(file);
    for (const Tenant& tenant : kTenants)
      tenants << "[tenant " << tenant.name << "]\ntoken = sha256:" << tenant.hash
              << " name=bench\n";
    tenants.close();
    process = nullptr;
    std::vector<std::string> arguments = {ProgramFolder() + "/strided", "--listen=" + address,
                                          "--tenants=" + file, "--log-format=text",
                                          "--parent-pid=" + std::to_string(getpid())};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    process = std::make_unique<Process>(arguments);
    if (process->WaitForLine("listening=unix:").empty()) return Broken("strided does not start");
    return {};
  }
  Result<Client> Connect(const Tenant& tenant) const {
    return Client::Connect({.address = address, .token = tenant.token});
  }
};

// Two of one kind; empty: there are not.
Result<std::vector<std::string>> TwoDevices(const Daemon& daemon) {
  BENCH_TRY(client, daemon.Connect(kTenants[0]));
  BENCH_TRY(all, client.ListDevices());
  std::map<std::string, std::vector<std::string>> of_kind;
  for (const Device& device : all) {
    std::vector<std::string>& devices = of_kind[device.kind];
    devices.push_back(device.place());
    if (devices.size() == 2) return devices;
  }
  return std::vector<std::string>();
}

// A client that sends operations to one device.
struct Worker {
  static Result<Worker> Make(const Daemon& daemon, const Tenant& tenant,
                             const std::string& device) {
    BENCH_TRY(client, daemon.Connect(tenant));
    Worker worker{.client = std::move(client)};
    worker.put.device = device;
    return worker;
  }

  // Once all others have come to `begin`.
  Result<double> Run(int num_ops, std::latch& begin) {
    bool came = false;
    auto seconds = RunChain(client, put, num_ops, [&] {
      came = true;
      begin.arrive_and_wait();
    });
    if (!came) begin.count_down();  // the others do not wait for what failed
    return seconds;
  }

  Client client;
  PutOptions put;
};

// The mean of what each took for an operation.
Result<double> RunAtOnce(std::vector<Worker*> workers, int num_ops) {
  std::latch begin(static_cast<std::ptrdiff_t>(workers.size()));
  std::vector<std::optional<Result<double>>> taken(workers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers.size(); ++i)
    threads.emplace_back([&, i] { taken[i] = workers[i]->Run(num_ops, begin); });
  for (std::thread& thread : threads) thread.join();
  double seconds = 0;
  for (auto& one : taken) {
    BENCH_TRY(of_one, *std::move(one));
    seconds += of_one / static_cast<double>(taken.size());
  }
  return seconds;
}

}  // namespace

Result<void> MeasureTenants(const Setup& setup, Report& report) {
  report.Section("Tenants side by side, each with a device of its own");
  Daemon daemon;
  BENCH_OK(daemon.Start({}));
  BENCH_TRY(devices, TwoDevices(daemon));
  if (devices.empty()) {
    BENCH_OK(daemon.Start({"--no-cuda", "--cpu-devices=2x1"}));
    BENCH_TRY(made, TwoDevices(daemon));
    devices = made;
  }
  if (devices.empty()) return Broken("There are no two devices of one kind");
  BENCH_TRY(mine, Worker::Make(daemon, kTenants[0], devices[0]));
  BENCH_TRY(also_mine, Worker::Make(daemon, kTenants[0], devices[1]));
  BENCH_TRY(theirs, Worker::Make(daemon, kTenants[1], devices[1]));
  Times alone, of_one, of_two;
  for (int round = 0; round <= setup.num_rounds; ++round) {
    BENCH_TRY(one, RunAtOnce({&mine}, setup.num_calls));
    BENCH_TRY(same, RunAtOnce({&mine, &also_mine}, setup.num_calls));
    BENCH_TRY(two, RunAtOnce({&mine, &theirs}, setup.num_calls));
    if (round == 0) continue;  // warms all
    alone.Add(one);
    of_one.Add(same);
    of_two.Add(two);
  }
  const std::string where = ShortName(devices[0]);
  const std::string what = "Each of " + std::to_string(setup.num_calls) + " adds in a chain, ";
  report.Add({.id = "tenants/two/" + where,
              .what = what + "two tenants at once",
              .ours = of_two,
              .baseline_name = "one tenant alone",
              .baseline = alone});
  report.Add({.id = "tenants/one/" + where,
              .what = what + "two clients of a tenant at once",
              .ours = of_one,
              .baseline_name = "one client alone",
              .baseline = alone});
  return {};
}

}  // namespace stride::bench
