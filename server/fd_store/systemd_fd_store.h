#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/fd_store/fd_store.h"

namespace stride::fd_store {

// The FdStore of systemd. Stored names have a prefix of this daemon, which distinguishes them from
// listening sockets. Takes its descriptors out of `passed` and leaves the others. Returns nullptr
// when there is no manager (NOTIFY_SOCKET) or it stores nothing for this service. FDSTORE in the
// environment has the limit (set by systemd from version 254 on, by our unit before).
std::unique_ptr<FdStore> MakeSystemdFdStore(std::vector<NamedFd>* passed);

}  // namespace stride::fd_store
