#pragma once

#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/task.h"
#include "server/session/array.h"
#include "server/session/array_description.h"
#include "stride/v1/array.pb.h"
#include "stride/v1/operation.pb.h"
#include "stride/v1/session_service.pb.h"

namespace stride::engine {

// Messages of the API for the daemon's objects. The caller has a transaction of their tenant.
v1::Array Describe(const Core& core, const session::Array& array);
void Describe(const Core& core, const session::Array& array, v1::Array* empty);
v1::Session Describe(const session::Session& session);
v1::Timeline DescribeTimeline(const Core& core, const Task& task);

using session::SetTimestamp;

}  // namespace stride::engine
