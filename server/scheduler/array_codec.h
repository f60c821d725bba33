#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "server/recovery/records.pb.h"
#include "server/scheduler/buffer_codec.h"
#include "server/scheduler/space_names.h"
#include "server/session/array.h"

namespace stride::scheduler {

// What a record has to outlive. One that outlives the machine has dates in place of steady times,
// and nothing that refers to another record of the journal.
enum class Outlives { kProcess, kMachine };

using RestoredArrays = std::map<uint64_t, std::shared_ptr<session::Array>>;  // by record

// `record` is empty.
void ToRecord(const session::Array& array, const SpaceNames& spaces, Outlives outlives,
              recovery::ArrayRecord* record);
// The array of the record `id` (0: it has none yet), without its name and its upload, which the
// catalogue and the tenant's uploads restore. `parts`: arrays that sharded ones consist of. An
// array whose content is not there carries ContentLost.
std::shared_ptr<session::Array> ArrayFrom(uint64_t id, const recovery::ArrayRecord& record,
                                          const SpaceNames& spaces, const RestoredBuffers& buffers,
                                          const RestoredArrays& parts);

// DATA_LOST: the content did not outlive the daemon.
absl::Status ContentLost();

}  // namespace stride::scheduler
