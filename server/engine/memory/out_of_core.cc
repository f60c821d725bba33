#include "server/engine/memory/out_of_core.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/engine/memory/staged_copy.h"
#include "server/ops/pieces.h"
#include "server/store/spill_file.h"

namespace stride::engine {
namespace {

constexpr size_t kPiecesAtOnce = 2;
// A piece takes at most this fraction of a device's limit, since two are in flight alongside other
// tasks.
constexpr uint64_t kPiecesOfDevice = 8;
// Larger pieces are not faster, and take longer to cancel.
constexpr uint64_t kMaxPieceBytes = uint64_t{64} << 20;
// If runs are at most kCloseRuns bytes apart, kReadAhead bytes are read at once, except from host
// memory.
constexpr int64_t kCloseRuns = 16 << 10;
constexpr size_t kReadAhead = 256 << 10;

// Calls `run(offset)` for each run until one fails.
template <typename Run>
absl::Status ForEachRun(const ops::IndexBox& region, Run run) {
  int64_t num_runs = region.run_bytes > 0 ? region.num_runs() : 0;
  std::vector<int64_t> at(region.extents.size(), 0);
  int64_t offset = region.offset;
  for (int64_t i = 0; i < num_runs; ++i) {
    if (absl::Status status = run(static_cast<uint64_t>(offset)); !status.ok()) return status;
    for (size_t axis = at.size(); axis-- > 0;) {
      offset += region.strides[axis];
      if (++at[axis] < region.extents[axis]) break;
      offset -= region.strides[axis] * region.extents[axis];
      at[axis] = 0;
    }
  }
  return absl::OkStatus();
}

}  // namespace

// One operation. Two pieces are in flight at once, so that one is computed while the bytes of the
// other are copied. Runs on its own thread, which begins transactions.
class OutOfCoreExecutor::Execution : public Conductor {
 public:
  // All accesses before `task` have ended.
  Execution(OutOfCoreExecutor* executor, std::shared_ptr<Task> task, DeviceQueue* queue,
            ops::Pieces pieces)
      : executor_(executor),
        core_(executor->core_),
        task_(std::move(task)),
        queue_(queue),
        pieces_(std::move(pieces)),
        uses_(task_->uses.begin(), task_->uses.end()),
        output_(uses_.back().buffer) {}

  void Run() override;
  void Stop(TenantTransaction& transaction) override;

 private:
  struct InFlight {
    ops::Piece piece;
    std::shared_ptr<Task> task;
    std::shared_ptr<store::Buffer> output;
  };

  absl::Status Execute();
  absl::Status PlaceOutput();
  absl::Status Start(int64_t index);
  absl::Status EndFirst();
  absl::Status Await(const Task& task);
  absl::StatusOr<std::shared_ptr<store::Buffer>> InputOf(size_t slot,
                                                         const ops::Piece::Source& source);
  std::shared_ptr<store::Buffer> BufferWith(std::string bytes);
  absl::Status ReadRegion(const std::shared_ptr<store::Buffer>& buffer, const ops::IndexBox& region,
                          std::string* bytes);
  absl::Status ReadRuns(const store::Buffer& buffer, const ops::IndexBox& region,
                        std::string* bytes);
  absl::Status WriteRegion(const ops::IndexBox& region, const std::string& bytes);
  absl::Status WriteCloseRuns(const ops::IndexBox& region, const std::string& bytes);
  void EndAll();

  OutOfCoreExecutor* const executor_;
  Core* const core_;
  const std::shared_ptr<Task> task_;
  DeviceQueue* const queue_;
  const ops::Pieces pieces_;
  const std::vector<Use> uses_;  // the task's
  const std::shared_ptr<store::Buffer> output_;

