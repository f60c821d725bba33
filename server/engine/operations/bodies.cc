// Operations: loops and branches of programs, whose bodies are submitted here one after another.
#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/engine/operations/operations.h"

namespace stride::engine {

using session::Array;
using session::ArrayList;
using ArrayPtr = std::shared_ptr<Array>;

namespace {

// Tasks of a loop with a count that are in flight at once, so that the device has the next one, and
// the bytes that they make, beyond two trips.
constexpr size_t kMaxTasksAhead = 64;
constexpr int64_t kMaxBytesAhead = int64_t{64} << 20;

bool IsPlain(const ArrayInfo& info) { return info.offset == 0 && info.IsContiguous(); }

// An element along the first axis, without that axis.
ArrayPtr ElementOf(const ArrayPtr& array, int64_t index) {
  ArrayInfo info = *array->info;
  info.offset += index * info.strides[0];
  info.shape.erase(info.shape.begin());
  info.strides.erase(info.strides.begin());
  auto element = MakePooled<Array>();
  element->info = std::move(info);
  element->buffer = array->buffer;
  return element;
}

int64_t IntegerIn(const v1::InlineArray& array) {
  const std::string& bytes = array.data();
  const auto dtype = static_cast<DType>(array.spec().data_type());
  uint64_t value = 0;  // hosts are little-endian, as the wire is
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  const size_t unused = 64 - 8 * std::min(bytes.size(), sizeof value);
  if (IsSigned(dtype)) return static_cast<int64_t>(value << unused) >> unused;
  return static_cast<int64_t>(
      std::min(value, static_cast<uint64_t>(std::numeric_limits<int64_t>::max())));
}

}  // namespace

// The task of a loop or a branch stands in the order of its arrays, on no queue. When all before it
// have ended it submits its bodies, whose tasks are pieces of it: they read its inputs, which it
// holds against later writers, and write arrays that no other caller knows. At the end its outputs
// get the content of the last of these.
//
// Holds no thread while it waits: Advance runs on an executor, or where a piece's end is reported,
// never twice at a time, until there is something to wait for.
class Operations::BodyRunner : public Conductor, public std::enable_shared_from_this<BodyRunner> {
 public:
  // `resolved` has the operation's inputs.
  BodyRunner(Operations* operations, TenantId tenant, const v1::Operation& operation,
             std::vector<PlannedProgram> bodies, const Resolved& resolved)
      : operations_(operations),
        core_(operations->core_),
        scheduler_(operations->scheduler_),
        tenant_(std::move(tenant)),
        kind_(operation.kind_case()),
        reverse_(operation.loop().reverse()),
        count_(operation.loop().count()),
        bodies_(std::move(bodies)),
        pattern_(resolved.WithInputs({})) {
    pattern_.extras = {.priority = resolved.extras.priority};
    pattern_.launched = nullptr;
    auto held = std::make_shared<std::set<const store::Buffer*>>();
    for (const ArrayPtr& input : resolved.inputs) held->insert(input->buffer.get());
    pattern_.held = std::move(held);
    const ArrayList& inputs = resolved.inputs;
    if (kind_ == v1::Operation::kBranch) {
      condition_ = inputs[0];
      constants_.assign(inputs.begin() + 1, inputs.end());
      return;
    }
    const v1::Loop& loop = operation.loop();
    auto next = inputs.begin();
    constants_.assign(next, next + loop.constants_size());
    next += loop.constants_size();
    carried_.assign(next, next + loop.carried_size());
    next += loop.carried_size();
    scanned_.assign(next, next + loop.scanned_size());
    if (loop.has_condition()) condition_ = inputs.back();
  }

  // Before the task is enqueued.
  void SetTask(const std::shared_ptr<Task>& task, std::vector<std::shared_ptr<store::Buffer>> out) {
    task_ = task;
    outputs_ = std::move(out);
  }

  void Run() override { Advance(/*may_block=*/true); }

