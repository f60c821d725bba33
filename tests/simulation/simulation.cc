#include "tests/simulation/simulation.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/steady_time.h"
#include "server/engine/service/array_service.h"
#include "server/engine/service/device_service.h"
#include "server/engine/service/job_service.h"
#include "server/engine/service/operation_service.h"
#include "server/engine/service/program_service.h"
#include "server/engine/service/session_service.h"
#include "server/engine/service/tenant_service.h"
#include "server/recovery/journals.h"
#include "server/recovery/key.h"

namespace stride::simulation {
namespace {

constexpr int64_t kSizes[] = {8, 16};
// More than a full device holds of these, or holds at all.
constexpr int64_t kLargeSizes[] = {400, 1200};
constexpr int64_t kFullDeviceBytes = 8 << 10;
constexpr size_t kPiece = 24, kLargePiece = 1000;  // bytes of an upload that arrive at once
constexpr uint64_t kLargeSlot = 512;
constexpr absl::Duration kPatience = absl::Minutes(10);  // simulated, for accepted work

constexpr int64_t kLargestProgram = 100;  // elements

// Steps of the wall clock, back and forth.
constexpr absl::Duration kWallSteps[] = {absl::Hours(24), -absl::Hours(48), absl::Hours(24),
                                         absl::Seconds(700), -absl::Hours(1)};

TenantId Id(const std::string& tenant) { return TenantId{tenant}; }

std::string Bytes(const Values& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * 8};
}

Values FromBytes(const std::string& bytes) {
  Values values(bytes.size() / 8);
  std::memcpy(values.data(), bytes.data(), values.size() * 8);
  return values;
}

bool IsFinal(v1::Job::State state) {
  return state == v1::Job::STATE_SUCCEEDED || state == v1::Job::STATE_FAILED ||
         state == v1::Job::STATE_CANCELLED;
}

}  // namespace

Simulation::Simulation(uint64_t seed, int num_actions, bool verbose)
    : world_(seed), num_actions_(num_actions) {
  world_.set_verbose(verbose);
}

Simulation::~Simulation() {
  if (engine_ != nullptr) StopEngine();
}

// Some seeds have few failures, others nearly all.
void Simulation::ChooseScenario() {
  num_tenants_ = 1 + static_cast<int>(world_.Below(3));
  int num_devices = 1 + static_cast<int>(world_.Below(3));
  full_ = world_.Chance(0.4);
  for (int i = 0; i < num_devices; ++i) {
    bool host = world_.Chance(0.6);
    descriptions_.push_back(MakeDevice(i, host, full_ ? kFullDeviceBytes : int64_t{1} << 30));
  }
  if (full_) options_.device_memory_share = 1;
  if (full_ && world_.Chance(0.8)) {
    options_.spill_memory_bytes = world_.Chance(0.5) ? 16 << 10 : 1 << 20;
    options_.spill_disk_bytes = 16 << 20;
    options_.spill_folder = ::testing::TempDir();
  }
  auto sometimes = [&](double rate) { return world_.Chance(0.4) ? rate : 0; };
  hazards_.start_dies = sometimes(0.2);
  hazards_.start_fails = sometimes(0.1);
  hazards_.arena_fails = sometimes(0.2);
  hazards_.task_fails = sometimes(0.02);
  hazards_.task_faults = sometimes(0.02);
  hazards_.task_hangs = sometimes(0.1);
  hazards_.compile_fails = sometimes(0.1);
  hazards_.copy_dies = sometimes(0.05);
  hazards_.recall_refused = sometimes(world_.Chance(0.5) ? 1 : 0.3);
  hazards_.recall_late = sometimes(0.3);
  hazards_.recall_ignored = sometimes(world_.Chance(0.3) ? 1 : 0.1);
  death_rate_ = sometimes(0.03);
  restart_rate_ = sometimes(0.01);
  model_.excuses().compiler = hazards_.compile_fails > 0;
  // Arrays that clients are sending or fetching stay in place.
  model_.excuses().memory = full_ || hazards_.arena_fails > 0;
  // A copy is abandoned when the third worker dies over it.
  model_.excuses().devices = hazards_.start_fails > 0 || hazards_.start_dies > 0 ||
                             hazards_.task_faults > 0 || hazards_.copy_dies > 0 || death_rate_ > 0;
  options_.default_session_ttl = absl::Hours(20);
  if (world_.Chance(0.5)) options_.health.interval = absl::Seconds(30);
  if (world_.Chance(0.5)) options_.worker_idle_timeout = absl::Milliseconds(200);
  options_.job_ended = [this](const engine::JobEnd& end) {
    if (!killed_ && !ending_) ended_jobs_.push_back(end.job);
  };
  options_.log = [this](const std::string& line) {
    world_.Note("log: ", line);
    if (line.find("LOST") != std::string::npos) world_.Fail(line);
  };
  world_.Note(num_tenants_, " tenants, ", num_devices, full_ ? " full" : "", " devices, deaths ",
              death_rate_, ", restarts ", restart_rate_, ", room beside devices ",
              options_.spill_memory_bytes, " + ", options_.spill_disk_bytes);
}

void Simulation::StartEngine(std::vector<NamedFd> kept) {
  devices_ =
      std::make_unique<Devices>(&world_, static_cast<Watcher*>(this), &hazards_, descriptions_);
  if (full_) devices_->set_slot_bytes(kLargeSlot);
  engine_ = engine::Engine::Create(options_, devices_.get(), fd_store_.get(), std::move(kept));
}

// For a killed one too: its threads have to end. Its further actions have no effect.
void Simulation::StopEngine() {
  bool was_ending = std::exchange(ending_, true);
  tickets_.clear();
  spilled_bytes_ += engine_->devices().SampleSpill().spilled_bytes;
  engine_->StopRecording();
  devices_->Shutdown();
  world_.Wait([this] { return num_calls_ == 0; }, SteadyTime::InfiniteFuture());
  fetches_.clear();
  engine_->Drain(world_.Now() + absl::Minutes(1));
  engine_.reset();
  world_.Forget(devices_.get());
  devices_.reset();
  ending_ = was_ending;
}