  store::Allocation home_;  // the output's block
  int home_place_ = -1;
  std::deque<InFlight> in_flight_;  // only Run changes it, in a transaction
  // The part of an input that the last piece used, by slot. Operands that are not cut are reused.
  struct Known {
    ops::Piece::Source source;
    std::shared_ptr<store::Buffer> buffer;
  };
  std::map<size_t, Known> known_;
  std::string partials_;
};

void OutOfCoreExecutor::Execution::Run() {
  absl::Status status = Execute();
  EndAll();
  known_.clear();
  executor_->RunEnded(task_, *queue_, std::move(status));
}

absl::Status OutOfCoreExecutor::Execution::Execute() {
  absl::Status status = PlaceOutput();
  int64_t next = 0;
  while (status.ok() && (next < pieces_.size() || !in_flight_.empty())) {
    bool room = in_flight_.size() < kPiecesAtOnce && next < pieces_.size();
    status = room ? Start(next) : EndFirst();
    if (room) ++next;
  }
  return status;
}

void OutOfCoreExecutor::Execution::Stop(TenantTransaction& transaction) {
  for (const InFlight& piece : in_flight_) executor_->ends_->Cancel(transaction, piece.task);
}

// After an error: cancels the pieces in flight and waits for them, so that none outlives the task.
void OutOfCoreExecutor::Execution::EndAll() {
  {
    GlobalTransaction transaction(*core_);
    Stop(transaction);
  }
  for (const InFlight& piece : in_flight_) Await(*piece.task).IgnoreError();
  GlobalTransaction transaction(*core_);
  in_flight_.clear();
}

// Moves or allocates the output's only block in host memory or a file. It stays there until the
// end.
absl::Status OutOfCoreExecutor::Execution::PlaceOutput() {
  bool fresh = uses_.back().fresh;
  {
    GlobalTransaction transaction(*core_);
    for (int place : {core_->memory_place(), core_->disk_place()}) {
      if (output_->replicas.count(place) == 0) continue;
      output_->KeepOnly(place);
      home_place_ = place;
      home_ = output_->replicas.at(place);
      return absl::OkStatus();
    }
  }
  auto size = static_cast<uint64_t>(output_->size);
  const std::string text = absl::StrCat(
      "the operation is too large for the device, and elsewhere there is no room for its result. "
      "Needed: ",
      size, " bytes");
  const ErrorMetadata metadata = {{"bytes", absl::StrCat(size)}};
  // A result larger than both limits never fits, so a retry is of no use.
  const bool fits = std::max(executor_->memory_->arenas().limit_bytes(core_->memory_place()),
                             executor_->memory_->arenas().limit_bytes(core_->disk_place())) >= size;
  absl::StatusOr<store::Allocation> block =
      fits ? TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_DEVICE_MEMORY, text,
                      absl::Seconds(1), metadata)
           : MakeError(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_DEVICE_MEMORY, text,
                       metadata);
  DeviceQueue* home = nullptr;
  for (int place : {core_->memory_place(), core_->disk_place()}) {
    if (block.ok() || size > executor_->memory_->arenas().limit_bytes(place)) continue;
    {
      GlobalTransaction transaction(*core_);
      home = &executor_->queues_->Get(transaction, task_->tenant, place);
    }
    auto allocated = executor_->memory_->BlockingAllocate(*home, size);
    if (allocated.ok()) block = std::move(allocated);
  }
  if (!block.ok()) return block.status();
  absl::Status status;
  if (!fresh)
    status = CopyWithSuccessors(
        [&] { return executor_->memory_->migration().Bring(output_, *home, *block); });
  GlobalTransaction transaction(*core_);
  if (!status.ok()) {
    core_->reclaimer->Add({output_->tenant, home->device, *block});
    return status;
  }
  output_->AddReplica(home->device, *block);
  output_->KeepOnly(home->device);
  home_place_ = home->device;
  home_ = *block;
  return absl::OkStatus();
}

std::shared_ptr<store::Buffer> OutOfCoreExecutor::Execution::BufferWith(std::string bytes) {
  auto buffer = MakePooled<store::Buffer>(task_->tenant, static_cast<int64_t>(bytes.size()),
                                          core_->reclaimer);
  buffer->inline_bytes = std::make_shared<const std::string>(std::move(bytes));
  return buffer;
}

absl::StatusOr<std::shared_ptr<store::Buffer>> OutOfCoreExecutor::Execution::InputOf(
    size_t slot, const ops::Piece::Source& source) {
  Known& known = known_[slot];
  bool same = known.buffer != nullptr && known.source.input == source.input &&
              known.source.region == source.region;
  if (same) return known.buffer;
  known.buffer = nullptr;
  std::string bytes;
  absl::Status status = ReadRegion(uses_[source.input].buffer, source.region, &bytes);
  if (!status.ok()) return status;
  known = {source, BufferWith(std::move(bytes))};
  return known.buffer;
}

