// Daemon memory used on behalf of a tenant: charged for every resource kind, bounded, refunded.
// Also the lists of these resources.
#include <malloc.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/tenant_partition.h"
#include "server/durable/store.h"
#include "server/engine/engine.h"
#include "server/engine/persistence/answer.h"
#include "server/engine/service/array_service.h"
#include "server/engine/service/device_service.h"
#include "server/engine/service/function_service.h"
#include "server/engine/service/job_service.h"
#include "server/engine/service/module_service.h"
#include "server/engine/service/operation_service.h"
#include "server/engine/service/program_service.h"
#include "server/engine/service/session_service.h"
#include "server/engine/service/tenant_service.h"
#include "server/session/tenant_accounts.h"
#include "tests/support/await.h"
#include "tests/support/end_engine.h"
#include "tests/support/fake_broker.h"
#include "tests/support/memory_fd_store.h"

namespace stride::engine {
namespace {

using ::stride::testing::FakeBroker;
using ::stride::testing::HostDevice;
using ::stride::testing::MemoryFdStore;
using ::testing::Contains;
using ::testing::Not;

const TenantId kA{"a"}, kB{"b"};
constexpr absl::Duration kPatience = absl::Seconds(100);

class ControlBytesTest : public ::testing::Test {
 protected:
  void Start(int64_t control_bytes, MemoryFdStore* fd_store = nullptr,
             durable::DurableStore* store = nullptr,
             absl::Duration housekeeping = absl::Milliseconds(100)) {
    broker_ = std::make_unique<FakeBroker>(std::vector<wire::DeviceDescription>{HostDevice(0)});
    EngineOptions options;
    options.housekeeping_interval = housekeeping;
    options.health.interval = absl::Hours(1);
    engine_ =
        Engine::Create(std::move(options), broker_.get(), fd_store,
                       fd_store != nullptr ? fd_store->TakeAll() : std::vector<NamedFd>(), store);
    engine_->accounts().SetQuotas(
        {{kA, {.array_bytes = 64 << 20, .control_bytes = control_bytes, .jobs = 20}}}, {});
    engine_->devices().AwaitHealth(Now() + kPatience);
  }
  void End() {
    if (engine_ == nullptr) return;
    EXPECT_TRUE(EndEngine(*broker_, *engine_));
    engine_.reset();
  }
  void TearDown() override { End(); }

