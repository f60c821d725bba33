#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/persistence/resource_kind.h"
#include "server/engine/persistence/resource_log.h"
#include "server/session/control_account.h"
#include "server/tenant/resource_map.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

// The resources of one kind that clients register by name: their names, pages, quota, journal, disk
// and restoration. Each call takes the transactions of its tenant alone. Thread-safe; a function
// without a transaction as its argument begins one, and its caller has none.
//
// A Value has
//   using Message, using Record       the message that clients see; its record in journal and disk
//   message                           std::shared_ptr<const Message>, which never changes
//   int64_t Cost() const              its control bytes
//   bool is_kept() const              whether it outlives a reboot
//   void WriteTo(Record*) const       all but the tenant, the id and the row
template <typename Value>
class ResourceTable {
 public:
  using Message = typename Value::Message;
  using Record = typename Value::Record;
  struct Entry {
    Value value;
    session::ControlCharge control;
    ResourceLog::Place place;
  };
  // Reads a record. Empty: this version does not know it, so that it is dropped.
  using Read = std::function<std::optional<Value>(GlobalTransaction&, const Record&)>;

  // `quota`: the limit on their number. `definition`: see ResourceLog.
  ResourceTable(Core* core, const ResourceKind& kind,
                std::optional<int64_t> identity::Quota::*quota, recovery::Kind record,
                uint64_t definition, Read read)
      : core_(core),
        kind_(kind),
        quota_(quota),
        log_(core, record, definition),
        read_(std::move(read)) {}

  const ResourceKind& kind() const { return kind_; }

