#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/persistence/resource_table.h"
#include "server/engine/service/function_service.h"
#include "server/ops/client_function.h"

namespace stride::recovery {
class FunctionRecord;
}

namespace stride::engine {

// Functions that clients registered, by name; each tenant's are its own. Thread-safe, except where
// said.
class Functions : public FunctionService {
 public:
  explicit Functions(Core* core);

  absl::StatusOr<v1::Function> Create(const TenantId& tenant,
                                      const v1::CreateFunctionRequest& request,
                                      SteadyTime deadline) override;
  absl::StatusOr<v1::Function> Get(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListFunctionsResponse> List(const TenantId& tenant,
                                                 const v1::ListFunctionsRequest& request) override;
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;

  // Restores a function that an earlier daemon had.
  void Restore(GlobalTransaction& transaction, uint64_t id, const recovery::FunctionRecord& record);

  int64_t Count(TenantTransaction& transaction, const TenantId& tenant) const {
    return table_.Count(transaction, tenant);
  }
  // Null if the tenant has no function of this name. Valid during the transaction.
  const ops::ClientFunction* Find(TenantTransaction& transaction, const TenantId& tenant,
                                  std::string_view id) const;
  // All functions of the tenant as they are now, for planning without a transaction.
  std::map<std::string, std::shared_ptr<const ops::ClientFunction>> All(
      TenantTransaction& transaction, const TenantId& tenant) const;

 private:
  struct Value {
    using Message = v1::Function;
    using Record = recovery::FunctionRecord;
    std::shared_ptr<const v1::Function> message;  // as its client gave it
    std::shared_ptr<const ops::ClientFunction> read;
    int64_t Cost() const;
    bool is_kept() const { return true; }
    void WriteTo(Record* record) const;
  };
  static std::optional<Value> ReadRecord(const recovery::FunctionRecord& record);
  absl::Status Compile(const TenantId& tenant, const ops::ClientFunction& function,
                       SteadyTime deadline);
  // The targets that the function is compiled for: those of its kind of device.
  absl::StatusOr<std::set<std::string>> Targets(const std::string& device_kind) const;

  Core* const core_;
  ResourceTable<Value> table_;
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

}  // namespace stride::engine
