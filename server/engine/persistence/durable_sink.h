#pragma once

#include <cstdint>

#include "google/protobuf/message_lite.h"
#include "server/durable/rows.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

struct Task;

// Receives the changes that outlive the machine: writes of tasks, functions and programs.
class DurableSink {
 public:
  virtual ~DurableSink() = default;
  // A task is about to enter its buffers' order.
  virtual void Enqueued(TenantTransaction& transaction, const Task& task) = 0;
  // A task has ended; it still has its uses. `begun`: it may have changed the buffers that it
  // writes.
  virtual void Ended(TenantTransaction& transaction, const Task& task, bool begun) = 0;

  // Functions and programs. Returns the id of the row, and sets `number` to the change to wait for.
  // 0: it is not kept.
  virtual uint64_t Defined(TenantTransaction& transaction, durable::DefinitionRow::Kind kind,
                           const google::protobuf::MessageLite& record, uint64_t* number) = 0;
  // Returns the number of the change; 0: none.
  virtual uint64_t Undefined(TenantTransaction& transaction, uint64_t row) = 0;
  // Notes a function or program that a journal had.
  virtual void RestoredDefinition(GlobalTransaction& transaction, uint64_t row) = 0;
  // Blocks until the change of this number is on disk, for a bounded time. The caller has no
  // transaction.
  virtual void Await(uint64_t number) const = 0;
};

}  // namespace stride::engine
