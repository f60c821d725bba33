#pragma once

#include <string>

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/scheduler/engine.h"
#include "stride/v1/job_service.grpc.pb.h"

namespace stride::api {

// The adapter of JobService. A watch holds its thread and looks for the client every 50 ms.
class JobServiceAdapter final : public RawService<v1::JobService::Service> {
 public:
  // Both must outlive the server.
  JobServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : RawService(environment), engine_(engine) {
    AddMethods();
  }

 private:
  void AddMethods();
  bool Ended(Call& call, const std::string& name);
  absl::Status Watch(Call& call, const v1::WatchJobRequest& request, ResponseWriter* writer);

  scheduler::Engine* const engine_;
};

}  // namespace stride::api
