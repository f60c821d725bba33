#include "server/scheduler/array_codec.h"

#include <utility>

#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/scheduler/record_convert.h"

namespace stride::scheduler {
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

}  // namespace stride::scheduler
