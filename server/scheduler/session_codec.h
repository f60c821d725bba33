#pragma once

#include <cstdint>
#include <memory>

#include "server/base/steady_time.h"
#include "server/recovery/records.pb.h"
#include "server/session/catalogue.h"

namespace stride::scheduler {

// `record` is empty.
void ToRecord(const session::Session& session, recovery::SessionRecord* record);
// The session of the record `id`. Its lease begins at `now`: the client could not renew it while no
// daemon ran.
std::shared_ptr<session::Session> SessionFrom(uint64_t id, const recovery::SessionRecord& record,
                                              SteadyTime now);

}  // namespace stride::scheduler
