#pragma once

#include <cstdint>
#include <string_view>

#include "google/protobuf/message_lite.h"
#include "server/base/ids.h"
#include "server/recovery/key.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

struct Core;

// Reports the changes of one kind of resources to the journal and, for a kind that outlives a
// reboot, to the disk. Each returned number is of a change on disk, to be waited for after the
// transaction; 0: none.
class ResourceLog {
 public:
  // Where the log has a resource.
  struct Place {
    uint64_t record = 0;   // id in the journal
    uint64_t durable = 0;  // its row on disk; 0: it is not kept there
  };

  // `definition`: the kind of its rows (durable::DefinitionRow::Kind); 0: it is not kept on disk.
  ResourceLog(Core* core, recovery::Kind kind, uint64_t definition)
      : core_(core), kind_(kind), definition_(definition) {}

  // Whether anything reads records, now.
  bool needs_records() const;
  uint64_t NewId() const;
  // Writes the resource to disk, and sets its row in `place`.
  uint64_t Keep(TenantTransaction& transaction, const google::protobuf::MessageLite& record,
                Place* place) const;
  // Writes the resource to the journal.
  void Save(TenantTransaction& transaction, const TenantId& tenant, const Place& place,
            const google::protobuf::MessageLite& record) const;
  uint64_t Erase(TenantTransaction& transaction, const TenantId& tenant, const Place& place) const;
  // The row is in use, by a resource of an earlier daemon.
  void NoteRow(GlobalTransaction& transaction, uint64_t row) const;
  // `noun`: what the resource is.
  void NoteDropped(std::string_view noun, std::string_view id) const;
  // Waits until the change is on disk. The caller has no transaction.
  void Await(uint64_t number) const;

 private:
  Core* const core_;
  const recovery::Kind kind_;
  const uint64_t definition_;
};

}  // namespace stride::engine
