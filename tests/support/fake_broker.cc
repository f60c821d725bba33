#include "tests/support/fake_broker.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "tests/support/count_allocations.h"

namespace stride::testing {
namespace {

// Threads that stand for a worker's own actions. They call into the engine, so its broker's
// Shutdown waits for them.
class Background {
 public:
  static Background& Get() {
    static Background background;
    return background;
  }
  void Run(std::function<void()> work) {
    if (simulated_environment != nullptr) {
      simulated_environment->Run(this, std::move(work));
      return;
    }
    {
      absl::MutexLock lock(&mutex_);
      ++running_;
    }
    std::thread([this, work = std::move(work)]() mutable {
      work();
      work = nullptr;
      absl::MutexLock lock(&mutex_);
      --running_;
    }).detach();
  }
  void Wait() {
    if (simulated_environment != nullptr) simulated_environment->Finish(this);
    absl::MutexLock lock(&mutex_);
    auto idle = [this] { return running_ == 0; };
    mutex_.Await(absl::Condition(&idle));
  }

 private:
  absl::Mutex mutex_;
  int running_ = 0;
};

}  // namespace

FakeWorker::FakeWorker(uint64_t id, const wire::DeviceDescription& device)
    : id_(id), device_(device), staging_memory_(4 << 16) {
  staging_ = std::make_unique<broker::StagingPool>(staging_memory_.data(), staging_memory_.size(),
                                                   1 << 16);
}

FakeWorker::~FakeWorker() { staging_->Close(); }

bool FakeWorker::alive() const {
  absl::MutexLock lock(&mutex_);
  return alive_;
}

void FakeWorker::Adopt(broker::WorkerCallbacks callbacks) {
  absl::MutexLock lock(&mutex_);
  callbacks_ = std::move(callbacks);
}

absl::StatusOr<UniqueFd> FakeWorker::CreateArena(uint64_t arena, uint64_t size) {
  auto fd = CreateMemoryFile("fake", size);
  if (!fd.ok()) return fd.status();
  absl::Status mapped = MapArena(arena, size, fd->get());
  if (!mapped.ok()) return mapped;
  return fd;
}

absl::Status FakeWorker::MapArena(uint64_t arena, uint64_t size, int fd) {
  if (die_at_map_) Kill(absl::AbortedError("died at a map"));
  if (die_at_map_ || !alive()) return absl::UnavailableError("dead");
  auto map = MemoryMap::Map(fd, size, true);
  if (!map.ok()) return map.status();
  absl::MutexLock lock(&mutex_);
  arenas_[arena] = *std::move(map);
  return absl::OkStatus();
}

absl::Status FakeWorker::UnmapArena(uint64_t arena) {
  absl::MutexLock lock(&mutex_);
  arenas_.erase(arena);
  peer_arenas_.erase(arena);
  return absl::OkStatus();
}

absl::Status FakeWorker::LoadModule(
    const broker::CompiledModule& module,
    std::function<void(absl::StatusOr<wire::ModuleLoaded>)> loaded) {
  wire::ModuleLoaded reply;
  reply.set_module(module.id);
  for (const auto& kernel : module.description.kernels()) {
    reply.add_kernels()->set_entry(kernel.entry());
    reply.mutable_kernels()->rbegin()->set_shared_bytes(kSharedBytes);
  }
  Background::Get().Run([self = shared_from_this(), loaded, reply] {
    {
      absl::MutexLock lock(&self->mutex_);
      auto free = [&] { return !self->hold_loads_; };
      self->mutex_.Await(absl::Condition(&free));
    }
    loaded(reply);
  });
  return absl::OkStatus();
}

absl::Status FakeWorker::LoadGraph(uint64_t graph, const wire::Graph& steps) {
  absl::MutexLock lock(&mutex_);
  graphs_[graph] = steps;
  ++num_graph_loads_;
  return absl::OkStatus();
}

absl::Status FakeWorker::UnloadGraph(uint64_t graph) {
  absl::MutexLock lock(&mutex_);
  graphs_.erase(graph);
  return absl::OkStatus();
}

std::map<uint64_t, wire::Graph> FakeWorker::graphs() const {
  absl::MutexLock lock(&mutex_);
  return graphs_;
}

int FakeWorker::num_graph_loads() const {
  absl::MutexLock lock(&mutex_);
  return num_graph_loads_;
}

absl::Status FakeWorker::Submit(const wire::TaskPacket& tasks) {
  const CountAllocations ours(false);
  absl::MutexLock lock(&mutex_);
  if (!alive_) return absl::UnavailableError("dead");
  ++num_packets_;
  const wire::Submit submit = tasks.Decode();
  for (const auto& task : submit.tasks()) {
    held_.push_back(task);
    submitted_.push_back(task);
  }
  if (!hold_ && !held_.empty()) {
    last_free_ = held_.back().sequence();
    Background::Get().Run([self = shared_from_this()] { self->EndAll(); });
  }
  return absl::OkStatus();
}

int FakeWorker::num_packets() const {
  absl::MutexLock lock(&mutex_);
  return num_packets_;
}

void FakeWorker::EndAll() {
  absl::MutexLock running(&running_);
  for (;;) {
    absl::Duration time;
    {
      absl::MutexLock lock(&mutex_);
      // Tasks submitted since Hold belong to the test.
      if (held_.empty() || held_.front().sequence() > last_free_) return;
      time = run_time_;
    }
    SteadyTime begin = Now();
    if (time > absl::ZeroDuration()) absl::SleepFor(time);
    double seconds = absl::ToDoubleSeconds(Now() - begin);
    if (!EndNext(absl::OkStatus(), std::max(1e-5, seconds))) return;
  }
}

bool FakeWorker::EndNext(absl::Status status, double run_seconds) {
  const bool counts = Allocations::counting;
  const CountAllocations ours(false);
  wire::TaskResult result;
  broker::WorkerCallbacks callbacks;
  static absl::Mutex order;  // results are reported in order
  absl::MutexLock order_lock(&order);
  {
    absl::MutexLock lock(&mutex_);
    if (held_.empty() || !alive_) return false;
    result.set_sequence(held_.front().sequence());
    if (taken_.count(result.sequence()) > 0) status = absl::CancelledError("taken out");
    last_ended_ = static_cast<uint32_t>(held_.front().sequence());
    const wire::ZeroFill& fill = held_.front().zero_fill();
    if (auto arena = arenas_.find(fill.arena()); fill.size() > 0 && arena != arenas_.end())
      std::memset(arena->second.data() + fill.offset(), 0, fill.size());
    held_.pop_front();
    ++num_ended_;
    run_seconds_ += run_seconds;
    callbacks = callbacks_;
  }
  result.mutable_status()->set_code(static_cast<int>(status.code()));
  result.mutable_status()->set_message(std::string(status.message()));
  result.set_run_seconds(run_seconds);
  const CountAllocations the_engines(counts);
  callbacks.tasks_done({&result, 1});
  return true;
}

absl::Status FakeWorker::Cancel(absl::Span<const uint64_t> sequences) {
  absl::MutexLock lock(&mutex_);
  if (!alive_) return absl::UnavailableError("dead");
  cancels_.emplace_back(sequences.begin(), sequences.end());
  if (!hold_cancels_) Background::Get().Run([self = shared_from_this()] { self->AnswerCancels(); });
  return absl::OkStatus();
}

void FakeWorker::AnswerCancels() {
  static absl::Mutex order;
  absl::MutexLock order_lock(&order);
  for (;;) {
    std::vector<uint64_t> sequences;
    {
      absl::MutexLock lock(&mutex_);
      if (num_cancels_answered_ == cancels_.size()) return;
      sequences = cancels_[num_cancels_answered_++];
    }
    AnswerCancel(sequences);
  }
}

void FakeWorker::AnswerCancel(const std::vector<uint64_t>& sequences) {
  bool taken = false;
  broker::WorkerCallbacks callbacks;
  {
    absl::MutexLock lock(&mutex_);
    if (!alive_) return;
    // The oldest held task is running, the others wait.
    uint64_t begun = held_.empty() ? UINT64_MAX : held_.front().sequence() - (begins_ ? 0 : 1);
    taken = sequences.front() > begun && !refuse_cancels_;
    if (taken) taken_.insert(sequences.begin(), sequences.end());
    callbacks = callbacks_;
  }
  callbacks.cancelled(sequences.front(), taken);
}

broker::Worker::Progress FakeWorker::progress() const {
  absl::MutexLock lock(&mutex_);
  if (held_.empty()) return {last_ended_, last_ended_};
  uint32_t first = static_cast<uint32_t>(held_.front().sequence());
  return {first - 1, begins_ ? first : first - 1};
}

void FakeWorker::set_begins(bool begins) {
  absl::MutexLock lock(&mutex_);
  begins_ = begins;
}

void FakeWorker::HoldCancels() {
  absl::MutexLock lock(&mutex_);
  hold_cancels_ = true;
}

void FakeWorker::RefuseCancels() {
  absl::MutexLock lock(&mutex_);
  refuse_cancels_ = true;
}

std::vector<std::vector<uint64_t>> FakeWorker::cancels() const {
  absl::MutexLock lock(&mutex_);
  return cancels_;
}

void FakeWorker::HoldLoads(bool hold) {
  absl::MutexLock lock(&mutex_);
  hold_loads_ = hold;
}

void FakeWorker::HoldCopies(bool hold) {
  absl::MutexLock lock(&mutex_);
  hold_copies_ = hold;
}

void FakeWorker::Hold() {
  absl::MutexLock lock(&mutex_);
  hold_ = true;
}

void FakeWorker::set_run_time(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  run_time_ = time;
}

int FakeWorker::num_ended() const {
  absl::MutexLock lock(&mutex_);
  return num_ended_;
}

double FakeWorker::run_seconds() const {
  absl::MutexLock lock(&mutex_);
  return run_seconds_;
}

int FakeWorker::num_held() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(held_.size());
}

