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

// A new connection to the socket; invalid if it cannot be reached. Reads wait at most 20 s.
UniqueFd ConnectUnix(const std::string& socket_path);

// The client's end of a local connection, frame by frame. Waits at most 20 s for a frame, and
// aborts then.
class LocalClient {
 public:
  struct Answer {
    v1::LocalFrame kind = v1::LOCAL_FRAME_UNSPECIFIED;  // or the connection has ended
    std::string message;
    std::vector<UniqueFd> descriptors;

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
  // Closed if the daemon refuses the connection.
  using Metadata = std::vector<std::pair<std::string, std::string>>;
  static LocalClient Connect(const std::shared_ptr<grpc::Channel>& channel,
                             const Metadata& metadata = {});

  // Opens a connection with a ticket; closed if it is refused.
  static LocalClient Open(const std::string& socket_path, const std::string& ticket);
  bool open() const { return fd_.valid(); }

  void Send(v1::LocalFrame kind, const google::protobuf::MessageLite& message,
            uint64_t timeout_ns = 0);
  void SendBytes(std::string_view bytes);
  static std::string FrameOf(uint32_t kind, std::string_view message, uint64_t timeout_ns = 0);
  // Blocks.
  Answer Receive();
  void Close() { fd_.Reset(); }
  int fd() const { return fd_.get(); }

 private:
  bool ReceiveBytes(char* to, size_t count, std::vector<UniqueFd>* descriptors);

  UniqueFd fd_;
};

}  // namespace stride::testing
