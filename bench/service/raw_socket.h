// The floor under every transfer: the same bytes through sockets and nothing else.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace stride::bench {

// Serves on a Unix socket in `folder` and a free TCP port of 127.0.0.1, says so on standard output,
// and returns when standard input ends. One thread a connection; what arrives is kept in memory
// that was touched before, and what leaves comes from there.
int ServeRawSocket(const std::string& folder, int64_t bytes);

// Some connections, opened once; each transfer is cut evenly among them, one thread each.
class RawSocketClient {
 public:
  // `address`: `unix:/path` or `127.0.0.1:port`.
  RawSocketClient(const std::string& address, int num_streams);
  ~RawSocketClient();
  RawSocketClient(const RawSocketClient&) = delete;
  RawSocketClient& operator=(const RawSocketClient&) = delete;

  // Ends when the peer has said that it has all. False when the connection broke.
  bool Send(std::span<const std::byte> data);
  bool Receive(std::span<std::byte> data);

 private:
  std::vector<int> sockets_;
};

}  // namespace stride::bench
