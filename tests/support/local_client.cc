#include "tests/support/local_client.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <grpcpp/client_context.h>

#include "server/base/message_descriptors.h"
#include "stride/v1/local_service.grpc.pb.h"

namespace stride::testing {
namespace {

constexpr timeval kPatience{20, 0};

[[noreturn]] void GiveUp(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::abort();
}

void SetPatience(const UniqueFd& fd) {
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
}

}  // namespace

UniqueFd ReceiveDescriptor(const UniqueFd& socket) {
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &content;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t size = recvmsg(socket.get(), &header, MSG_CMSG_CLOEXEC);
  if (size < 0 && errno == EAGAIN) GiveUp("neither a descriptor nor the end came for 20 s");
  std::vector<UniqueFd> descriptors;
  if (size == 1) TakeDescriptors(header, &descriptors);
  return descriptors.empty() ? UniqueFd() : std::move(descriptors.front());
}

UniqueFd RedeemTicket(const std::string& socket_path, const std::string& ticket) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  SetPatience(fd);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, socket_path.data(), socket_path.size());
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0) return {};
  (void)!send(fd.get(), ticket.data(), ticket.size(), MSG_NOSIGNAL);
  return ReceiveDescriptor(fd);
}

google::rpc::Status LocalClient::Answer::status() const {
  google::rpc::Status status;
  if (kind != v1::LOCAL_FRAME_STATUS || !status.ParseFromString(message)) status.set_code(-1);
  return status;
}

LocalClient::LocalClient(UniqueFd fd) : fd_(std::move(fd)) { SetPatience(fd_); }

LocalClient LocalClient::Connect(const std::shared_ptr<grpc::Channel>& channel,
                                 const Metadata& metadata) {
  grpc::ClientContext context;
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  v1::ConnectResponse response;
  const auto stub = v1::LocalService::NewStub(channel);
  const grpc::Status status = stub->Connect(&context, v1::ConnectRequest(), &response);
  if (!status.ok()) std::fprintf(stderr, "Connect: %s\n", status.error_message().c_str());
  return LocalClient(RedeemTicket(response.socket_path(), response.ticket()));
}

std::string LocalClient::FrameOf(uint32_t kind, std::string_view message, uint64_t timeout_ns) {
  const uint32_t size = static_cast<uint32_t>(message.size());
  std::string frame(16, '\0');
  std::memcpy(frame.data(), &size, sizeof(size));
  std::memcpy(frame.data() + 4, &kind, sizeof(kind));
  std::memcpy(frame.data() + 8, &timeout_ns, sizeof(timeout_ns));
  return frame.append(message);
}

void LocalClient::Send(v1::LocalFrame kind, const google::protobuf::MessageLite& message,
                       uint64_t timeout_ns) {
  SendBytes(FrameOf(kind, message.SerializeAsString(), timeout_ns));
}

void LocalClient::SendBytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // visible in the received bytes
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

bool LocalClient::ReceiveBytes(char* to, size_t count) {
  while (count > 0) {
    const ssize_t received = recv(fd_.get(), to, count, 0);
    if (received < 0 && errno == EAGAIN) GiveUp("nothing came for 20 s");
    if (received <= 0) return false;
    to += received;
    count -= static_cast<size_t>(received);
  }
  return true;
}

LocalClient::Answer LocalClient::Receive() {
  Answer answer;
  char header[16];
  if (!ReceiveBytes(header, sizeof(header))) return answer;
  uint32_t size = 0, kind = 0;
  std::memcpy(&size, header, sizeof(size));
  std::memcpy(&kind, header + 4, sizeof(kind));
  answer.message.resize(size);
  if (!ReceiveBytes(answer.message.data(), size)) return {};
  answer.kind = static_cast<v1::LocalFrame>(kind);
  return answer;
}

}  // namespace stride::testing
