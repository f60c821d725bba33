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
  std::string client_ca;  // who signs clients' certificates; empty: none are asked for
  bool require_client_certificate = true;  // else clients may come without one

  bool enabled() const { return !certificate.empty(); }
};

// Credentials that look at the files every second and take them once they have changed, settled
// (base/file_watch.h) and are good together; else the old ones stay in force and `log` hears why,
// once. INVALID_ARGUMENT
// when they are not good now.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsCredentials(
    const TlsFiles& files, std::function<void(const std::string&)> log);

}  // namespace stride::api
