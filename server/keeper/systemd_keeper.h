#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/keeper/keeper.h"

namespace stride::keeper {

// The file descriptor store of systemd. Ours carry a name of our own prefix there, so that they are
// told from listening sockets. Takes its descriptors out of `passed` and leaves the others.
// nullptr when there is no manager (NOTIFY_SOCKET) or it keeps nothing for this service: FDSTORE in
// the environment tells how many (systemd itself from version 254 on, our unit before).
std::unique_ptr<Keeper> MakeSystemdKeeper(std::vector<NamedFd>* passed);

}  // namespace stride::keeper
