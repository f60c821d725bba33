#pragma once

#include <functional>
#include <memory>
#include <string>

#include <grpcpp/security/server_credentials.h>

#include "absl/status/statusor.h"

namespace stride::api {

// PEM files. Empty `certificate`: no TLS.
struct TlsFiles {
  std::string certificate;  // the daemon's chain, its own first
  std::string key;
  std::string client_ca;  // authorities of clients' certificates; empty: none are requested
  bool require_client_certificate = true;  // else clients may come without one

  bool enabled() const { return !certificate.empty(); }
};

// Credentials that check the files every second and reload them once they have changed, settled
// (base/file_watch.h) and are valid together. Otherwise the old ones stay in force, and `log` gets
// the reason once. INVALID_ARGUMENT if the files are not valid now.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsCredentials(
    const TlsFiles& files, std::function<void(const std::string&)> log);

}  // namespace stride::api