  absl::Status NewSession(const TenantId& tenant, const std::string& id) {
    v1::CreateSessionRequest request;
    request.set_session_id(id);
    return engine_->sessions().Create(tenant, request).status();
  }
  static v1::Operation Fill(int64_t bytes, uint64_t handle) {
    v1::Operation operation;
    auto* spec = operation.mutable_creation()->mutable_fill()->mutable_spec();
    spec->set_data_type(v1::DATA_TYPE_UINT8);
    spec->add_shape(bytes);
    operation.add_outputs()->set_handle(handle);
    return operation;
  }
  absl::Status Run(const v1::Operation& operation) {
    auto ticket =
        engine_->operations().Submit(kA, "sessions/s", operation, SteadyTime::InfiniteFuture());
    return ticket.ok() ? (*ticket)->Wait(Now() + kPatience) : ticket.status();
  }
  absl::Status Named(int64_t bytes, const std::string& id) {
    v1::CreateArrayRequest request;
    request.set_parent("tenants/a");
    request.set_array_id(id);
    request.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
    request.mutable_spec()->add_shape(bytes);
    return engine_->arrays().Create(kA, request).status();
  }
  // Stops the daemon as if it had crashed with work in flight.
  void Die() {
    engine_->StopRecording();
    broker_->Shutdown();
    engine_.reset();
  }
  // Makes a handle that stands for an error: its operand does not exist.
  absl::Status Failed(uint64_t handle) {
    v1::Operation copy;
    copy.mutable_copy()->mutable_input()->set_handle(1u << 30);
    copy.add_outputs()->set_handle(handle);
    absl::Status status = Run(copy);
    return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }
  // Begins an upload that stays unfinished.
  absl::Status Upload(uint64_t handle) {
    v1::PutArrayRequest::Header header;
    header.set_parent("sessions/s");
    header.set_array_id(absl::StrCat(handle));
    header.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
    header.mutable_spec()->add_shape(8);
    return engine_->arrays().BeginUpload(kA, header, Now() + kPatience).status();
  }
  absl::Status Module(const std::string& id, size_t source_bytes, size_t entry_bytes = 1) {
    v1::CreateModuleRequest request;
    request.set_module_id(id);
    request.mutable_module()->set_source(std::string(source_bytes, 's'));
    request.mutable_module()->add_entries("f");
    for (size_t bytes = 0; bytes + 1 < entry_bytes; bytes += 1000)
      request.mutable_module()->add_entries(std::string(1000, 'e'));
    return engine_->modules().Create(kA, request, Now() + kPatience).status();
  }
  absl::Status Function(const std::string& id, const std::string& text = "a + a") {
    v1::CreateFunctionRequest request;
    request.set_function_id(id);
    auto* ufunc = request.mutable_function()->mutable_ufunc();
    ufunc->add_signatures("float32->float32");
    ufunc->mutable_body()->mutable_expression()->set_text(text);
    ufunc->mutable_body()->mutable_expression()->add_parameters("a");
    return engine_->functions().Create(kA, request, Now() + kPatience).status();
  }
  absl::Status Program(const std::string& id, int num_steps = 3, bool declared = true) {
    v1::CreateProgramRequest request;
    request.set_program_id(id);
    auto* input = request.mutable_program()->add_inputs();
    input->set_handle(1);
    if (declared) {
      input->mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
      input->mutable_spec()->add_shape(4);
    }
    for (int i = 1; i <= num_steps; ++i) {
      v1::Operation* step = request.mutable_program()->add_operations();
      auto* ufunc = step->mutable_ufunc();
      ufunc->set_function("add");
      ufunc->add_inputs()->set_handle(i);
      ufunc->add_inputs()->set_handle(i);
      step->add_outputs()->set_handle(i + 1);
    }
    request.mutable_program()->add_outputs(num_steps + 1);
    return engine_->programs().Create(kA, request).status();
  }
  // Runs a job of empty fills. Returns when the job has ended.
  absl::StatusOr<std::string> Job(int num_operations, const std::string& label = "") {
    v1::CreateJobRequest request;
    request.mutable_job()->set_label(label);
    for (int i = 0; i < num_operations; ++i)
      *request.mutable_job()->add_operations() = Fill(0, i + 1);
    auto job = engine_->jobs().Create(kA, request);
    if (!job.ok()) return job.status();
    return AwaitEnd(job->name());
  }
  absl::StatusOr<std::string> AwaitEnd(const std::string& name) {
    uint64_t sequence = 0;
    v1::Job::State state = v1::Job::STATE_UNSPECIFIED;
    while (state < v1::Job::STATE_SUCCEEDED) {
      auto events = engine_->jobs().NextEvents(kA, name, sequence, Now() + kPatience);
      if (absl::IsNotFound(events.status())) return name;  // ended and already dropped
      if (!events.ok()) return events.status();
      if (events->empty()) return absl::DeadlineExceededError(name);
      sequence = events->back().sequence();
      state = events->back().state();
    }
    if (state != v1::Job::STATE_SUCCEEDED) return absl::InternalError(v1::Job::State_Name(state));
    return name;
  }
  int64_t Used(const TenantId& tenant = kA) {
    const v1::Usage usage = engine_->tenants().GetUsage(tenant);
    for (const auto& quota : usage.quotas()) {
      if (quota.name() == "control-bytes") return quota.used();
    }
    return -1;
  }
  // Resources released on other threads count for a short time.
  bool ComesTo(int64_t used) {
    return stride::testing::Eventually([&] { return Used() == used; });
  }
  void DeleteAll() {
    for (const char* session : {"sessions/s", "sessions/t"})
      engine_->sessions().Delete(kA, session).IgnoreError();
    v1::ListArraysRequest arrays;
    arrays.set_parent("tenants/a");
    for (auto page = engine_->arrays().List(kA, arrays); page.ok() && page->arrays_size() > 0;
         page = engine_->arrays().List(kA, arrays)) {
      for (const auto& array : page->arrays())
        ASSERT_TRUE(engine_->arrays().Delete(kA, array.name()).ok());
    }
    for (auto page = engine_->jobs().List(kA, {}); page.ok() && page->jobs_size() > 0;
         page = engine_->jobs().List(kA, {})) {
      for (const auto& job : page->jobs()) {
        ASSERT_TRUE(AwaitEnd(job.name()).ok());
        ASSERT_TRUE(engine_->jobs().Delete(kA, job.name()).ok());
      }
    }
    for (auto page = engine_->modules().List(kA, {}); page.ok() && page->modules_size() > 0;
         page = engine_->modules().List(kA, {})) {
      for (const auto& module : page->modules())
        ASSERT_TRUE(engine_->modules().Delete(kA, module.name()).ok());
    }
    for (auto page = engine_->functions().List(kA, {}); page.ok() && page->functions_size() > 0;
         page = engine_->functions().List(kA, {})) {
      for (const auto& function : page->functions())
        ASSERT_TRUE(engine_->functions().Delete(kA, function.name()).ok());
    }
    for (auto page = engine_->programs().List(kA, {}); page.ok() && page->programs_size() > 0;
         page = engine_->programs().List(kA, {})) {
      for (const auto& program : page->programs())
        ASSERT_TRUE(engine_->programs().Delete(kA, program.name()).ok());
    }
  }
  // Creates the i-th resource of each kind; session `s` exists.
  using Make = std::function<absl::Status(int)>;
  std::map<std::string, Make> Kinds() {
    return {
        {"session", [this](int i) { return NewSession(kA, absl::StrCat("more-", i)); }},
        {"empty array", [this](int i) { return Run(Fill(0, 1000000 + i)); }},
        {"failed handle", [this](int i) { return Failed(2000000 + i); }},
        {"upload", [this](int i) { return Upload(3000000 + i); }},
        {"named array", [this](int i) { return Named(0, absl::StrCat("n", i)); }},
        {"module", [this](int i) { return Module(absl::StrCat("m", i), 3000 + i); }},
        {"function", [this](int i) { return Function(absl::StrCat("f", i)); }},
        {"program", [this](int i) { return Program(absl::StrCat("p", i)); }},
        {"program of a session", [this](int i) { return Program(absl::StrCat("s.p", i)); }},
    };
  }
  static int64_t HeapBytes() {
    malloc_trim(0);
    const struct mallinfo2 info = mallinfo2();
    return static_cast<int64_t>(info.uordblks + info.hblkhd);
  }

