#include "client/cpp/src/reach.h"

#include <grp.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "client/cpp/src/grpc_time.h"
#include "client/cpp/src/status.h"
#include "stride/v1/device_service.grpc.pb.h"

namespace stride::internal {
namespace {

constexpr int kProbeMs = 2000;
// A TLS 1.2 record with a ClientHello that requests h2: a TLS server answers with a TLS record. The
// random field of the ClientHello is readable text.
constexpr unsigned char kClientHello[] = {
    0x16, 0x03, 0x01, 0x00, 0x68, 0x01, 0x00, 0x00, 0x64, 0x03, 0x03, 0x73, 0x74, 0x72, 0x69, 0x64,
    0x65, 0x20, 0x61, 0x73, 0x6b, 0x73, 0x20, 0x77, 0x68, 0x65, 0x74, 0x68, 0x65, 0x72, 0x20, 0x74,
    0x68, 0x69, 0x73, 0x20, 0x69, 0x73, 0x20, 0x54, 0x4c, 0x53, 0x2e, 0x00, 0x00, 0x0c, 0xc0, 0x2b,
    0xc0, 0x2c, 0xc0, 0x2f, 0xc0, 0x30, 0xcc, 0xa9, 0xcc, 0xa8, 0x01, 0x00, 0x00, 0x2f, 0x00, 0x0a,
    0x00, 0x08, 0x00, 0x06, 0x00, 0x1d, 0x00, 0x17, 0x00, 0x18, 0x00, 0x0b, 0x00, 0x02, 0x01, 0x00,
    0x00, 0x0d, 0x00, 0x10, 0x00, 0x0e, 0x04, 0x03, 0x05, 0x03, 0x06, 0x03, 0x08, 0x04, 0x08, 0x05,
    0x04, 0x01, 0x05, 0x01, 0x00, 0x10, 0x00, 0x05, 0x00, 0x03, 0x02, 0x68, 0x32};

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

bool IsSocketTarget(const std::string& target) { return target.starts_with("unix:"); }

std::string PathOf(const std::string& target) {
  std::string path = target.substr(5);
  return path.starts_with("//") ? path.substr(2) : path;
}

// 0, or the errno of an attempt to connect.
int ConnectUnix(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  const Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.fd() < 0) return errno;
  const bool connected =
      connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  return connected ? 0 : errno;
}

// The group that may use the socket: that of the socket or else of its folder.
std::string GroupOf(const std::string& path) {
  struct stat status;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  if (stat(path.c_str(), &status) != 0 && stat(folder.c_str(), &status) != 0) return "";
  char buffer[4096];
  group entry;
  group* found = nullptr;
  if (status.st_gid == 0 ||
      getgrgid_r(status.st_gid, &entry, buffer, sizeof(buffer), &found) != 0 || found == nullptr) {
    return "";
  }
  return found->gr_name;
}

std::string WhyNotUnix(const std::string& path, int error) {
  if (error == ENOENT) return "there is no socket " + path + "; start strided";
  if (error == ECONNREFUSED) return "nothing listens on the socket " + path + "; start strided";
  return std::strerror(error);
}

struct Addresses {
  addrinfo* list = nullptr;
  ~Addresses() {
    if (list) freeaddrinfo(list);
  }
};

bool Await(int fd, short events) {
  pollfd entry{fd, events, 0};
  return poll(&entry, 1, kProbeMs) == 1;
}

// 0, or the errno of an attempt to connect within kProbeMs.
int ConnectTcp(int fd, const addrinfo& address) {
  if (connect(fd, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!Await(fd, POLLOUT)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

bool SpeaksTls(int fd) {
  if (send(fd, kClientHello, sizeof(kClientHello), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(sizeof(kClientHello))) {
    return false;
  }
  unsigned char first[2];
  if (!Await(fd, POLLIN) || recv(fd, first, sizeof(first), 0) != sizeof(first)) return false;
  return (first[0] == 0x15 || first[0] == 0x16) && first[1] == 0x03;  // an alert, a handshake
}

// Empty: the connection succeeded, and `tls` is true if the server speaks TLS.
std::string WhyNotTcp(const std::string& target, bool* tls) {
  const size_t colon = target.rfind(':');
  std::string host = target.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  Addresses found;
  const int failed =
      getaddrinfo(host.c_str(), target.substr(colon + 1).c_str(), &hints, &found.list);
  if (failed != 0) return "the name " + host + " leads to no address: " + gai_strerror(failed);
  int error = 0;
  for (const addrinfo* one = found.list; one != nullptr; one = one->ai_next) {
    const Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    error = ConnectTcp(socket.fd(), *one);
    if (error != 0) continue;
    *tls = SpeaksTls(socket.fd());
    return "";
  }
  if (error == ECONNREFUSED) return "nothing listens there; start strided, or mend the address";
  return std::strerror(error);
}

bool Has(const std::string& text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         }) != text.end();
}

// gRPC's own message about its last attempt.
std::string LastError(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(GrpcTimeAfter(std::chrono::milliseconds(kProbeMs)));
  v1::ListDevicesResponse reply;
  return v1::DeviceService::NewStub(channel)->ListDevices(&context, {}, &reply).error_message();
}

std::string WhyNoHandshake(const ConnectOptions& options, const std::string& last) {
  if (Has(last, "certificate verify failed") || Has(last, "certificate_verify_failed")) {
    return "its certificate is not trusted: it is not signed by " + options.tls_ca +
           ", or not for this name";
  }
  if (Has(last, "hostname verification") || Has(last, "peer name") || Has(last, "is not in peer")) {
    return "its certificate is for another name; name it by tls_server_name";
  }
  std::string text = "the TLS handshake fails";
  if (options.tls_cert.empty())
    text += " (a daemon may ask for a client certificate: give its files, tls_cert and tls_key)";
  return last.empty() ? text : text + ": " + last;
}

}  // namespace

std::optional<Error> Refused(const std::string& target) {
  if (!IsSocketTarget(target)) return std::nullopt;
  const std::string path = PathOf(target);
  const int error = ConnectUnix(path);
  if (error != EACCES && error != EPERM) return std::nullopt;
  const std::string group = GroupOf(path);
  return LocalError(Code::kPermissionDenied,
                    "This user may not open the daemon's socket " + path +
                        (group.empty() ? "; ask its administrator"
                                       : "; it is for members of the group " + group));
}

Error WhyUnreachable(const ConnectOptions& options, const std::string& target,
                     const std::shared_ptr<grpc::Channel>& channel) {
  std::string why;
  if (IsSocketTarget(target)) {
    const int error = ConnectUnix(PathOf(target));
    why =
        error == 0 ? "it takes connections and does not answer" : WhyNotUnix(PathOf(target), error);
  } else {
    bool speaks_tls = false;
    why = WhyNotTcp(target, &speaks_tls);
    if (why.empty() && options.tls_ca.empty() && speaks_tls) {
      why = "the daemon speaks TLS there; set the authority of its certificate (tls_ca, --tls-ca)";
    } else if (why.empty() && !options.tls_ca.empty() && !speaks_tls) {
      why = "the server there speaks no TLS; leave out tls_ca (--tls-ca)";
    } else if (why.empty() && !options.tls_ca.empty()) {
      why = WhyNoHandshake(options, LastError(channel));
    } else if (why.empty()) {
      why = "it takes connections and does not answer";
    }
  }
  return LocalError(Code::kUnavailable, "No daemon answers at " + options.address + ": " + why);
}

}  // namespace stride::internal