absl::Status OutOfCoreExecutor::Execution::Start(int64_t index) {
  ops::Piece piece = pieces_.At(index);
  // These pieces read results of earlier ones: all partial results, or bytes between their own
  // elements.
  while (!in_flight_.empty() && (piece.role == ops::Piece::Role::kCombine || piece.keeps_rest)) {
    if (absl::Status status = EndFirst(); !status.ok()) return status;
  }
  auto task = MakePooled<Task>();
  task->tenant = task_->tenant;
  task->session = task_->session;
  task->label = task_->label;
  task->options.priority = task_->options.priority;
  task->options.pinned_device = queue_->device;
  task->options.piece = true;
  for (size_t slot = 0; slot < piece.sources.size(); ++slot) {
    auto input = InputOf(slot, piece.sources[slot]);
    if (!input.ok()) return input.status();
    task->uses.push_back({.buffer = *input, .read = true});
  }
  if (piece.role == ops::Piece::Role::kCombine)
    task->uses.push_back({.buffer = BufferWith(std::exchange(partials_, {})), .read = true});
  std::shared_ptr<store::Buffer> output;
  if (piece.keeps_rest) {
    std::string bytes;
    if (absl::Status status = ReadRegion(output_, piece.output, &bytes); !status.ok())
      return status;
    output = BufferWith(std::move(bytes));
  } else {
    output = MakePooled<store::Buffer>(task_->tenant, piece.output_bytes, core_->reclaimer);
  }
  task->uses.push_back({.buffer = output, .write = true, .fresh = !piece.keeps_rest});
  task->planned = MakePlanned(std::move(piece.plan));

  GlobalTransaction transaction(*core_);
  if (!task_->cancel.stop.ok()) return task_->cancel.stop;
  if (absl::Status status = executor_->intake_->Enqueue(transaction, task); !status.ok())
    return status;
  in_flight_.push_back({std::move(piece), std::move(task), std::move(output)});
  return absl::OkStatus();
}

absl::Status OutOfCoreExecutor::Execution::Await(const Task& task) {
  GlobalTransaction transaction(*core_);
  auto ended = [&] { return task.finished.HasBeenNotified() || core_->ending; };
  transaction.Await(absl::Condition(&ended), SteadyTime::InfiniteFuture());
  if (task.finished.HasBeenNotified()) return task.result;
  return MakeError(absl::StatusCode::kCancelled, v1::ERROR_REASON_CANCELLED, "the daemon ends");
}

absl::Status OutOfCoreExecutor::Execution::EndFirst() {
  const InFlight& first = in_flight_.front();
  if (absl::Status status = Await(*first.task); !status.ok()) return status;
  {
    GlobalTransaction transaction(*core_);
    task_->timeline.run_seconds += first.task->timeline.run_seconds;
    if (task_->timeline.begin_time == SteadyTime()) {
      task_->timeline.begin_time = first.task->timeline.begin_time;
      if (task_->callbacks.observer != nullptr)
        transaction.Defer(
            [observer = *task_->callbacks.observer] { observer(TaskState::kDispatched); });
    }
  }
  std::string bytes;
  absl::Status status = ReadRegion(first.output, {.run_bytes = first.piece.output_bytes}, &bytes);
  if (!status.ok()) return status;
  if (first.piece.role == ops::Piece::Role::kPartial) {
    partials_ += bytes;
  } else {
    status = WriteRegion(first.piece.output, bytes);
  }
  GlobalTransaction transaction(*core_);
  in_flight_.pop_front();
  return task_->cancel.stop.ok() ? status : task_->cancel.stop;
}

absl::Status OutOfCoreExecutor::Execution::ReadRegion(const std::shared_ptr<store::Buffer>& buffer,
                                                      const ops::IndexBox& region,
                                                      std::string* bytes) {
  {
    GlobalTransaction transaction(*core_);
    ++buffer->pin_count;
  }
  absl::Status status = CopyWithSuccessors([&] {
    bytes->clear();
    return ReadRuns(*buffer, region, bytes);
  });
  GlobalTransaction transaction(*core_);
  executor_->memory_->Unpin(transaction, *buffer);
  return status;
}

