#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/scheduler/region.h"
#include "server/scheduler/service/download.h"
#include "server/scheduler/service/upload.h"

namespace stride::scheduler {

// Transfers by way of a region for what knows only bytes, such as an array that is spread over
// devices: the daemon copies from the region, or into it, in the call's thread. An error, or a call
// without a region (null), comes back as it is.
absl::StatusOr<std::unique_ptr<Upload>> SharedByCopy(absl::StatusOr<std::unique_ptr<Upload>> upload,
                                                     std::shared_ptr<Region> region);
// `offset`: where in the region the first byte goes; the region has room for all.
absl::StatusOr<std::unique_ptr<Download>> SharedByCopy(
    absl::StatusOr<std::unique_ptr<Download>> download, std::shared_ptr<Region> region,
    int64_t offset);

}  // namespace stride::scheduler