std::vector<wire::Task> FakeWorker::submitted() const {
  absl::MutexLock lock(&mutex_);
  return submitted_;
}

void FakeWorker::Copy(bool to_device, uint64_t arena, uint64_t arena_offset,
                      uint64_t staging_offset, uint64_t size,
                      std::function<void(absl::Status)> done) {
  ++num_copies_;
  CopyBetween(
      to_device, arena, arena_offset, [&] { return staging_memory_.data() + staging_offset; }, size,
      std::move(done));
}

absl::Status FakeWorker::MapRegion(uint64_t region, uint64_t size, int fd) {
  auto map = MemoryMap::Map(fd, size, /*writable=*/true);
  if (!map.ok()) return map.status();
  absl::MutexLock lock(&mutex_);
  if (!alive_) return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "dead");
  regions_[region] = *std::move(map);
  return absl::OkStatus();
}

absl::Status FakeWorker::UnmapRegion(uint64_t region) {
  absl::MutexLock lock(&mutex_);
  regions_.erase(region);
  return absl::OkStatus();
}

int FakeWorker::num_regions() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(regions_.size());
}

int FakeWorker::num_region_copies() const {
  absl::MutexLock lock(&mutex_);
  return num_region_copies_;
}

void FakeWorker::CopyRegion(bool to_device, uint64_t arena, uint64_t arena_offset, uint64_t region,
                            uint64_t region_offset, uint64_t size,
                            std::function<void(absl::Status)> done) {
  auto host = [&] {
    ++num_region_copies_;
    return regions_.at(region).data() + region_offset;
  };
  CopyBetween(to_device, arena, arena_offset, host, size, std::move(done));
}