// Copies without a transaction. The buffer is pinned, and its content does not change, since this
// operation's task stands first in its order.
absl::Status OutOfCoreExecutor::Execution::ReadRuns(const store::Buffer& buffer,
                                                    const ops::IndexBox& region,
                                                    std::string* bytes) {
  auto run = static_cast<size_t>(region.run_bytes);
  if (region.num_bytes() == 0) return absl::OkStatus();
  std::shared_ptr<const std::string> inline_bytes;
  store::Allocation source;
  DeviceQueue* from = nullptr;
  {
    GlobalTransaction transaction(*core_);
    inline_bytes = buffer.inline_bytes;
    for (const auto& [place, replica] : buffer.replicas) {
      if (from != nullptr && !core_->MemorySpace(place).host_memory()) continue;
      source = replica;
      from = &executor_->queues_->Get(transaction, buffer.tenant, place);
    }
    if (from != nullptr) from->last_used = core_->Now();
  }
  bytes->reserve(static_cast<size_t>(region.num_bytes()));
  const char* base = nullptr;
  if (inline_bytes != nullptr) {
    base = inline_bytes->data();
  } else if (from == nullptr) {
    return MakeError(absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
                     "the array's only copy is gone");
  } else if (from->description.host_memory()) {
    base = reinterpret_cast<const char*>(source.data());
  }
  if (base != nullptr) {
    return ForEachRun(region, [&](uint64_t offset) {
      bytes->append(base + offset, run);
      return absl::OkStatus();
    });
  }
  std::optional<WorkerInUse> in_use;
  std::shared_ptr<broker::Worker> worker;
  if (from->device != core_->disk_place()) {
    in_use.emplace(core_, from);
    auto there = executor_->workers_->BlockingWorker(*from, source.arena);
    if (!there.ok()) return there.status();
    worker = *std::move(there);
  }
  // Appends `count` bytes to `out`.
  auto read = [&](uint64_t offset, size_t count, std::string* out) -> absl::Status {
    if (worker == nullptr) {
      out->resize(out->size() + count);
      return store::ReadAt(source.arena->fd.get(), source.offset + offset,
                           reinterpret_cast<std::byte*>(out->data() + out->size() - count), count);
    }
    StagedReader reader(worker, source.arena->id, source.offset + offset, count,
                        SteadyTime::InfiniteFuture());
    for (size_t done = 0; done < count;) {
      auto chunk = reader.Next(count - done);
      if (!chunk.ok()) return chunk.status();
      out->append(chunk->bytes);
      done += chunk->bytes.size();
    }
    return absl::OkStatus();
  };
  bool close = !region.strides.empty() && region.strides.back() <= kCloseRuns;
  size_t ahead = close ? kReadAhead : run;
  if (ahead <= run) {
    return ForEachRun(region, [&](uint64_t offset) { return read(offset, run, bytes); });
  }
  // Short runs near each other share one read.
  std::string window;
  uint64_t begin = 0;
  return ForEachRun(region, [&](uint64_t offset) -> absl::Status {
    if (offset < begin || offset + run > begin + window.size()) {
      begin = offset;
      window.clear();
      size_t count = std::min<uint64_t>(ahead, static_cast<uint64_t>(buffer.size) - offset);
      if (absl::Status status = read(offset, count, &window); !status.ok()) return status;
    }
    bytes->append(window, offset - begin, run);
    return absl::OkStatus();
  });
}

absl::Status OutOfCoreExecutor::Execution::WriteRegion(const ops::IndexBox& region,
                                                       const std::string& bytes) {
  auto run = static_cast<size_t>(region.run_bytes);
  const char* next = bytes.data();
  bool in_file = home_place_ == core_->disk_place();
  bool close = !region.strides.empty() && region.strides.back() <= kCloseRuns && run < kReadAhead;
  if (in_file && close) return WriteCloseRuns(region, bytes);
  return ForEachRun(region, [&](uint64_t offset) {
    const char* from = std::exchange(next, next + run);
    if (!in_file) {
      std::memcpy(home_.data() + offset, from, run);
      return absl::OkStatus();
    }
    return store::WriteAt(home_.arena->fd.get(), home_.offset + offset,
                          reinterpret_cast<const std::byte*>(from), run);
  });
}