  // The right to make a resource. Until its end no other call makes one of this name. Its
  // destructor gives the name back in a transaction.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(tenant_, other.tenant_);
      std::swap(id_, other.id_);
      std::swap(control_, other.control_);
      return *this;
    }
    ~Reservation() {
      if (table_ == nullptr) return;
      TenantTransaction transaction(*table_->core_, tenant_);
      table_->End(transaction, *this);
    }
    session::ControlCharge& control() { return control_; }

   private:
    friend class ResourceTable;
    ResourceTable* table_ = nullptr;  // null: it has ended
    TenantId tenant_;
    std::string id_;
    session::ControlCharge control_;
  };

  // Reserves the name, a place in the quota and `bytes` of control bytes. Waits for another call
  // that makes a resource of this name. ALREADY_EXISTS, or the existing resource and an ended
  // reservation where `existing` is not null.
  absl::StatusOr<Reservation> Reserve(const TenantId& tenant, const std::string& id, int64_t bytes,
                                      SteadyTime deadline,
                                      std::shared_ptr<const Message>* existing = nullptr) {
    while (true) {
      std::shared_ptr<absl::Notification> other;
      {
        TenantTransaction transaction(*core_, tenant);
        Partition& mine = partitions_.Of(transaction, tenant);
        if (const Entry* entry = mine.entries.Find(tenant, id)) {
          if (existing == nullptr) return kind_.AlreadyExists(id);
          *existing = entry->value.message;
          return Reservation();
        }
        const auto* creating = mine.creating.Find(tenant, id);
        if (creating == nullptr) return ReserveFree(mine, tenant, id, bytes);
        other = *creating;
      }
      if (!Await(*other, deadline)) {
        return MakeError(
            absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE,
            absl::StrCat("the deadline passed while another call created the ", kind_.noun));
      }
    }
  }

  // Makes the resource of the reservation, which ends. Returns once it is on disk, where it is kept
  // there. `decide(transaction, value)` sets what only that transaction knows, and nothing of the
  // record.
  void Add(Reservation reservation, Value value,
           const std::function<void(TenantTransaction&, Value&)>& decide = nullptr) {
    const TenantId tenant = reservation.tenant_;
    Entry entry{.value = std::move(value), .control = std::move(reservation.control_)};
    entry.control.Set(entry.value.Cost());
    entry.place.record = log_.NewId();
    std::optional<Record> record;
    if (log_.needs_records()) record = RecordOf(tenant, reservation.id_, entry);
    uint64_t number = 0;
    {
      TenantTransaction transaction(*core_, tenant);
      if (decide) decide(transaction, entry.value);
      if (record.has_value()) {
        if (entry.value.is_kept()) number = log_.Keep(transaction, *record, &entry.place);
        SetRow(entry.place.durable, &*record);
        log_.Save(transaction, tenant, entry.place, *record);
      }
      partitions_.Of(transaction, tenant).entries.Set(tenant, reservation.id_, std::move(entry));
      End(transaction, reservation);
    }
    log_.Await(number);
  }

  absl::StatusOr<std::shared_ptr<const Message>> Get(const TenantId& tenant,
                                                     const std::string& name) {
    const auto id = kind_.IdOf(name, tenant);
    if (!id.ok()) return id.status();
    std::shared_ptr<const Message> message;
    {
      TenantTransaction transaction(*core_, tenant);
      if (const Entry* entry = Find(transaction, tenant, *id)) message = entry->value.message;
    }
    if (message == nullptr) return kind_.NotFound(name);
    return message;
  }

  // Fills a page and the token of the next one. `write(message, listed)` writes one.
  template <typename Request, typename Write>
  absl::Status List(const TenantId& tenant, const Request& request, Write write,
                    google::protobuf::RepeatedPtrField<Message>* page, std::string* next) {
    auto entries = [&](const std::string& token, int page_size) {
      TenantTransaction transaction(*core_, tenant);
      return partitions_.Of(transaction, tenant)
          .entries.PageAfter(tenant, token, page_size,
                             [](const Entry& entry) { return entry.value.message; });
    };
    auto write_shared = [&](const auto& message, Message* listed) { write(*message, listed); };
    return ListResources(kind_, tenant, request, entries, write_shared, page, next);
  }

  // Returns once the resource is gone from the disk too.
  absl::Status Delete(const TenantId& tenant, const std::string& name) {
    const auto id = kind_.IdOf(name, tenant);
    if (!id.ok()) return id.status();
    uint64_t number = 0;
    {
      TenantTransaction transaction(*core_, tenant);
      auto& entries = partitions_.Of(transaction, tenant).entries;
      const Entry* const entry = entries.Find(tenant, *id);
      if (entry == nullptr) return kind_.NotFound(name);
      number = log_.Erase(transaction, tenant, entry->place);
      entries.Erase(tenant, *id);
    }
    log_.Await(number);
    return absl::OkStatus();
  }

  // Null: there is none. Valid during the transaction.
  Entry* Find(TenantTransaction& transaction, const TenantId& tenant, std::string_view id) {
    return partitions_.Of(transaction, tenant).entries.Find(tenant, id);
  }
  const Entry* Find(TenantTransaction& transaction, const TenantId& tenant,
                    std::string_view id) const {
    return partitions_.Of(transaction, tenant).entries.Find(tenant, id);
  }
  int64_t Count(TenantTransaction& transaction, const TenantId& tenant) const {
    return partitions_.Of(transaction, tenant).entries.Count(tenant);
  }
  // Calls `visit(id, value)` for each.
  template <typename Visit>
  void ForEach(TenantTransaction& transaction, const TenantId& tenant, Visit visit) const {
    partitions_.Of(transaction, tenant)
        .entries.ForEach(
            tenant, [&](const std::string& id, const Entry& entry) { visit(id, entry.value); });
  }
  // Deletes those whose ids begin with `prefix` and for which `erases(value)` holds. None of them
  // is on disk.
  template <typename Erases>
  void EraseIf(TenantTransaction& transaction, const TenantId& tenant, std::string_view prefix,
               Erases erases) {
    auto erase = [&](std::string_view, const Entry& entry) {
      if (!erases(entry.value)) return false;
      log_.Erase(transaction, tenant, entry.place);
      return true;
    };
    partitions_.Of(transaction, tenant).entries.EraseIf(tenant, prefix, erase);
  }

  // Restores a resource of an earlier daemon from its record in the journal, whatever the quotas.
  void Restore(GlobalTransaction& transaction, uint64_t id, const Record& record) {
    Entry entry;
    entry.place = {.record = id, .durable = RowOf(record)};
    log_.NoteRow(transaction, entry.place.durable);
    std::optional<Value> value = read_(transaction, record);
    if (!value.has_value()) {
      log_.NoteDropped(kind_.noun, record.id());
      return;
    }
    entry.value = *std::move(value);
    const TenantId tenant{record.tenant()};
    entry.control = core_->accounts->ControlOf(tenant)->Hold(entry.value.Cost());
    partitions_.Of(transaction, tenant).entries.Set(tenant, record.id(), std::move(entry));
  }

 private:
  struct Partition {
    ResourceMap<Entry> entries;
    // Names that a call makes a resource of, until its end.
    ResourceMap<std::shared_ptr<absl::Notification>> creating;
  };

  absl::StatusOr<Reservation> ReserveFree(Partition& mine, const TenantId& tenant,
                                          const std::string& id, int64_t bytes) {
    const int64_t used = mine.entries.Count(tenant) + mine.creating.Count(tenant);
    const int64_t limit =
        (core_->accounts->QuotaOf(tenant).*quota_).value_or(std::numeric_limits<int64_t>::max());
    if (used >= limit) return kind_.QuotaExceeded(tenant, used, limit);
    auto control = core_->accounts->ControlOf(tenant)->Take(bytes);
    if (!control.ok()) return control.status();
    mine.creating.Set(tenant, id, std::make_shared<absl::Notification>());
    Reservation reservation;
    reservation.table_ = this;
    reservation.tenant_ = tenant;
    reservation.id_ = id;
    reservation.control_ = *std::move(control);
    return reservation;
  }
  void End(TenantTransaction& transaction, Reservation& reservation) {
    auto& creating = partitions_.Of(transaction, reservation.tenant_).creating;
    (*creating.Find(reservation.tenant_, reservation.id_))->Notify();
    creating.Erase(reservation.tenant_, reservation.id_);
    reservation.table_ = nullptr;
  }

  static Record RecordOf(const TenantId& tenant, const std::string& id, const Entry& entry) {
    Record record;
    record.set_tenant(tenant.value);
    record.set_id(id);
    entry.value.WriteTo(&record);
    return record;
  }
  // Only records of kinds that may be on disk have a row.
  static void SetRow(uint64_t row, Record* record) {
    if constexpr (requires { record->set_durable(row); }) record->set_durable(row);
  }
  static uint64_t RowOf(const Record& record) {
    if constexpr (requires { record.durable(); }) return record.durable();
    return 0;
  }

  Core* const core_;
  const ResourceKind kind_;
  std::optional<int64_t> identity::Quota::*const quota_;
  const ResourceLog log_;
  const Read read_;
  PerPartition<Partition> partitions_;
};

}  // namespace stride::engine