void FakeWorker::CopyBetween(bool to_device, uint64_t arena, uint64_t arena_offset,
                             const std::function<std::byte*()>& host, uint64_t size,
                             std::function<void(absl::Status)> done) {
  if (die_at_copy_ > 0 && --die_at_copy_ == 0) {
    absl::Status killed =
        MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed");
    DieRunning(killed, false);
    done(killed);
    return;
  }
  {
    absl::MutexLock lock(&mutex_);
    auto free = [&] { return !hold_copies_; };
    mutex_.Await(absl::Condition(&free));
    if (!alive_) {
      done(MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "dead"));
      return;
    }
    auto it = arenas_.find(arena);
    if (it != arenas_.end()) {
      std::byte* device = it->second.data() + arena_offset;
      std::byte* staging = host();
      std::memcpy(to_device ? device : staging, to_device ? staging : device, size);
    }
  }
  done(absl::OkStatus());
}

absl::Status FakeWorker::MapPeerArena(uint64_t arena, uint64_t size, int fd) {
  absl::Status mapped = MapArena(arena, size, fd);
  absl::MutexLock lock(&mutex_);
  if (mapped.ok()) peer_arenas_.insert(arena);
  return mapped;
}

std::set<uint64_t> FakeWorker::peer_arenas() const {
  absl::MutexLock lock(&mutex_);
  return peer_arenas_;
}