void Simulation::Point(const char* what) {
  if (killed_ || ending_ || points_to_death_ < 0) return;
  if (points_to_death_-- > 0) return;
  killed_ = true;
  world_.Note("the daemon is killed ", what);
  // Its workers run on until the next daemon: they process everything sent.
  if (world_.Chance(0.5)) devices_->GoOnAlone();
  left_ = fd_store_->Copy();
  devices_->Vanish();
}

void Simulation::Restart() {
  ++num_restarts_;
  ++life_;
  StopEngine();
  for (const auto& [id, op] : model_.ops()) {
    if (op->outcome != Outcome::kPending) continue;
    op->restarted = true;
    if (!op->of_job) op->outcome = Outcome::kUnknown;
  }
  fd_store_ =
      std::make_unique<Kept>([this](const char* what) { Point(what); }, std::exchange(left_, {}));
  ended_jobs_.clear();
  for (auto& [name, job] : jobs_) job.num_ends = 0;
  killed_ = false;
  points_to_death_ = world_.Chance(0.1) ? static_cast<int>(world_.Below(10)) : -1;
  world_.Note("the next daemon starts");
  StartEngine(fd_store_->TakeAll());
  if (killed_) {  // in recovery
    Restart();
    return;
  }
  AfterRestart();
}

// The outcome of the request in flight is unknown.
void Simulation::AfterRestart() {
  if (!unanswered_.has_value()) return;
  Unanswered last = std::move(*unanswered_);
  unanswered_.reset();
  if (!last.job.empty()) {
    auto job = engine_->jobs().Get(Id(jobs_[last.job].tenant), last.job);
    if (job.ok()) {
      jobs_[last.job].accepted = true;
      return;
    }
    for (auto op = jobs_[last.job].ops.rbegin(); op != jobs_[last.job].ops.rend(); ++op)
      model_.Undo(*op);
    jobs_.erase(last.job);
    last.forget();
    return;
  }
  bool there = !last.array.empty() && engine_->arrays().Get(Id(last.op->tenant), last.array).ok();
  if (there) return;
  if (last.array.empty()) {
    last.op->stop_asked = true;  // it may have been accepted
    return;
  }
  model_.Undo(last.op);
  last.forget();
}

OpPtr Simulation::OpOf(const std::string& label) {
  if (label.rfind("program p", 0) == 0) return model_.Find(std::atoi(label.c_str() + 9));
  size_t place = label.rfind(" + ");
  return place == std::string::npos ? nullptr : model_.Find(std::atoi(label.c_str() + place + 3));
}

void Simulation::Began(const std::string& label) {
  if (OpPtr op = OpOf(label)) {
    ++op->num_began;
    if (op->outcome == Outcome::kDone)
      world_.Fail("operation ", op->id, " runs after it succeeded");
  }
}

void Simulation::Hit(const std::string& label, bool fault) {
  OpPtr op = OpOf(label);
  if (op == nullptr) {
    model_.excuses().unlabelled_faults = true;
    return;
  }
  op->hit = true;
  op->faulted = op->faulted || fault;
}

bool Simulation::MayHang(const std::string& label) {
  OpPtr op = OpOf(label);
  return op != nullptr && op->deadline != SteadyTime::InfiniteFuture();
}

std::string Simulation::TenantOf(const std::string& label) {
  OpPtr op = OpOf(label);
  return op == nullptr ? "" : op->tenant;
}

Simulation::Session* Simulation::AnySession() {
  if (sessions_.empty()) return nullptr;
  auto it = sessions_.begin();
  std::advance(it, world_.Below(sessions_.size()));
  return it->second.get();
}

// Resources of the session, or of its tenant; with so many elements, if given.
std::optional<Simulation::Named> Simulation::AnyArray(Session& session, int64_t count) {
  std::vector<Named> all;
  for (auto& [handle, array] : session.arrays) {
    if (count == 0 || array.view.count == count)
      all.push_back({absl::StrCat(session.name, "/arrays/", handle), &array, &session, handle});
  }
  for (auto& [name, array] : named_[session.tenant]) {
    if (count == 0 || array.view.count == count) all.push_back({name, &array, nullptr});
  }
  if (all.empty()) return std::nullopt;
  // The youngest are used most.
  if (world_.Chance(0.5))
    return all[all.size() - 1 - world_.Below(std::min<size_t>(3, all.size()))];
  return all[world_.Below(all.size())];
}

int64_t Simulation::AnySize() {
  if (full_ && world_.Chance(0.25)) return kLargeSizes[world_.Below(4) == 0 ? 1 : 0];
  return kSizes[world_.Below(2)];
}

std::string Simulation::RandomDevice() {
  if (world_.Chance(0.7)) return "";
  return absl::StrCat("devices/", descriptions_[world_.Below(descriptions_.size())].id());
}

absl::Status Simulation::StatusOf(const v1::Array& array) {
  if (array.state() != v1::Array::STATE_FAILED) return absl::OkStatus();
  return {static_cast<absl::StatusCode>(array.error().code()), array.error().message()};
}

void Simulation::Open() {
  std::string tenant = absl::StrCat("tenant", world_.Below(num_tenants_));
  std::string id = absl::StrCat("s", next_name_++);
  v1::CreateSessionRequest request;
  request.set_session_id(id);
  auto made = engine_->sessions().Create(Id(tenant), request);
  if (killed_) return;  // if it was created, no operation uses it
  if (!made.ok()) world_.Fail("no session: ", Text(made.status()));
  auto session = std::make_unique<Session>();
  session->tenant = tenant;
  session->name = absl::StrCat("sessions/", id);
  world_.Note(session->name, " of ", tenant);
  sessions_[session->name] = std::move(session);
}

void Simulation::CloseSession() {
  if (sessions_.size() < 4) return;
  Session* session = AnySession();
  if (session == nullptr) return;
  world_.Note(session->name, " ends");
  // Its queued work never runs, whatever its outputs, and its uploads end.
  for (const auto& [id, op] : model_.ops()) {
    if (op->outcome != Outcome::kDone && op->session == session->name) op->stop_asked = true;
  }
  absl::Status status = engine_->sessions().Delete(Id(session->tenant), session->name);
  if (!status.ok()) world_.Fail("a session cannot be ended: ", Text(status));
  sessions_.erase(session->name);
}

