#include "server/engine/persistence/resource_log.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/core/core.h"
#include "server/engine/persistence/durable_sink.h"
#include "server/engine/persistence/journal_writer.h"

namespace stride::engine {

bool ResourceLog::needs_records() const {
  return core_->journal_writer->on() || (definition_ != 0 && core_->durable_sink != nullptr);
}

uint64_t ResourceLog::NewId() const { return core_->journal_writer->NewId(); }

uint64_t ResourceLog::Keep(TenantTransaction& transaction,
                           const google::protobuf::MessageLite& record, Place* place) const {
  uint64_t number = 0;
  if (definition_ == 0 || core_->durable_sink == nullptr) return number;
  const auto definition = static_cast<durable::DefinitionRow::Kind>(definition_);
  place->durable = core_->durable_sink->Defined(transaction, definition, record, &number);
  return number;
}

void ResourceLog::Save(TenantTransaction& transaction, const TenantId& tenant, const Place& place,
                       const google::protobuf::MessageLite& record) const {
  core_->journal_writer->Set(transaction, tenant, kind_, place.record, record);
}

uint64_t ResourceLog::Erase(TenantTransaction& transaction, const TenantId& tenant,
                            const Place& place) const {
  core_->journal_writer->Erase(transaction, tenant, kind_, place.record);
  if (place.durable == 0 || core_->durable_sink == nullptr) return 0;
  return core_->durable_sink->Undefined(transaction, place.durable);
}

void ResourceLog::NoteRow(GlobalTransaction& transaction, uint64_t row) const {
  if (row != 0 && core_->durable_sink != nullptr)
    core_->durable_sink->RestoredDefinition(transaction, row);
}

void ResourceLog::NoteDropped(std::string_view noun, std::string_view id) const {
  core_->options.log(absl::StrCat(
      "a ", std::string(noun), " that this version does not know was dropped: ", std::string(id)));
}

void ResourceLog::Await(uint64_t number) const {
  if (number != 0) core_->durable_sink->Await(number);
}

}  // namespace stride::engine
