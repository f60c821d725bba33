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
       "Where to listen: unix:/path or tcp:HOST:PORT, HOST numeric, PORT 0 for any free one. May "
       "be given several times. "
       "Default: unix:stride.sock in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR or /run/stride, and "
       "tcp:127.0.0.1:7433; nothing but systemd's "
       "sockets when it passes some.",
       SetListen},
      {"insecure", "",
       "Allow addresses that other machines reach, although calls are not both encrypted "
       "(--tls-cert) and authenticated (--tenants).",
       Switch(&Config::insecure)},
      {"trust-tenant-header", "",
       "Take the tenant from the caller's stride-tenant metadata. For a proxy that authenticates; "
       "without it all are tenant `default`.",
       Switch(&Config::trust_tenant_header)},
      {"tenants", "FILE",
       "Tenants, their quotas, tokens (hashes) and certificate names; see tenants.conf. Every call "
       "then needs credentials. Read again when it changes, and on SIGHUP.",
       Text(&Config::tenants_file)},
      {"trust-local", "",
       "With --tenants: believe callers of this machine (Unix sockets, loopback) that bring no "
       "credentials; they are tenant `default`, or whom --trust-tenant-header tells. Not behind a "
       "proxy on this machine.",
       Switch(&Config::trust_local)},
      {"tls-cert", "FILE",
       "Certificate chain (PEM) of this daemon: TCP addresses then speak TLS alone. Read again "
       "when "
       "it changes, as are the next two.",
       Text(&Config::tls_cert)},
      {"tls-key", "FILE", "Its private key (PEM).", Text(&Config::tls_key)},
      {"tls-client-ca", "FILE",
       "Who signs clients' certificates (PEM): TCP clients then need one (mTLS).",
       Text(&Config::tls_client_ca)},
      {"tls-client-optional", "",
       "With --tls-client-ca: clients may also come without a certificate, with a token.",
       Switch(&Config::tls_client_optional)},
      {"audit-log", "FILE",
       "Who ran what: one JSON line for each job, batch of operations, transfer and refused "
       "caller. "
       "Opened anew on SIGHUP.",
       Text(&Config::audit_log)},
      {"state-dir", "DIR",
       "Folder for what outlives the daemon: compiled code, named arrays, jobs, usage. Default: "
       "$STATE_DIRECTORY; "
       "with neither nothing is kept.",
       Text(&Config::state_dir)},
      {"cache-dir", "DIR",
       "Folder for compiled code alone, in code-cache below it. Default: the state folder. For a "
       "daemon whose state goes with it, and that shall not compile all again.",
       Text(&Config::cache_dir)},
      {"durable-bytes", "BYTES",
       "Bytes of named arrays that are kept in the state folder too, so that they outlive the "
       "machine's being off, as jobs then do. One that finds no room is kept in memory only. 0: "
       "neither is kept there. Default 17179869184.",
       Number(&Config::durable_bytes, 0, int64_t{1} << 50)},
      {"worker-dir", "DIR",
       "Folder of the stride-worker-* programs. Default: the folder of strided, or ../lib/stride "
       "from there.",
       Text(&Config::worker_dir)},
      {"cpu-devices", "LIST",
       "CPU devices to make: a list of THREADS or COUNTxTHREADS, 0 threads for all cores; 2x1 is "
       "two devices of one thread. Default: one with all cores when "
       "there is no other device, else none.",
       SetCpuDevices},
      {"no-cuda", "", "Use no CUDA device.", Switch(&Config::no_cuda)},
      {"spare-workers", "COUNT",
       "Ready workers kept for each device, so that a tenant's first job need not wait for a "
       "process. Default 1.",
       Number(&Config::spare_workers, 0, 64)},
      {"max-workers", "COUNT",
       "Workers of each device at once; a tenant beyond them waits until an idle worker ends. "
       "Default 0: as many as memory, processes and descriptors allow.",
       Number(&Config::max_workers, 0, 1 << 20)},
      {"staging-bytes", "BYTES",
       "Pinned memory of each worker for uploads and downloads. Default 67108864.",
       Number(&Config::staging_bytes, 4 << 20, int64_t{1} << 36)},
      {"worker-idle-timeout", "TIME", "An idle worker is ended after this. Default 5m.",
       Time(&Config::worker_idle_timeout)},
      {"kill-grace", "TIME",
       "A running job that is cancelled or past its deadline may go on this long before its worker "
       "is killed. Default 2s.",
       Time(&Config::kill_grace)},
      {"fair-quantum", "TIME",
       "Several tenants with work on one device take turns of this much device time. Default 20ms.",
       Time(&Config::fair_quantum)},
      {"canary-interval", "TIME",
       "A device that completed no work for so long is tried by a small job of the daemon's own; "
       "one that fails takes no work until it is well again. 0: never tried. Default 30s.",
       Time(&Config::canary_interval)},
      {"require-sandbox", "",
       "Refuse to start unless workers and compilers get every layer of their sandbox: namespaces, "
       "Landlock, a system call filter, limits. Without it, what the kernel or a container refuses "
       "is left out and logged.",
       Switch(&Config::require_sandbox)},
      {"no-sandbox", "",
       "Start workers and compilers without a sandbox. Only for debuggers: clients' code then runs "
       "with all rights of this daemon.",
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
       "Host memory for idle arrays that a full device has no room for, of all tenants together. "
       "0: none. Default: a quarter of what CPU devices leave of this machine's memory.",
       Number(&Config::spill_memory_bytes, 0, int64_t{1} << 50)},
      {"spill-disk", "BYTES",
       "Room in the state-dir for those that the host's memory has no room for. 0: none. Default: "
       "a quarter of what is free there at the start.",
       Number(&Config::spill_disk_bytes, 0, int64_t{1} << 50)},
      {"region-bytes", "BYTES",
       "Memory shared with clients on this machine, which arrays then travel through, of all "
       "tenants together; one tenant may have half of it where --tenants says nothing else. 0: "
       "none. Default: an eighth of this machine's memory.",
       Number(&Config::region_bytes, 0, int64_t{1} << 50)},
      {"max-queued", "COUNT",
       "Operations of one tenant that may wait; more are refused with a time to try again. Default "
       "100000.",
       Number(&Config::max_queued, 1, kMaxInt)},
      {"max-sessions", "COUNT", "Sessions of one tenant. Default 10000.",
       Number(&Config::max_sessions, 1, kMaxInt)},
      {"session-ttl", "TIME",
       "Idle time after which a session ends, unless it asks for another. Default 10m.",
       Time(&Config::session_ttl)},
      {"max-connections", "COUNT",
       "Connections at once. Default 1024, and never more than half of the file descriptors.",
       Number(&Config::max_connections, 1, 1 << 20)},
      {"max-connections-per-peer", "COUNT",
       "Connections at once of one IP address, or of one user on a Unix socket. Default 512.",
       Number(&Config::max_connections_per_peer, 1, 1 << 20)},
      {"max-bulk-streams", "COUNT",
       "Uploads and downloads at once, of which one tenant may have half; each may hold tens of "
       "megabytes. Default 64.",
       Number(&Config::max_bulk_streams, 1, 4096)},
      {"stream-window-bytes", "BYTES",
       "Bytes of one upload that may be on their way into the daemon: less memory when many are "
       "slow, "
       "less speed for each. Default: grows with what the connection carries.",
       Number(&Config::stream_window_bytes, 1 << 16, 1 << 30)},
      {"max-threads", "COUNT",
       "Calls in progress, of which one tenant may have half. Most hold a thread each. Default "
       "1024.",
       Number(&Config::max_threads, 8, 1 << 16)},
      {"drain-timeout", "TIME",
       "After SIGTERM or SIGINT accepted work may go on this long. A second signal ends it at "
       "once. Default 30s.",
       Time(&Config::drain_timeout)},
      {"supervise", "",
       "Run as two processes: a small one that keeps arrays, jobs and sockets, and the daemon, "
       "which "
       "it starts again when it dies. For containers and terminals; systemd does the same with its "
       "own store.",
       Switch(&Config::supervise)},
      {"hang-timeout", "TIME",
       "With --supervise: a daemon that does not answer a call to its own socket for so long is "
       "killed and started again. 0: never, such as under a debugger. Default 30s.",
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