void Simulation::Upload() {
  Session* session = AnySession();
  if (session == nullptr) return;
  OpPtr op = model_.Make(Op::Kind::kUpload, session->tenant);
  int64_t count = AnySize();
  for (int64_t i = 0; i < count; ++i)
    op->content.push_back(static_cast<int64_t>(world_.Below(1000)));
  op->out = {std::make_shared<Buffer>(), 0, 1, count};
  op->out.buffer->tenant = session->tenant;
  v1::PutArrayRequest::Header header;
  bool named = world_.Chance(0.3);
  std::string name,
      id = named ? absl::StrCat("a", next_name_++) : absl::StrCat(session->next_handle);
  std::function<void()> forget;
  header.set_array_id(id);
  if (named) {
    header.set_parent(absl::StrCat("tenants/", session->tenant));
    name = absl::StrCat(header.parent(), "/arrays/", id);
    named_[session->tenant][name] = {op->out};
    forget = [this, tenant = session->tenant, name] { named_[tenant].erase(name); };
  } else {
    op->session = session->name;
    header.set_parent(session->name);
    name = absl::StrCat(session->name, "/arrays/", id);
    session->arrays[session->next_handle] = {op->out};
    forget = [this, of = session->name, handle = session->next_handle] {
      if (sessions_.count(of) > 0) sessions_[of]->arrays.erase(handle);
    };
    ++session->next_handle;
  }
  header.mutable_spec()->set_data_type(v1::DATA_TYPE_INT64);
  header.mutable_spec()->add_shape(count);
  header.set_device(RandomDevice());
  op->deadline = world_.Now() + absl::Minutes(1);
  model_.Accept(op);
  world_.Note("operation ", op->id, ": upload of ", name, " to ", header.device(), ": ",
              absl::StrJoin(op->content, " "));
  unanswered_ = {op, name, "", forget};
  ++num_calls_;
  world_.Call([this, op, header, life = life_, forget] {
    absl::Status status;
    {
      auto upload = engine_->arrays().BeginUpload(Id(op->tenant), header, op->deadline);
      status = upload.status();
      std::string bytes = Bytes(op->content);
      size_t piece = bytes.size() > kLargePiece ? kLargePiece : kPiece;
      for (size_t at = 0; status.ok() && at < bytes.size(); at += piece)
        status = (*upload)->Write(std::string_view(bytes).substr(at, piece));
      if (status.ok()) status = (*upload)->Finish().status();
    }
    --num_calls_;
    if (killed_ || ending_ || life != life_) return;
    if (op->outcome != Outcome::kPending) return;
    // The outcome is in the array: complete, or resumable until its lease ends.
    if (status.ok()) {
      model_.Ended(op, status);
    } else {
      world_.Note("upload ", op->id, " is left: ", Text(status));
      op->outcome = Outcome::kUnknown;
      op->restarted = true;
    }
  });
  if (!killed_) unanswered_.reset();
}

void Simulation::Overwrite() {
  Session* session = AnySession();
  if (session == nullptr) return;
  auto array = AnyArray(*session);
  if (!array.has_value() || array->array->view.stride != 1 || array->array->view.count == 1 ||
      array->array->view.buffer->now == nullptr)
    return;
  // Its own unfinished upload is resumed, not overwritten.
  const OpPtr& last = array->array->view.buffer->now->op;
  if (last != nullptr && last->outcome != Outcome::kDone) return;
  OpPtr op = model_.Make(Op::Kind::kOverwrite, session->tenant);
  op->in_place = true;
  op->out = array->array->view;
  for (int64_t i = 0; i < op->out.count; ++i)
    op->content.push_back(static_cast<int64_t>(world_.Below(1000)));
  v1::PutArrayRequest::Header header;
  size_t slash = array->name.rfind("/arrays/");
  header.set_parent(array->name.substr(0, slash));
  header.set_array_id(array->name.substr(slash + 8));
  header.set_overwrite(true);
  header.mutable_spec()->set_data_type(v1::DATA_TYPE_INT64);
  header.mutable_spec()->add_shape(op->out.count);
  op->deadline = world_.Now() + absl::Minutes(1);
  model_.Accept(op);
  world_.Note("operation ", op->id, ": overwrite of ", array->name);
  ++num_calls_;
  world_.Call([this, op, header, life = life_] {
    absl::Status status;
    {
      auto upload = engine_->arrays().BeginUpload(Id(op->tenant), header, op->deadline);
      status = upload.status();
      std::string bytes = Bytes(op->content);
      size_t piece = bytes.size() > kLargePiece ? kLargePiece : kPiece;
      for (size_t at = 0; status.ok() && at < bytes.size(); at += piece)
        status = (*upload)->Write(std::string_view(bytes).substr(at, piece));
      if (status.ok()) status = (*upload)->Finish().status();
    }
    --num_calls_;
    if (killed_ || ending_ || life != life_ || op->outcome != Outcome::kPending) return;
    model_.Ended(op, status);
  });
}

void Simulation::SetOperand(const Named& array, v1::Operand* operand) {
  if (array.session != nullptr) {
    operand->set_handle(array.handle);
  } else {
    operand->set_name(array.name);
  }
}

// The same result by a program of several steps, which its next call finds planned.
void Simulation::MakeProgram(const OpPtr& op, v1::Operation* operation) {
  v1::CreateProgramRequest request;
  request.set_program_id(absl::StrCat("p", op->id));
  v1::Program* program = request.mutable_program();
  for (uint64_t handle : {1, 2}) program->add_inputs()->set_handle(handle);
  auto expression = [&](const std::string& text, std::map<std::string, uint64_t> inputs,
                        uint64_t output) {
    v1::Operation* step = program->add_operations();
    step->mutable_expression()->set_text(text);
    for (const auto& [name, handle] : inputs)
      (*step->mutable_expression()->mutable_inputs())[name].set_handle(handle);
    step->add_outputs()->set_handle(output);
  };
  auto copy = [&](uint64_t from, uint64_t to) {
    v1::Operation* step = program->add_operations();
    step->mutable_copy()->mutable_input()->set_handle(from);
    step->add_outputs()->set_handle(to);
  };
  expression("a * 3", {{"a", 1}}, 3);
  copy(3, 4);  // keeps the loops apart
  expression("x + b", {{"x", 4}, {"b", 2}}, 5);
  copy(5, 6);
  expression(absl::StrCat("x + ", op->id), {{"x", 6}}, 7);
  program->add_outputs(7);
  auto created = engine_->programs().Create(Id(op->tenant), request);
  if (killed_ || !created.ok()) return;
  v1::ProgramCall call;
  call.set_program(created->program().name());
  *call.add_inputs() = operation->expression().inputs().at("a");
  *call.add_inputs() = operation->expression().inputs().at("b");
  *operation->mutable_program_call() = call;
}

