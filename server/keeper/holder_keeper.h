#pragma once

#include <memory>

#include "server/base/unique_fd.h"
#include "server/keeper/keeper.h"

namespace stride::keeper {

// The holder (holder.h) at the other end of `socket`, which waits so long for a sign of life.
std::unique_ptr<Keeper> MakeHolderKeeper(UniqueFd socket,
                                         absl::Duration patience = absl::InfiniteDuration());

}  // namespace stride::keeper
