#include "server/engine/jobs/session_end.h"

#include <utility>

#include "server/base/error.h"
#include "server/engine/core/for_each_batch.h"
#include "server/session/resource_name.h"

namespace stride::engine {
namespace {

using session::Array;
using session::Session;

// The task that computes the array's content, if this session submitted it. A view may share its
// buffer with a named array that other sessions write.
std::shared_ptr<Task> WorkOn(const Session& session, const Array& array) {
  if (array.buffer == nullptr || array.buffer->writer == nullptr) return nullptr;
  auto writer = std::static_pointer_cast<Task>(array.buffer->writer);
  return writer->session.get() == &session ? writer : nullptr;
}

void StopWork(TenantTransaction& transaction, Scheduler& scheduler, const Session& session,
              Array& array) {
  if (array.shards != nullptr) {
    for (const auto& part : array.shards->parts) StopWork(transaction, scheduler, session, *part);
  }
  if (auto receiving = std::exchange(array.receiving, nullptr)) {
    scheduler.Complete(transaction, std::static_pointer_cast<Task>(receiving->access),
                       MakeError(absl::StatusCode::kCancelled, v1::ERROR_REASON_CANCELLED,
                                 "the session ended during the upload"));
  }
  if (auto work = WorkOn(session, array)) scheduler.cancellation().Cancel(transaction, work);
}

}  // namespace

void EndSession(Core* core, Scheduler* scheduler, Session& session) {
  ForEachBatch(*core, PartitionOf(session.tenant), [&](TenantTransaction& transaction) {
    if (session.arrays.empty()) return Step::kEnd;
    const auto [handle, array] = *session.arrays.begin();
    StopWork(transaction, *scheduler, session, *array);
    core->catalogue.ReleaseHandle(transaction, session, handle);
    return Step::kDone;
  });
  GlobalTransaction transaction(*core);
  core->catalogue.DeleteSession(transaction, session.tenant, session.id);
}

absl::Status EndSession(Core* core, Scheduler* scheduler, const TenantId& tenant,
                        const std::string& name) {
  const auto id = session::ParseSessionName(name, "name");
  if (!id.ok()) return id.status();
  absl::StatusOr<std::shared_ptr<Session>> session = nullptr;
  {
    TenantTransaction transaction(*core, tenant);
    session = core->catalogue.CloseSession(transaction, tenant, *id);
  }
  if (!session.ok()) return session.status();
  EndSession(core, scheduler, **session);
  return absl::OkStatus();
}

}  // namespace stride::engine
