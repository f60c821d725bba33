#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace stride {

enum class LogFormat { kAuto, kJson, kText };

// All options of a daemon with their defaults. option_table.cc has the help text of each.
struct Config {
  std::vector<std::string> listen;  // empty: DefaultAddresses()
  bool insecure = false;
  bool trust_tenant_header = false;
  std::string tenants_file;
  bool trust_local = false;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  bool tls_client_optional = false;
  std::string audit_log;

  std::string state_dir;
  std::string cache_dir;
  int64_t durable_bytes = int64_t{16} << 30;
  std::string worker_dir;
  std::vector<int> cpu_devices;  // threads of each; 0: all cores
  bool no_cuda = false;
  int spare_workers = 1;
  int max_workers = 0;  // per device; 0: as many as its memory allows
  int64_t staging_bytes = int64_t{64} << 20;
  absl::Duration worker_idle_timeout = absl::Minutes(5);
  absl::Duration kill_grace = absl::Seconds(2);
  absl::Duration fair_quantum = absl::Milliseconds(20);
  absl::Duration probe_interval = absl::Seconds(30);

  bool require_sandbox = false;
  bool no_sandbox = false;
  int64_t compile_memory_bytes = int64_t{2} << 30;

  int64_t max_array_bytes = int64_t{1} << 44;
  double device_memory_share = 0.9;
  int64_t device_memory_bytes = 0;  // 0: the share alone counts
  int64_t spill_memory_bytes = -1;  // -1: DefaultSpillMemory in server.cc
  int64_t spill_disk_bytes = -1;    // -1: default in server.cc
  int64_t region_bytes = -1;        // -1: default in server.cc
  int max_queued = 100000;
  int max_sessions = 10000;
  absl::Duration session_ttl = absl::Minutes(10);

  int max_connections = 1024;
  int max_connections_per_peer = 512;
  int max_bulk_streams = 64;
  int stream_window_bytes = 0;  // 0: gRPC's default growth
  int max_threads = 1024;

  absl::Duration drain_timeout = absl::Seconds(30);
  bool supervise = false;
  absl::Duration hang_timeout = absl::Seconds(30);  // zero: never
  int parent_pid = 0;
  std::string log_level = "info";
  LogFormat log_format = LogFormat::kAuto;
};

// `unix:` in the runtime folder, and `tcp:127.0.0.1:7433`.
std::vector<std::string> DefaultAddresses();

}  // namespace stride
