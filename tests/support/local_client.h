#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <grpcpp/channel.h>

#include "google/protobuf/message_lite.h"
#include "google/rpc/status.pb.h"
#include "server/base/unique_fd.h"
#include "stride/v1/local_service.pb.h"

namespace stride::testing {

// The descriptor received from a ticket socket; invalid if it was closed instead.
UniqueFd ReceiveDescriptor(const UniqueFd& socket);
// Exchanges a ticket at a daemon's ticket socket for its descriptor; invalid if refused.
UniqueFd RedeemTicket(const std::string& socket_path, const std::string& ticket);

// The client's end of a local connection, frame by frame. Waits at most 20 s for a frame, and
// aborts then.
class LocalClient {
 public:
  struct Answer {
    v1::LocalFrame kind = v1::LOCAL_FRAME_UNSPECIFIED;  // or the connection has ended
    std::string message;

    google::rpc::Status status() const;
    template <typename Message>
    Message As() const {
      Message parsed;
      parsed.ParseFromString(message);
      return parsed;
    }
  };

  explicit LocalClient(UniqueFd fd);
  // Calls LocalService.Connect, with metadata.
  using Metadata = std::vector<std::pair<std::string, std::string>>;
  static LocalClient Connect(const std::shared_ptr<grpc::Channel>& channel,
                             const Metadata& metadata = {});

  void Send(v1::LocalFrame kind, const google::protobuf::MessageLite& message,
            uint64_t timeout_ns = 0);
  void SendBytes(std::string_view bytes);
  static std::string FrameOf(uint32_t kind, std::string_view message, uint64_t timeout_ns = 0);
  // Blocks.
  Answer Receive();
  void Close() { fd_.Reset(); }
  int fd() const { return fd_.get(); }

 private:
  bool ReceiveBytes(char* to, size_t count);

  UniqueFd fd_;
};

}  // namespace stride::testing