  std::unique_ptr<FakeBroker> broker_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(ControlBytesTest, EveryResourceKindIsChargedAndRefunded) {
  Start(1 << 30);
  EXPECT_EQ(Used(), 0);
  ASSERT_TRUE(NewSession(kA, "s").ok());
  for (const auto& [kind, make] : Kinds()) {
    SCOPED_TRACE(kind);
    const int64_t before = Used();
    absl::Status status = make(1);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_GT(Used(), before);
  }
  const int64_t before = Used();
  auto job = Job(2);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_GT(Used(), before);
  EXPECT_EQ(Used(kB), 0);
  ASSERT_TRUE(engine_->sessions().Delete(kA, "sessions/more-1").ok());
  DeleteAll();
  EXPECT_TRUE(ComesTo(0)) << Used();
}

TEST_F(ControlBytesTest, EveryResourceKindIsRefusedBeyondQuota) {
  Start(0);
  int num_kinds = 0;
  for (const auto& [kind, make] : Kinds()) {
    SCOPED_TRACE(kind);
    engine_->accounts().SetQuotas({{kA, {.control_bytes = 100 << 10}}}, {});
    ASSERT_TRUE(NewSession(kA, "s").ok());
    absl::Status status;
    int made = 0;
    while (status.ok() && made < 1000) {
      status = make(made);
      made += status.ok();
    }
    if (kind == "failed handle") {
      // The operation fails with the quota error; the handle stands for nothing.
      EXPECT_TRUE(
          absl::IsNotFound(engine_->arrays().Get(kA, "sessions/s/arrays/2000999").status()));
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_QUOTA);
      EXPECT_EQ(MetadataOf(status, "quota"), "control-bytes") << status;
      EXPECT_EQ(MetadataOf(status, "limit"), absl::StrCat(100 << 10));
    }
    EXPECT_GT(made, 0);
    // A buffer is charged before its handle.
    EXPECT_LE(Used(), (100 << 10) + 2048);
    EXPECT_TRUE(NewSession(kB, absl::StrCat("s-", ++num_kinds)).ok());
    for (int i = 0; i < made; ++i)
      engine_->sessions().Delete(kA, absl::StrCat("sessions/more-", i)).IgnoreError();
    DeleteAll();
    EXPECT_TRUE(ComesTo(0)) << Used();
  }
}

TEST_F(ControlBytesTest, OversizedJobIsRefused) {
  Start(100 << 10);
  EXPECT_TRUE(Job(5).ok());
  const absl::Status status = Job(100).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(MetadataOf(status, "quota"), "control-bytes");
  EXPECT_EQ(engine_->accounts().live_jobs(kA), 0);
}

TEST_F(ControlBytesTest, RefusedResultLeavesNoPartialOperation) {
  Start(1 << 30);
  ASSERT_TRUE(NewSession(kA, "s").ok());
  v1::Operation divmod;
  divmod.mutable_ufunc()->set_function("divmod");
  for (int i = 0; i < 2; ++i) {
    auto* scalar = divmod.mutable_ufunc()->add_inputs()->mutable_scalar();
    scalar->set_float_value(3);
    scalar->set_data_type(v1::DATA_TYPE_FLOAT32);
  }
  divmod.add_outputs()->set_handle(1);
  divmod.add_outputs()->set_handle(2);
  const int64_t empty = Used();
  ASSERT_TRUE(Run(divmod).ok()) << Run(divmod);
  const int64_t two = Used() - empty;
  v1::Release release;
  release.add_handles(1);
  release.add_handles(2);
  ASSERT_TRUE(engine_->operations().Release(kA, "sessions/s", release).ok());
  ASSERT_TRUE(ComesTo(empty));
  // Leaves room for all but the last handle.
  engine_->accounts().SetQuotas({{kA, {.control_bytes = empty + two - 1}}}, {});
  EXPECT_EQ(MetadataOf(Run(divmod), "quota"), "control-bytes");
  v1::ListArraysRequest list;
  list.set_parent("sessions/s");
  auto left = engine_->arrays().List(kA, list);
  ASSERT_TRUE(left.ok());
  for (const v1::Array& array : left->arrays())
    EXPECT_EQ(array.state(), v1::Array::STATE_FAILED) << array.ShortDebugString();
}

TEST_F(ControlBytesTest, EndedJobsAreDroppedInOrderOfCompletion) {
  Start(200 << 10);
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) {
    auto job = Job(5, absl::StrCat(i));
    ASSERT_TRUE(job.ok()) << job.status();
    names.push_back(*job);
    EXPECT_LE(Used(), 200 << 10);
  }
  EXPECT_TRUE(absl::IsNotFound(engine_->jobs().Get(kA, names.front()).status()));
  std::vector<std::string> kept;
  auto jobs = engine_->jobs().List(kA, {});
  ASSERT_TRUE(jobs.ok());
  std::set<std::string> listed;
  for (const auto& job : jobs->jobs()) listed.insert(job.name());
  ASSERT_GT(listed.size(), 1u);
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(listed.count(names[i]) > 0, i >= names.size() - listed.size()) << i;
  // Other resources cause no refusal: the ended jobs are dropped.
  ASSERT_TRUE(NewSession(kA, "s").ok());
  absl::Status status;
  int made = 0;
  while (status.ok()) status = Run(Fill(0, ++made));
  EXPECT_EQ(MetadataOf(status, "quota"), "control-bytes") << status;
  AWAIT(Used() <= 203 << 10);
  EXPECT_EQ(engine_->jobs().List(kA, {})->jobs_size(), 0);
  // The id of a dropped job's request is free again.
  v1::CreateJobRequest again;
  again.set_request_id("same");
  *again.mutable_job()->add_operations() = Fill(0, 1);
  engine_->accounts().SetQuotas({{kA, {.control_bytes = 400 << 10}}}, {});
  auto first = engine_->jobs().Create(kA, again);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(engine_->jobs().Create(kA, again)->name(), first->name());
}

TEST_F(ControlBytesTest, EndedJobReferencesNoArray) {
  Start(1 << 30);
  v1::CreateJobRequest request;
  v1::Operation fill = Fill(1 << 20, 1);
  fill.mutable_outputs(0)->set_name("tenants/a/arrays/result");
  *request.mutable_job()->add_operations() = fill;
  auto job = engine_->jobs().Create(kA, request);
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_TRUE(AwaitEnd(job->name()).ok());
  ASSERT_TRUE(engine_->arrays().Delete(kA, "tenants/a/arrays/result").ok());
  auto array_bytes = [&] { return engine_->tenants().GetUsage(kA).quotas(0).used(); };
  ASSERT_EQ(engine_->tenants().GetUsage(kA).quotas(0).name(), "array-bytes");
  AWAIT(array_bytes() == 0);
  EXPECT_EQ(engine_->jobs().Get(kA, job->name())->results_size(), 1);
}

// Hundreds of every kind: the heap grows by less than the charge.
TEST_F(ControlBytesTest, ChargeCoversHeapUse) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's heap reports no sizes";
#endif
  Start(1 << 30);
  ASSERT_TRUE(NewSession(kA, "s").ok());
  std::map<std::string, Make> kinds = Kinds();
  kinds["job"] = [this](int i) { return Job(50, absl::StrCat(i)).status(); };
  kinds["job with source"] = [this](int i) {
    v1::CreateJobRequest request;
    for (int k = 0; k < 3; ++k) {
      // The source is a failed operation, which leaves no such entry.
      auto* launch = request.mutable_job()->add_operations()->mutable_kernel_launch();
      launch->set_source(std::string(100000, 's'));
      launch->set_entry("f");
      launch->mutable_grid()->set_x(1);
      launch->mutable_block()->set_x(1);
    }
    auto job = engine_->jobs().Create(kA, request);
    if (!job.ok()) return job.status();
    AwaitEnd(job->name()).status().IgnoreError();
    return absl::OkStatus();
  };
  kinds["large module"] = [this](int i) { return Module(absl::StrCat("l", i), 100000); };
  kinds["function with a long text"] = [this](int i) {
    std::string text = "a";
    for (int k = 0; k < 100; ++k) text += " + a";
    return Function(absl::StrCat("long", i), text);
  };
  kinds["long program"] = [this](int i) { return Program(absl::StrCat("long", i), 100); };
  kinds["array with a long name"] = [this](int i) {
    return Named(0, absl::StrCat(std::string(240, 'n'), i));
  };
  for (const auto& [kind, make] : kinds) {
    SCOPED_TRACE(kind);
    const bool large = kind.find("job") != kind.npos || kind.find("l") == 0;
    const int warm_up = 20, count = large ? 100 : 400;
    for (int i = 0; i < warm_up; ++i) {
      absl::Status status = make(i);
      ASSERT_TRUE(status.ok()) << status;
    }
    const int64_t used = Used(), heap = HeapBytes();
    for (int i = warm_up; i < warm_up + count; ++i) {
      absl::Status status = make(i);
      ASSERT_TRUE(status.ok()) << status;
    }
    const int64_t charged = Used() - used, taken = HeapBytes() - heap;
    EXPECT_GE(charged, taken);
    RecordProperty(kind, absl::StrCat(charged / count, " charged, ", taken / count, " taken"));
    std::printf("%-28s %8ld charged, %8ld taken\n", kind.c_str(),
                static_cast<long>(charged / count), static_cast<long>(taken / count));
  }
  DeleteAll();
}

