#pragma once

#include <memory>

#include "server/base/unique_fd.h"
#include "server/keeper/keeper.h"

namespace stride::keeper {

// The holder (holder.h) at the other end of `socket`.
std::unique_ptr<Keeper> MakeHolderKeeper(UniqueFd socket);

}  // namespace stride::keeper
