#include "server/api/tls.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/base/file_watch.h"

namespace stride::api {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

// OpenSSL would ask the terminal for the password of a key file.
int NoPassword(char*, int, int, void*) { return -1; }

Bio Open(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
}

Certificate FirstCertificate(const std::string& pem) {
  Bio bio = Open(pem);
  return Certificate(PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr), X509_free);
}

absl::StatusOr<std::string> Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (text.empty()) return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  return text;
}

struct Pem {
  std::string certificate, key, client_ca;
};

absl::StatusOr<Pem> ReadPem(const TlsFiles& files) {
  Pem pem;
  auto certificate = Read(files.certificate);
  if (!certificate.ok()) return certificate.status();
  auto key = Read(files.key);
  if (!key.ok()) return key.status();
  pem = {*std::move(certificate), *std::move(key), ""};
  if (!files.client_ca.empty()) {
    auto roots = Read(files.client_ca);
    if (!roots.ok()) return roots.status();
    pem.client_ca = *std::move(roots);
  }
  return pem;
}

absl::Status Check(const TlsFiles& files, const Pem& pem) {
  Certificate certificate = FirstCertificate(pem.certificate);
  Bio bio = Open(pem.key);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr), EVP_PKEY_free);
  bool fit = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
  bool roots = pem.client_ca.empty() || FirstCertificate(pem.client_ca);
  ERR_clear_error();
  if (!certificate)
    return absl::InvalidArgumentError(absl::StrCat("no PEM certificate in ", files.certificate));
  if (!key) return absl::InvalidArgumentError(absl::StrCat("no PEM key in ", files.key));
  if (!fit) {
    return absl::InvalidArgumentError(
        absl::StrCat("the key ", files.key, " is not of the certificate ", files.certificate));
  }
  if (!roots)
    return absl::InvalidArgumentError(absl::StrCat("no PEM certificate in ", files.client_ca));
  return absl::OkStatus();
}

constexpr absl::Duration kLookInterval = absl::Seconds(1);

// gRPC calls Fetch before every handshake. Its own watcher of files (1.51) would use a new key
// before its certificate, and then every handshake would fail.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  ReloadingCredentials(TlsFiles files, std::function<void(const std::string&)> log)
      : files_(std::move(files)),
        log_(std::move(log)),
        watch_({files_.certificate, files_.key, files_.client_ca}) {
    auto request = files_.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                   : files_.require_client_certificate
                       ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                       : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request, Fetch, this));
  }
  ~ReloadingCredentials() override {
    watch_.Stop();
    grpc_server_credentials_release(credentials_);
  }

  // Call before a server has them.
  absl::Status Begin() {
    absl::StatusOr<Pem> pem = ReadPem(files_);
    if (!pem.ok()) return pem.status();
    if (absl::Status status = Check(files_, *pem); !status.ok()) return status;
    {
      absl::MutexLock lock(&mutex_);
      pem_ = *std::move(pem);
    }
    watch_.Start(kLookInterval, [this] { ReadAgain(); });
    return absl::OkStatus();
  }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ReloadingCredentials*>(self)->Take(config);
  }

  grpc_ssl_certificate_config_reload_status Take(grpc_ssl_server_certificate_config** config) {
    absl::MutexLock lock(&mutex_);
    if (taken_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    taken_ = true;
    grpc_ssl_pem_key_cert_pair pair{pem_.key.c_str(), pem_.certificate.c_str()};
    // gRPC requires roots even if clients need no certificate; then pass the daemon's own chain.
    const std::string& roots = pem_.client_ca.empty() ? pem_.certificate : pem_.client_ca;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  void ReadAgain() {
    absl::StatusOr<Pem> pem = ReadPem(files_);
    absl::Status status = pem.ok() ? Check(files_, *pem) : pem.status();
    if (status.ok() && !watch_.Unchanged())
      status = absl::UnavailableError("they changed while they were read; they are read again");
    if (!status.ok()) {
      log_(absl::StrCat("the TLS files are refused, what was read before stays in force: ",
                        status.message()));
      return;
    }
    {
      absl::MutexLock lock(&mutex_);
      pem_ = *std::move(pem);
      taken_ = false;
    }
    log_("TLS certificates read");
  }

  const TlsFiles files_;
  const std::function<void(const std::string&)> log_;
  grpc_server_credentials* credentials_ = nullptr;
  absl::Mutex mutex_;
  Pem pem_ ABSL_GUARDED_BY(mutex_);
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC has it
  FileWatch watch_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsCredentials(
    const TlsFiles& files, std::function<void(const std::string&)> log) {
  auto credentials = std::make_shared<ReloadingCredentials>(files, std::move(log));
  if (absl::Status status = credentials->Begin(); !status.ok()) return status;
  return credentials;
}

}  // namespace stride::api
