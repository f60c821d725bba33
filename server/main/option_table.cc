#include "server/main/option_table.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace stride {
namespace {

constexpr int kMaxCpuDevices = 64;
constexpr int kMaxThreads = 4096;

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

absl::Status Bad(std::string_view what) { return absl::InvalidArgumentError(ToAbsl(what)); }

using Setter = std::function<absl::Status(std::string_view, Config*)>;

Setter Text(std::string Config::*member) {
  return [member](std::string_view value, Config* config) {
    config->*member = std::string(value);
    return absl::OkStatus();
  };
}

Setter Switch(bool Config::*member) {
  return [member](std::string_view value, Config* config) {
    if (value != "true" && value != "false") return Bad("must be true or false");
    config->*member = value == "true";
    return absl::OkStatus();
  };
}

template <typename Integer>
Setter Number(Integer Config::*member, int64_t least, int64_t most) {
  return [member, least, most](std::string_view value, Config* config) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(ToAbsl(value), &number) || number < least || number > most) {
      return Bad(absl::StrCat("must be a whole number from ", least, " to ", most));
    }
    config->*member = static_cast<Integer>(number);
    return absl::OkStatus();
  };
}

Setter Time(absl::Duration Config::*member) {
  return [member](std::string_view value, Config* config) {
    absl::Duration duration;
    if (!absl::ParseDuration(ToAbsl(value), &duration) || duration < absl::ZeroDuration() ||
        duration > absl::Hours(24 * 365)) {
      return Bad("must be a time such as 500ms, 30s, 5m or 1h30m");
    }
    config->*member = duration;
    return absl::OkStatus();
  };
}

absl::Status SetHangTimeout(std::string_view value, Config* config) {
  absl::Status status = Time(&Config::hang_timeout)(value, config);
  if (!status.ok()) return status;
  if (config->hang_timeout > absl::ZeroDuration() && config->hang_timeout < absl::Seconds(5))
    return Bad("must be 0, or at least 5s: a busy machine takes seconds to answer");
  return absl::OkStatus();
}

absl::Status SetListen(std::string_view value, Config* config) {
  config->listen.push_back(std::string(value));
  return absl::OkStatus();
}

absl::Status SetCpuDevices(std::string_view value, Config* config) {
  auto devices = ParseCpuDevices(value);
  if (devices.ok()) config->cpu_devices = *std::move(devices);
  return devices.status();
}

absl::Status SetMemoryShare(std::string_view value, Config* config) {
  double share = 0;
  if (!absl::SimpleAtod(ToAbsl(value), &share) || !(share > 0 && share <= 1))
    return Bad("must be above 0 and at most 1");
  config->device_memory_share = share;
  return absl::OkStatus();
}

absl::Status SetLogLevel(std::string_view value, Config* config) {
  for (const char* level : {"debug", "info", "warning", "error"}) {
    if (value != level) continue;
    config->log_level = level;
    return absl::OkStatus();
  }
  return Bad("must be debug, info, warning or error");
}

absl::Status SetLogFormat(std::string_view value, Config* config) {
  if (value != "auto" && value != "json" && value != "text")
    return Bad("must be auto, json or text");
  config->log_format = value == "json"   ? LogFormat::kJson
                       : value == "text" ? LogFormat::kText
                                         : LogFormat::kAuto;
  return absl::OkStatus();
}

constexpr int64_t kMaxInt = INT32_MAX;

