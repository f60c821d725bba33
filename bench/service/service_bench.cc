// service_bench: the daemon's overhead over the layers below it, measured in the same run. Without
// --address it starts the strided in this program's folder.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/synchronization/mutex.h"
#include "bench/service/bench.h"
#include "bench/service/echo.h"
#include "bench/service/process.h"
#include "bench/service/raw_socket.h"

namespace stride::bench {
namespace {

constexpr char kUsage[] =
    "Usage: service_bench [--address=ADDRESS] [--mib=N] [--calls=N] [--rounds=N] [--elements=N]\n"
    "                     "
    "[--only=latency|chain|programs|transfer|shared|compute|compile|fairness|tenants] "
    "[--json=FILE]\n";

struct Options {
  std::string address;
  int64_t mib = 256;
  int calls = 2000;
  int rounds = 7;
  int64_t elements = 10'000'000;
  std::string only;
  std::string json;
  // This process is a baseline's server; the value is its folder.
  std::string serve_echo, serve_raw;
};

std::optional<Options> Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = argument.substr(0, equals);
    const std::string value(argument.substr(equals + 1));
    const int64_t number = std::atoll(value.c_str());
    if (name == "--address")
      options.address = value;
    else if (name == "--only")
      options.only = value;
    else if (name == "--json")
      options.json = value;
    else if (name == "--serve-echo")
      options.serve_echo = value;
    else if (name == "--serve-raw")
      options.serve_raw = value;
    else if (number <= 0)
      return std::nullopt;
    else if (name == "--mib")
      options.mib = number;
    else if (name == "--calls")
      options.calls = static_cast<int>(number);
    else if (name == "--rounds")
      options.rounds = static_cast<int>(number);
    else if (name == "--elements")
      options.elements = number;
    else
      return std::nullopt;
  }
  return options;
}

// `... 127.0.0.1:PORT ...` to `127.0.0.1:PORT`.
std::string TcpAddressIn(const std::string& line) {
  const size_t at = line.find("127.0.0.1:");
  return at == std::string::npos ? ""
                                 : line.substr(at, line.find_first_not_of("0123456789.:", at) - at);
}

// Processes that run during the benchmark.
struct Servers {
  TemporaryFolder folder;
  std::unique_ptr<Process> daemon, echo, raw;
};

Result<std::vector<Transport>> Start(const Options& options, Servers& servers) {
  const std::string& folder = servers.folder.path();
  const std::string own = OwnPath();
  servers.echo = std::make_unique<Process>(std::vector{own, "--serve-echo=" + folder});
  servers.raw = std::make_unique<Process>(
      std::vector{own, "--serve-raw=" + folder, "--mib=" + std::to_string(options.mib)});
  const std::string echo_tcp = TcpAddressIn(servers.echo->WaitForLine("serving"));
  const std::string raw_tcp = TcpAddressIn(servers.raw->WaitForLine("serving"));
  if (echo_tcp.empty() || raw_tcp.empty()) return Broken("The baselines' servers do not start");
  Transport unix_socket{"unix", "unix:" + folder + "/daemon", "unix:" + folder + "/echo",
                        "unix:" + folder + "/raw"};
  Transport tcp{"tcp", "", echo_tcp, raw_tcp};
  if (!options.address.empty()) {
    Transport& given = options.address.starts_with("unix:") ? unix_socket : tcp;
    given.daemon = options.address;
    return std::vector{given};
  }
  servers.daemon = std::make_unique<Process>(std::vector<std::string>{
      ProgramFolder() + "/strided", "--listen=" + unix_socket.daemon, "--listen=tcp:127.0.0.1:0",
      "--state-dir=" + folder, "--trust-tenant-header", "--log-format=text",
      "--parent-pid=" + std::to_string(getpid())});
  tcp.daemon = TcpAddressIn(servers.daemon->WaitForLine("listening=tcp:"));
  if (tcp.daemon.empty()) return Broken("strided does not start");
  return std::vector{unix_socket, tcp};
}

// The first serving device of each kind.
Result<std::vector<std::string>> DevicesOf(const std::string& address, Report& report) {
  BENCH_TRY(client, Client::Connect({.address = address}));
  BENCH_TRY(all, client.ListDevices());
  std::vector<std::string> names;
  std::vector<std::string> kinds;
  for (const Device& device : all) {
    if (device.state != Device::State::kServing) continue;
    if (std::find(kinds.begin(), kinds.end(), device.kind) != kinds.end()) continue;
    kinds.push_back(device.kind);
    names.push_back(device.place());
    report.AddDevice(ShortName(names.back()), device.model);
  }
  if (names.empty()) return Broken("No device of the daemon serves");
  return names;
}

Result<void> Measure(const Options& options, Report& report) {
  Servers servers;
  Setup setup{.transfer_bytes = options.mib << 20,
              .num_calls = options.calls,
              .num_rounds = options.rounds,
              .num_elements = options.elements};
  BENCH_TRY(transports, Start(options, servers));
  setup.transports = transports;
  BENCH_TRY(devices, DevicesOf(transports[0].daemon, report));
  setup.devices = devices;
  const struct {
    std::string_view name;
    Result<void> (*measure)(const Setup&, Report&);
  } parts[] = {
      {"latency", MeasureLatency},   {"chain", MeasureChain},       {"programs", MeasurePrograms},
      {"transfer", MeasureTransfer}, {"shared", MeasureShared},     {"compute", MeasureCompute},
      {"compile", MeasureCompile},   {"fairness", MeasureFairness}, {"tenants", MeasureTenants}};
  for (const auto& part : parts) {
    if (!options.only.empty() && options.only != part.name) continue;
    // A daemon that is given need not believe who its callers say they are, and is not ours to
    // replace.
    const bool needs_own = part.name == "fairness" || part.name == "tenants";
    if (needs_own && !options.address.empty()) continue;
    BENCH_OK(part.measure(setup, report));
  }
  return {};
}

int Main(int argc, char** argv) {
  const auto options = Parse(argc, argv);
  if (!options) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  // As every program of ours that moves bulk: large blocks stay with the process.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  // As the daemon, so that the bare echo is not the slower one for what Debian's Abseil checks.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (!options->serve_echo.empty()) return ServeEcho(options->serve_echo);
  if (!options->serve_raw.empty()) return ServeRawSocket(options->serve_raw, options->mib << 20);
  Report report;
  const auto measured = Measure(*options, report);
  if (!measured) {
    std::fprintf(stderr, "service_bench: %s\n", measured.error().ToString().c_str());
    return 1;
  }
  if (!options->json.empty() && !report.WriteJson(options->json)) {
    std::fprintf(stderr, "service_bench: %s cannot be written\n", options->json.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace stride::bench

int main(int argc, char** argv) { return stride::bench::Main(argc, argv); }