v1::Operation Simulation::OperationFor(const OpPtr& op, const std::vector<Named>& inputs) {
  v1::Operation operation;
  for (const Named& input : inputs) op->inputs.push_back({nullptr, input.array->view});
  switch (op->kind) {
    case Op::Kind::kCombine: {
      auto* expression = operation.mutable_expression();
      expression->set_text(absl::StrCat("a * 3 + b + ", op->id));
      SetOperand(inputs[0], &(*expression->mutable_inputs())["a"]);
      SetOperand(inputs[1], &(*expression->mutable_inputs())["b"]);
      break;
    }
    case Op::Kind::kCopy:
      SetOperand(inputs[0], operation.mutable_copy()->mutable_input());
      break;
    case Op::Kind::kSum:
      operation.mutable_reduction()->set_function(v1::Reduction::FUNCTION_SUM);
      SetOperand(inputs[0], operation.mutable_reduction()->mutable_input());
      break;
    default: {
      auto* fill = operation.mutable_creation()->mutable_fill();
      fill->mutable_spec()->set_data_type(v1::DATA_TYPE_INT64);
      fill->mutable_spec()->add_shape(op->out.count);
      fill->mutable_value()->set_int_value(op->id);
    }
  }
  if (op->kind != Op::Kind::kMove) operation.set_device(RandomDevice());
  if (world_.Chance(0.1)) operation.set_priority(static_cast<int>(world_.Below(21)) - 10);
  return operation;
}

// A new handle or name for the result.
void Simulation::Name(v1::Operation& operation, Session& session, const OpPtr& op,
                      std::string* array, std::function<void()>* forget) {
  if (world_.Chance(0.2)) {
    *array = absl::StrCat("tenants/", session.tenant, "/arrays/a", next_name_++);
    operation.add_outputs()->set_name(*array);
    named_[session.tenant][*array] = {op->out};
    *forget = [this, tenant = session.tenant, name = *array] { named_[tenant].erase(name); };
    return;
  }
  uint64_t handle = session.next_handle++;
  operation.add_outputs()->set_handle(handle);
  *array = absl::StrCat(session.name, "/arrays/", handle);
  session.arrays[handle] = {op->out};
  *forget = [this, of = session.name, handle] {
    if (sessions_.count(of) > 0) sessions_[of]->arrays.erase(handle);
  };
}

void Simulation::Compute() {
  Session* session = AnySession();
  if (session == nullptr) return;
  int64_t count = AnySize();
  std::vector<Named> inputs;
  Op::Kind kind = Op::Kind::kFill;
  auto first = AnyArray(*session, world_.Chance(0.1) ? 0 : count);
  if (first.has_value() && world_.Chance(0.95)) {
    count = first->array->view.count;
    inputs.push_back(*first);
    kind = world_.Chance(0.8)   ? Op::Kind::kCombine
           : world_.Chance(0.5) ? Op::Kind::kCopy
                                : Op::Kind::kSum;
    if (kind == Op::Kind::kCombine) inputs.push_back(*AnyArray(*session, count));
    if (kind == Op::Kind::kSum) count = 1;
  } else {
    count = AnySize();
  }
  OpPtr op = model_.Make(kind, session->tenant);
  op->session = session->name;
  if (world_.Chance(0.15)) {
    // Whole nanoseconds, like every stored time.
    SteadyTime deadline = world_.Now() + world_.Latency() * (1 + world_.Below(20));
    op->deadline =
        SteadyTime::SinceBoot(absl::Nanoseconds(absl::ToInt64Nanoseconds(deadline.since_boot())));
  }
  std::optional<Named> target;
  if (kind != Op::Kind::kSum && world_.Chance(0.4)) {
    target = world_.Chance(0.7) && !inputs.empty() ? inputs[0] : AnyArray(*session, count);
  }
  std::string array;
  std::function<void()> forget = [] {};
  v1::Operation operation;
  if (target.has_value()) {
    op->in_place = true;
    op->out = target->array->view;
    operation = OperationFor(op, inputs);
    v1::Output* output = operation.add_outputs();
    output->set_existing(true);
    if (target->session != nullptr) {
      output->set_handle(target->handle);
    } else {
      output->set_name(target->name);
    }
    for (const Named& input : inputs) {
      const View& view = input.array->view;
      bool same = view.offset == op->out.offset && view.stride == op->out.stride;
      if (view.buffer == op->out.buffer && !same) op->through_temporary = true;
    }
  } else {
    op->out = {std::make_shared<Buffer>(), 0, 1, count};
    op->out.buffer->tenant = session->tenant;
    operation = OperationFor(op, inputs);
    // A program larger than a device runs step by step, and may end with the errors of several
    // steps.
    if (kind == Op::Kind::kCombine && count <= kLargestProgram && world_.Chance(0.3))
      MakeProgram(op, &operation);
    if (killed_) return;
    Name(operation, *session, op, &array, &forget);
  }
  const bool calls = operation.has_program_call();
  Send(op, *session, operation, array, forget);
  // The arrays of its call keep the plan.
  if (!killed_ && calls && world_.Chance(0.7))
    engine_->programs().Delete(Id(op->tenant), operation.program_call().program()).IgnoreError();
}

