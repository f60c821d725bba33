#include "server/main/sockets.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/fd_store/supervisor.h"

namespace stride {
namespace {

constexpr char kPrefix[] = "listen-";

// An address of the configuration as a name: an FdStore accepts no colons.
std::string NameOf(std::string address) {
  std::replace(address.begin(), address.end(), ':', '|');
  return kPrefix + address;
}

bool HasPrefix(const NamedFd& entry, const char* prefix) {
  return entry.name.rfind(prefix, 0) == 0;
}

// Creates the default folder. Only for defaults: if a configured folder is absent, that is probably
// a mistake.
void MakeDefaultFolder(const api::Address& address) {
  if (address.kind != api::Address::Kind::kUnix) return;
  mkdir(std::filesystem::path(address.path).parent_path().c_str(), 0755);
}

// Moves entries with the prefix from `from` to the result.
std::vector<NamedFd> TakeWithPrefix(const char* prefix, std::vector<NamedFd>* from) {
  std::vector<NamedFd> taken, others;
  for (NamedFd& entry : *from)
    (HasPrefix(entry, prefix) ? taken : others).push_back(std::move(entry));
  *from = std::move(others);
  return taken;
}

// False when the socket file has been removed since: clients can no longer reach the socket.
bool StillThere(const api::ListeningSocket& socket) {
  struct stat info;
  return socket.address.kind != api::Address::Kind::kUnix ||
         lstat(socket.address.path.c_str(), &info) == 0;
}

}  // namespace

absl::StatusOr<OpenedSockets> OpenSockets(const Config& config, fd_store::FdStore* fd_store,
                                          std::vector<NamedFd> passed, std::vector<NamedFd>* kept) {
  // Encrypted, and all callers must authenticate.
  const bool guarded = !config.tls_cert.empty() && !config.tenants_file.empty();
  api::Reach reach = config.insecure || guarded ? api::Reach::kAnywhere : api::Reach::kLocalOnly;
  OpenedSockets opened;
  for (NamedFd& entry : TakeWithPrefix(fd_store::kPassedPrefix, kept))
    passed.push_back(std::move(entry));
  for (NamedFd& entry : passed) {
    auto socket = api::AdoptSocket(std::move(entry.fd), reach);
    if (!socket.ok()) return socket.status();
    opened.sockets.push_back(*std::move(socket));
  }
  std::vector<NamedFd> earlier = TakeWithPrefix(kPrefix, kept);
  bool defaults = config.listen.empty() && opened.sockets.empty();
  for (const std::string& text : defaults ? DefaultAddresses() : config.listen) {
    auto address = api::ParseAddress(text);
    if (!address.ok()) return address.status();
    std::string name = NameOf(text);
    auto mine = std::find_if(earlier.begin(), earlier.end(),
                             [&](const NamedFd& entry) { return entry.name == name; });
    absl::StatusOr<api::ListeningSocket> socket = absl::NotFoundError("");
    if (mine != earlier.end()) {
      socket = api::AdoptSocket(std::move(mine->fd), reach, /*owned=*/true);
      earlier.erase(mine);
      if (socket.ok() && !StillThere(*socket)) socket = absl::NotFoundError("");
    }
    if (!socket.ok()) {
      if (defaults) MakeDefaultFolder(*address);
      socket = api::Listen(*address, reach);
      if (!socket.ok()) return socket.status();
      // Without the FdStore, clients that connect during a restart are refused and try again.
      fd_store->Store(name, socket->fd.get()).IgnoreError();
    }
    opened.kept_names.push_back(std::move(name));
    opened.sockets.push_back(*std::move(socket));
  }
  for (const NamedFd& entry : earlier) fd_store->Remove(entry.name);
  return opened;
}

}  // namespace stride