  void Stop(TenantTransaction& transaction) override {
    for (const auto& piece : flying_) scheduler_->cancellation().Cancel(transaction, piece);
  }

 private:
  enum class Phase { kBegin, kCondition, kTrips, kCopies, kEnd };
  // The next step of Advance, after its transaction.
  enum class Next { kGoOn, kRead, kStop, kWait, kEnded };

  void Advance(bool may_block) {
    while (true) {
      Next next;
      {
        TenantTransaction transaction(*core_, tenant_);
        // Not reported, as a successor has its record.
        if (core_->ending) return;
        next = Step(transaction);
      }
      switch (next) {
        case Next::kGoOn:
          break;
        case Next::kRead:
          if (!may_block) {
            AdvanceLater();
            return;
          }
          Read();
          break;
        case Next::kStop: {
          TenantTransaction transaction(*core_, tenant_);
          Stop(transaction);
          break;
        }
        case Next::kWait:
        case Next::kEnded:
          return;
      }
    }
  }
  void AdvanceLater() {
    core_->streams.Run([self = shared_from_this()] { self->Advance(/*may_block=*/true); });
  }

  // --- in a transaction ---

  Next Step(TenantTransaction& transaction) {
    TakeEnded(transaction);
    status_.Update(task_->cancel.stop);
    if (!status_.ok() && phase_ != Phase::kEnd) {
      phase_ = Phase::kEnd;
      return Next::kStop;  // the tasks in flight have no use
    }
    switch (phase_) {
      case Phase::kBegin:
        status_.Update(Begin(transaction));
        return Next::kGoOn;
      case Phase::kCondition:
        return AwaitCondition(transaction);
      case Phase::kTrips:
        return GoOn(transaction);
      case Phase::kCopies:
        status_.Update(CopyOutputs(transaction));
        if (status_.ok()) phase_ = Phase::kEnd;
        return Next::kGoOn;
      case Phase::kEnd:
        if (!flying_.empty()) return WaitFor(flying_.back(), /*later=*/false);
        End(transaction);
        return Next::kEnded;
    }
    return Next::kEnded;
  }

  // Pieces that have ended.
  void TakeEnded(TenantTransaction& transaction) {
    std::erase_if(flying_, [&](const std::shared_ptr<Task>& piece) {
      if (piece->state != TaskState::kDone) return false;
      task_->timeline.run_seconds += piece->timeline.run_seconds;
      if (piece->timeline.ran_on_device >= 0)
        task_->timeline.ran_on_device = piece->timeline.ran_on_device;
      if (task_->timeline.begin_time == SteadyTime() &&
          piece->timeline.begin_time != SteadyTime()) {
        task_->timeline.begin_time = piece->timeline.begin_time;
        if (task_->callbacks.observer != nullptr)
          transaction.Defer(
              [observer = *task_->callbacks.observer] { observer(TaskState::kDispatched); });
      }
      return true;
    });
  }

  Next WaitFor(const std::shared_ptr<Task>& piece, bool later) {
    if (piece->state == TaskState::kDone) return Next::kGoOn;
    piece->callbacks.on_done.push_back([self = shared_from_this(), later](const absl::Status&) {
      if (later)
        self->AdvanceLater();
      else
        self->Advance(/*may_block=*/false);
    });
    return Next::kWait;
  }

  absl::Status Begin(TenantTransaction& transaction) {
    if (condition_ != nullptr) {
      phase_ = Phase::kCondition;
      return MakePlain(transaction, condition_);
    }
    phase_ = Phase::kTrips;
    const std::vector<ArrayInfo>& made = bodies_[0].plan->outputs;
    for (size_t j = carried_.size(); j < made.size(); ++j) {
      std::vector<int64_t> shape = made[j].shape;
      shape.insert(shape.begin(), count_);
      auto stacked = MakeZeros(transaction, Contiguous(made[j].dtype, std::move(shape)));
      if (!stacked.ok()) return stacked.status();
      stacked_.push_back(*std::move(stacked));
    }
    int64_t bytes = 1;
    for (const ArrayInfo& info : made) bytes += info.size_bytes();
    if (bodies_[0].program_launch != nullptr)
      bytes += bodies_[0].program_launch->graph.scratch_bytes;
    trips_ahead_ = 2 + kMaxBytesAhead / bytes;
    return absl::OkStatus();
  }