void Simulation::Send(const OpPtr& op, Session& session, v1::Operation operation,
                      const std::string& array, std::function<void()> forget) {
  model_.Accept(op);
  std::string inputs;
  for (const Input& input : op->inputs)
    absl::StrAppend(&inputs, " ", input.version->op == nullptr ? 0 : input.version->op->id);
  std::string before = op->in_place && op->version->before->op != nullptr
                           ? absl::StrCat(op->version->before->op->id)
                           : "-";
  world_.Note("operation ", op->id, " of ", session.tenant, " ", session.name, ": ",
              operation.ShortDebugString(), op->in_place ? " in place of " : "",
              op->in_place ? before : "", ", reads", inputs);
  unanswered_ = {op, array, "", forget};
  auto ticket =
      engine_->operations().Submit(Id(session.tenant), session.name, operation, op->deadline);
  if (killed_) return;
  unanswered_.reset();
  if (!ticket.ok()) {
    model_.Ended(op, ticket.status());
    // A handle stands for the error; a name stands for nothing.
    if (array.rfind("tenants/", 0) == 0) forget();
    return;
  }
  tickets_[op->id] = *ticket;
  (*ticket)->OnDone([this, op, ticket = std::weak_ptr<engine::OperationHandle>(*ticket),
                     life = life_](const absl::Status& status) {
    if (killed_ || ending_ || life != life_) return;
    if (ticket.expired()) return;
    model_.Ended(op, status);
    tickets_.erase(op->id);
  });
}

void Simulation::MakeView() {
  Session* session = AnySession();
  if (session == nullptr) return;
  auto base = AnyArray(*session, 16);
  if (!base.has_value()) return;
  View view = base->array->view;
  int64_t start = 0, step = 1;
  switch (world_.Below(4)) {
    case 0:
      break;
    case 1:
      start = 8;
      break;
    case 2:
      step = 2;
      break;
    default:
      start = 3;
  }
  View made{view.buffer, view.offset + start * view.stride, view.stride * step, 8};
  v1::Operation operation;
  SetOperand(*base, operation.mutable_view()->mutable_input());
  auto* slice = operation.mutable_view()->add_steps()->mutable_slice();
  slice->set_start(start);
  slice->set_stop(start + 8 * step);
  slice->set_step(step);
  uint64_t handle = session->next_handle++;
  operation.add_outputs()->set_handle(handle);
  world_.Note("view ", session->name, "/arrays/", handle, " of ", base->name);
  auto ticket = engine_->operations().Submit(Id(session->tenant), session->name, operation,
                                             SteadyTime::InfiniteFuture());
  if (killed_) return;  // no operation requests it any more, but it may exist
  if (ticket.ok()) {
    session->arrays[handle] = {made};
    return;
  }
  if (!base->array->error.ok()) return;
  model_.CheckError(absl::StrCat("view of ", base->name), view.buffer->now, ticket.status());
}

void Simulation::Move() {
  Session* session = AnySession();
  if (session == nullptr) return;
  auto input = AnyArray(*session);
  if (!input.has_value()) return;
  OpPtr op = model_.Make(Op::Kind::kMove, session->tenant);
  op->session = session->name;
  op->in_place = true;
  op->out = input->array->view;
  op->inputs.push_back({nullptr, input->array->view});
  v1::Operation operation;
  SetOperand(*input, operation.mutable_copy()->mutable_input());
  operation.mutable_copy()->set_move(true);
  operation.set_device(
      absl::StrCat("devices/", descriptions_[world_.Below(descriptions_.size())].id()));
  uint64_t handle = session->next_handle++;
  operation.add_outputs()->set_handle(handle);
  session->arrays[handle] = {op->out};
  Send(op, *session, operation, absl::StrCat(session->name, "/arrays/", handle),
       [this, of = session->name, handle] {
         if (sessions_.count(of) > 0) sessions_[of]->arrays.erase(handle);
       });
  if (op->outcome == Outcome::kFailed) session->arrays.erase(handle);
}

void Simulation::BeginFetch() {
  Session* session = AnySession();
  if (session == nullptr || session->arrays.empty()) return;
  auto it = session->arrays.begin();
  std::advance(it, world_.Below(session->arrays.size()));
  const Array& array = it->second;
  std::string what = absl::StrCat(session->name, "/arrays/", it->first);
  auto fetch = engine_->arrays().BeginFetch(Id(session->tenant), session->name, it->first);
  if (killed_) return;
  VersionPtr version = array.view.buffer->now;
  world_.Note("fetch of ", what, ", left by ", version->op == nullptr ? 0 : version->op->id);
  if (!fetch.ok()) {
    model_.CheckError(what, version, fetch.status());
    return;
  }
  fetches_.push_back({*std::move(fetch), what, version, array.view});
}

// Arrays that are available without waiting for tasks.
void Simulation::ReadFetches() {
  if (fetches_.empty() || killed_) return;
  size_t index = world_.Below(fetches_.size());
  auto fetch = std::make_shared<Fetch>(std::move(fetches_[index]));
  fetches_.erase(fetches_.begin() + static_cast<ptrdiff_t>(index));
  ++num_calls_;
  world_.Call([this, fetch, life = life_]() mutable {
    auto read = fetch->fetch->Read(world_.Now());
    --num_calls_;
    if (killed_ || ending_ || life != life_) {
      fetch->fetch.reset();
      return;
    }
    if (read.ok()) {
      model_.CheckContent(fetch->what, fetch->version, fetch->view, FromBytes(read->data()));
    } else if (absl::IsDeadlineExceeded(read.status()) &&
               (absl::StrContains(read.status().message(), "before the array was ready") ||
                absl::StrContains(read.status().message(), "waited for staging memory") ||
                absl::StrContains(read.status().message(), "before the device had a process"))) {
      fetches_.push_back(std::move(*fetch));
      return;
    } else if (!absl::IsUnavailable(read.status()) &&
               !(fetch->view.stride != 1 && model_.CopyMayFail(read.status().code()))) {
      // A read in flight may see a write in place that its session lost after the read began.
      const VersionPtr& now = fetch->view.buffer->now;
      model_.CheckError(fetch->what, model_.MayCarry(now, read.status()) ? now : fetch->version,
                        read.status());
    }
    ++num_calls_;
    fetch->fetch.reset();
    --num_calls_;
  });
}

