#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "server/base/memory_file.h"
#include "server/broker/broker.h"

namespace stride::testing {

// A worker without a process. It computes nothing (arrays keep their content), but follows the
// protocol: tasks end in order, when the test says so or, by default, at once on a separate thread.
// Copies go through real staging into mapped arenas.
class FakeWorker : public broker::Worker, public std::enable_shared_from_this<FakeWorker> {
 public:
  FakeWorker(uint64_t id, const wire::DeviceDescription& device);
  ~FakeWorker() override;

  uint64_t id() const override { return id_; }
  pid_t pid() const override { return 0; }
  const wire::DeviceDescription& device() const override { return device_; }
  bool alive() const override;
  void Adopt(broker::WorkerCallbacks callbacks) override;
  absl::StatusOr<UniqueFd> CreateArena(uint64_t arena, uint64_t size) override;
  absl::Status MapArena(uint64_t arena, uint64_t size, int fd) override;
  absl::Status MapHostArena(uint64_t arena, uint64_t size, int fd) override {
    return MapArena(arena, size, fd);
  }
  absl::Status UnmapArena(uint64_t arena) override;
  absl::Status LoadModule(const broker::CompiledModule& module,
                          std::function<void(absl::StatusOr<wire::ModuleLoaded>)> loaded) override;
  absl::Status UnloadModule(uint64_t module) override { return absl::OkStatus(); }
  absl::Status LoadGraph(uint64_t graph, const wire::Graph& steps) override;
  absl::Status UnloadGraph(uint64_t graph) override;
  absl::Status Submit(const wire::TaskPacket& tasks) override;
  void Copy(bool to_device, uint64_t arena, uint64_t arena_offset, uint64_t staging_offset,
            uint64_t size, std::function<void(absl::Status)> done) override;
  absl::Status MapRegion(uint64_t region, uint64_t size, int fd) override;
  absl::Status UnmapRegion(uint64_t region) override;
  void CopyRegion(bool to_device, uint64_t arena, uint64_t arena_offset, uint64_t region,
                  uint64_t region_offset, uint64_t size,
                  std::function<void(absl::Status)> done) override;
  absl::Status MapPeerArena(uint64_t arena, uint64_t size, int fd) override;
  void CopyFromPeer(uint64_t arena, uint64_t offset, uint64_t source_arena, uint64_t source_offset,
                    uint64_t size, std::function<void(absl::Status)> done) override;
  absl::Status Cancel(absl::Span<const uint64_t> sequences) override;
  Progress progress() const override;
  broker::StagingPool& staging() override { return *staging_; }
  void Kill(absl::Status cause) override;
  void Shutdown() override { Die({.cause = absl::OkStatus()}); }

  void DieAtMap() { die_at_map_ = true; }
  // Dies at its copy number `copy`, from 1, which is not made.
  void DieAtCopy(int copy) { die_at_copy_ = copy; }

  // Copies from other devices fail from now on.
  void BreakPeers() { peers_broken_ = true; }
  int num_peer_copies() const { return num_peer_copies_; }
  std::set<uint64_t> peer_arenas() const;         // mapped now
  int num_copies() const { return num_copies_; }  // through staging

  // Reported by LoadModule for each kernel.
  static constexpr uint32_t kSharedBytes = 48;
  // Copies block, each on its caller's thread, until released.
  void HoldCopies(bool hold);
  // Replies to LoadModule are delayed until released.
  void HoldLoads(bool hold);

