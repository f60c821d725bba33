#include "server/api/tls.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace stride::api {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

// A key file with a password would ask the terminal for it.
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

// What changes when a file does.
using Stamp = std::tuple<dev_t, ino_t, off_t, int64_t, int64_t>;
using Stamps = std::vector<Stamp>;

Stamps StampsOf(const TlsFiles& files) {
  Stamps stamps;
  for (const std::string* path : {&files.certificate, &files.key, &files.client_ca}) {
    struct stat info;
    if (path->empty() || stat(path->c_str(), &info) != 0) {
      stamps.emplace_back();
    } else {
      stamps.emplace_back(info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                          info.st_mtim.tv_nsec);
    }
  }
  return stamps;
}

// gRPC asks Fetch before every handshake. Its own watcher of files (1.51) would take a key before
// its certificate has come, and then serve nobody.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  ReloadingCredentials(TlsFiles files, std::function<void(const std::string&)> log)
      : files_(std::move(files)), log_(std::move(log)) {
    auto request = files_.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                   : files_.require_client_certificate
                       ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                       : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request, Fetch, this));
  }
  ~ReloadingCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ReloadingCredentials*>(self)->Look(config);
  }

  grpc_ssl_certificate_config_reload_status Look(grpc_ssl_server_certificate_config** config) {
    absl::MutexLock lock(&mutex_);
    Stamps stamps = StampsOf(files_);
    if (stamps == seen_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    absl::StatusOr<Pem> pem = ReadPem(files_);
    absl::Status status = pem.status();
    if (status.ok()) status = Check(files_, *pem);
    bool first = seen_.empty();
    // A file that is replaced between the look and the reading shows at the next handshake.
    seen_ = std::move(stamps);
    if (!status.ok()) {
      log_(absl::StrCat("the TLS files are refused, what was read before stays in force: ",
                        status.message()));
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
    }
    if (!first) log_("TLS certificates read");
    grpc_ssl_pem_key_cert_pair pair{pem->key.c_str(), pem->certificate.c_str()};
    // gRPC wants roots even where it asks clients for nothing; then our own chain stands there.
    const std::string& roots = pem->client_ca.empty() ? pem->certificate : pem->client_ca;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsFiles files_;
  const std::function<void(const std::string&)> log_;
  grpc_server_credentials* credentials_ = nullptr;
  absl::Mutex mutex_;
  Stamps seen_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsCredentials(
    const TlsFiles& files, std::function<void(const std::string&)> log) {
  absl::StatusOr<Pem> pem = ReadPem(files);
  if (!pem.ok()) return pem.status();
  if (absl::Status status = Check(files, *pem); !status.ok()) return status;
  return std::make_shared<ReloadingCredentials>(files, std::move(log));
}

}  // namespace stride::api
