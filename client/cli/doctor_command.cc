#include <chrono>
#include <cstdio>
#include <cstring>

#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/progress.h"

namespace stride::cli {
namespace {

struct Check {
  std::string name;
  bool good = false;
  std::string finding;
  std::string advice;  // for a failed check
};

// Computes x * 3 + 1 over eight int32. The arrays travel inline, so the check depends on the
// device's arithmetic but not on array transfers.
Check RunTinyJob(Client& client, const Device& device, const CallOptions& options) {
  Check check{.name = "job on " + device.name};
  const std::vector<int32_t> x = {-4, -1, 0, 1, 2, 3, 1000, 100000};
  const auto start = std::chrono::steady_clock::now();
  auto reply = client.Run(
      Operation::Expression("x * 3 + 1", {{"x", Operand::Inline(std::span<const int32_t>(x), {8})}})
          .OnDevice(device.name),
      options);
  const auto took = std::chrono::steady_clock::now() - start;
  if (!reply) {
    check.finding = reply.error().ToString();
    check.advice = "the daemon's log has the errors of its worker for this device";
    return check;
  }
  std::vector<int32_t> expected;
  for (int32_t value : x) expected.push_back(value * 3 + 1);
  const auto& values = reply->values;
  check.good = values.size() == 1 && values[0].spec == ArraySpec{DataType::kInt32, {8}} &&
               values[0].data.size() == 32 &&
               std::memcmp(values[0].data.data(), expected.data(), 32) == 0;
  check.finding = check.good ? "right, in " + FormatTime(took) : "the result is WRONG";
  if (!check.good)
    check.advice = "do not use this device: its hardware, driver or worker gives wrong numbers";
  return check;
}

Check DeviceState(const Device& device) {
  Check check{.name = device.name, .good = device.state == Device::State::kServing};
  check.finding = device.model + ", " +
                  FormatBytes(static_cast<double>(device.memory_total_bytes)) + ", " +
                  device.target;
  if (!device.driver_version.empty()) check.finding += ", driver " + device.driver_version;
  if (device.max_workers > 0)
    check.finding += ", up to " + std::to_string(device.max_workers) + " tenants at once";
  if (!check.good) {
    check.finding += ": not serving: " + device.state_reason;
    check.advice = device.kind == "cuda"
                       ? "check nvidia-smi, the driver's version and who may open /dev/nvidia*"
                       : "the daemon's log says why its worker did not start";
  }
  return check;
}

// Share of open descriptors from which the daemon counts as short of them: it soon refuses
// sessions.
constexpr double kFewDescriptors = 0.85;
// Fewer descriptors than this serve few tenants.
constexpr int64_t kPlentyOfDescriptors = 4096;

Check Limits(Client& client, const CallOptions& options) {
  Check check{.name = "limits", .good = true};
  auto limits = client.GetLimits(options);
  if (!limits) {
    check.good = false;
    check.finding = limits.error().ToString();
    check.advice = "see whether strided and this client are of one version";
    return check;
  }
  if (limits->descriptors == 0) {
    check.finding = "this daemon does not report them";
    return check;
  }
  check.finding = std::to_string(limits->open_descriptors) + " of " +
                  std::to_string(limits->descriptors) + " file descriptors open, up to " +
                  std::to_string(limits->connections) + " connections and " +
                  std::to_string(limits->workers) + " workers at once";
  const bool few = limits->descriptors < kPlentyOfDescriptors;
  check.good = static_cast<double>(limits->open_descriptors) <
               kFewDescriptors * static_cast<double>(limits->descriptors);
  const std::string advice =
      "raise the hard limit of file descriptors (LimitNOFILE=, ulimit -Hn) and start strided again";
  if (!check.good) check.advice = "sessions will be refused; " + advice;
  if (check.good && few) check.finding += "; for more tenants " + advice;
  return check;
}

// Always a good check: without shared memory, arrays travel in messages.
Check SharedMemory(Client& client) {
  Check check{.name = "shared memory", .good = true};
  auto buffer = client.AllocateShared(1);
  check.finding = buffer ? "large arrays travel through it"
                         : "none, arrays travel in messages: " + buffer.error().message;
  return check;
}

std::vector<Check> Examine(Context& context) {
  std::vector<Check> checks;
  checks.push_back(
      {.name = "client", .good = true, .finding = std::string("stride ") + STRIDE_VERSION});
  auto client = context.Connect();
  if (!client) {
    checks.push_back({.name = "daemon",
                      .finding = client.error().message,
                      .advice = "start strided, or give its --address"});
    return checks;
  }
  auto devices = context.ListTriedDevices(**client);
  if (!devices) {
    checks.push_back({.name = "daemon",
                      .finding = devices.error().ToString(),
                      .advice = "see whether strided and this client are of one version"});
    return checks;
  }
  checks.push_back({.name = "daemon",
                    .good = true,
                    .finding = context.is_private() ? "none runs; a private one starts"
                                                    : "answers at " + context.address()});
  if (devices->empty()) {
    checks.push_back({.name = "devices",
                      .finding = "there is none",
                      .advice = "install stride-worker-cpu or stride-worker-cuda next to strided"});
  }
  checks.push_back(Limits(**client, context.Call()));
  checks.push_back(SharedMemory(**client));
  for (const auto& device : *devices) {
    checks.push_back(DeviceState(device));
    if (checks.back().good) checks.push_back(RunTinyJob(**client, device, context.Call()));
  }
  return checks;
}

Result<void> Run(Context& context) {
  const auto checks = Examine(context);
  int bad = 0;
  std::vector<Json> items;
  for (const auto& check : checks) {
    bad += !check.good;
    items.push_back(Json::Object({{"check", Json::String(check.name)},
                                  {"good", Json::Bool(check.good)},
                                  {"finding", Json::String(check.finding)},
                                  {"advice", Json::String(check.advice)}}));
    if (context.json()) continue;
    const char* mark = check.good ? (context.color() ? "\033[32mok\033[0m " : "ok ")
                                  : (context.color() ? "\033[31mBAD\033[0m" : "BAD");
    std::printf("%s  %s: %s\n", mark, check.name.c_str(), check.finding.c_str());
    if (!check.good && !check.advice.empty()) std::printf("     -> %s\n", check.advice.c_str());
  }
  if (context.json()) std::printf("%s\n", Json::Array(items).text().c_str());
  if (bad == 0) return {};
  return Error{
      .code = Code::kFailedPrecondition,
      .message = std::to_string(bad) + " of " + std::to_string(checks.size()) + " checks are bad"};
}

}  // namespace

const Command& DoctorCommand() {
  static const Command kCommand = {
      .name = "doctor",
      .summary = "check the daemon, its devices and a small job on each",
      .usage = "",
      .run = Run};
  return kCommand;
}

}  // namespace stride::cli
