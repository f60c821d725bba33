#pragma once

#include <memory>

#include "server/base/unique_fd.h"
#include "server/keeper/keeper.h"

namespace stride::keeper {

// The FdStore of the holder (holder.h) at the other end of `socket`. `patience`: see HolderOptions.
std::unique_ptr<Keeper> MakeHolderKeeper(UniqueFd socket,
                                         absl::Duration patience = absl::InfiniteDuration());

}  // namespace stride::keeper