void Simulation::Release() {
  Session* session = AnySession();
  if (session == nullptr || session->arrays.size() < 4) return;
  auto it = session->arrays.begin();
  std::advance(it, world_.Below(session->arrays.size()));
  v1::Release release;
  release.add_handles(it->first);
  world_.Note("release of ", session->name, "/arrays/", it->first);
  absl::Status status = engine_->operations().Release(Id(session->tenant), session->name, release);
  if (!status.ok()) world_.Fail("a handle cannot be released: ", Text(status));
  session->arrays.erase(it);
}

void Simulation::DeleteNamed() {
  std::string tenant = absl::StrCat("tenant", world_.Below(num_tenants_));
  auto& arrays = named_[tenant];
  if (arrays.size() < 4) return;
  auto it = arrays.begin();
  std::advance(it, world_.Below(arrays.size()));
  for (VersionPtr version = it->second.view.buffer->now; version != nullptr;
       version = version->before) {
    const OpPtr& op = version->op;
    if (op != nullptr && op->kind == Op::Kind::kUpload && op->outcome != Outcome::kDone)
      op->stop_asked = true;
  }
  world_.Note("delete ", it->first);
  absl::Status status = engine_->arrays().Delete(Id(tenant), it->first);
  if (!status.ok()) world_.Fail("a named array cannot be deleted: ", Text(status));
  arrays.erase(it);
}

void Simulation::Cancel() {
  if (tickets_.empty()) return;
  auto it = tickets_.begin();
  std::advance(it, world_.Below(tickets_.size()));
  world_.Note("cancel of operation ", it->first);
  model_.Find(it->first)->stop_asked = true;
  auto ticket = it->second;  // it may end at once
  ticket->Cancel();
}

void Simulation::CreateJob() {
  Session* session = AnySession();
  if (session == nullptr) return;
  const std::string tenant = session->tenant;
  Session temporaries{.tenant = tenant};
  std::vector<std::string> made;
  Job job{.tenant = tenant};
  std::string id = absl::StrCat("j", next_name_++);
  job.name = absl::StrCat("tenants/", tenant, "/jobs/", id);
  v1::CreateJobRequest request;
  request.set_parent(absl::StrCat("tenants/", tenant));
  request.set_job_id(id);
  if (world_.Chance(0.5)) request.set_request_id(id);
  SteadyTime deadline = SteadyTime::InfiniteFuture();
  if (world_.Chance(0.2)) {
    int64_t seconds = 1 + static_cast<int64_t>(world_.Below(3));
    request.mutable_job()->mutable_timeout()->set_seconds(seconds);
    deadline = world_.Now() + absl::Seconds(seconds);
  }
  int num = 1 + static_cast<int>(world_.Below(4));
  for (int i = 0; i < num; ++i) {
    int64_t count = AnySize();
    auto first = AnyArray(temporaries, count);
    Op::Kind kind = first.has_value() ? Op::Kind::kCombine : Op::Kind::kFill;
    OpPtr op = model_.Make(kind, tenant);
    op->of_job = true;
    op->deadline = deadline;
    std::vector<Named> inputs;
    if (first.has_value()) inputs = {*first, *AnyArray(temporaries, count)};
    v1::Operation operation;
    if (first.has_value() && world_.Chance(0.4)) {
      op->in_place = true;
      op->out = first->array->view;
      operation = OperationFor(op, inputs);
      v1::Output* output = operation.add_outputs();
      output->set_existing(true);
      if (first->session != nullptr) {
        output->set_handle(first->handle);
      } else {
        output->set_name(first->name);
      }
      for (const Named& input : inputs)
        op->through_temporary =
            op->through_temporary || (input.array->view.buffer == op->out.buffer &&
                                      (input.array->view.offset != op->out.offset ||
                                       input.array->view.stride != op->out.stride));
    } else {
      op->out = {std::make_shared<Buffer>(), 0, 1, count};
      op->out.buffer->tenant = tenant;
      operation = OperationFor(op, inputs);
      std::string array;
      std::function<void()> forget;
      Name(operation, temporaries, op, &array, &forget);
      if (array.rfind("tenants/", 0) == 0) made.push_back(array);
    }
    model_.Accept(op);
    job.ops.push_back(op);
    *request.mutable_job()->add_operations() = operation;
    world_.Note("operation ", op->id, " of ", job.name, ": ", operation.ShortDebugString());
  }
  jobs_[job.name] = job;
  auto forget = [this, tenant, made] {
    for (const std::string& name : made) named_[tenant].erase(name);
  };
  unanswered_ = {nullptr, "", job.name, forget};
  auto created = engine_->jobs().Create(Id(tenant), request);
  if (killed_) return;
  unanswered_.reset();
  if (created.ok()) {
    jobs_[job.name].accepted = true;
    return;
  }
  world_.Note(job.name, " is refused: ", Text(created.status()));
  // The request had no effect.
  bool explained = false;
  for (const OpPtr& op : job.ops) {
    op->outcome = Outcome::kUnknown;
    for (const Input& input : op->inputs) {
      (void)input;
      explained = true;
    }
  }
  if (!explained) world_.Fail("a job was refused: ", Text(created.status()));
  for (auto op = job.ops.rbegin(); op != job.ops.rend(); ++op) model_.Undo(*op);
  jobs_.erase(job.name);
  forget();
}

void Simulation::CancelJob() {
  std::vector<Job*> going;
  for (auto& [name, job] : jobs_) {
    if (!job.over) going.push_back(&job);
  }
  if (going.empty()) return;
  Job& job = *going[world_.Below(going.size())];
  world_.Note("cancel of ", job.name);
  for (const OpPtr& op : job.ops) op->stop_asked = true;
  auto cancelled = engine_->jobs().Cancel(Id(job.tenant), job.name);
  if (!cancelled.ok()) world_.Fail("a job cannot be cancelled: ", Text(cancelled.status()));
}

