#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/engine/engine.h"
#include "server/engine/service/download.h"
#include "server/engine/service/operation_handle.h"
#include "stride/v1/array.pb.h"
#include "stride/v1/operation.pb.h"
#include "tests/simulation/devices.h"
#include "tests/simulation/kept.h"
#include "tests/simulation/model.h"
#include "tests/simulation/world.h"

namespace stride::simulation {

// The run of one seed: an engine with the real scheduler, store, journal writer and journal;
// simulated devices, workers, FdStore and time; clients with arbitrary requests; failures. After
// every event the results are compared with the model.
class Simulation : private Watcher {
 public:
  struct Result {
    std::string failure;  // empty if all was correct
    std::string trace;
    uint64_t hash = 0;
    uint64_t steps = 0;
    int operations = 0, contents = 0, deaths = 0, restarts = 0;
    int64_t spilled_bytes = 0;  // idle arrays spilled from a full device
  };
  Simulation(uint64_t seed, int num_actions, bool verbose);
  ~Simulation() override;
  Result Run();

 private:
  // A resource that a client addresses by a handle or a name.
  struct Array {
    View view;
    absl::Status error;  // the error of a view that could not be created
    VersionPtr error_version;
  };
  struct Session {
    std::string tenant, name;
    uint64_t next_handle = 1;
    std::map<uint64_t, Array> arrays;
  };
  struct Fetch {
    std::unique_ptr<engine::Download> fetch;
    std::string what;
    VersionPtr version;
    View view;
  };
  struct Job {
    std::string tenant, name;
    std::vector<OpPtr> ops;
    bool accepted = false;
    bool over = false;
    int num_ends = 0;  // reported in this life of the daemon
  };
  // A request without a response since the daemon died.
  struct Unanswered {
    OpPtr op;
    std::string array;  // the resource name of its result; empty if it has none
    std::string job;
    std::function<void()> forget;  // removes the result from the client's records
  };
  struct Named {
    std::string name;  // resource name
    Array* array;
    Session* session;  // null for a named array
    uint64_t handle = 0;
  };

  // Watcher.
  void Point(const char* what) override;
  void Began(const std::string& label) override;
  void Hit(const std::string& label, bool fault) override;
  bool MayHang(const std::string& label) override;
  std::string TenantOf(const std::string& label) override;
  OpPtr OpOf(const std::string& label);

  void ChooseScenario();
  void StartEngine(std::vector<NamedFd> kept);
  void StopEngine();
  void Restart();
  void AfterRestart();

  void Act();
  void Step();
  void Settle();
  void Quiesce(const char* when);
  void ReleaseAll();
  void CheckNothingIsLeft();

  // Clients.
  Session* AnySession();
  std::optional<Named> AnyArray(Session& session, int64_t count = 0);
  void Open();
  void CloseSession();
  void Upload();
  void Overwrite();
  void Compute();
  void MakeView();
  void Move();
  void BeginFetch();
  void ReadFetches();
  void Release();
  void Cancel();
  void CreateJob();
  void CancelJob();
  void DeleteNamed();
  void Trespass();
  void Look();
  void Disturb();

  void MakeProgram(const OpPtr& op, v1::Operation* operation);
  void SetOperand(const Named& array, v1::Operand* operand);
  v1::Operation OperationFor(const OpPtr& op, const std::vector<Named>& inputs);
  void Send(const OpPtr& op, Session& session, v1::Operation operation, const std::string& array,
            std::function<void()> forget);
  void Name(v1::Operation& operation, Session& session, const OpPtr& op, std::string* array,
            std::function<void()>* forget);
  void CheckJobs();
  void Resolve();
  int64_t AnySize();
  std::string RandomDevice();
  absl::Status StatusOf(const v1::Array& array);
  void Check(const std::string& what, const Array& array, const Values& values);

  World world_;
  Model model_{&world_};
  Hazards hazards_;
  const int num_actions_;
  engine::EngineOptions options_;
  std::vector<wire::DeviceDescription> descriptions_;
  int num_tenants_ = 1;
  double death_rate_ = 0, restart_rate_ = 0;
  bool full_ = false;  // devices that hold less than the live arrays

  std::unique_ptr<Kept> fd_store_;
  std::unique_ptr<Devices> devices_;
  std::unique_ptr<engine::Engine> engine_;
  int life_ = 0;
  bool killed_ = false;
  bool ending_ = false;
  int points_to_death_ = -1;
  Kept::Files left_;
  int num_calls_ = 0;  // clients' requests, not ended yet

  std::map<std::string, std::unique_ptr<Session>> sessions_;   // by resource name
  std::map<std::string, std::map<std::string, Array>> named_;  // tenant -> resource name
  std::map<int, std::shared_ptr<engine::OperationHandle>> tickets_;
  std::vector<Fetch> fetches_;
  std::map<std::string, Job> jobs_;
  std::vector<std::string> ended_jobs_;
  std::optional<Unanswered> unanswered_;
  int next_name_ = 1;
  int num_deaths_ = 0, num_restarts_ = 0;
  int64_t spilled_bytes_ = 0;
};

}  // namespace stride::simulation