// The next daemon charges the resource that `make` creates again, and refunds it.
TEST_F(ControlBytesTest, RestartRestoresCharges) {
  MemoryFdStore fd_store;
  Start(1 << 30, &fd_store);
  ASSERT_TRUE(NewSession(kA, "s").ok());
  for (const auto& [kind, make] : Kinds()) {
    absl::Status status = make(1);
    ASSERT_TRUE(status.ok()) << kind << ": " << status;
  }
  ASSERT_TRUE(Job(50).ok());
  const int64_t before = Used();
  Die();
  // Restored resources are exempt from quotas.
  Start(1000, &fd_store);
  EXPECT_GT(Used(), before / 3);  // no plans yet, and one job event
  EXPECT_LE(Used(), before);
  EXPECT_EQ(MetadataOf(NewSession(kA, "t"), "quota"), "control-bytes");
  ASSERT_TRUE(engine_->sessions().Delete(kA, "sessions/more-1").ok());
  DeleteAll();
  EXPECT_TRUE(ComesTo(0)) << Used();
}

TEST_F(ControlBytesTest, RestoredResourcesAreChargedAgain) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/control-bytes-", getpid());
  auto open = [&] {
    return *durable::DurableStore::Open({.folder = folder, .max_bytes = 1 << 20});
  };
  auto store = open();
  Start(1 << 30, nullptr, store.get());
  ASSERT_TRUE(Named(8, "kept").ok());
  ASSERT_TRUE(Function("f").ok());
  ASSERT_TRUE(Program("p").ok());
  ASSERT_TRUE(Job(50).ok());
  const int64_t before = Used();
  engine_->Drain(Now() + kPatience);
  End();
  store.reset();
  store = open();
  Start(1000, nullptr, store.get());
  EXPECT_GT(Used(), before / 3);
  EXPECT_LE(Used(), before);
  DeleteAll();
  EXPECT_TRUE(ComesTo(0)) << Used();
  End();
}

