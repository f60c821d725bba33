#include "server/api/connection_table.h"

#include <sys/stat.h>

#include <algorithm>

namespace stride::api {

bool ConnectionTable::Full(const std::string& peer) const {
  auto it = peers_.find(peer);
  return entries_.size() >= max_connections_ || (it != peers_.end() && it->second >= max_per_peer_);
}

ConnectionTable::Verdict ConnectionTable::Admit(int fd, const std::string& peer) {
  // A sweep over all connections pays only when a limit seems to be reached.
  if (Full(peer)) Sweep();
  if (entries_.size() >= max_connections_) return Verdict::kTooMany;
  if (Full(peer)) return Verdict::kTooManyOfPeer;
  struct stat info;
  if (fstat(fd, &info) != 0) return Verdict::kAdmitted;  // closed already: nothing to count
  entries_.push_back({fd, info.st_dev, info.st_ino, peer});
  ++peers_[peer];
  return Verdict::kAdmitted;
}

size_t ConnectionTable::Sweep() {
  auto gone = [&](const Entry& entry) {
    struct stat info;
    bool open =
        fstat(entry.fd, &info) == 0 && info.st_dev == entry.device && info.st_ino == entry.inode;
    if (open) return false;
    auto it = peers_.find(entry.peer);
    if (--it->second == 0) peers_.erase(it);
    return true;
  };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), gone), entries_.end());
  return entries_.size();
}

}  // namespace stride::api
