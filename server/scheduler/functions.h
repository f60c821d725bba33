#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/ops/client_function.h"
#include "server/scheduler/core.h"
#include "server/scheduler/service/function_service.h"

namespace stride::recovery {
class FunctionRecord;
}

namespace stride::scheduler {

// Functions that clients registered, by name; each tenant's are its own. Thread-safe, except where
// said.
class Functions : public FunctionService {
 public:
  explicit Functions(Core* core) : core_(core) {}

  absl::StatusOr<v1::Function> Create(const TenantId& tenant,
                                      const v1::CreateFunctionRequest& request,
                                      SteadyTime deadline) override;
  absl::StatusOr<v1::Function> Get(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListFunctionsResponse> List(const TenantId& tenant,
                                                 const v1::ListFunctionsRequest& request) override;
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;

  // Restores a function that an earlier daemon had.
  void Restore(GlobalTransaction& transaction, uint64_t id, const recovery::FunctionRecord& record);
  // Restores a function from its row on disk.
  void RestoreFromDisk(GlobalTransaction& transaction, uint64_t row, const std::string& record);

  // Null if the tenant has no function of this name. Valid during the transaction.
  const ops::ClientFunction* Find(TenantTransaction& transaction, const TenantId& tenant,
                                  std::string_view id) const;
  // All functions of the tenant as they are now, for planning without a transaction.
  std::map<std::string, std::shared_ptr<const ops::ClientFunction>> All(
      TenantTransaction& transaction, const TenantId& tenant) const;

 private:
  using Key = std::pair<TenantId, std::string>;
  struct Entry {
    std::shared_ptr<const v1::Function> function;  // as its client gave it
    std::shared_ptr<const ops::ClientFunction> read;
    session::ControlCharge control;
    uint64_t record = 0;   // id in the journal
    uint64_t durable = 0;  // its row on disk; 0: it is not kept there
  };
  static recovery::FunctionRecord RecordOf(const Key& key, const Entry& entry);
  // Reserves the name of a function that is being made.
  absl::Status Reserve(const Key& key);
  void Save(TenantTransaction& transaction, const Key& key, const Entry& entry);
  absl::Status Compile(const TenantId& tenant, const ops::ClientFunction& function,
                       SteadyTime deadline);
  // The targets that the function is compiled for: those of its kind of device.
  absl::StatusOr<std::set<std::string>> Targets(const std::string& device_kind) const;

  Core* const core_;
  struct Partition {
    std::map<Key, Entry> functions;
    std::set<Key> creating;
  };
  PerPartition<Partition> partitions_;
};

// The functions that an operation of the tenant can name, during one transaction.
class TenantFunctions : public ops::FunctionTable {
 public:
  TenantFunctions(TenantTransaction& transaction, const Functions& functions,
                  const TenantId& tenant)
      : transaction_(transaction), functions_(functions), tenant_(tenant) {}
  const ops::ClientFunction* Find(std::string_view name) const override {
    const ops::ClientFunction* function = functions_.Find(transaction_, tenant_, name);
    found_any_ = found_any_ || function != nullptr;
    return function;
  }
  bool found_any() const { return found_any_; }

 private:
  TenantTransaction& transaction_;
  const Functions& functions_;
  const TenantId& tenant_;
  mutable bool found_any_ = false;
};

// A snapshot of the functions that an operation can name.
class FunctionsThen : public ops::FunctionTable {
 public:
  explicit FunctionsThen(std::map<std::string, std::shared_ptr<const ops::ClientFunction>> all)
      : all_(std::move(all)) {}
  const ops::ClientFunction* Find(std::string_view name) const override {
    auto found = all_.find(std::string(name));
    return found == all_.end() ? nullptr : found->second.get();
  }

 private:
  const std::map<std::string, std::shared_ptr<const ops::ClientFunction>> all_;
};

}  // namespace stride::scheduler
