#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/base/memory_file.h"
#include "server/base/steady_time.h"
#include "server/broker/broker.h"
#include "server/wire/status_page.h"
#include "tests/simulation/compute.h"
#include "tests/simulation/world.h"

namespace stride::simulation {

class Devices;

// Probabilities of spontaneous failures, per occasion.
struct Hazards {
  double start_dies = 0;     // a worker during its start: another is tried
  double start_fails = 0;    // none can be started
  double arena_fails = 0;    // the device has no memory
  double task_fails = 0;     // a task ends with an error
  double task_faults = 0;    // a task kills its worker
  double task_hangs = 0;     // a task that may, see Watcher
  double compile_fails = 0;  // the compiler dies
  double copy_dies = 0;      // a worker in the middle of a copy to or from it
  // Alternative behaviour of a worker that must recall tasks: refuse, although they have not begun;
  // pause first; never reply.
  double recall_refused = 0, recall_late = 0, recall_ignored = 0;
};

// Observes tasks by their labels, and knows which interventions are allowed.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // The daemon may die here.
  virtual void Point(const char* what) = 0;
  // The task starts. Returns false if it must not run, with the text from Fail.
  virtual void Began(const std::string& label) = 0;
  // The task's worker died while it ran, or (`fault`) because of it.
  virtual void Hit(const std::string& label, bool fault) = 0;
  virtual bool MayHang(const std::string& label) = 0;
  // The task's tenant; empty if unknown.
  virtual std::string TenantOf(const std::string& label) = 0;
};

// A worker process and its device. Commands arrive late and in order, tasks run one after another
// and really compute, results arrive later and in order. A host-memory device recalls queued tasks;
// another has put them into its stream as soon as it has read them.
class Worker : public broker::Worker, public std::enable_shared_from_this<Worker> {
 public:
  Worker(Devices* devices, uint64_t id, int device);
  ~Worker() override;

  uint64_t id() const override { return id_; }
  pid_t pid() const override { return 0; }
  const wire::DeviceDescription& device() const override;
  bool alive() const override { return !reported_dead_; }
  int status_page() const override { return page_fd_.get(); }
  void Adopt(broker::WorkerCallbacks callbacks) override;
  absl::StatusOr<UniqueFd> CreateArena(uint64_t arena, uint64_t size) override;
  absl::Status MapArena(uint64_t arena, uint64_t size, int fd) override;
  absl::Status MapHostArena(uint64_t arena, uint64_t size, int fd) override {
    return MapArena(arena, size, fd);
  }
  absl::Status UnmapArena(uint64_t arena) override;
  absl::Status LoadModule(const broker::CompiledModule& module, LoadDone loaded) override;
  absl::Status UnloadModule(uint64_t module) override { return absl::OkStatus(); }
  absl::Status LoadGraph(uint64_t graph, const wire::Graph& steps) override;
  absl::Status UnloadGraph(uint64_t graph) override;
  absl::Status Submit(const wire::TaskPacket& packet) override;
  absl::Status Cancel(absl::Span<const uint64_t> sequences) override;
  Progress progress() const override;
  void Copy(bool to_device, uint64_t arena, uint64_t arena_offset, uint64_t staging_offset,
            uint64_t size, std::function<void(absl::Status)> done) override;
  broker::StagingPool& staging() override { return *staging_; }
  void Kill(absl::Status cause) override;
  void Shutdown() override;

  // The process ends now; the daemon learns it later.
  void Die(absl::Status cause, bool fault);
  // Without a daemon: works on the tasks sent, and may finish them at once.
  void GoOnAlone();
  bool dead() const { return dead_; }
  bool running() const { return running_; }
  const wire::Task& current() const { return current_; }
  int index() const { return device_; }

 private:
  absl::Status Deliver(std::function<void()> command);
  void RunCommand();
  void Tell(std::function<void()> news);
  void StartNext();
  void EndCurrent();
  void TellResult(uint64_t sequence, const absl::Status& status, double seconds);
  std::string Work(Half half);
  void CheckTenant(const std::string& label);
  wire::StatusPage& page() const { return *reinterpret_cast<wire::StatusPage*>(page_.data()); }
  World& world() const;
  void Later(SteadyTime time, std::function<void()> work);

  Devices* const devices_;
  const uint64_t id_;
  const int device_;
  UniqueFd page_fd_;
  MemoryMap page_;
  std::vector<std::byte> staging_memory_;
  std::unique_ptr<broker::StagingPool> staging_;
  broker::WorkerCallbacks callbacks_;
  bool adopted_ = false;
  std::vector<std::function<void()>> kept_back_;
  std::map<uint64_t, std::shared_ptr<MemoryMap>> arenas_;  // copies in flight keep theirs
  std::map<uint64_t, wire::Code> modules_;
  std::map<uint64_t, wire::Graph> graphs_;
  std::deque<std::function<void()>> commands_;  // in flight
  std::deque<wire::Task> queue_;
  std::set<uint64_t> taken_;
  std::map<uint64_t, std::function<void(absl::Status)>> pending_;  // replies owed
  uint64_t next_pending_ = 0;
  uint64_t last_submitted_ = 0;
  bool running_ = false;
  bool hangs_ = false;  // the running task
  bool shutting_down_ = false;
  wire::Task current_;
  SteadyTime begun_;
  std::string tenant_;
  bool dead_ = false, reported_dead_ = false;
  SteadyTime last_command_, last_news_, last_upload_, last_download_;
};

// The broker: starts workers, "compiles" by recording the requests.
class Devices : public broker::Broker, public broker::Compiler {
 public:
  Devices(World* world, Watcher* watcher, const Hazards* hazards,
          std::vector<wire::DeviceDescription> devices)
      : world_(world), watcher_(watcher), hazards_(hazards), devices_(std::move(devices)) {}

  const std::vector<wire::DeviceDescription>& devices() const override { return devices_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  absl::StatusOr<std::shared_ptr<broker::Worker>> StartWorker(int device) override;
  broker::Compiler& compiler() override { return *this; }
  void Shutdown() override;

  std::shared_ptr<const broker::CompiledModule> Lookup(const TenantId&, const std::string& target,
                                                       const wire::Code& code) override;
  void Compile(const TenantId& tenant, const std::string& target, const wire::Code& code,
               Done done) override;

  // The daemon is gone, its workers not yet.
  void GoOnAlone();
  // The daemon is gone with all of these: none of them accesses memory any more.
  void Vanish();
  // A living worker; null if none.
  std::shared_ptr<Worker> Any();
  // For workers started from now on: the maximum bytes of one copy.
  void set_slot_bytes(uint64_t bytes) { slot_bytes_ = bytes; }
  void set_ill(int device, bool ill) { ill_[device] = ill; }

 private:
  friend class Worker;
  World* const world_;
  Watcher* const watcher_;
  const Hazards* const hazards_;
  const std::vector<wire::DeviceDescription> devices_;
  const std::vector<std::string> notes_;
  std::vector<std::shared_ptr<Worker>> workers_;
  std::map<std::string, std::shared_ptr<const broker::CompiledModule>> modules_;
  std::map<uint64_t, wire::Code> code_;
  std::map<uint64_t, std::string> arena_tenant_;
  std::map<int, bool> ill_;
  uint64_t slot_bytes_ = 32;
  uint64_t next_worker_ = 1;
  bool shut_down_ = false;
  bool vanished_ = false;
};

wire::DeviceDescription MakeDevice(int index, bool host, int64_t memory_bytes);

}  // namespace stride::simulation
