#pragma once

#include <memory>

#include "server/base/unique_fd.h"
#include "server/fd_store/fd_store.h"

namespace stride::fd_store {

// The FdStore of the supervisor (supervisor.h) at the other end of `socket`. `patience`: see
// SupervisorOptions.
std::unique_ptr<FdStore> MakeSupervisedFdStore(UniqueFd socket,
                                               absl::Duration patience = absl::InfiniteDuration());

}  // namespace stride::fd_store