std::vector<Option> MakeOptions() {
  return {
      {"listen", "ADDRESS",
       "Address to listen on: unix:/path or tcp:HOST:PORT, HOST numeric, PORT 0 for any free "
       "port. May be given several times. Default: the sockets that systemd passes, else "
       "unix:stride.sock in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR or /run/stride, and "
       "tcp:127.0.0.1:7433.",
       SetListen},
      {"insecure", "",
       "Allow addresses that other machines reach although calls are not both encrypted "
       "(--tls-cert) and authenticated (--tenants).",
       Switch(&Config::insecure)},
      {"trust-tenant-header", "",
       "Take the tenant from the caller's stride-tenant metadata. For a proxy that "
       "authenticates. Callers without it are tenant `default`.",
       Switch(&Config::trust_tenant_header)},
      {"tenants", "FILE",
       "File of tenants, their quotas, tokens (hashes) and certificate names; see tenants.conf. "
       "Every call then needs credentials. Read again when it changes, and on SIGHUP.",
       Text(&Config::tenants_file)},
      {"trust-local", "",
       "With --tenants: accept callers of this machine (Unix sockets, loopback) without "
       "credentials, as tenant `default` or the one that --trust-tenant-header names. Unsafe "
       "with a proxy on this machine.",
       Switch(&Config::trust_local)},
      {"tls-cert", "FILE",
       "Certificate chain (PEM) of this daemon. TCP addresses then accept TLS only. This file "
       "and the next two are read again when they change.",
       Text(&Config::tls_cert)},
      {"tls-key", "FILE", "Private key (PEM) of the certificate.", Text(&Config::tls_key)},
      {"tls-client-ca", "FILE",
       "Certificate authority (PEM) of clients' certificates. TCP clients then need a "
       "certificate (mTLS).",
       Text(&Config::tls_client_ca)},
      {"tls-client-optional", "",
       "With --tls-client-ca: accept clients without a certificate that have a token.",
       Switch(&Config::tls_client_optional)},
      {"audit-log", "FILE",
       "File for the audit log: one JSON line for each job, batch of operations, transfer and "
       "refused caller. Reopened on SIGHUP.",
       Text(&Config::audit_log)},
      {"state-dir", "DIR",
       "Folder for state that outlives the daemon: compiled code, named arrays, jobs, usage. "
       "Default: $STATE_DIRECTORY. Without either, no state is kept.",
       Text(&Config::state_dir)},
      {"cache-dir", "DIR",
       "Folder for compiled code alone, in its subfolder code-cache. Default: the state folder. "
       "For a daemon without lasting state that must not compile everything again.",
       Text(&Config::cache_dir)},
      {"durable-bytes", "BYTES",
       "Bytes of named arrays that are also kept in the state folder, so that they and jobs "
       "survive a restart of the machine. An array that finds no room is kept in memory only. 0: "
       "arrays and jobs are not kept there. Default 17179869184.",
       Number(&Config::durable_bytes, 0, int64_t{1} << 50)},
      {"worker-dir", "DIR",
       "Folder of the stride-worker-* programs. Default: the folder of strided, or ../lib/stride "
       "from there.",
       Text(&Config::worker_dir)},
      {"cpu-devices", "LIST",
       "CPU devices to make: a list of THREADS or COUNTxTHREADS; 0 threads means all cores, 2x1 "
       "means two devices of one thread. Default: one with all cores if there is no other "
       "device, else none.",
       SetCpuDevices},
      {"no-cuda", "", "Use no CUDA device.", Switch(&Config::no_cuda)},
      {"spare-workers", "COUNT",
       "Ready workers kept for each device, so that a tenant's first job does not wait for a "
       "process. Default 1.",
       Number(&Config::spare_workers, 0, 64)},
      {"max-workers", "COUNT",
       "Workers of each device at once. Further tenants wait until an idle worker ends. Default "
       "0: as many as memory, processes and descriptors allow.",
       Number(&Config::max_workers, 0, 1 << 20)},
      {"staging-bytes", "BYTES",
       "Pinned memory of each worker for uploads and downloads. Default 67108864.",
       Number(&Config::staging_bytes, 4 << 20, int64_t{1} << 36)},
      {"worker-idle-timeout", "TIME", "Time after which an idle worker ends. Default 5m.",
       Time(&Config::worker_idle_timeout)},
      {"kill-grace", "TIME",
       "Time that a running job may continue after its cancellation or deadline. Its worker is "
       "killed then. Default 2s.",
       Time(&Config::kill_grace)},
      {"fair-quantum", "TIME",
       "Device time of one time slice when several tenants have work on a device. Default 20ms.",
       Time(&Config::fair_quantum)},
      {"canary-interval", "TIME",
       "Time without completed work after which the daemon probes a device with a small job. A "
       "device that fails the probe gets no work until it passes one. 0: no probes. Default 30s.",
       Time(&Config::probe_interval)},
      {"require-sandbox", "",
       "Refuse to start unless workers and compilers get every layer of their sandbox: "
       "namespaces, Landlock, a system call filter, limits. Without it, a layer that the kernel "
       "or a container refuses is left out and logged.",
       Switch(&Config::require_sandbox)},
      {"no-sandbox", "",
       "Start workers and compilers without a sandbox. For debuggers only: clients' code then "
       "runs with all rights of this daemon.",
       Switch(&Config::no_sandbox)},
      {"compile-memory-bytes", "BYTES", "Memory of one compilation. Default 2147483648.",
       Number(&Config::compile_memory_bytes, int64_t{256} << 20, int64_t{1} << 40)},
      {"max-array-bytes", "BYTES", "Largest array. Default 17592186044416.",
       Number(&Config::max_array_bytes, 1, int64_t{1} << 50)},
      {"device-memory-share", "SHARE",
       "Share of a device's memory that arrays may take. Default 0.9.", SetMemoryShare},
      {"device-memory", "BYTES",
       "Bytes of each device's memory that arrays may take, where that is less than the share. "
       "Default: the share.",
       Number(&Config::device_memory_bytes, 1 << 20, int64_t{1} << 50)},
      {"spill-memory", "BYTES",
       "Host memory, for all tenants together, for idle arrays that are evicted from a full "
       "device. 0: none. Default: a quarter of the memory that CPU devices leave on this "
       "machine.",
       Number(&Config::spill_memory_bytes, 0, int64_t{1} << 50)},
      {"spill-disk", "BYTES",
       "Bytes in the state folder for idle arrays for which host memory has no room. 0: none. "
       "Default: a quarter of its free space at the start.",
       Number(&Config::spill_disk_bytes, 0, int64_t{1} << 50)},
      {"region-bytes", "BYTES",
       "Memory shared with clients on this machine to transfer arrays, for all tenants together. "
       "One tenant may have half of it unless --tenants sets another limit. 0: none. Default: an "
       "eighth of the memory of this machine.",
       Number(&Config::region_bytes, 0, int64_t{1} << 50)},
      {"max-queued", "COUNT",
       "Operations of one tenant that may wait. Further ones are refused with a time to try "
       "again. Default 100000.",
       Number(&Config::max_queued, 1, kMaxInt)},
      {"max-sessions", "COUNT", "Sessions of one tenant. Default 10000.",
       Number(&Config::max_sessions, 1, kMaxInt)},
      {"session-ttl", "TIME",
       "Idle time after which a session ends, unless the session sets another. Default 10m.",
       Time(&Config::session_ttl)},
      {"max-connections", "COUNT",
       "Connections at once, at most half of the file descriptors. Default 1024.",
       Number(&Config::max_connections, 1, 1 << 20)},
      {"max-connections-per-peer", "COUNT",
       "Connections at once of one IP address, or of one user on a Unix socket. Default 512.",
       Number(&Config::max_connections_per_peer, 1, 1 << 20)},
      {"max-bulk-streams", "COUNT",
       "Uploads and downloads at once. One tenant may have half. Each may hold tens of "
       "megabytes. Default 64.",
       Number(&Config::max_bulk_streams, 1, 4096)},
      {"stream-window-bytes", "BYTES",
       "Bytes of one upload that may be in flight to the daemon. A small window limits memory "
       "when many uploads are slow, and limits the speed of each. Default: grows with the speed "
       "of the connection.",
       Number(&Config::stream_window_bytes, 1 << 16, 1 << 30)},
      {"max-threads", "COUNT",
       "Calls in progress. One tenant may have half. Most calls hold a thread. Default 1024.",
       Number(&Config::max_threads, 8, 1 << 16)},
      {"drain-timeout", "TIME",
       "Time that accepted work may continue after SIGTERM or SIGINT. A second signal ends it at "
       "once. Default 30s.",
       Time(&Config::drain_timeout)},
      {"supervise", "",
       "Run as two processes: a small one that holds arrays, jobs and sockets, and the daemon, "
       "which the first restarts when it dies. For containers and terminals. systemd has its own "
       "store for this.",
       Switch(&Config::supervise)},
      {"hang-timeout", "TIME",
       "With --supervise: a daemon that does not answer a call to its own socket for this long "
       "is killed and restarted. 0: never, for a debugger. Default 30s.",
       SetHangTimeout},
      {"parent-pid", "PID", "End when this process has ended: for a private daemon.",
       Number(&Config::parent_pid, 1, kMaxInt)},
      {"log-level", "LEVEL", "debug (a line for each call), info, warning or error. Default info.",
       SetLogLevel},
      {"log-format", "FORMAT", "json, text, or auto: text on a terminal. Default auto.",
       SetLogFormat},
  };
}

}  // namespace

const std::vector<Option>& Options() {
  static const auto* options = new std::vector<Option>(MakeOptions());
  return *options;
}

const Option* FindOption(std::string_view name) {
  for (const Option& option : Options()) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

absl::StatusOr<std::vector<int>> ParseCpuDevices(std::string_view text) {
  std::vector<int> devices;
  for (absl::string_view part : absl::StrSplit(ToAbsl(text), ',')) {
    std::vector<absl::string_view> sides = absl::StrSplit(part, absl::MaxSplits('x', 1));
    int count = 1;
    int threads = 0;
    bool good = absl::SimpleAtoi(sides.back(), &threads) && threads >= 0 &&
                threads <= kMaxThreads &&
                (sides.size() == 1 ||
                 (absl::SimpleAtoi(sides[0], &count) && count >= 1 && count <= kMaxCpuDevices));
    if (!good || devices.size() + count > kMaxCpuDevices) {
      return Bad(absl::StrCat("must be a list of THREADS or COUNTxTHREADS, at most ",
                              kMaxCpuDevices, " devices in all, such as 2x1 or 4,0"));
    }
    devices.insert(devices.end(), count, threads);
  }
  return devices;
}

}  // namespace stride