  Next AwaitCondition(TenantTransaction& transaction) {
    if (!condition_->status().ok()) {
      status_.Update(condition_->status());
      return Next::kGoOn;
    }
    const bool is_held = pattern_.held->count(condition_->buffer.get()) > 0;
    if (auto writer = std::static_pointer_cast<Task>(condition_->buffer->writer);
        !is_held && writer != nullptr)
      return WaitFor(writer, /*later=*/false);
    if (is_held) return Next::kRead;
    auto bytes = operations_->reader_->ReadAtOnce(transaction, tenant_, *condition_);
    if (!bytes.has_value()) return Next::kRead;
    Decide(transaction, IntegerIn(*bytes));
    return Next::kGoOn;
  }

  // The value of the condition or the index.
  void Decide(TenantTransaction& transaction, int64_t value) {
    if (kind_ == v1::Operation::kBranch) {
      const auto last = static_cast<int64_t>(bodies_.size()) - 1;
      const auto chosen = static_cast<size_t>(std::clamp<int64_t>(value, 0, last));
      auto made = LaunchBody(transaction, bodies_[chosen], constants_);
      if (made.ok())
        carried_ = *std::move(made);
      else
        status_.Update(made.status());
      phase_ = Phase::kCopies;
      return;
    }
    if (value == 0) {
      phase_ = Phase::kCopies;
      return;
    }
    ArrayList inputs = constants_;
    absl::Status ready = AddCarried(transaction, &inputs);
    auto made = ready.ok() ? LaunchBody(transaction, bodies_[0], std::move(inputs)) : ready;
    if (!made.ok()) {
      status_.Update(made.status());
      return;
    }
    condition_ = (*made)[0];
    carried_.assign(made->begin() + 1, made->end());
    status_.Update(MakePlain(transaction, condition_));
  }

  // For a loop with a count.
  Next GoOn(TenantTransaction& transaction) {
    for (const ArrayPtr& array : carried_) status_.Update(array->status());
    for (const ArrayPtr& array : stacked_) status_.Update(array->status());
    if (!status_.ok()) return Next::kGoOn;
    if (num_trips_ == count_) {
      phase_ = Phase::kCopies;
      return Next::kGoOn;
    }
    // The first task of a trip in flight counts the trips in flight.
    while (!trips_.empty() && trips_.front()->state == TaskState::kDone) trips_.pop_front();
    const auto trips = static_cast<int64_t>(trips_.size());
    if (trips > 0 && (flying_.size() >= kMaxTasksAhead || trips >= trips_ahead_))
      return WaitFor(trips_[trips_.size() / 2], /*later=*/true);
    status_.Update(LaunchTrip(transaction, reverse_ ? count_ - 1 - num_trips_ : num_trips_));
    ++num_trips_;
    return Next::kGoOn;
  }

  absl::Status LaunchTrip(TenantTransaction& transaction, int64_t index) {
    ArrayList inputs = constants_;
    if (absl::Status status = AddCarried(transaction, &inputs); !status.ok()) return status;
    for (const ArrayPtr& array : scanned_) {
      inputs.push_back(ElementOf(array, index));
      if (absl::Status status = MakePlain(transaction, inputs.back(), /*always=*/true);
          !status.ok())
        return status;
    }
    auto made = LaunchBody(transaction, bodies_[0], std::move(inputs));
    if (!made.ok()) return made.status();
    if (!flying_.empty()) trips_.push_back(flying_.back());
    const size_t num_carried = carried_.size();
    carried_.assign(made->begin(), made->begin() + static_cast<int64_t>(num_carried));
    for (size_t j = 0; j < stacked_.size(); ++j) {
      v1::Operation copy;
      copy.mutable_copy()->mutable_input()->set_handle(1);  // stands for the array
      copy.add_outputs()->set_existing(true);
      Resolved resolved = pattern_.WithInputs({(*made)[num_carried + j]});
      resolved.targets = {{.existing = ElementOf(stacked_[j], index)}};
      auto copied = Launched(resolved, [&] {
        return operations_->Launch(transaction, tenant_, copy, SteadyTime::InfiniteFuture(),
                                   resolved);
      });
      if (!copied.ok()) return copied.status();
    }
    return absl::OkStatus();
  }

