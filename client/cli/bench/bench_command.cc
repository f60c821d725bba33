#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>

#include "client/cli/bench/bench.h"
#include "client/cli/command.h"
#include "client/cli/suggest.h"

namespace stride::cli {
namespace {

constexpr int kMaxClients = 100'000;
constexpr int64_t kMaxMib = 1 << 16;

const struct Mode {
  const char* name;
  Result<void> (*measure)(BenchSetup&);
} kModes[] = {{"latency", BenchLatency},
              {"bandwidth", BenchBandwidth},
              {"ops", BenchOperations},
              {"clients", BenchClients}};

Error Wrong(std::string message) { return UsageError(BenchCommand(), std::move(message)); }

// Parses `1,10,100`, in ascending order.
Result<std::vector<int>> Counts(const std::string& option, const std::string& text, int most) {
  std::vector<int> counts;
  const char *at = text.data(), *const end = at + text.size();
  for (;;) {
    int count = 0;
    const auto [after, error] = std::from_chars(at, end, count);
    if (error != std::errc() || count < 1 || count > most || (after != end && *after != ','))
      return Wrong("--" + option + " " + text + " is no list of counts such as 1,10 (at most " +
                   std::to_string(most) + ")");
    counts.push_back(count);
    if (after == end) break;
    at = after + 1;
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

Result<int64_t> Count(const CommandLine& line, const std::string& option, int64_t otherwise,
                      int64_t most) {
  const auto text = line.Value(option);
  if (!text) return otherwise;
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), count);
  if (error != std::errc() || end != text->data() + text->size() || count < 1 || count > most)
    return Wrong("--" + option + " " + *text + " is no number from 1 to " + std::to_string(most));
  return count;
}

Result<BenchOptions> ReadOptions(const CommandLine& line) {
  BenchOptions options;
  auto clients = Counts("clients", line.Value("clients").value_or("1,10,100"), kMaxClients);
  if (!clients) return clients.error();
  options.client_counts = *clients;
  auto streams = Counts("streams", line.Value("streams").value_or("1,4"), 64);
  if (!streams) return streams.error();
  options.stream_counts = *streams;
  auto mib = Count(line, "mib", 64, kMaxMib);
  if (!mib) return mib.error();
  options.bytes = *mib << 20;
  auto calls = Count(line, "calls", 2000, 1'000'000);
  if (!calls) return calls.error();
  options.num_calls = static_cast<int>(*calls);
  auto rounds = Count(line, "rounds", 3, 1000);
  if (!rounds) return rounds.error();
  options.num_rounds = static_cast<int>(*rounds);
  const std::string duration = line.Value("duration").value_or("2s");
  const auto time = ParseTime(duration);
  if (!time) return Wrong("--duration " + duration + " is no time such as 2, 500ms or 1m");
  options.duration = *time;
  return options;
}

Result<std::vector<Mode>> Modes(const CommandLine& line) {
  std::vector<Mode> modes;
  std::vector<std::string> names;
  for (const Mode& mode : kModes) names.push_back(mode.name);
  for (const std::string& wanted : line.positionals()) {
    const auto* found = std::find_if(std::begin(kModes), std::end(kModes),
                                     [&](const Mode& mode) { return mode.name == wanted; });
    if (found == std::end(kModes)) {
      const std::string near = Suggest(wanted, names);
      return Wrong("No measurement '" + wanted + "'" +
                   (near.empty() ? "" : ". Did you mean " + near + "?"));
    }
    modes.push_back(*found);
  }
  if (modes.empty()) modes.assign(std::begin(kModes), std::end(kModes));
  return modes;
}

// Limits of a private daemon that admit this many clients; a given daemon has its own limits.
std::vector<std::string> Admitting(int num_clients) {
  const std::string room = std::to_string(num_clients + 64);
  // One thread per call in flight, of which one tenant may have half.
  const std::string threads = std::to_string(std::clamp(2 * num_clients + 64, 1024, 1 << 16));
  return {"--max-connections=" + room, "--max-connections-per-peer=" + room,
          "--max-threads=" + threads, "--max-sessions=" + std::to_string(num_clients + 10'000)};
}

// Returns the device with the given name or index, else the first that serves.
Result<Device> Choose(Context& context, Client& client) {
  auto devices = context.ListTriedDevices(client);
  if (!devices) return devices.error();
  const std::string wanted = context.device();
  for (const Device& device : *devices) {
    const bool is_it = wanted.empty() ? device.state == Device::State::kServing
                                      : wanted == device.name || wanted == device.place();
    if (is_it) return device;
  }
  return Error{.code = Code::kNotFound,
               .message = wanted.empty() ? "No device serves" : "No device " + wanted};
}

Result<void> Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << "\n";
  file.close();
  if (file) return {};
  return Error{.code = Code::kFailedPrecondition, .message = path + " cannot be written"};
}

Result<void> Run(Context& context) {
  const CommandLine& line = context.line();
  auto modes = Modes(line);
  if (!modes) return modes.error();
  auto options = ReadOptions(line);
  if (!options) return options.error();
  auto connection = context.Connection();
  if (!connection) return connection.error();
  auto client = context.Connect(false, Admitting(options->client_counts.back()));
  if (!client) return client.error();
  auto device = Choose(context, **client);
  if (!device) return device.error();
  connection->address = context.address();

  std::vector<Json> rows;
  BenchSetup setup{*options, context, **client, *connection, device->place(), nullptr};
  setup.add = [&](const BenchRow& row) {
    rows.push_back(ToJson(row));
    if (context.json()) return;
    if (rows.size() == 1) {
      std::printf("%s: %s, %s\n%s\n", setup.short_device().c_str(), device->model.c_str(),
                  context.is_private() ? "a private daemon" : context.address().c_str(),
                  BenchHeading().c_str());
    }
    std::printf("%s\n", ToText(row).c_str());
    std::fflush(stdout);
  };
  for (const Mode& mode : *modes) {
    if (auto measured = mode.measure(setup); !measured) return measured;
  }
  const std::string text =
      Json::Object(
          {{"devices", Json::Object({{setup.short_device(), Json::String(device->model)}})},
           {"rows", Json::Array(rows)}})
          .text();
  if (context.json()) std::printf("%s\n", text.c_str());
  const auto path = line.Value("output");
  return path ? Write(*path, text) : Result<void>();
}

}  // namespace

const Command& BenchCommand() {
  static const Command kCommand = {
      .name = "bench",
      .summary = "measure a daemon: latency, bandwidth, small operations, many clients",
      .usage = "[latency] [bandwidth] [ops] [clients]",
      .details =
          "latency    a Run of 1000 float32, upload and download included, and an empty call\n"
          "bandwidth  the upload and download of an array, for each number of streams\n"
          "ops        small operations in a row, one by one and as a program\n"
          "clients    each number of clients at once, each with its own connection and session;\n"
          "           a client sends its next call when the last is answered: calls a second,\n"
          "           latency and fairness\n\n"
          "Runs all of them unless some are named. Without a daemon it measures a private one, "
          "which "
          "admits enough clients.\nA daemon that runs has its own limits: "
          "--max-connections-per-peer "
          "(512 by default) and --max-threads, of which\na tenant may have half. A ratio is "
          "relative "
          "to the row that it names; above 1 is slower.",
      .options = {{"clients", 0, "N,...", "numbers of clients; default 1,10,100"},
                  {"duration", 0, "TIME", "duration of each load of clients; default 2s"},
                  {"rounds", 0, "N", "repetitions of long measurements and of loads; default 3"},
                  {"calls", 0, "N", "repetitions of short measurements; default 2000"},
                  {"mib", 0, "N", "size of the transferred array; default 64"},
                  {"streams", 0, "N,...", "numbers of streams; default 1,4"},
                  {"device", 0, "DEVICE",
                   "the device to measure, such as cpu:0; default: the first"},
                  {"output", 'o', "FILE", "file for the rows as JSON"}},
      .run = Run};
  return kCommand;
}

}  // namespace stride::cli
