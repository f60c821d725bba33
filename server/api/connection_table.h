#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace stride::api {

// Counts live connections, in total and by peer. gRPC owns their descriptors and does not report
// when it closes one. So the table identifies each by descriptor number and inode, and checks
// whether both still match; an inode belongs to one socket. One thread.
class ConnectionTable {
 public:
  enum class Verdict { kAdmitted, kTooMany, kTooManyOfPeer };

  ConnectionTable(size_t max_connections, size_t max_per_peer)
      : max_connections_(max_connections), max_per_peer_(max_per_peer) {}

  // Counts `fd` from now on until it is closed, unless a limit is reached.
  Verdict Admit(int fd, const std::string& peer);
  // Number of connections that are still open.
  size_t Sweep();

 private:
  struct Entry {
    int fd;
    dev_t device;
    ino_t inode;
    std::string peer;
  };
  bool Full(const std::string& peer) const;

  const size_t max_connections_;
  const size_t max_per_peer_;
  std::vector<Entry> entries_;
  std::map<std::string, size_t> peers_;
};

}  // namespace stride::api
