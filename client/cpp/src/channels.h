// Connections to one daemon: one for small ordered requests, several for bulk bytes, so that
// neither waits for the other.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "client/cpp/src/credentials.h"

namespace stride::internal {

// Thread-safe.
class Channels {
 public:
  // `address`: as given by the user; `target`: in gRPC's form. `num_bulk` 0: by the number of
  // cores, 2 to 8.
  Channels(std::string address, std::string target, Credentials credentials, int num_bulk);

  const std::string& address() const { return address_; }
  const std::string& target() const { return target_; }
  // Only over a Unix socket may daemon and client share memory and descriptors.
  bool by_unix_socket() const { return target_.starts_with(kUnixPrefix); }
  // By Unix socket: its file name.
  std::string socket_path() const { return target_.substr(kUnixPrefix.size()); }
  const std::shared_ptr<grpc::Channel>& control() const { return control_; }
  int num_bulk() const { return static_cast<int>(bulk_.size()); }
  // Connects on first use.
  std::shared_ptr<grpc::Channel> Bulk(int index);
  // Connects every bulk channel, also one that waits in its backoff after a failed attempt. Returns
  // false if the daemon did not accept all of them before the deadline.
  bool ConnectBulk(gpr_timespec deadline);
  // The next Bulk(index) is a new connection; the old one closes with its last user.
  void DropBulk(int index, const std::shared_ptr<grpc::Channel>& channel);

 private:
  static constexpr std::string_view kUnixPrefix = "unix:";

  const std::string address_;
  const std::string target_;
  const Credentials credentials_;
  const std::shared_ptr<grpc::Channel> control_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<grpc::Channel>> bulk_;  // guarded by mutex_
};

}  // namespace stride::internal
