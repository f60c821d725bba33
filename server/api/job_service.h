#pragma once

#include <string>

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/engine/service/job_service.h"
#include "server/session/tenant_accounts.h"
#include "stride/v1/job_service.grpc.pb.h"

namespace stride::api {

// The adapter of JobService. A watch holds its thread and looks for the client every 50 ms.
class JobServiceAdapter final : public RawService<v1::JobService::Service> {
 public:
  // All must outlive the server.
  JobServiceAdapter(CallEnvironment* environment, engine::JobService* jobs,
                    session::TenantAccounts* accounts)
      : RawService(environment), jobs_(jobs), accounts_(accounts) {
    AddMethods();
  }

 private:
  void AddMethods();
  bool Ended(Call& call, const std::string& name);
  absl::Status Watch(Call& call, const v1::WatchJobRequest& request, ResponseWriter* writer);

  engine::JobService* const jobs_;
  session::TenantAccounts* const accounts_;  // for the upload rate
};

}  // namespace stride::api