// Every accepted job exists, and ends once.
void Simulation::CheckJobs() {
  for (const std::string& name : std::exchange(ended_jobs_, {})) {
    auto it = jobs_.find(name);
    if (it != jobs_.end() && ++it->second.num_ends > 1) world_.Fail(name, " ended twice");
  }
  if (killed_) return;
  for (auto& [name, job] : jobs_) {
    if (job.over || !job.accepted) continue;
    auto now = engine_->jobs().Get(Id(job.tenant), name);
    if (!now.ok()) {
      world_.Fail("an accepted job is lost: ", Text(now.status()));
      return;
    }
    if (!IsFinal(now->state())) continue;
    job.over = true;
    world_.Note(name, " is over: ", v1::Job::State_Name(now->state()), " ", now->error().message());
    bool succeeded = now->state() == v1::Job::STATE_SUCCEEDED;
    for (const OpPtr& op : job.ops) {
      if (op->outcome == Outcome::kDone || op->outcome == Outcome::kFailed) continue;
      if (succeeded) {
        model_.Ended(op, absl::OkStatus());
      } else {
        op->outcome = Outcome::kUnknown;
        op->stop_asked = true;  // the others are dropped when one has failed
      }
    }
  }
}

// Operations whose response was lost with a daemon: their new arrays report their outcome.
void Simulation::Resolve() {
  auto look = [this](const std::string& tenant, const std::string& name, const Array& array) {
    if (killed_) return;
    const VersionPtr& version = array.view.buffer->now;
    auto got = engine_->arrays().Get(Id(tenant), name);
    if (!got.ok()) {
      world_.Fail(name, " is lost: ", Text(got.status()));
      return;
    }
    if (got->state() == v1::Array::STATE_FAILED) {
      absl::Status status = StatusOf(*got);
      OpPtr op = version->op;
      if (op != nullptr && op->outcome == Outcome::kPending) return;  // reported soon after
      model_.CheckError(name, version, status);
    }
    OpPtr op = version->op;
    if (op == nullptr || op->outcome != Outcome::kUnknown || op->in_place) return;
    if (got->state() == v1::Array::STATE_PENDING) return;
    model_.Ended(op, StatusOf(*got));
  };
  for (auto& [name, session] : sessions_) {
    for (auto& [handle, array] : session->arrays)
      look(session->tenant, absl::StrCat(name, "/arrays/", handle), array);
  }
  for (auto& [tenant, arrays] : named_) {
    for (auto& [name, array] : arrays) look(tenant, name, array);
  }
}

// A tenant requests resources of another.
void Simulation::Trespass() {
  if (num_tenants_ < 2) return;
  Session* session = AnySession();
  if (session == nullptr) return;
  std::string other = absl::StrCat("tenant", world_.Below(num_tenants_));
  if (other == session->tenant) return;
  auto refused = [&](const absl::Status& status, const char* what) {
    if (!absl::IsNotFound(status) && !killed_)
      world_.Fail(other, " asked for ", what, " of ", session->tenant, ": ", Text(status));
  };
  refused(engine_->sessions().Get(Id(other), session->name).status(), "a session");
  if (auto array = AnyArray(*session)) {
    refused(engine_->arrays().Get(Id(other), array->name).status(), "an array");
    refused(engine_->arrays().Delete(Id(other), array->name), "an array");
    v1::Operation operation;
    operation.mutable_copy()->mutable_input()->set_name(array->name);
    operation.add_outputs()->set_inline_result(true);
    refused(engine_->operations()
                .Submit(Id(other), "", operation, SteadyTime::InfiniteFuture())
                .status(),
            "an array");
  }
  for (const auto& [name, job] : jobs_) {
    if (job.tenant != session->tenant) continue;
    refused(engine_->jobs().Get(Id(other), name).status(), "a job");
    refused(engine_->jobs().Cancel(Id(other), name).status(), "a job");
    break;
  }
}

void Simulation::Look() {
  Session* session = AnySession();
  if (session == nullptr) return;
  auto array = AnyArray(*session);
  if (!array.has_value()) return;
  auto got = engine_->arrays().Get(Id(session->tenant), array->name);
  if (!got.ok() && !killed_) world_.Fail(array->name, " is lost: ", Text(got.status()));
}

void Simulation::Disturb() {
  if (world_.Chance(death_rate_)) {
    if (auto worker = devices_->Any()) {
      ++num_deaths_;
      bool fault = worker->running() && world_.Chance(0.3);
      worker->Die(
          fault ? MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT,
                            "misaligned address")
                : MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST, "killed"),
          fault);
    }
  }
  if (world_.Chance(death_rate_ / 10)) {
    int device = static_cast<int>(world_.Below(descriptions_.size()));
    bool ill = world_.Chance(0.3);
    if (ill) model_.excuses().devices = true;
    devices_->set_ill(device, ill);
    world_.Note("device ", device, ill ? " is ill" : " is well");
  }
  if (points_to_death_ < 0 && world_.Chance(restart_rate_))
    points_to_death_ = static_cast<int>(world_.Below(20));
}

void Simulation::Act() {
  struct Choice {
    int weight;
    void (Simulation::*act)();
  };
  static constexpr Choice kChoices[] = {
      {2, &Simulation::Open},      {1, &Simulation::CloseSession}, {8, &Simulation::Upload},
      {3, &Simulation::Overwrite}, {50, &Simulation::Compute},     {8, &Simulation::MakeView},
      {6, &Simulation::Move},      {15, &Simulation::BeginFetch},  {15, &Simulation::ReadFetches},
      {8, &Simulation::Release},   {6, &Simulation::Cancel},       {6, &Simulation::CreateJob},
      {2, &Simulation::CancelJob}, {2, &Simulation::DeleteNamed},  {2, &Simulation::Trespass},
      {3, &Simulation::Look},
  };
  int total = 0;
  for (const Choice& choice : kChoices) total += choice.weight;
  int at = static_cast<int>(world_.Below(total));
  for (const Choice& choice : kChoices) {
    at -= choice.weight;
    if (at >= 0) continue;
    (this->*choice.act)();
    return;
  }
}

// Actions required after some events.
void Simulation::Settle() {
  if (killed_) Restart();
  Point("between two events");
  if (killed_) Restart();
  model_.Verify();
  CheckJobs();
}

void Simulation::Step() {
  world_.Step();
  Settle();
}

