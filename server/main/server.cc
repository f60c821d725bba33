#include "server/main/server.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/log.h"
#include "server/base/descriptors.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/folder.h"
#include "server/base/machine_limits.h"
#include "server/base/system_error.h"
#include "server/engine/service/device_service.h"
#include "server/main/logging.h"
#include "server/main/sockets.h"
#include "server/main/worker_folder.h"
#include "server/session/tenant_accounts.h"
#include "server/store/spill_file.h"

namespace stride {
namespace {

// Time for calls in flight to send their answers once their work has ended.
constexpr absl::Duration kAnswerTime = absl::Seconds(1);
// Time for the first health probes: a worker's start on each device.
constexpr absl::Duration kFirstHealth = absl::Seconds(5);

// Folders within the state folder.
constexpr char kCodeCache[] = "code-cache", kDurable[] = "durable", kSpill[] = "spill";
// Folder within the workers' folder: code that was compiled with the product.
constexpr char kPrecompiled[] = "precompiled";

std::string StateDirectory(const Config& config) {
  const char* from_systemd = std::getenv("STATE_DIRECTORY");
  if (!config.state_dir.empty() || from_systemd == nullptr) return config.state_dir;
  return std::string(from_systemd).substr(0, std::string(from_systemd).find(':'));
}

// The parent of the compiled code's folder; empty: the code is not saved. The folder has no other
// files, since those beyond its bound are removed.
std::string CodeCacheParent(const Config& config) {
  return config.cache_dir.empty() ? StateDirectory(config) : config.cache_dir;
}

// OK where the folder is absent.
absl::Status CheckFolder(const absl::StatusOr<Folder>& folder) {
  return absl::IsNotFound(folder.status()) ? absl::OkStatus() : folder.status();
}

// Users with write access to these folders, or a link in one, could make the daemon run code and
// write and remove files anywhere. In that case the daemon does not start.
absl::Status CheckFolders(const Config& config) {
  if (const std::string cache = CodeCacheParent(config); !cache.empty()) {
    auto root = Folder::MakeRoot(cache);
    if (!root.ok()) return root.status();
    if (auto folder = root->Make(kCodeCache); !folder.ok()) return folder.status();
  }
  const std::string state = StateDirectory(config);
  if (state.empty()) return absl::OkStatus();
  auto root = Folder::MakeRoot(state);
  if (!root.ok()) return root.status();
  // These folders are created by their users.
  if (absl::Status status = CheckFolder(root->Open(kSpill)); !status.ok()) return status;
  auto kept = root->Open(kDurable);
  return kept.ok() ? CheckFolder(kept->Open(durable::kFilesFolder)) : CheckFolder(kept);
}

absl::StatusOr<broker::BrokerOptions> BrokerOptionsOf(const Config& config) {
  broker::BrokerOptions options;
  options.worker_directory = config.worker_dir;
  if (options.worker_directory.empty()) {
    auto workers = FindOwnWorkerFolder();
    if (!workers.ok()) return workers.status();
    options.worker_directory = *std::move(workers);
  }
  options.precompiled_directory = absl::StrCat(options.worker_directory, "/", kPrecompiled);
  if (const std::string cache = CodeCacheParent(config); !cache.empty())
    options.cache_directory = absl::StrCat(cache, "/", kCodeCache);
  options.staging_bytes = config.staging_bytes;
  options.num_spares = config.spare_workers;
  options.num_compilers = std::clamp(AvailableThreads() / 4, 2, 8);
  options.cpu_devices = config.cpu_devices;
  options.use_cuda = !config.no_cuda;
  if (config.require_sandbox && config.no_sandbox) {
    return absl::InvalidArgumentError("--require-sandbox and --no-sandbox exclude each other");
  }
  using Mode = broker::SandboxPolicy::Mode;
  options.sandbox.mode = config.require_sandbox ? Mode::kRequire
                         : config.no_sandbox    ? Mode::kOff
                                                : Mode::kTry;
  options.sandbox.compile_memory_bytes = config.compile_memory_bytes;
  options.log = [](const std::string& line) { api::LogWarning("a worker says: " + line); };
  return options;
}

engine::EngineOptions EngineOptionsOf(const Config& config) {
  engine::EngineOptions options;
  options.max_array_bytes = config.max_array_bytes;
  options.device_memory_share = config.device_memory_share;
  options.max_device_memory_bytes = config.device_memory_bytes;
  options.region_bytes =
      config.region_bytes >= 0 ? config.region_bytes : AvailableMemoryBytes() / 8;
  // The default of one tenant, as deploy/tenants.conf documents.
  options.control_bytes =
      std::clamp<int64_t>(AvailableMemoryBytes() / 8, int64_t{64} << 20, int64_t{1} << 30);
  options.max_queued_tasks = config.max_queued;
  options.max_sessions = config.max_sessions;
  options.default_session_ttl = config.session_ttl;
  options.worker_idle_timeout = config.worker_idle_timeout;
  options.max_workers_of_device = config.max_workers;
  options.kill_grace = config.kill_grace;
  options.log = [](const std::string& text) { api::LogInfo(text); };
  options.fair_quantum = config.fair_quantum;
  if (config.probe_interval > absl::ZeroDuration()) options.health.interval = config.probe_interval;
  options.health_changed = [](const std::string& device, bool serves, const std::string& reason) {
    if (serves) {
      api::LogInfo(absl::StrCat("device serves again: ", device));
    } else {
      api::LogWarning(absl::StrCat("device does not serve: ", device, ": ", EscapeJson(reason)));
    }
  };
  options.worker_lost = [](const engine::WorkerLoss& loss) {
    // A client chose the operation's text: escape it so that it cannot break the line.
    std::string operation = loss.operation.empty() ? "none" : EscapeJson(loss.operation);
    api::LogWarning(absl::StrCat(
        "worker lost: device=", loss.device, " tenant=", loss.tenant.value,
        " operation=", operation,
        " cause=", EscapeJson({loss.cause.message().data(), loss.cause.message().size()})));
  };
  return options;
}

// Shares of the process's descriptors: half for connections, a quarter for workers, the rest for
// arenas and files. Sessions leave a sixteenth free, or no connection could be accepted.
constexpr size_t kShareOfConnections = 2, kShareOfWorkers = 4, kShareInReserve = 16;
// Descriptors of one worker in this process: its socket, standard error, pidfd, eventfd, and one
// for messages in flight to it.
constexpr size_t kDescriptorsOfWorker = 5;

int WorkersFor(size_t max_descriptors) {
  return static_cast<int>(
      std::max<size_t>(4, max_descriptors / kShareOfWorkers / kDescriptorsOfWorker));
}

void SetMachineLimits(size_t max_descriptors, engine::EngineOptions* options) {
  options->max_workers = WorkersFor(max_descriptors);
  options->host_memory_bytes = AvailableMemoryBytes();
  options->max_processes = MostProcesses();
  // More concurrent starts are no faster: a driver creates contexts one after another.
  options->max_starts = std::clamp(AvailableThreads(), 2, 4);
  options->descriptor_reserve = static_cast<int64_t>(max_descriptors / kShareInReserve);
  options->free_descriptors = [max_descriptors] {
    return static_cast<int64_t>(max_descriptors) - OpenDescriptors();
  };
}

std::string DescribeLimits(const api::FrontOptions& front, engine::DeviceService& devices) {
  std::string text = absl::StrCat("limits: ", front.max_descriptors, " file descriptors (",
                                  OpenDescriptors(), " open), ", front.listener.max_connections,
                                  " connections, ", devices.MostWorkers(), " workers at once");
  for (const v1::Device& device : devices.List())
    absl::StrAppend(&text, ", ", device.max_workers(), " on ", device.name());
  return text;
}

// Without durable storage the daemon still serves.
std::unique_ptr<durable::DurableStore> OpenDurable(const Config& config) {
  std::string state = StateDirectory(config);
  if (state.empty() || config.durable_bytes == 0) return nullptr;
  auto store =
      durable::DurableStore::Open({absl::StrCat(state, "/", kDurable), config.durable_bytes,
                                   [](const std::string& line) { api::LogWarning(line); }});
  if (store.ok()) return *std::move(store);
  api::LogError(
      absl::StrCat("named arrays and jobs are not kept on disk: ", store.status().message()));
  return nullptr;
}

// Without the usage file the daemon still serves.
std::unique_ptr<UsageWriter> StartUsageWriter(const Config& config,
                                              session::TenantAccounts* accounts) {
  UsageWriter::Options options;
  options.folder = StateDirectory(config);
  if (options.folder.empty()) return nullptr;
  options.log = [](const std::string& line) { api::LogWarning(line); };
  return UsageWriter::Start(std::move(options), accounts);
}

// A quarter of the memory that arrays on CPU devices may not use.
int64_t DefaultSpillMemory(const engine::EngineOptions& options,
                           const std::vector<wire::DeviceDescription>& devices) {
  double left = static_cast<double>(AvailableMemoryBytes());
  for (const wire::DeviceDescription& device : devices) {
    if (!device.host_memory()) continue;
    double share = static_cast<double>(device.memory_bytes()) * options.device_memory_share;
    auto most = static_cast<double>(options.max_device_memory_bytes);
    left -= most > 0 ? std::min(share, most) : share;
  }
  return std::max<int64_t>(0, static_cast<int64_t>(left / 4));
}

// Sets where idle arrays are evicted to when a device is full.
absl::Status SetSpill(const Config& config, const std::vector<wire::DeviceDescription>& devices,
                      engine::EngineOptions* options) {
  options->spill_memory_bytes = config.spill_memory_bytes >= 0
                                    ? config.spill_memory_bytes
                                    : DefaultSpillMemory(*options, devices);
  std::string state = StateDirectory(config);
  if (state.empty()) {
    if (config.spill_disk_bytes > 0)
      return absl::InvalidArgumentError("--spill-disk needs --state-dir");
    return absl::OkStatus();
  }
  if (config.spill_disk_bytes == 0) return absl::OkStatus();
  options->spill_folder = absl::StrCat(state, "/", kSpill);
  if (absl::Status status = store::PrepareSpillFolder(options->spill_folder); !status.ok())
    return status;
  options->spill_disk_bytes = config.spill_disk_bytes;
  if (config.spill_disk_bytes < 0) {
    std::error_code error;
    auto space = std::filesystem::space(options->spill_folder, error);
    options->spill_disk_bytes = error ? 0 : static_cast<int64_t>(space.available / 4);
  }
  return absl::OkStatus();
}

audit::Record RecordOf(const engine::JobEnd& end) {
  audit::Record record;
  record.tenant = end.tenant.value;
  record.event = "job";
  record.resource = end.job;
  record.device = end.devices;
  record.device_seconds = end.device_seconds;
  record.num_operations = end.num_operations;
  record.outcome = absl::StatusCodeToString(end.outcome.code());
  record.reason = ReasonNameOf(end.outcome);
  return record;
}

api::FrontOptions FrontOptionsOf(const Config& config, size_t max_descriptors) {
  api::FrontOptions options;
  options.trust_tenant_header = config.trust_tenant_header;
  options.trust_local = config.trust_local;
  options.tls = {config.tls_cert, config.tls_key, config.tls_client_ca,
                 !config.tls_client_optional};
  options.max_bulk_streams = config.max_bulk_streams;
  options.stream_window_bytes = config.stream_window_bytes;
  options.max_threads = config.max_threads;
  options.listener.max_connections = std::min<size_t>(
      config.max_connections, std::max<size_t>(1, max_descriptors / kShareOfConnections));
  options.max_descriptors = static_cast<int64_t>(max_descriptors);
  options.listener.max_per_peer = config.max_connections_per_peer;
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Config& config, size_t max_descriptors,
                                                      fd_store::FdStore* fd_store,
                                                      std::vector<NamedFd> passed) {
  std::unique_ptr<Server> server(new Server());
  server->fd_store_ = fd_store;
  absl::Status status = server->Build(config, max_descriptors, std::move(passed));
  if (!status.ok()) return status;
  return server;
}

absl::Status Server::OpenBooks(const Config& config) {
  if (config.tls_cert.empty() != config.tls_key.empty())
    return absl::InvalidArgumentError("--tls-cert and --tls-key belong together");
  if (config.tls_cert.empty() && !config.tls_client_ca.empty())
    return absl::InvalidArgumentError("--tls-client-ca needs --tls-cert and --tls-key");
  if (!config.tenants_file.empty()) {
    auto identity = identity::Identity::Open(
        config.tenants_file, {.log = [](const std::string& line) { api::LogWarning(line); }});
    if (!identity.ok()) return identity.status();
    identity_ = *std::move(identity);
  }
  if (!config.audit_log.empty()) {
    auto audit = audit::AuditLog::Open(config.audit_log);
    if (!audit.ok()) return audit.status();
    audit_ = *std::move(audit);
  }
  return absl::OkStatus();
}

void Server::Reload() {
  if (identity_ != nullptr) identity_->Reload().IgnoreError();
  if (audit_ != nullptr) audit_->Reopen();
}

absl::Status Server::Build(const Config& config, size_t max_descriptors,
                           std::vector<NamedFd> passed) {
  if (absl::Status status = OpenBooks(config); !status.ok()) return status;
  if (absl::Status status = CheckFolders(config); !status.ok()) return status;
  std::vector<NamedFd> kept = fd_store_->TakeAll();
  // Open sockets first: an address in use fails before any worker starts. Clients wait in the
  // backlog until the daemon serves.
  auto sockets = OpenSockets(config, fd_store_, std::move(passed), &kept);
  if (!sockets.ok()) return sockets.status();
  kept_sockets_ = std::move(sockets->kept_names);
  auto broker_options = BrokerOptionsOf(config);
  if (!broker_options.ok()) return broker_options.status();
  // Both need the driver's initialization, which happens once; the open library keeps the driver
  // initialized between the process that lists devices and the first worker.
  std::string no_nvml;
  auto open_nvml = [&] { nvml_ = metrics::Nvml::Open(&no_nvml); };
  absl::StatusOr<std::thread> opening = absl::UnavailableError("not wanted");
  if (!config.no_cuda) {
    opening = StartThread(open_nvml);
    if (!opening.ok()) open_nvml();
  }
  auto broker = broker::Broker::Create(*std::move(broker_options));
  if (opening.ok()) opening->join();
  if (!broker.ok()) return broker.status();
  broker_ = *std::move(broker);
  for (const std::string& note : broker_->notes()) api::LogInfo(note);
  engine::EngineOptions engine_options = EngineOptionsOf(config);
  SetMachineLimits(max_descriptors, &engine_options);
  if (nvml_ != nullptr) {
    engine_options.device_memory_used = [nvml = nvml_.get()](const std::string& id) {
      return nvml->Read(id).memory_used_bytes;
    };
  }
  if (absl::Status status = SetSpill(config, broker_->devices(), &engine_options); !status.ok())
    return status;
  if (audit_ != nullptr) {
    engine_options.job_ended = [audit = audit_.get()](const engine::JobEnd& end) {
      audit->Write(RecordOf(end));
    };
  }
  durable_ = OpenDurable(config);
  engine_ = engine::Engine::Create(std::move(engine_options), broker_.get(), fd_store_,
                                   std::move(kept), durable_.get());
  usage_ = StartUsageWriter(config, &engine_->accounts());
  if (identity_ != nullptr) {
    identity_->Follow([this](const identity::TenantTable& table) {
      engine_->accounts().SetQuotas(table.quotas(), table.default_quota);
    });
  }

  metrics::Sources sources;
  sources.devices = [this] { return engine_->devices().List(); };
  sources.own_account = [this] { return engine_->devices().Sample(); };
  if (nvml_ != nullptr)
    sources.nvml = [this](const std::string& uuid) { return nvml_->Read(uuid); };
  if (!no_nvml.empty()) api::LogInfo("no GPU metrics: " + no_nvml);
  if (nvml_ != nullptr) errors_ = ErrorWatch::Start(nvml_.get(), &engine_->devices());
  sampler_ = std::make_unique<metrics::Sampler>(std::move(sources));

  api::FrontOptions front_options = FrontOptionsOf(config, max_descriptors);
  front_options.identity = identity_.get();
  front_options.audit = audit_.get();
  auto front =
      api::Front::Start(front_options, engine_.get(), sampler_.get(), std::move(sockets->sockets));
  if (!front.ok()) return front.status();
  front_ = *std::move(front);
  addresses_ = front_->addresses();
  // Clients are served already; a readiness query gets the devices' real state.
  engine_->devices().AwaitHealth(Now() + kFirstHealth);
  api::LogInfo(DescribeLimits(front_options, engine_->devices()));
  return absl::OkStatus();
}

bool Server::Responds(absl::Duration patience) { return engine_->Responds(patience); }

void Server::Drain(SteadyTime deadline) {
  front_->BeginDrain();
  // The front closes the sockets and removes their files.
  for (const std::string& name : kept_sockets_) fd_store_->Remove(name);
  if (!engine_->Drain(deadline))
    api::LogWarning("the drain timeout passed; work that was accepted is given up");
  front_->Stop(Now() + kAnswerTime);
}

void Server::StopRecording() {
  front_.reset();
  errors_.reset();
  sampler_.reset();
  if (engine_ != nullptr) engine_->StopRecording();
  usage_.reset();
}

Server::~Server() {
  StopRecording();
  identity_.reset();  // its callback uses the engine
  // The broker ends before the engine, since its callbacks use the engine.
  if (broker_ != nullptr) broker_->Shutdown();
  engine_.reset();
}

}  // namespace stride
