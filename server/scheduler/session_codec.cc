#include "server/scheduler/session_codec.h"

#include "server/scheduler/record_convert.h"

namespace stride::scheduler {

void ToRecord(const session::Session& session, recovery::SessionRecord* record) {
  record->set_tenant(session.tenant.value);
  record->set_id(session.id);
  record->set_create_time(DateToRecord(session.create_time));
  record->set_ttl(absl::ToInt64Nanoseconds(session.ttl));
  record->set_of_job(session.num_pins > 0);
}

std::shared_ptr<session::Session> SessionFrom(uint64_t id, const recovery::SessionRecord& record,
                                              SteadyTime now) {
  auto session = std::make_shared<session::Session>();
  session->record = id;
  session->id = record.id();
  session->tenant = TenantId{record.tenant()};
  session->create_time = TimeFrom(record.create_time(), SteadyTime());
  session->ttl = absl::Nanoseconds(record.ttl());
  session->expire_time = now + session->ttl;
  session->num_pins = record.of_job() ? 1 : 0;
  return session;
}

}  // namespace stride::scheduler