// --- lists ---

TEST_F(ControlBytesTest, ListOmitsCodeAndGetReturnsIt) {
  Start(1 << 30);
  ASSERT_TRUE(Module("m", 5000).ok());
  ASSERT_TRUE(Function("f").ok());
  ASSERT_TRUE(Program("p").ok());
  auto job = Job(2);
  ASSERT_TRUE(job.ok());
  const v1::Module module = engine_->modules().List(kA, {})->modules(0);
  EXPECT_EQ(module.code_case(), v1::Module::CODE_NOT_SET);
  EXPECT_THAT(module.omitted(), Contains("source"));
  EXPECT_EQ(module.kernels_size(), 1);
  EXPECT_EQ(engine_->modules().Get(kA, module.name())->source().size(), 5000u);
  EXPECT_EQ(engine_->modules().Get(kA, module.name())->omitted_size(), 0);
  const v1::Function function = engine_->functions().List(kA, {})->functions(0);
  EXPECT_EQ(function.kind_case(), v1::Function::kUfunc);
  EXPECT_FALSE(function.ufunc().has_body());
  EXPECT_EQ(function.ufunc().signatures_size(), 1);
  EXPECT_THAT(function.omitted(), Contains("ufunc.body"));
  EXPECT_TRUE(engine_->functions().Get(kA, function.name())->ufunc().has_body());
  const v1::Program program = engine_->programs().List(kA, {})->programs(0);
  EXPECT_EQ(program.operations_size(), 0);
  EXPECT_EQ(program.inputs_size(), 1);
  EXPECT_EQ(program.outputs_size(), 1);
  EXPECT_EQ(engine_->programs().Get(kA, program.name())->operations_size(), 3);
  const v1::Job listed = engine_->jobs().List(kA, {})->jobs(0);
  EXPECT_EQ(listed.operations_size(), 0);
  EXPECT_THAT(listed.omitted(), Contains("operations"));
  EXPECT_EQ(listed.state(), v1::Job::STATE_SUCCEEDED);
  EXPECT_EQ(listed.timelines_size(), 2);
  EXPECT_TRUE(listed.has_create_time());
  EXPECT_EQ(engine_->jobs().Get(kA, *job)->operations_size(), 2);
}

