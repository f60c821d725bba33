#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/scheduler/region.h"
#include "server/scheduler/service/download.h"
#include "server/scheduler/service/upload.h"

namespace stride::scheduler {

// Adds region transfers to an upload or download that handles only bytes, such as a sharded
// array's. The daemon copies from or to the region on the thread of the call. Returns an error, or
// a transfer without a region (null), unchanged.
absl::StatusOr<std::unique_ptr<Upload>> SharedByCopy(absl::StatusOr<std::unique_ptr<Upload>> upload,
                                                     std::shared_ptr<Region> region);
// `offset`: the position of the first byte in the region, which must have room for all bytes.
absl::StatusOr<std::unique_ptr<Download>> SharedByCopy(
    absl::StatusOr<std::unique_ptr<Download>> download, std::shared_ptr<Region> region,
    int64_t offset);

}  // namespace stride::scheduler
