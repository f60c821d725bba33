#include "server/scheduler/buffer_codec.h"

#include "server/base/block_pool.h"
#include "server/scheduler/record_convert.h"

namespace stride::scheduler {

void ToRecord(const store::Buffer& buffer, recovery::BufferRecord* record) {
  record->set_tenant(buffer.tenant.value);
  record->set_size(buffer.size);
  for (const auto& [space, block] : buffer.replicas) {
    recovery::ReplicaRecord* replica = record->add_replicas();
    replica->set_arena(block.arena->id);
    replica->set_offset(block.offset);
    replica->set_size(block.size);
  }
  if (!buffer.error.ok()) SetStatus(buffer.error, record->mutable_error());
  for (const store::Buffer::LostWrite& lost : buffer.lost_writes) {
    recovery::LostWriteRecord* one = record->add_lost_writes();
    one->set_session(lost.session);
    SetStatus(lost.status, one->mutable_status());
  }
  record->set_kept(buffer.kept);
  record->set_loading(buffer.loading);
  record->set_incoming(buffer.incoming);
}

std::shared_ptr<store::Buffer> BufferFrom(uint64_t id, const recovery::BufferRecord& record,
                                          const RestoredArenas& arenas,
                                          const std::shared_ptr<store::Reclaimer>& reclaimer) {
  auto buffer = MakePooled<store::Buffer>(TenantId{record.tenant()}, record.size(), reclaimer);
  buffer->record = id;
  buffer->RestoreError(StatusFrom(record.error()));
  for (const recovery::LostWriteRecord& lost : record.lost_writes())
    buffer->RestoreLostWrite({lost.session(), StatusFrom(lost.status())});
  buffer->kept = record.kept();
  buffer->loading = record.loading();
  for (const recovery::ReplicaRecord& replica : record.replicas()) {
    if (buffer->loading) break;
    auto found = arenas.find(replica.arena());
    if (found == arenas.end()) continue;
    const auto& [arena, space] = found->second;
    if (arena->heap.Reserve(replica.offset(), replica.size()))
      buffer->AddReplica(space, {arena, replica.offset(), replica.size()});
  }
  return buffer;
}

}  // namespace stride::scheduler