void FakeWorker::CopyFromPeer(uint64_t arena, uint64_t offset, uint64_t source_arena,
                              uint64_t source_offset, uint64_t size,
                              std::function<void(absl::Status)> done) {
  ++num_peer_copies_;
  if (peers_broken_) {
    done(absl::InternalError("no way to the other device"));
    return;
  }
  {
    absl::MutexLock lock(&mutex_);
    auto to = arenas_.find(arena), from = arenas_.find(source_arena);
    if (to != arenas_.end() && from != arenas_.end())
      std::memcpy(to->second.data() + offset, from->second.data() + source_offset, size);
  }
  done(absl::OkStatus());
}

void FakeWorker::Kill(absl::Status cause) {
  // Like for a process, another thread reports the death later.
  Background::Get().Run(
      [self = shared_from_this(), cause = std::move(cause)] { self->DieRunning(cause, false); });
}

void FakeWorker::DieRunning(absl::Status cause, bool fault) {
  broker::WorkerDeath death{.cause = std::move(cause)};
  {
    absl::MutexLock lock(&mutex_);
    if (!held_.empty()) {
      uint64_t running = held_.front().sequence();
      death.faulting_sequence = fault ? running : 0;
      death.completed_sequence = static_cast<uint32_t>(running - 1);
      death.started_sequence = static_cast<uint32_t>(running);
    }
  }
  Die(std::move(death));
}

void FakeWorker::Die(broker::WorkerDeath death) {
  broker::WorkerCallbacks callbacks;
  {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(alive_, false)) return;
    held_.clear();
    callbacks = callbacks_;
  }
  if (callbacks.died) std::thread([callbacks, death] { callbacks.died(death); }).join();
}

absl::StatusOr<std::shared_ptr<broker::Worker>> FakeBroker::StartWorker(int device) {
  absl::MutexLock lock(&mutex_);
  if (shut_down_) return absl::UnavailableError("shut down");
  ++num_starts_;
  if (die_at_start_ > 0 && die_at_start_-- > 0)
    return absl::AbortedError("the device process was killed");
  if (device == ill_) return absl::UnavailableError("it does not start");
  const auto alive = std::count_if(workers_.begin(), workers_.end(),
                                   [](const auto& worker) { return worker->alive(); });
  if (alive >= most_workers_) return lack_;
  auto worker = std::make_shared<FakeWorker>(workers_.size() + 1, devices_[device]);
  worker->set_run_time(run_time_);
  if (hold_) worker->Hold();
  if (die_at_map_ > 0 && die_at_map_-- > 0) worker->DieAtMap();
  if (num_dying_ > 0 && num_dying_-- > 0) worker->DieAtCopy(die_at_copy_);
  workers_.push_back(worker);
  return std::shared_ptr<broker::Worker>(worker);
}

