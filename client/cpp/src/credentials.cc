#include "client/cpp/src/credentials.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "client/cpp/src/status.h"

namespace stride::internal {
namespace {

class Bearer : public grpc::MetadataCredentialsPlugin {
 public:
  explicit Bearer(const std::string& token) : value_("Bearer " + token) {}
  // GetMetadata only copies.
  bool IsBlocking() const override { return false; }
  const char* GetType() const override { return "stride-token"; }
  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace("authorization", value_);
    return grpc::Status::OK;
  }
  // Replaces gRPC's debug output, which would print the token.
  grpc::string DebugString() override { return "stride-token"; }

 private:
  const std::string value_;
};

bool IsUnix(std::string_view target) { return target.starts_with("unix"); }

bool IsLocal(std::string_view target) {
  return IsUnix(target) || target.starts_with("localhost:") || target.starts_with("127.") ||
         target.starts_with("[::1]:");
}

Result<std::string> Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (text.empty()) return LocalError(Code::kInvalidArgument, "Cannot read " + path);
  return text;
}

Result<std::shared_ptr<grpc::ChannelCredentials>> Tls(const ConnectOptions& options) {
  grpc::SslCredentialsOptions ssl;
  if (options.tls_ca != kSystemRoots) {
    auto roots = Read(options.tls_ca);
    if (!roots) return roots.error();
    ssl.pem_root_certs = *roots;
  }
  if (options.tls_cert.empty() != options.tls_key.empty())
    return LocalError(Code::kInvalidArgument, "A client certificate and its key belong together");
  if (!options.tls_cert.empty()) {
    auto certificate = Read(options.tls_cert);
    if (!certificate) return certificate.error();
    auto key = Read(options.tls_key);
    if (!key) return key.error();
    ssl.pem_cert_chain = *certificate;
    ssl.pem_private_key = *key;
  }
  return grpc::SslCredentials(ssl);
}

bool IsPlausible(std::string_view token) {
  for (const char c : token) {
    if (c <= 0x20 || c >= 0x7f) return false;
  }
  return true;
}

}  // namespace

Result<Credentials> MakeCredentials(const ConnectOptions& options, const std::string& target) {
  std::string token = options.token;
  if (const char* given = std::getenv("STRIDE_TOKEN"); token.empty() && given) token = given;
  if (!IsPlausible(token))
    return LocalError(Code::kInvalidArgument, "The token has characters that no token has");
  Credentials credentials{.channel = nullptr, .server_name = options.tls_server_name};
  const bool tls = !options.tls_ca.empty();
  if (!tls && !options.tls_cert.empty()) {
    return LocalError(Code::kInvalidArgument,
                      "A client certificate needs TLS: set the authority of the daemon's (tls_ca)");
  }
  if (tls) {
    auto made = Tls(options);
    if (!made) return made.error();
    credentials.channel = *made;
  } else if (token.empty()) {
    credentials.channel = grpc::InsecureChannelCredentials();
  } else if (IsLocal(target)) {
    credentials.channel = grpc::experimental::LocalCredentials(IsUnix(target) ? UDS : LOCAL_TCP);
  } else {
    return LocalError(Code::kInvalidArgument,
                      "The token would travel to " + target +
                          " unencrypted; use TLS (tls_ca), or leave the token away");
  }
  if (!token.empty()) {
    auto call = grpc::experimental::MetadataCredentialsFromPlugin(
        std::make_unique<Bearer>(token), tls ? GRPC_PRIVACY_AND_INTEGRITY : GRPC_SECURITY_NONE);
    credentials.channel = grpc::CompositeChannelCredentials(credentials.channel, call);
  }
  return credentials;
}

}  // namespace stride::internal