// A list has every field of a message, also fields that are added later.
TEST(OmittedFieldsTest, EverythingElseIsCopied) {
  v1::Module module;
  module.set_name("name");
  module.set_source("source");
  module.add_options("option");
  module.add_entries("entry");
  module.add_kernels()->set_entry("kernel");
  module.set_log("log");
  module.mutable_create_time()->set_seconds(1);
  v1::Module copy;
  OmittedFields({"log", "source", "ptx"}).CopyWithout(module, &copy);
  module.clear_source();
  module.clear_log();
  module.add_omitted("log");
  module.add_omitted("source");
  EXPECT_EQ(copy.DebugString(), module.DebugString());
}

TEST_F(ControlBytesTest, PagesEndAtOneMebibyte) {
  Start(1 << 30);
  for (int i = 0; i < 7; ++i)
    ASSERT_TRUE(Module(absl::StrCat("m", i), 100, i == 3 ? 1500000 : 400000).ok());
  std::vector<std::string> names;
  v1::ListModulesRequest request;
  do {
    auto page = engine_->modules().List(kA, request);
    ASSERT_TRUE(page.ok()) << page.status();
    ASSERT_GT(page->modules_size(), 0);
    if (page->modules_size() > 1) {
      EXPECT_LE(page->ByteSizeLong(), kMaxPageBytes + 1000);
    }
    for (const v1::Module& module : page->modules()) {
      names.push_back(module.name());
      // A deletion between two pages moves nothing.
      ASSERT_TRUE(engine_->modules().Delete(kA, module.name()).ok());
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  std::vector<std::string> all;
  for (int i = 0; i < 7; ++i) all.push_back(absl::StrCat("tenants/a/modules/m", i));
  EXPECT_EQ(names, all);
}

TEST_F(ControlBytesTest, ArrayPagesAreBoundedAndResumeAtTheirToken) {
  Start(1 << 30);
  ASSERT_TRUE(NewSession(kA, "s").ok());
  for (int i = 1; i <= 7; ++i) {
    ASSERT_TRUE(Run(Fill(0, 3 * i)).ok());
    ASSERT_TRUE(Named(0, absl::StrCat("n", i)).ok());
  }
  for (const char* parent : {"sessions/s", "tenants/a"}) {
    v1::ListArraysRequest request;
    request.set_parent(parent);
    request.set_page_size(3);
    std::vector<int> sizes;
    do {
      auto page = engine_->arrays().List(kA, request);
      ASSERT_TRUE(page.ok()) << page.status();
      sizes.push_back(page->arrays_size());
      for (const v1::Array& array : page->arrays())
        ASSERT_TRUE(engine_->arrays().Delete(kA, array.name()).ok());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    EXPECT_EQ(sizes, (std::vector<int>{3, 3, 1})) << parent;
  }
}

TEST_F(ControlBytesTest, SingleResourceResponsesFitAMessage) {
  Start(1 << 30);
  // Larger than any module that gRPC accepts, with all its entries.
  ASSERT_TRUE(Module("m", 6 << 20, 100).ok());
  auto module = engine_->modules().Get(kA, "tenants/a/modules/m");
  ASSERT_TRUE(module.ok());
  EXPECT_LE(module->ByteSizeLong(), kMaxAnswerBytes);
  EXPECT_THAT(module->omitted(), Contains("source"));
  EXPECT_GT(module->kernels_size(), 0);
  EXPECT_THAT(module->omitted(), Not(Contains("kernels")));

  v1::CreateJobRequest request;
  for (int i = 0; i < 5; ++i) {
    v1::Operation copy;
    auto* array = copy.mutable_copy()->mutable_input()->mutable_inline_array();
    array->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
    array->mutable_spec()->add_shape(1 << 20);
    array->set_data(std::string(1 << 20, 'x'));
    copy.add_outputs()->set_handle(i + 1);
    *request.mutable_job()->add_operations() = copy;
  }
  auto made = engine_->jobs().Create(kA, request);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_LE(made->ByteSizeLong(), kMaxAnswerBytes);
  EXPECT_THAT(made->omitted(), Contains("operations"));
  ASSERT_TRUE(AwaitEnd(made->name()).ok());
  auto job = engine_->jobs().Get(kA, made->name());
  ASSERT_TRUE(job.ok());
  EXPECT_LE(job->ByteSizeLong(), kMaxAnswerBytes);
  EXPECT_THAT(job->omitted(), Contains("operations"));
  EXPECT_EQ(job->timelines_size(), 5);
  auto events = engine_->jobs().NextEvents(kA, made->name(), 1, Now() + kPatience);
  ASSERT_TRUE(events.ok());
  for (const v1::WatchJobResponse& event : *events)
    EXPECT_LE(event.ByteSizeLong(), size_t{4} << 20);
}

// Each kind that clients register by name has a limit on its number too.
TEST_F(ControlBytesTest, RegisteredResourcesAreCounted) {
  Start(1 << 30);
  engine_->accounts().SetQuotas({{kA, {.functions = 1, .modules = 2, .programs = 3}}}, {});
  auto used = [&] {
    std::map<std::string, std::pair<int64_t, int64_t>> lines;
    const v1::Usage usage = engine_->tenants().GetUsage(kA);
    for (const auto& quota : usage.quotas()) lines[quota.name()] = {quota.used(), quota.limit()};
    return lines;
  };
  const std::vector<std::tuple<std::string, int, std::function<absl::Status(std::string)>>> kinds =
      {{"functions", 1, [&](const std::string& id) { return Function(id); }},
       {"modules", 2, [&](const std::string& id) { return Module(id, 10); }},
       {"programs", 3, [&](const std::string& id) { return Program(id); }}};
  for (const auto& [name, limit, create] : kinds) {
    for (int i = 0; i < limit; ++i) ASSERT_TRUE(create(absl::StrCat("f", i)).ok()) << name;
    const absl::Status full = create("full");
    EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
    EXPECT_EQ(MetadataOf(full, "quota"), name);
    EXPECT_EQ(used()[name], std::make_pair(int64_t{limit}, int64_t{limit})) << name;
  }
}

// A list takes only its tenant's lock. Neither this call nor those of other tenants wait.
TEST_F(ControlBytesTest, ListsNeedNoLockOfOtherTenants) {
  // No other work takes a lock during the test.
  Start(1 << 30, nullptr, nullptr, /*housekeeping=*/absl::Hours(1));
  ASSERT_NE(PartitionOf(kA), PartitionOf(kB));
  ASSERT_TRUE(NewSession(kA, "s").ok());
  ASSERT_TRUE(NewSession(kB, "s").ok());
  ASSERT_TRUE(Run(Fill(0, 1)).ok());
  ASSERT_TRUE(Named(0, "n").ok());
  ASSERT_TRUE(Module("m", 1000).ok());
  ASSERT_TRUE(Function("f").ok());
  ASSERT_TRUE(Program("p").ok());
  auto job = Job(1);
  ASSERT_TRUE(job.ok()) << job.status();
  absl::Notification listed;
  auto others = engine_->operations().BeginSubmitBatch(kB);  // their lock
  std::thread lists([&] {
    v1::ListArraysRequest arrays;
    for (const char* parent : {"sessions/s", "tenants/a"}) {
      arrays.set_parent(parent);
      EXPECT_EQ(engine_->arrays().List(kA, arrays)->arrays_size(), 1);
    }
    EXPECT_EQ(engine_->modules().List(kA, {})->modules_size(), 1);
    EXPECT_EQ(engine_->functions().List(kA, {})->functions_size(), 1);
    EXPECT_EQ(engine_->programs().List(kA, {})->programs_size(), 1);
    EXPECT_EQ(engine_->jobs().List(kA, {})->jobs_size(), 1);
    EXPECT_TRUE(engine_->modules().Get(kA, "tenants/a/modules/m").ok());
    EXPECT_TRUE(engine_->functions().Get(kA, "tenants/a/functions/f").ok());
    EXPECT_TRUE(engine_->programs().Get(kA, "tenants/a/programs/p").ok());
    EXPECT_TRUE(engine_->jobs().Get(kA, *job).ok());
    EXPECT_TRUE(engine_->sessions().Get(kA, "sessions/s").ok());
    EXPECT_TRUE(engine_->sessions().Renew(kA, "sessions/s").ok());
    EXPECT_GT(Used(), 0);
    listed.Notify();
  });
  EXPECT_TRUE(listed.WaitForNotificationWithTimeout(kPatience));
  others.reset();
  lists.join();
}

// A call of one tenant takes no lock of another partition either.
TEST_F(ControlBytesTest, DefinitionsNeedNoLockOfOtherTenants) {
  Start(1 << 30, nullptr, nullptr, /*housekeeping=*/absl::Hours(1));
  ASSERT_NE(PartitionOf(kA), PartitionOf(kB));
  ASSERT_TRUE(NewSession(kA, "s").ok());
  ASSERT_TRUE(NewSession(kB, "s").ok());
  ASSERT_TRUE(Run(Fill(4, 1)).ok());
  ASSERT_TRUE(Module("m", 1000).ok());
  absl::Notification done;
  auto others = engine_->operations().BeginSubmitBatch(kB);  // their lock
  std::thread calls([&] {
    EXPECT_TRUE(Function("f").ok());
    EXPECT_TRUE(engine_->functions().Delete(kA, "tenants/a/functions/f").ok());
    EXPECT_TRUE(Program("p", 3, /*declared=*/false).ok());
    v1::Operation call;  // the first, for which the plan is made
    call.mutable_program_call()->set_program("tenants/a/programs/p");
    call.mutable_program_call()->add_inputs()->set_handle(1);
    call.add_outputs()->set_handle(2);
    EXPECT_TRUE(engine_->operations().Submit(kA, "sessions/s", call, Now() + kPatience).ok());
    EXPECT_TRUE(engine_->programs().Delete(kA, "tenants/a/programs/p").ok());
    EXPECT_TRUE(engine_->modules().Delete(kA, "tenants/a/modules/m").ok());
    done.Notify();
  });
  EXPECT_TRUE(done.WaitForNotificationWithTimeout(kPatience));
  others.reset();
  calls.join();
}

TEST_F(ControlBytesTest, DisjointUploadRangesAreBounded) {
  Start(1 << 30);
  ASSERT_TRUE(NewSession(kA, "s").ok());
  v1::PutArrayRequest::Header header;
  header.set_parent("sessions/s");
  header.set_array_id("1");
  header.mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  header.mutable_spec()->add_shape(40000);
  auto put = [&](int64_t begin) {
    header.mutable_range()->set_begin(begin);
    header.mutable_range()->set_end(begin + 1);
    auto upload = engine_->arrays().BeginUpload(kA, header, Now() + kPatience);
    if (!upload.ok()) return upload.status();
    absl::Status written = (*upload)->Write("x");
    return written.ok() ? (*upload)->Finish().status() : written;
  };
  const int64_t before = Used();
  int64_t last = 0;
  absl::Status status;
  for (; status.ok() && last < 30000; last += 2) status = put(last);
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_SIZE_LIMIT) << status;
  EXPECT_EQ(MetadataOf(status, "limit"), "10000");
  EXPECT_GT(Used(), before + 100 * 10000);
  // A range that fills a gap is accepted.
  EXPECT_TRUE(put(1).ok());
  EXPECT_TRUE(engine_->sessions().Delete(kA, "sessions/s").ok());
}

}  // namespace
}  // namespace stride::engine
