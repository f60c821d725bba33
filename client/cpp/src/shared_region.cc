#include "client/cpp/src/shared_region.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "client/cpp/src/call.h"
#include "client/cpp/src/status.h"
#include "stride/v1/region_service.grpc.pb.h"

namespace stride::internal {
namespace {

constexpr auto kCallTimeout = std::chrono::seconds(10);
constexpr auto kDeleteTimeout = std::chrono::seconds(2);
constexpr timeval kSocketTimeout = {2, 0};
constexpr char kUnixPrefix[] = "unix:";

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Error SocketError(const char* what) {
  return LocalError(Code::kUnavailable, std::string("No region can be fetched from the daemon: ") +
                                            what + ": " + std::strerror(errno));
}

// The daemon's own name for its socket may mean nothing here: in another container it lies beside
// the one that calls go to.
std::string BesideCalls(const Channels& channels, const std::string& path) {
  std::string own = channels.target().substr(std::strlen(kUnixPrefix));
  return own.substr(0, own.rfind('/') + 1) + path.substr(path.rfind('/') + 1);
}

Result<Descriptor> Connect(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path))
    return LocalError(Code::kUnavailable, "The name of the daemon's region socket is too long");
  std::memcpy(name.sun_path, path.data(), path.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return SocketError("making a socket");
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kSocketTimeout, sizeof(kSocketTimeout));
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kSocketTimeout, sizeof(kSocketTimeout));
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0)
    return SocketError("connecting");
  return socket;
}

Result<Descriptor> Fetch(const Channels& channels, const v1::CreateRegionResponse& made) {
  auto socket = Connect(made.socket_path());
  if (!socket) socket = Connect(BesideCalls(channels, made.socket_path()));
  if (!socket) return socket.error();
  const std::string& ticket = made.ticket();
  if (send(socket->get(), ticket.data(), ticket.size(), MSG_NOSIGNAL) < 0)
    return SocketError("sending the ticket");
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &content;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t size = recvmsg(socket->get(), &header, MSG_CMSG_CLOEXEC);
  if (size < 0) return SocketError("receiving");
  const cmsghdr* rights = CMSG_FIRSTHDR(&header);
  if (size != 1 || rights == nullptr || rights->cmsg_type != SCM_RIGHTS)
    return LocalError(Code::kUnavailable, "The daemon did not hand out the region");
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
  return Descriptor(fd);
}

Result<std::byte*> Map(const Descriptor& fd, int64_t size) {
  struct stat info;
  // Else its use could end in SIGBUS.
  if (fstat(fd.get(), &info) != 0 || info.st_size < size)
    return LocalError(Code::kInternal, "The daemon's region is smaller than it says");
  void* data = mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (data == MAP_FAILED) return SocketError("mapping it");
  return static_cast<std::byte*>(data);
}

}  // namespace

bool MayShareMemory(const Channels& channels) {
  return channels.target().rfind(kUnixPrefix, 0) == 0;
}

Result<std::shared_ptr<SharedRegion>> SharedRegion::Create(Channels& channels,
                                                           const std::string& session,
                                                           int64_t bytes) {
  Call call({.timeout = kCallTimeout}, {});
  v1::CreateRegionRequest request;
  request.set_parent(session);
  request.set_size_bytes(bytes);
  v1::CreateRegionResponse made;
  auto stub = v1::RegionService::NewStub(channels.control());
  if (auto status = stub->CreateRegion(call.context(), request, &made); !status.ok())
    return ToError(status);
  const int64_t size = made.region().size_bytes();
  if (size < bytes) return LocalError(Code::kInternal, "The daemon's region is too small");
  auto fd = Fetch(channels, made);
  Result<std::byte*> data = nullptr;
  if (fd) data = Map(*fd, size);
  if (fd && data) return std::make_shared<SharedRegion>(made.region().name(), session, *data, size);
  SharedRegion(made.region().name(), session, nullptr, 0).Delete(channels);
  return fd ? data.error() : fd.error();
}

SharedRegion::~SharedRegion() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_));
}

void SharedRegion::KeepBytes() const {
  const auto size = static_cast<size_t>(size_);
  const std::vector<std::byte> kept(data_, data_ + size_);
  void* own =
      mmap(data_, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (own != MAP_FAILED) std::memcpy(own, kept.data(), size);
}

void SharedRegion::Delete(Channels& channels) const {
  Call call({.timeout = kDeleteTimeout}, {});
  v1::DeleteRegionRequest request;
  request.set_name(name_);
  v1::DeleteRegionResponse response;
  (void)v1::RegionService::NewStub(channels.control())
      ->DeleteRegion(call.context(), request, &response);
}

}  // namespace stride::internal