// Everything accepted ends, whatever failed before.
void Simulation::Quiesce(const char* when) {
  Hazards hazards = std::exchange(hazards_, {});
  for (size_t i = 0; i < descriptions_.size(); ++i) devices_->set_ill(static_cast<int>(i), false);
  points_to_death_ = -1;
  SteadyTime end = world_.Now() + kPatience;
  auto jobs_over = [this] {
    return std::all_of(jobs_.begin(), jobs_.end(), [](const auto& job) { return job.second.over; });
  };
  while (world_.failure().empty() && (model_.num_pending() > 0 || num_calls_ > 0 || !jobs_over())) {
    ReadFetches();  // a later writer waits for them
    Step();
    if (world_.Now() > end) {
      std::string what;
      for (const auto& [id, op] : model_.ops()) {
        if (op->outcome == Outcome::kPending) absl::StrAppend(&what, " ", id);
      }
      world_.Fail(when, ": these never end:", what, ", calls: ", num_calls_);
    }
  }
  // Uploads that were abandoned until their lease has ended.
  Resolve();
  model_.Verify();
  while (world_.failure().empty() && !fetches_.empty()) {
    ReadFetches();
    Step();
    if (world_.Now() > end) world_.Fail(when, ": a fetch never ends: ", fetches_[0].what);
  }
  hazards_ = hazards;
  model_.Prune();
}

void Simulation::ReleaseAll() {
  tickets_.clear();
  fetches_.clear();
  for (auto& [name, session] : sessions_)
    engine_->sessions().Delete(Id(session->tenant), name).IgnoreError();
  sessions_.clear();
  for (auto& [tenant, arrays] : named_) {
    for (auto& [name, array] : arrays) {
      absl::Status status = engine_->arrays().Delete(Id(tenant), name);
      if (!status.ok()) world_.Fail(name, " is lost: ", Text(status));
    }
  }
  named_.clear();
  for (auto& [name, job] : jobs_) {
    absl::Status status = engine_->jobs().Delete(Id(job.tenant), name);
    if (!status.ok()) world_.Fail(name, " is lost: ", Text(status));
  }
  jobs_.clear();
  // Sessions created by a call whose response never came.
  for (int i = 0; i < next_name_; ++i) {
    for (int tenant = 0; tenant < num_tenants_; ++tenant) {
      engine_->sessions()
          .Delete(Id(absl::StrCat("tenant", tenant)), absl::StrCat("sessions/s", i))
          .IgnoreError();
    }
  }
  for (int tenant = 0; tenant < num_tenants_; ++tenant) {
    const TenantId id = Id(absl::StrCat("tenant", tenant));
    auto programs = engine_->programs().List(id, {});
    while (programs.ok() && programs->programs_size() > 0) {
      for (const auto& program : programs->programs())
        engine_->programs().Delete(id, program.name()).IgnoreError();
      programs = engine_->programs().List(id, {});
    }
  }
  world_.Wait([] { return false; }, world_.Now() + absl::Minutes(10));
}

void Simulation::CheckNothingIsLeft() {
  for (const v1::DeviceSample& sample : engine_->devices().Sample()) {
    if (sample.array_bytes() != 0 || sample.queue_depth() != 0)
      world_.Fail(sample.device(), " is not empty: ", sample.ShortDebugString());
  }
  engine::SpillSample beside = engine_->devices().SampleSpill();
  if (beside.memory_bytes != 0 || beside.disk_bytes != 0)
    world_.Fail("beside the devices are still ", beside.memory_bytes, " + ", beside.disk_bytes);
  for (int tenant = 0; tenant < num_tenants_; ++tenant) {
    v1::Usage usage = engine_->tenants().GetUsage(Id(absl::StrCat("tenant", tenant)));
    for (const v1::QuotaUsage& quota : usage.quotas()) {
      if (quota.used() != 0)
        world_.Fail("tenant", tenant, " still uses ", quota.ShortDebugString());
    }
  }
  Kept::Files files = fd_store_->Copy();
  Kept scratch([](const char*) {});
  auto journals = recovery::Journals::Open(&scratch, &files);
  if (!journals.ok()) {
    world_.Fail("the journals cannot be read: ", Text(journals.status()));
    return;
  }
  std::set<std::string> known;
  (*journals)->ForEach([&](uint64_t key, std::string_view) {
    recovery::Kind kind = recovery::KindOf(key);
    uint64_t id = recovery::IdOf(key);
    if (kind == recovery::Kind::kArena) {
      known.insert(recovery::ArenaName(id));
    } else if (kind == recovery::Kind::kWorker) {
      known.insert(recovery::StatusPageName(id));
    } else {
      world_.Fail("a journal keeps a record of kind ", static_cast<int>(kind), ", id ", id);
    }
  });
  for (const auto& [name, fd] : files) {
    const bool of_journal = recovery::Journals::IsFileName(name);
    if (!of_journal && known.count(name) == 0) world_.Fail("the keeper still has ", name);
  }
}

Simulation::Result Simulation::Run() {
  ChooseScenario();
  fd_store_ = std::make_unique<Kept>([this](const char* what) { Point(what); });
  StartEngine({});
  Open();
  for (int i = 0; i < num_actions_ && world_.failure().empty(); ++i) {
    if (!killed_) Act();
    Settle();
    Disturb();
    Settle();
    absl::Duration pause = world_.Latency() / 2;
    if (world_.Chance(0.002)) pause = absl::Seconds(1 + world_.Below(60));
    SteadyTime next = world_.Now() + pause;
    while (world_.failure().empty() && world_.Comes(next)) Step();
    if (i % 50 == 49) Resolve();
    // No behaviour may depend on it.
    if (i % 30 == 29) world_.StepWallClock(kWallSteps[i / 30 % std::size(kWallSteps)]);
    if (i % 400 == 399) Quiesce("in between");
  }
  if (world_.failure().empty()) Quiesce("at the end");
  if (world_.failure().empty()) ReleaseAll();
  if (world_.failure().empty()) CheckNothingIsLeft();
  Result result{.failure = world_.failure(),
                .trace = world_.failure().empty() ? "" : world_.Trace(),
                .hash = world_.trace_hash(),
                .steps = world_.num_steps(),
                .operations = static_cast<int>(model_.num_verified()),
                .contents = static_cast<int>(model_.num_contents()),
                .deaths = num_deaths_,
                .restarts = num_restarts_,
                .spilled_bytes = spilled_bytes_};
  return result;
}

}  // namespace stride::simulation
