#include "server/broker/broker.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/error.h"
#include "server/broker/compiler_pool.h"
#include "server/broker/discovery.h"
#include "server/broker/spare_pool.h"
#include "server/broker/spawner.h"
#include "server/broker/worker_list.h"
#include "server/broker/worker_process.h"

namespace stride::broker {
namespace {

bool IsCpu(const FoundDevice& device) { return device.description.kind() == "cpu"; }

// Replaces the machine, as the CPU worker lists it, by the configured devices.
void ApplyOptions(const BrokerOptions& options, Discovery* found) {
  std::vector<FoundDevice> others, cpus;
  for (FoundDevice& device : found->devices) {
    if (!options.use_cuda && device.description.kind() == "cuda") {
      found->notes.push_back(absl::StrCat(device.description.id(), ": switched off"));
    } else {
      (IsCpu(device) ? cpus : others).push_back(std::move(device));
    }
  }
  std::vector<int> wanted = options.cpu_devices;
  if (wanted.empty() && others.empty()) wanted = {0};
  if (cpus.empty() && !options.cpu_devices.empty()) {
    found->notes.push_back("CPU devices were asked for, but no CPU worker was found");
  }
  if (!cpus.empty()) cpus = MakeCpuDevices(cpus[0], wanted);
  found->devices = std::move(others);
  for (FoundDevice& device : cpus) found->devices.push_back(std::move(device));
}

CompilerOptions MakeCompilerOptions(const BrokerOptions& options, const Discovery& found) {
  CompilerOptions result;
  for (const auto& [kind, executable] : found.executables)
    result.kinds[kind] = {executable, ToolchainOf(found, kind)};
  for (const FoundDevice& device : found.devices) {
    const auto& targets = device.description.precompiled_targets();
    result.precompiled_targets[device.description.target()].assign(targets.begin(), targets.end());
  }
  result.cache_directory = options.cache_directory;
  result.precompiled_directory = options.precompiled_directory;
  result.num_compilers = options.num_compilers;
  result.timeout = options.compile_timeout;
  result.sandbox = options.sandbox;
  return result;
}

class ProcessBroker : public Broker {
 public:
  ProcessBroker(BrokerOptions options, std::unique_ptr<Spawner> spawner, Discovery found)
      : options_(std::move(options)),
        spawner_(std::move(spawner)),
        found_(std::move(found)),
        spares_(static_cast<int>(found_.devices.size()), options_.num_spares,
                [this](int device) { return StartProcess(device); }),
        compiler_(MakeCompilerOptions(options_, found_), spawner_.get()) {
    for (const FoundDevice& device : found_.devices) devices_.push_back(device.description);
    const PrecompiledModules& precompiled = compiler_.precompiled();
    if (!precompiled.status().ok()) {
      found_.notes.push_back(
          absl::StrCat("precompiled code is not used: ", precompiled.status().message()));
    } else if (precompiled.size() > 0) {
      found_.notes.push_back(absl::StrCat("precompiled code: ", precompiled.size(), " modules"));
    }
  }
  ~ProcessBroker() override { Shutdown(); }

  const std::vector<wire::DeviceDescription>& devices() const override { return devices_; }
  const std::vector<wire::Link>& links() const override { return found_.links; }
  const std::vector<std::string>& notes() const override { return found_.notes; }
  Compiler& compiler() override { return compiler_; }

  absl::StatusOr<std::shared_ptr<Worker>> StartWorker(int device) override {
    if (stopping_) {
      return MakeError(absl::StatusCode::kUnavailable, v1::ERROR_REASON_DRAINING,
                       "the service is shutting down");
    }
    if (std::shared_ptr<Worker> spare = spares_.Take(device)) return spare;
    return StartProcess(device);
  }

  void Shutdown() override {
    stopping_ = true;
    compiler_.Shutdown();
    // End workers first: a start in progress then fails at once, and the pool's thread ends.
    workers_.EndAll();
    spares_.Stop();
    workers_.EndAll();
  }

 private:
  absl::StatusOr<std::shared_ptr<Worker>> StartProcess(int device) {
    const FoundDevice& found = found_.devices[device];
    WorkerOptions worker;
    worker.executable = found.executable;
    worker.device = found.description;
    worker.num_threads = found.num_threads;
    worker.staging_bytes = options_.staging_bytes;
    worker.slot_bytes = options_.staging_slot_bytes;
    worker.start_timeout = options_.start_timeout;
    worker.sandbox = options_.sandbox;
    worker.log = options_.log;
    worker.gone = [this] { spares_.Prune(); };
    return WorkerProcess::Start(std::move(worker), spawner_.get(), &workers_);
  }

  const BrokerOptions options_;
  const std::unique_ptr<Spawner> spawner_;
  Discovery found_;
  std::vector<wire::DeviceDescription> devices_;
  std::atomic<bool> stopping_{false};
  WorkerList workers_;
  SparePool spares_;  // before the compilers: the first workers start while these read their files
  CompilerPool compiler_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Broker>> Broker::Create(BrokerOptions options) {
  if (options.staging_slot_bytes == 0 || options.staging_bytes < options.staging_slot_bytes) {
    return absl::InvalidArgumentError("staging memory must hold at least one slot");
  }
  auto spawner = std::make_unique<Spawner>(WorkerEnvironment());
  auto found =
      Discover(options.worker_directory, options.start_timeout, options.sandbox, spawner.get());
  if (!found.ok()) return found.status();
  if (found->sandbox_refused && options.sandbox.mode == SandboxPolicy::Mode::kRequire) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a sandbox is required and cannot be had here: ", absl::StrJoin(found->notes, "; ")));
  }
  ApplyOptions(options, &*found);
  if (found->devices.empty()) {
    std::string text =
        absl::StrCat("no device was found by the stride-worker-* programs in ",
                     options.worker_directory, found->notes.empty() ? ": there is none" : "");
    for (const std::string& note : found->notes) absl::StrAppend(&text, "; ", note);
    return absl::FailedPreconditionError(text);
  }
  return std::make_unique<ProcessBroker>(std::move(options), std::move(spawner), *std::move(found));
}

}  // namespace stride::broker
