#pragma once

#include "server/recovery/records.pb.h"
#include "stride/v1/job_service.pb.h"

// A job to its record on disk, from which it runs again after a reboot.
namespace stride::engine {

// The request, and the named arrays that it uses, each once and without its row. Takes long for
// many operations. `record` is empty.
void ToRecord(const v1::Job& asked, recovery::DurableJobRecord* record);

}  // namespace stride::engine