std::shared_ptr<FakeWorker> FakeBroker::WaitForWorker(int count) {
  absl::MutexLock lock(&mutex_);
  auto started = [&] { return static_cast<int>(workers_.size()) >= count; };
  mutex_.Await(absl::Condition(&started));
  return workers_[count - 1];
}

int FakeBroker::num_starts() const {
  absl::MutexLock lock(&mutex_);
  return num_starts_;
}

int FakeBroker::num_alive() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(),
                                        [](const auto& worker) { return worker->alive(); }));
}

int FakeBroker::num_workers() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(workers_.size());
}

void FakeBroker::HoldCompiles(bool hold) {
  absl::MutexLock lock(&mutex_);
  hold_compiles_ = hold;
}

int FakeBroker::num_compiles() const {
  absl::MutexLock lock(&mutex_);
  return num_compiles_;
}

void FakeBroker::Shutdown() {
  std::vector<std::shared_ptr<FakeWorker>> workers;
  {
    absl::MutexLock lock(&mutex_);
    shut_down_ = true;
    workers = workers_;
  }
  for (auto& worker : workers) {
    worker->Hold();
    while (worker->num_held() > 0) worker->EndNext();
    worker->staging().Close();
  }
  Background::Get().Wait();
}

std::shared_ptr<const broker::CompiledModule> FakeBroker::Lookup(const TenantId&,
                                                                 const std::string& target,
                                                                 const wire::Code& code) {
  absl::MutexLock lock(&mutex_);
  auto it = modules_.find(absl::StrCat(target, code.SerializeAsString()));
  return it == modules_.end() ? nullptr : it->second;
}

void FakeBroker::Compile(const TenantId&, const std::string& target, const wire::Code& code,
                         Done done) {
  if (!compile_error_.ok()) {
    done(compile_error_);
    return;
  }
  {
    absl::MutexLock lock(&mutex_);
    ++num_compiles_;
    last_compiled_ = code.SerializeAsString();
    auto free = [this] { return !hold_compiles_; };
    mutex_.Await(absl::Condition(&free));
  }
  auto module = std::make_shared<broker::CompiledModule>();
  module->target = target;
  module->key = code.SerializeAsString();
  for (const auto& entry : code.source().entries()) {
    *module->description.add_kernels() = kernel_;
    module->description.mutable_kernels()->rbegin()->set_entry(entry);
  }
  {
    absl::MutexLock lock(&mutex_);
    module->id = modules_.size() + 1;
    modules_[absl::StrCat(target, module->key)] = module;
  }
  done(std::shared_ptr<const broker::CompiledModule>(module));
}

namespace {

wire::DeviceDescription MakeDevice(const std::string& kind, int index, int64_t memory_bytes,
                                   bool host) {
  wire::DeviceDescription device;
  device.set_id(absl::StrCat(kind, ":", index));
  device.set_kind(kind);
  device.set_index(index);
  device.set_target(absl::StrCat(kind, ":test"));
  device.set_memory_bytes(memory_bytes);
  device.set_num_compute_units(1);
  device.set_host_memory(host);
  device.set_arena_granularity_bytes(4096);
  device.set_memory_bytes_per_second(1e10);
  device.set_transfer_bytes_per_second(1e10);
  return device;
}

}  // namespace

wire::DeviceDescription HostDevice(int index, int64_t memory_bytes) {
  return MakeDevice("cpu", index, memory_bytes, true);
}
wire::DeviceDescription StagedDevice(int index, int64_t memory_bytes) {
  return MakeDevice("cuda", index, memory_bytes, false);
}

}  // namespace stride::testing