  // Test side. Tasks wait until they are ended one by one.
  void Hold();
  // Ends the oldest held task. Returns false if there is none.
  bool EndNext(absl::Status status = absl::OkStatus(), double run_seconds = 1e-5);
  // Tasks that are not held take this long, one after another.
  void set_run_time(absl::Duration time);
  int num_ended() const;
  double run_seconds() const;  // total of the ended tasks
  int num_held() const;
  // The oldest held task counts as begun unless this says otherwise.
  void set_begins(bool begins);
  // Recalls no task from its queue, like a stream.
  void RefuseCancels();
  // Cancel commands are answered only by AnswerCancels.
  void HoldCancels();
  void AnswerCancels();
  // The number of Cancel commands so far.
  std::vector<std::vector<uint64_t>> cancels() const;
  std::vector<wire::Task> submitted() const;
  int num_packets() const;  // in order of arrival
  // Graphs that it has now, and the total number loaded.
  std::map<uint64_t, wire::Graph> graphs() const;
  int num_graph_loads() const;
  int num_regions() const;  // mapped now
  int num_region_copies() const;
  void Die(broker::WorkerDeath death);
  // Death while the oldest held task was running.
  void DieRunning(absl::Status cause, bool fault);

 private:
  void EndAll();
  void CopyBetween(bool to_device, uint64_t arena, uint64_t arena_offset,
                   const std::function<std::byte*()>& host, uint64_t size,
                   std::function<void(absl::Status)> done);
  void AnswerCancel(const std::vector<uint64_t>& sequences);

  const uint64_t id_;
  const wire::DeviceDescription device_;
  std::vector<std::byte> staging_memory_;
  std::unique_ptr<broker::StagingPool> staging_;
  mutable absl::Mutex mutex_;
  broker::WorkerCallbacks callbacks_;
  std::map<uint64_t, MemoryMap> arenas_, regions_;
  std::set<uint64_t> peer_arenas_;  // ids in arenas_ of peers
  int num_region_copies_ = 0;
  std::deque<wire::Task> held_;
  std::vector<wire::Task> submitted_;
  int num_packets_ = 0;
  std::atomic<int> num_copies_{0}, num_peer_copies_{0};
  std::map<uint64_t, wire::Graph> graphs_;
  int num_graph_loads_ = 0;
  std::vector<std::vector<uint64_t>> cancels_;
  size_t num_cancels_answered_ = 0;
  std::set<uint64_t> taken_;
  uint32_t last_ended_ = 0;
  uint64_t last_free_ = 0;  // tasks up to this one end by themselves
  bool begins_ = true;
  bool hold_cancels_ = false;
  bool refuse_cancels_ = false;
  bool hold_ = false;
  bool alive_ = true;
  absl::Duration run_time_;
  int num_ended_ = 0;
  double run_seconds_ = 0;
  absl::Mutex running_;  // held while a task takes its time
  std::atomic<bool> die_at_map_{false};
  std::atomic<int> die_at_copy_{0};
  std::atomic<bool> peers_broken_{false};
  bool hold_loads_ = false;
  bool hold_copies_ = false;
};

// Devices as described by the test; compiles anything at once unless set to fail.
class FakeBroker : public broker::Broker, public broker::Compiler {
 public:
  explicit FakeBroker(std::vector<wire::DeviceDescription> devices)
      : devices_(std::move(devices)) {}

  const std::vector<wire::DeviceDescription>& devices() const override { return devices_; }
  const std::vector<wire::Link>& links() const override { return links_; }
  void set_links(std::vector<wire::Link> links) { links_ = std::move(links); }
  const std::vector<std::string>& notes() const override { return notes_; }
  absl::StatusOr<std::shared_ptr<broker::Worker>> StartWorker(int device) override;
  broker::Compiler& compiler() override { return *this; }
  void Shutdown() override;

  std::shared_ptr<const broker::CompiledModule> Lookup(const TenantId&, const std::string& target,
                                                       const wire::Code& code) override;
  void Compile(const TenantId& tenant, const std::string& target, const wire::Code& code,
               Done done) override;
  std::shared_ptr<const broker::CompiledModule> BlockLoops(const std::string&) override {
    return block_loops_;
  }
  bool IsPrecompiled(const std::string&, const wire::Code& code) override {
    return precompiled_.count(code.SerializeAsString()) > 0;
  }