// Writes close runs to a file together with the bytes between them. No other thread writes the
// block.
absl::Status OutOfCoreExecutor::Execution::WriteCloseRuns(const ops::IndexBox& region,
                                                          const std::string& bytes) {
  auto run = static_cast<size_t>(region.run_bytes);
  const char* next = bytes.data();
  std::vector<std::byte> window;
  uint64_t begin = 0;
  int file = home_.arena->fd.get();
  auto flush = [&] {
    return store::WriteAt(file, home_.offset + begin, window.data(), window.size());
  };
  absl::Status status = ForEachRun(region, [&](uint64_t offset) -> absl::Status {
    if (offset < begin || offset + run > begin + window.size()) {
      if (absl::Status written = flush(); !written.ok()) return written;
      begin = offset;
      window.resize(std::min<uint64_t>(kReadAhead, static_cast<uint64_t>(output_->size) - offset));
      absl::Status there = store::ReadAt(file, home_.offset + begin, window.data(), window.size());
      if (!there.ok()) return there;
    }
    std::memcpy(window.data() + (offset - begin), std::exchange(next, next + run), run);
    return absl::OkStatus();
  });
  return status.ok() ? flush() : status;
}

void OutOfCoreExecutor::Begin(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
                              const absl::Status& too_large) {
  DeviceQueue& queue = *task->queue;
  const uint64_t limit =
      std::min(memory_->arenas().limit_bytes(queue.device) / kPiecesOfDevice, kMaxPieceBytes);
  int output = static_cast<int>(task->uses.size()) - 1;
  auto pieces = ops::Pieces::Cut(task->plan(), output, static_cast<int64_t>(limit));
  if (!pieces.ok()) {
    events_->EndUnrun(
        transaction, task,
        WithText(too_large, absl::StrCat("the operation is too large for the device, and ",
                                         pieces.status().message(), ": ", too_large.message())));
    return;
  }
  // Pieces read and write outside the worker's queue, so all earlier accesses must have ended.
  if (!task->order.pending.empty() || memory_->copies().AwaitBeforeWrite(transaction, task)) {
    events_->Unplace(transaction, *task, TaskState::kWaiting);
    return;
  }
  if (queue.streaming) {
    auto& queued = queued_[&queue];
    if (std::find(queued.begin(), queued.end(), task) == queued.end()) queued.push_back(task);
    return;
  }
  queue.streaming = true;
  task->timeline.ran_on_device = queue.device;
  task->timeline.dispatch_time = core_->Now();
  // The next daemon sees a task that has begun, in an unknown worker.
  task->sent.worker_record = 0;
  task->sent.first_sequence = task->sent.last_sequence = 1;
  memory_->copies().ContentChanges(transaction, *task);
  ++task->uses.back().buffer->num_writes;
  ++task->uses.back().buffer->pin_count;  // pinned: no eviction begins from here on
  task->stream = std::make_shared<Execution>(this, task, &queue, *std::move(pieces));
  events_->Unplace(transaction, *task, TaskState::kDispatched);
  core_->streams.Run([run = task->stream] { run->Run(); });
}

void OutOfCoreExecutor::RunEnded(const std::shared_ptr<Task>& task, DeviceQueue& queue,
                                 absl::Status status) {
  GlobalTransaction transaction(*core_);
  if (core_->ending) {
    task->stream = nullptr;
    return;
  }
  --task->uses.back().buffer->pin_count;
  if (!task->cancel.stop.ok() && !status.ok()) status = task->cancel.stop;
  DeviceChange& account = transaction.ChangeOf(queue.device);
  ++(status.ok() ? account.succeeded : account.failed);
  queue.streaming = false;
  task->stream = nullptr;
  events_->Complete(transaction, task, std::move(status));
  memory_->Changed(transaction);
  auto& queued = queued_[&queue];
  while (!queue.streaming && !queued.empty()) {
    std::shared_ptr<Task> next = std::move(queued.front());
    queued.pop_front();
    if (next->state == TaskState::kPreparing && next->queue == &queue)
      events_->Prepare(transaction, next);
  }
}

}  // namespace stride::engine