  absl::Status AddCarried(TenantTransaction& transaction, ArrayList* inputs) {
    for (ArrayPtr& array : carried_) {
      if (absl::Status status = MakePlain(transaction, array); !status.ok()) return status;
      inputs->push_back(array);
    }
    return absl::OkStatus();
  }

  // Contiguous from its buffer's start, as bodies are planned.
  absl::Status MakePlain(TenantTransaction& transaction, ArrayPtr& array, bool always = false) {
    if (!always && IsPlain(*array->info)) return absl::OkStatus();
    Resolved around = pattern_.WithInputs({});
    auto copied = Launched(around, [&] {
      return operations_->LaunchCopy(transaction, tenant_, array, std::nullopt,
                                     SteadyTime::InfiniteFuture(), around);
    });
    if (copied.ok()) array = copied->outputs[0];
    return copied.status();
  }

  absl::StatusOr<ArrayPtr> MakeZeros(TenantTransaction& transaction, const ArrayInfo& info) {
    v1::Operation zeros;
    v1::ArraySpec* spec = zeros.mutable_creation()->mutable_fill()->mutable_spec();
    spec->set_data_type(static_cast<v1::DataType>(info.dtype));
    spec->mutable_shape()->Assign(info.shape.begin(), info.shape.end());
    zeros.add_outputs()->set_inline_result(true);
    Resolved resolved = pattern_.WithInputs({});
    resolved.targets = {{.is_inline = true}};
    auto made = Launched(resolved, [&] {
      return operations_->Launch(transaction, tenant_, zeros, SteadyTime::InfiniteFuture(),
                                 resolved);
    });
    if (!made.ok()) return made.status();
    return made->outputs[0];
  }

  absl::StatusOr<ArrayList> LaunchBody(TenantTransaction& transaction, const PlannedProgram& body,
                                       ArrayList inputs) {
    Resolved resolved = pattern_.WithInputs(std::move(inputs));
    resolved.targets.resize(body.plan->outputs.size(), {.is_inline = true});
    auto made = Launched(resolved, [&] {
      return operations_->LaunchProgram(transaction, tenant_, body, task_->label,
                                        SteadyTime::InfiniteFuture(), resolved);
    });
    if (!made.ok()) return made.status();
    return std::move(made->outputs);
  }

  // `launch`, whose tasks become pieces in flight.
  template <typename Launch>
  absl::StatusOr<Accepted> Launched(Resolved& resolved, Launch launch) {
    TaskList launched;
    resolved.launched = &launched;
    resolved.now = core_->Now();
    absl::StatusOr<Accepted> accepted = launch();
    for (const auto& piece : launched) {
      if (piece->state != TaskState::kDone) flying_.push_back(piece);
    }
    return accepted;
  }