  // Test side. For workers started from now on; also while the engine runs.
  void set_hold(bool hold) {
    absl::MutexLock lock(&mutex_);
    hold_ = hold;
  }
  void set_run_time(absl::Duration time) {
    absl::MutexLock lock(&mutex_);
    run_time_ = time;
  }
  // Workers of the device do not start.
  void set_ill(int device, bool ill) {
    absl::MutexLock lock(&mutex_);
    ill_ = ill ? device : -1;
  }
  // Starts end with `lack` while this many workers live.
  void set_most_workers(int most, absl::Status lack) {
    absl::MutexLock lock(&mutex_);
    most_workers_ = most;
    lack_ = std::move(lack);
  }
  int num_alive() const;
  int num_workers() const;  // started so far
  // Call the next three before the engine uses the broker.
  void set_compile_error(absl::Status status) { compile_error_ = std::move(status); }
  // Every target has block loops: a module with this kernel.
  void set_block_loops(const wire::KernelDescription& kernel) {
    auto module = std::make_shared<broker::CompiledModule>();
    module->id = UINT64_MAX;
    *module->description.add_kernels() = kernel;
    block_loops_ = std::move(module);
  }
  // Precompiled code, for every target.
  void AddPrecompiled(const wire::Code& code) { precompiled_.insert(code.SerializeAsString()); }
  void set_kernel(wire::KernelDescription kernel) { kernel_ = std::move(kernel); }
  // The next `count` workers to be started die at the first arena that they must map.
  void set_die_at_map(int count) {
    absl::MutexLock lock(&mutex_);
    die_at_map_ = count;
  }
  // The next `count` workers die at that copy of theirs.
  void set_die_at_copy(int copy, int count) {
    absl::MutexLock lock(&mutex_);
    die_at_copy_ = copy;
    num_dying_ = count;
  }
  // The next `count` workers die during their start.
  void set_die_at_start(int count) {
    absl::MutexLock lock(&mutex_);
    die_at_start_ = count;
  }
  int num_starts() const;  // tried
  // Compilations block until released.
  void HoldCompiles(bool hold);
  int num_compiles() const;            // begun
  std::string last_compiled() const {  // the code, serialized
    absl::MutexLock lock(&mutex_);
    return last_compiled_;
  }
  // Waits until `count` workers were started in total; returns the last.
  std::shared_ptr<FakeWorker> WaitForWorker(int count);

 private:
  std::vector<wire::DeviceDescription> devices_;
  std::vector<std::string> notes_;
  std::vector<wire::Link> links_;
  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<FakeWorker>> workers_ ABSL_GUARDED_BY(mutex_);
  bool hold_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration run_time_ ABSL_GUARDED_BY(mutex_);
  int ill_ ABSL_GUARDED_BY(mutex_) = -1;
  int most_workers_ ABSL_GUARDED_BY(mutex_) = INT_MAX;
  absl::Status lack_ ABSL_GUARDED_BY(mutex_);
  int die_at_map_ ABSL_GUARDED_BY(mutex_) = 0;
  int die_at_start_ ABSL_GUARDED_BY(mutex_) = 0;
  int die_at_copy_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_dying_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_starts_ ABSL_GUARDED_BY(mutex_) = 0;
  bool hold_compiles_ ABSL_GUARDED_BY(mutex_) = false;
  int num_compiles_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string last_compiled_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> precompiled_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status compile_error_;
  wire::KernelDescription kernel_;
  std::shared_ptr<const broker::CompiledModule> block_loops_;
  std::map<std::string, std::shared_ptr<const broker::CompiledModule>> modules_;
};

// A host-memory device such as cpu:0.
wire::DeviceDescription HostDevice(int index, int64_t memory_bytes = int64_t{1} << 30);
// A device whose worker creates its arenas, reached through staging.
wire::DeviceDescription StagedDevice(int index, int64_t memory_bytes = int64_t{1} << 30);

}  // namespace stride::testing
