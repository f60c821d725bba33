#pragma once

#include "server/ops/program_graph.h"
#include "server/recovery/records.pb.h"

namespace stride::scheduler {

// `record` is empty.
void ToRecord(const ops::ProgramGraph& graph, recovery::ReplayRecord* record);
// Restores only what tasks need: neither the outputs nor the estimated costs.
ops::ProgramGraph GraphFrom(const recovery::ReplayRecord& record);

}  // namespace stride::scheduler
