#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "server/base/steady_time.h"
#include "server/engine/core/space_names.h"
#include "server/recovery/records.pb.h"
#include "server/session/catalogue.h"
#include "server/store/buffer.h"

// Sessions, buffers and arrays to and from their records. Each ToRecord takes an empty record.
namespace stride::engine {

void ToRecord(const session::Session& session, recovery::SessionRecord* record);
// The session of the record `id`. Its lease begins at `now`: the client could not renew it while no
// daemon ran.
std::shared_ptr<session::Session> SessionFrom(uint64_t id, const recovery::SessionRecord& record,
                                              SteadyTime now);

// An arena of an earlier daemon, and the memory space that it is in.
struct RestoredArena {
  std::shared_ptr<store::Arena> arena;
  int space = 0;
};
using RestoredArenas = std::map<uint64_t, RestoredArena>;                    // by id
using RestoredBuffers = std::map<uint64_t, std::shared_ptr<store::Buffer>>;  // by record
using RestoredArrays = std::map<uint64_t, std::shared_ptr<session::Array>>;  // by record

// Everything but inline bytes, which have a record of their own.
void ToRecord(const store::Buffer& buffer, recovery::BufferRecord* record);
// The buffer of the record `id` (0: it has none yet). Reserves its blocks in `arenas`; a block that
// is not there, or belongs to another buffer, is left out.
std::shared_ptr<store::Buffer> BufferFrom(uint64_t id, const recovery::BufferRecord& record,
                                          const RestoredArenas& arenas,
                                          const std::shared_ptr<store::Reclaimer>& reclaimer);

// A record that outlives the machine has dates in place of steady times, and refers to no other
// record of the journal.
enum class Outlives { kProcess, kMachine };
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

}  // namespace stride::engine
