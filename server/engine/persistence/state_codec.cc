#include "server/engine/persistence/state_codec.h"

#include <utility>

#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/engine/persistence/record_convert.h"

namespace stride::engine {
namespace {

void WriteShards(const session::Shards& shards, const SpaceNames& spaces,
                 recovery::ShardsRecord* record) {
  record->set_axis(shards.axis);
  record->set_replicated(shards.replicated);
  for (int device : shards.devices) record->add_devices(spaces.IdOf(device));
  for (const auto& part : shards.parts) record->add_parts(part->record);
}

// Null unless all parts and devices are there.
std::shared_ptr<const session::Shards> ShardsFrom(const recovery::ShardsRecord& record, int rank,
                                                  const SpaceNames& spaces,
                                                  const RestoredArrays& parts) {
  auto shards = std::make_shared<session::Shards>();
  shards->axis = record.axis();
  shards->replicated = record.replicated();
  if (record.parts_size() == 0 || record.parts_size() != record.devices_size()) return nullptr;
  if (shards->axis < 0 || (!shards->replicated && shards->axis >= rank)) return nullptr;
  for (int i = 0; i < record.parts_size(); ++i) {
    const int device = spaces.FindDevice(record.devices(i));
    auto part = parts.find(record.parts(i));
    if (device < 0 || part == parts.end()) return nullptr;
    shards->devices.push_back(device);
    shards->parts.push_back(part->second);
  }
  return shards;
}

void WriteReceiving(const session::Receiving& receiving, const SpaceNames& spaces,
                    recovery::ReceivingRecord* record) {
  record->set_device(spaces.IdOf(receiving.device));
  for (const auto& [begin, end] : receiving.ranges.ranges()) {
    record->add_begin(begin);
    record->add_end(end);
  }
}

}  // namespace

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
  for (const recovery::ReplicaRecord& replica : record.replicas()) {
    auto found = arenas.find(replica.arena());
    if (found == arenas.end()) continue;
    const auto& [arena, space] = found->second;
    if (arena->heap.Reserve(replica.offset(), replica.size()))
      buffer->AddReplica(space, {arena, replica.offset(), replica.size()});
  }
  return buffer;
}

absl::Status ContentLost() {
  return MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
                   "the array's content was lost when the daemon was replaced");
}

void ToRecord(const session::Array& array, const SpaceNames& spaces, Outlives outlives,
              recovery::ArrayRecord* record) {
  record->set_tenant(array.tenant.value);
  record->set_name(array.name.ToString());
  record->set_create_time(DateToRecord(array.create_time));
  if (array.buffer != nullptr || array.shards != nullptr)
    ToRecord(array.info, record->mutable_info());
  if (outlives == Outlives::kMachine) {
    record->set_expire_time(DateToRecord(array.expire_time));
    if (!array.status().ok()) SetStatus(array.status(), record->mutable_error());
    return;
  }
  record->set_expire_time(ToRecord(array.expire_time));
  if (!array.error.ok()) SetStatus(array.error, record->mutable_error());
  record->set_durable(array.durable);
  if (array.buffer != nullptr) record->set_buffer(array.buffer->record);
  if (array.shards != nullptr) WriteShards(*array.shards, spaces, record->mutable_shards());
  if (array.receiving != nullptr)
    WriteReceiving(*array.receiving, spaces, record->mutable_receiving());
}

std::shared_ptr<session::Array> ArrayFrom(uint64_t id, const recovery::ArrayRecord& record,
                                          const SpaceNames& spaces, const RestoredBuffers& buffers,
                                          const RestoredArrays& parts) {
  auto array = MakePooled<session::Array>();
  array->record = id;
  array->tenant = TenantId{record.tenant()};
  array->durable = record.durable();
  array->error = StatusFrom(record.error());
  array->create_time = TimeFrom(record.create_time(), SteadyTime());
  array->expire_time = TimeFrom(record.expire_time(), SteadyTime::InfiniteFuture());
  if (auto info = InfoFrom(record.info()); info.ok()) {
    array->info = *std::move(info);
    if (auto buffer = buffers.find(record.buffer()); buffer != buffers.end())
      array->buffer = buffer->second;
    if (record.has_shards()) {
      const auto rank = static_cast<int>(array->info->shape.size());
      array->shards = ShardsFrom(record.shards(), rank, spaces, parts);
    }
  }
  const bool there = array->buffer != nullptr || array->shards != nullptr;
  if (!there && array->error.ok()) array->error = ContentLost();
  return array;
}

}  // namespace stride::engine