  // Those whose content cannot be handed over at the end: inputs that stay as they are, views, and
  // one array that is several results.
  absl::Status CopyOutputs(TenantTransaction& transaction) {
    carried_.insert(carried_.end(), stacked_.begin(), stacked_.end());
    std::set<const store::Buffer*> known = *pattern_.held;
    for (size_t j = 0; j < carried_.size(); ++j) {
      ArrayPtr& array = carried_[j];
      if (!array->status().ok()) return array->status();
      const bool is_own = known.insert(array->buffer.get()).second;
      if (is_own && IsPlain(*array->info) && array->buffer->size == outputs_[j]->size) continue;
      if (absl::Status status = MakePlain(transaction, array, /*always=*/true); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  void End(TenantTransaction& transaction) {
    for (size_t j = 0; status_.ok() && j < outputs_.size(); ++j)
      status_.Update(carried_[j]->status());
    for (size_t j = 0; status_.ok() && j < outputs_.size(); ++j) {
      ++outputs_[j]->num_writes;
      outputs_[j]->TakeContent(*carried_[j]->buffer);
    }
    // Releases the buffers, since the task keeps this object.
    constants_.clear();
    carried_.clear();
    scanned_.clear();
    stacked_.clear();
    condition_ = nullptr;
    outputs_.clear();
    trips_.clear();
    scheduler_->conducted().Ended(transaction, std::exchange(task_, nullptr), std::move(status_));
  }

  // --- without a transaction ---

  void Read() {
    auto bytes = operations_->reader_->ReadForBody(tenant_, condition_);
    TenantTransaction transaction(*core_, tenant_);
    if (core_->ending) return;
    if (bytes.ok())
      Decide(transaction, IntegerIn(*bytes));
    else
      status_.Update(bytes.status());
  }

  Operations* const operations_;
  Core* const core_;
  Scheduler* const scheduler_;
  const TenantId tenant_;
  const v1::Operation::KindCase kind_;
  const bool reverse_;
  const int64_t count_;
  const std::vector<PlannedProgram> bodies_;
  Resolved pattern_;  // a piece's operation, without arrays

  // Changed by Advance alone, in a transaction.
  std::shared_ptr<Task> task_;
  std::vector<std::shared_ptr<store::Buffer>> outputs_;
  Phase phase_ = Phase::kBegin;
  absl::Status status_;
  ArrayList constants_, carried_, scanned_, stacked_;  // carried_: a branch's results too
  ArrayPtr condition_;                                 // or the index; null: a loop with a count
  int64_t num_trips_ = 0, trips_ahead_ = 2;
  std::vector<std::shared_ptr<Task>> flying_;  // pieces in flight
  std::deque<std::shared_ptr<Task>> trips_;    // one piece of each trip
};

absl::StatusOr<Operations::Accepted> Operations::LaunchBodies(
    TenantTransaction& transaction, const TenantId& tenant, const ops::ProgramStep& step,
    const std::vector<PlannedProgram>& bodies, SteadyTime deadline, Resolved& resolved) {
  auto runner = std::make_shared<BodyRunner>(this, tenant, step.operation, bodies, resolved);
  std::shared_ptr<Task> task =
      NewTask(tenant, ops::OperationView(step.operation).label(), deadline, resolved);
  task->bodies = runner;
  for (const ArrayPtr& input : resolved.inputs)
    task->uses.push_back({.buffer = input->buffer, .read = true});
  int64_t bytes = 0;
  for (const ArrayInfo& made : step.results) {
    bytes += made.size_bytes();
    if (made.size_bytes() <= core_->options.max_array_bytes) continue;
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, "outputs",
        absl::StrCat("the result is larger than an array may be. Bytes: ", made.size_bytes(),
                     ", limit: ", core_->options.max_array_bytes));
  }
  if (absl::Status within = core_->accounts->CheckArrayBytes(tenant, bytes); !within.ok())
    return within;
  std::vector<std::shared_ptr<store::Buffer>> outputs;
  for (const ArrayInfo& made : step.results) {
    auto array = MakePooled<Array>();
    array->info = made;
    array->create_time = resolved.now;
    array->buffer = MakePooled<store::Buffer>(tenant, made.size_bytes(), core_->reclaimer);
    task->uses.push_back({.buffer = array->buffer, .write = true, .fresh = true});
    outputs.push_back(array->buffer);
    resolved.outputs.push_back(std::move(array));
  }
  runner->SetTask(task, std::move(outputs));
  if (absl::Status status = Begin(transaction, tenant, task, resolved); !status.ok()) return status;
  Accepted accepted;
  accepted.outputs = resolved.outputs;
  accepted.task = task;
  return accepted;
}

}  // namespace stride::engine
