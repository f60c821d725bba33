// Guarantees over a machine reboot: no named array on disk is lost, no accepted job is lost or
// counts twice, no deleted array returns, no wrong bytes are read. Every process of the daemon is
// killed; the next one has only the state folder. STRIDE_KILLS sets the number of random reboots.

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "stride/v1/function_service.pb.h"
#include "stride/v1/session_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"
#include "tests/support/temporary_folder.h"

namespace stride::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr char kHold[] = R"(
extern "C" __global__ void hold(double* x, const int* turns) {
  volatile double sink = 0;
  for (int k = 0; k < turns[0]; ++k)
    for (int i = 0; i < 1000000; ++i) sink = sink + 1;
  x[0] = 7;
})";

std::string Named(const std::string& id) { return "tenants/default/arrays/" + id; }

// A state folder, and the successive daemons on it.
class Machine {
 public:
  explicit Machine(std::vector<std::string> flags = {}) : flags_(std::move(flags)) {
    std::string pattern = "/tmp/stride-state.XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    state_ = pattern;
  }
  ~Machine() {
    daemon_.reset();
    stride::test_support::RemoveFolder(state_);
  }

  Client Boot(std::vector<std::string> environment = {}) {
    std::vector<std::string> flags = {"--state-dir=" + state_};
    flags.insert(flags.end(), flags_.begin(), flags_.end());
    daemon_ = std::make_unique<Daemon>(flags, Devices{}, std::move(environment));
    return daemon_->Connect();
  }
  // Memory has no copy of it.
  void PowerOff() {
    std::vector<pid_t> all = {daemon_->ServingPid()};
    if (all[0] != daemon_->pid()) all.insert(all.begin(), daemon_->pid());
    if (died_) all.clear();
    died_ = false;
    for (const auto& more : {daemon_->Workers(), daemon_->Compilers()})
      all.insert(all.end(), more.begin(), more.end());
    for (pid_t pid : all) kill(pid, SIGKILL);
    log_ += daemon_->Log();
    daemon_.reset();
  }
  Client Reboot() {
    PowerOff();
    return Boot();
  }

  // Returns whether the daemon has ended by itself.
  bool Died() { return died_ = died_ || daemon_->Wait(milliseconds(0)).has_value(); }

  Daemon& daemon() { return *daemon_; }
  std::string state() const { return state_; }
  std::string Log() const { return log_ + (daemon_ != nullptr ? daemon_->Log() : ""); }

  std::set<std::string> Files() const {
    std::set<std::string> files;
    std::error_code error;
    for (fs::directory_iterator it(state_ + "/durable/arrays", error), end; !error && it != end;
         it.increment(error))
      files.insert(it->path().filename());
    return files;
  }

  // Waits until all arrays that are ready now, and have no row yet, are on disk. One thread writes
  // them in turn, and a deletion returns when all earlier writes are done.
  void Settle(Client& client) {
    const std::string first = Named("settle-a-" + std::to_string(++settled_));
    const std::string second = Named("settle-b-" + std::to_string(settled_));
    std::set<std::string> own;
    for (const std::string& name : {first, second}) {
      const int64_t size = next_size_++;
      Must(client.Put(std::vector<int8_t>(size), {size}, {.name = name}));
      own.insert(AwaitFile(size));
    }
    Must(client.DeleteArray(first));
    Must(client.DeleteArray(second));
    EXPECT_TRUE(Eventually([&] {
      const std::set<std::string> files = Files();
      return std::none_of(own.begin(), own.end(),
                          [&](const std::string& file) { return files.count(file) > 0; });
    }));
  }

 private:
  std::string AwaitFile(uintmax_t size) {
    std::string found;
    EXPECT_TRUE(Eventually([&] {
      for (const std::string& file : Files()) {
        std::error_code error;
        const bool complete = file.find(".tmp") == std::string::npos &&
                              fs::file_size(state_ + "/durable/arrays/" + file, error) == size;
        if (complete && !error) found = file;
      }
      return !found.empty();
    })) << "nothing is written to disk";
    return found;
  }

  const std::vector<std::string> flags_;
  std::string state_, log_;
  std::unique_ptr<Daemon> daemon_;
  bool died_ = false;
  int64_t next_size_ = 12345;  // arrays of a unique size
  int settled_ = 0;
};

// Keeps the only CPU device busy for `turns` times a few milliseconds: after it returns, later
// tasks wait in the queue.
void Hold(Client& client, int turns) {
  auto launch = [&](int count) {
    KernelOptions options;
    options.code = kHold;
    options.entry = "hold";
    options.arguments = {KernelArgument::Out({DataType::kFloat64, {1}}),
                         Must(client.Put<int32_t>({count}, {1}))};
    return std::move(client.Kernel(options).at(0));
  };
  Must(launch(0).Wait());  // compiles
  Must(launch(turns).Spec());
}

Operation HoldOperation(const Operand& array, int turns) {
  KernelOptions options;
  options.code = kHold;
  options.entry = "hold";
  const std::vector<int32_t> count = {turns};
  options.arguments = {array, Operand::Inline<int32_t>(std::span<const int32_t>(count), {1})};
  return Operation::Kernel(options);
}

Job AwaitEnd(Client& client, const std::string& name) {
  Job job;
  EXPECT_TRUE(Eventually(
      [&] {
        job = Must(client.GetJob(name));
        return job.final();
      },
      std::chrono::seconds(60)))
      << name << " does not end: " << Name(job.state);
  return job;
}

TEST(RebootTest, ArraysAreRestoredBitForBit) {
  Machine machine;
  Client client = machine.Boot();
  std::vector<float> large = Iota<float>(3 << 20);
  large[5] = -0.0f;
  large[7] = std::numeric_limits<float>::quiet_NaN();
  auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  };
  Must(client.Put(large, {3, 1 << 20}, {.name = Named("large")}));
  Must(client.Put<int8_t>({-1, 2, 3}, {3}, {.name = Named("small")}));
  Must(client.Put(std::vector<double>(), {0, 4}, {.name = Named("empty")}));
  Must(client.Put<double>({1}, {1}, {.name = Named("deleted")}));
  Must(client.Put<double>({2}, {1}, {.name = Named("replaced")}));
  Array held = Must(client.Put<double>(Iota<double>(6), {2, 3}));
  Must(client.Compute(Operation::Ufunc("multiply", {held, 2.0}).ToName(Named("computed"))).Wait());
  Array computed = client.Open(Named("computed"));
  Must(client.Compute(Operation::View(computed, ViewSteps().Transpose()).ToName(Named("view")))
           .Spec());
  // Its buffer has no name.
  Must(client.Compute(Operation::View(held, ViewSteps().Transpose()).ToName(Named("of-held")))
           .Spec());
  machine.Settle(client);
  Must(client.DeleteArray(Named("deleted")));
  Must(client.DeleteArray(Named("replaced")));
  Must(client.Put<double>({3}, {1}, {.name = Named("replaced")}));
  machine.Settle(client);

  for (int round = 0; round < 3; ++round) {
    client = machine.Reboot();
    auto listed = Must(client.ListArrays("tenants/default"));
    std::vector<std::string> names;
    for (const ArrayInfo& info : listed) {
      names.push_back(info.name);
      if (info.name == Named("view")) {
        EXPECT_EQ(info.strides, (std::vector<int64_t>{8, 24}));
      }
      if (info.name == Named("empty")) {
        EXPECT_EQ(info.spec.shape, (std::vector<int64_t>{0, 4}));
      }
    }
    EXPECT_THAT(names, ::testing::ElementsAre(Named("computed"), Named("empty"), Named("large"),
                                              Named("of-held"), Named("replaced"), Named("small"),
                                              Named("view")));
    EXPECT_TRUE(same(Get<float>(client, client.Open(Named("large"))), large));
    EXPECT_EQ(Get<int8_t>(client, client.Open(Named("small"))), (std::vector<int8_t>{-1, 2, 3}));
    EXPECT_EQ(Get<double>(client, client.Open(Named("replaced"))), std::vector<double>{3});
    EXPECT_EQ(Get<double>(client, client.Open(Named("computed"))),
              (std::vector<double>{0, 2, 4, 6, 8, 10}));
    EXPECT_EQ(Get<double>(client, client.Open(Named("view"))),
              (std::vector<double>{0, 6, 2, 8, 4, 10}));
    EXPECT_EQ(Get<double>(client, client.Open(Named("of-held"))),
              (std::vector<double>{0, 3, 1, 4, 2, 5}));
    EXPECT_TRUE(Get<double>(client, client.Open(Named("empty"))).empty());
  }
  // Views still share their bytes.
  Array view = client.Open(Named("view"));
  Must(client.Compute(Operation::Ufunc("add", {view, 1.0}).ToExisting(view)).Wait());
  EXPECT_EQ(Get<double>(client, client.Open(Named("computed"))),
            (std::vector<double>{1, 3, 5, 7, 9, 11}));
}

TEST(RebootTest, ChangeReachesTheDisk) {
  Machine machine({"--supervise"});
  Client client = machine.Boot();
  Array x = Must(client.Put<double>(Iota<double>(1000), {1000}, {.name = Named("x")}));
  machine.Settle(client);
  const std::set<std::string> before = machine.Files();
  ASSERT_EQ(before.size(), 1u);
  Must(client.Compute(Operation::Ufunc("add", {x, 1.0}).ToExisting(x)).Wait());
  // The file of the older version is deleted when the row of the newer one exists.
  ASSERT_TRUE(Eventually([&] {
    const auto files = machine.Files();
    return files.size() == 1 && files != before;
  }));
  client = machine.Reboot();
  EXPECT_EQ(Get<double>(client, client.Open(Named("x"))), Iota<double>(1000, 1));
  // A restart after a reboot restores it from the journal, and does not change the disk.
  const std::set<std::string> files = machine.Files();
  kill(machine.daemon().ServingPid(), SIGKILL);
  ASSERT_TRUE(machine.daemon().WaitReady(2, std::chrono::seconds(100)));
  client = machine.daemon().Connect();
  EXPECT_EQ(Get<double>(client, client.Open(Named("x"))), Iota<double>(1000, 1));
  machine.Settle(client);
  EXPECT_EQ(machine.Files(), files);
  client = machine.Reboot();
  EXPECT_EQ(Get<double>(client, client.Open(Named("x"))), Iota<double>(1000, 1));
}

TEST(RebootTest, JobsRunOnce) {
  Machine machine;
  Client client = machine.Boot();
  Array x = Must(client.Put<double>(Iota<double>(100), {100}, {.name = Named("x")}));
  Array count = Must(client.Put<double>({10}, {1}, {.name = Named("count")}));
  Array gone = Must(client.Put<double>({1}, {1}, {.name = Named("gone")}));
  Array again = Must(client.Put<double>({1}, {1}, {.name = Named("again")}));
  auto submit = [&](const std::string& id, std::vector<Operation> operations) {
    JobSpec spec;
    spec.request_id = "request-" + id;
    spec.label = "label of " + id;
    spec.operations = std::move(operations);
    return Must(client.CreateJob(spec)).name;
  };
  auto ended_operations = [&] {
    return std::vector<Operation>{Operation::Ufunc("add", {x, 5.0}).ToName(Named("ended"))};
  };
  const std::string ended = submit("ended", ended_operations());
  EXPECT_EQ(AwaitEnd(client, ended).state, Job::State::kSucceeded);
  machine.Settle(client);
  Hold(client, 100'000);
  const std::vector<double> given = {3, 4};
  const Operand three_four = Operand::Inline<double>(std::span<const double>(given), {2});
  const std::string from_inline = submit(
      "inline", {Operation::Ufunc("multiply", {three_four, 2.0}).ToJobHandle(1),
                 Operation::Ufunc("add", {Operand::JobHandle(1), 1.0}).ToName(Named("inline"))});
  const std::string from_named =
      submit("named", {Operation::Ufunc("multiply", {x, 3.0}).ToName(Named("named"))});
  const std::string chained = submit(
      "chained",
      {Operation::Ufunc("add", {Operand::Named(Named("named")), 1.0}).ToName(Named("chained"))});
  const std::string in_place =
      submit("in-place", {Operation::Ufunc("add", {count, 1.0}).ToExisting(count)});
  const std::string in_place_too =
      submit("in-place-too", {Operation::Ufunc("multiply", {count, 2.0}).ToExisting(count)});
  const std::string without =
      submit("without", {Operation::Ufunc("add", {gone, 1.0}).ToName(Named("without"))});
  const std::string another =
      submit("another", {Operation::Ufunc("add", {again, 1.0}).ToName(Named("another"))});
  const std::string cancelled =
      submit("cancelled", {Operation::Ufunc("add", {x, 1.0}).ToName(Named("cancelled"))});
  Must(client.CancelJob(cancelled));
  Must(client.DeleteArray(Named("gone")));
  Must(client.DeleteArray(Named("again")));
  Must(client.Put<double>({100}, {1}, {.name = Named("again")}));
  machine.Settle(client);

  for (int round = 0; round < 2; ++round) {
    client = machine.Reboot();
    EXPECT_EQ(Must(client.ListJobs()).size(), 9u);
    for (const std::string& name :
         {from_inline, from_named, chained, in_place, in_place_too, ended})
      EXPECT_EQ(AwaitEnd(client, name).state, Job::State::kSucceeded)
          << name << " " << Must(client.GetJob(name)).label;
    EXPECT_EQ(Must(client.GetJob(from_named)).label, "label of named");
    for (const std::string& name : {without, another}) {
      Job job = AwaitEnd(client, name);
      ASSERT_EQ(job.state, Job::State::kFailed) << job.label;
      EXPECT_EQ(job.error->reason, "DATA_LOST") << job.error->ToString();
    }
    EXPECT_EQ(AwaitEnd(client, cancelled).state, Job::State::kCancelled);
    EXPECT_EQ(Get<double>(client, client.Open(Named("inline"))), (std::vector<double>{7, 9}));
    std::vector<double> three_x = Iota<double>(100);
    for (double& value : three_x) value *= 3;
    EXPECT_EQ(Get<double>(client, client.Open(Named("named"))), three_x);
    for (double& value : three_x) value += 1;
    EXPECT_EQ(Get<double>(client, client.Open(Named("chained"))), three_x);
    EXPECT_EQ(Get<double>(client, client.Open(Named("count"))), std::vector<double>{22});
    EXPECT_EQ(Get<double>(client, client.Open(Named("ended"))), Iota<double>(100, 5));
    // Its request id is still known.
    EXPECT_EQ(submit("ended", ended_operations()), ended);
    EXPECT_EQ(Must(client.GetJob(ended)).results.size(), 1u);
    // Now all is settled, including the results; the next round changes nothing.
    ASSERT_TRUE(Eventually([&] { return machine.Files().size() == 7; })) << machine.Files().size();
    machine.Settle(client);
    std::this_thread::sleep_for(std::chrono::seconds(2));  // count's second version
    machine.Settle(client);
  }
  Must(client.DeleteJob(ended));
  machine.Settle(client);
  client = machine.Reboot();
  EXPECT_EQ(MustFail(client.GetJob(ended)).reason, "JOB_NOT_FOUND");
}

// A running job: its new results are computed again; its changes in place cannot be.
TEST(RebootTest, RunningJobsRunAgainOrFail) {
  Machine machine;
  Client client = machine.Boot();
  Array x = Must(client.Put<double>({1}, {1}, {.name = Named("x")}));
  Array y = Must(client.Put<double>({1}, {1}, {.name = Named("y")}));
  machine.Settle(client);
  const std::set<std::string> before = machine.Files();
  JobSpec spec;
  spec.operations = {Operation::Ufunc("add", {x, 1.0}).ToExisting(x),
                     Operation::Ufunc("add", {x, 0.0}).ToJobHandle(1),
                     HoldOperation(Operand::JobHandle(1), 100'000)};
  const std::string changes = Must(client.CreateJob(spec)).name;
  ASSERT_TRUE(Eventually([&] {  // until the new version of x is on disk
    std::set<std::string> files = machine.Files();
    return files.size() == 2 && files != before;
  }));
  machine.Settle(client);
  client = machine.Reboot();
  Job job = AwaitEnd(client, changes);
  ASSERT_EQ(job.state, Job::State::kFailed);
  EXPECT_EQ(job.error->reason, "WORKER_LOST") << job.error->ToString();
  EXPECT_EQ(Get<double>(client, client.Open(Named("x"))), std::vector<double>{2});

  // A part of it is on disk before it ends, and another operation has used that.
  const size_t num_files = machine.Files().size();
  spec.operations = {
      Operation::Ufunc("add", {y, 1.0}).ToName(Named("part")),
      Operation::Ufunc("add", {Operand::Named(Named("part")), 0.0}).ToName(Named("held")),
      HoldOperation(Operand::Named(Named("held")), 1500)};
  const std::string makes = Must(client.CreateJob(spec)).name;
  Must(client
           .Compute(
               Operation::Ufunc("add", {Operand::Named(Named("part")), 1.0}).ToName(Named("user")))
           .Spec());
  ASSERT_TRUE(Eventually([&] { return machine.Files().size() >= num_files + 1; }));
  ASSERT_FALSE(Must(client.GetJob(makes)).final());
  client = machine.Reboot();
  EXPECT_EQ(AwaitEnd(client, makes).state, Job::State::kSucceeded);
  EXPECT_EQ(Get<double>(client, client.Open(Named("part"))), std::vector<double>{2});
  EXPECT_EQ(Get<double>(client, client.Open(Named("held"))), std::vector<double>{7});
}

// Functions and programs are on disk before the call returns, and gone before their deletion
// returns.
TEST(RebootTest, FunctionsAndProgramsAreRestored) {
  for (const char* flag : {"--no-supervise", "--supervise"}) {
    Machine machine(flag[2] == 'n' ? std::vector<std::string>() : std::vector<std::string>{flag});
    Client client = machine.Boot();
    auto define = [&](const char* id, const char* text) {
      v1::CreateFunctionRequest request;
      request.set_function_id(id);
      auto* body = request.mutable_function()->mutable_ufunc()->mutable_body();
      body->mutable_expression()->set_text(text);
      body->mutable_expression()->add_parameters("a");
      request.mutable_function()->mutable_ufunc()->add_signatures("float64->float64");
      return Rpc(machine.daemon().address()).Call("FunctionService/CreateFunction", request);
    };
    const Outcome defined = define("twice", "a * 2");
    ASSERT_TRUE(defined.ok()) << defined.ToString();
    auto make = [&](const std::string& id) {
      ProgramSpec spec{.id = id, .inputs = {{.handle = 1}}};
      spec.Add(Operation::Ufunc("twice", {ProgramSpec::Handle(1)}), 2);
      spec.Add(Operation::Reduce(Reduction::kSum, ProgramSpec::Handle(2)), 3);
      spec.outputs = {3};
      return Must(client.CreateProgram(spec));
    };
    const Program kept = make("kept"), deleted = make("deleted");
    v1::CreateSessionRequest session;
    session.set_session_id("s");
    ASSERT_TRUE(Rpc(machine.daemon().address()).Call("SessionService/CreateSession", session).ok());
    make("s.own");
    Must(client.DeleteProgram(deleted.name));
    for (int round = 0; round < 2; ++round) {
      client = machine.Reboot();
      const std::vector<Program> found = Must(client.ListPrograms());
      ASSERT_EQ(found.size(), 1u) << machine.Log();
      EXPECT_EQ(found[0].name, kept.name);
      Array x = Must(client.Put<double>({1, 2, 3}, {3}));
      Array sum = client.Compute(Operation::Call(found[0], {x}));
      EXPECT_THAT(Must(client.Fetch<double>(sum)), ::testing::ElementsAre(12));
    }
    Must(client.DeleteProgram(kept.name));
    v1::DeleteFunctionRequest gone;
    gone.set_name("tenants/default/functions/twice");
    ASSERT_TRUE(Rpc(machine.daemon().address()).Call("FunctionService/DeleteFunction", gone).ok());
    client = machine.Reboot();
    EXPECT_TRUE(Must(client.ListPrograms()).empty());
    EXPECT_TRUE(define("twice", "a + a").ok());
  }
}

TEST(RebootTest, DamageIsReportedAndNeverReturned) {
  Machine machine;
  Client client = machine.Boot();
  Must(client.Put(Iota<double>(1000), {1000}, {.name = Named("whole")}));
  machine.Settle(client);
  std::set<std::string> known = machine.Files();
  std::map<std::string, std::string> file_of;
  for (const char* id : {"flipped", "short", "missing"}) {
    Must(client.Put(Iota<double>(1000), {1000}, {.name = Named(id)}));
    machine.Settle(client);
    for (const std::string& file : machine.Files())
      if (known.insert(file).second) file_of[id] = machine.state() + "/durable/arrays/" + file;
  }
  machine.PowerOff();
  {
    std::fstream file(file_of["flipped"], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4000);
    file.put(0x55);
  }
  fs::resize_file(file_of["short"], 7999);
  fs::remove(file_of["missing"]);
  client = machine.Boot();
  EXPECT_EQ(Get<double>(client, client.Open(Named("whole"))), Iota<double>(1000));
  for (const char* id : {"flipped", "short", "missing"}) {
    Error error = MustFail(client.Fetch<double>(client.Open(Named(id))));
    EXPECT_TRUE(IsError(error, Code::kDataLoss, "DATA_LOST")) << id;
    EXPECT_THAT(machine.Log(), HasSubstr(Named(id)));
    Must(client.DeleteArray(Named(id)));
  }
  client = machine.Reboot();
  EXPECT_EQ(Must(client.ListArrays("tenants/default")).size(), 1u);

  // The whole database.
  machine.PowerOff();
  for (const char* name : {"rows.db", "rows.db-wal"}) {
    std::ofstream file(machine.state() + "/durable/" + name, std::ios::binary);
    file << std::string(100000, 'x');
  }
  client = machine.Boot();
  EXPECT_THAT(machine.Log(), HasSubstr("DATABASE OF ARRAYS AND JOBS IS DAMAGED"));
  EXPECT_EQ(Must(client.ListArrays("tenants/default")).size(), 0u);
  Must(client.Put<double>({1}, {1}, {.name = Named("new")}));
  machine.Settle(client);
  client = machine.Reboot();
  EXPECT_EQ(Must(client.ListArrays("tenants/default")).size(), 1u);
}

TEST(RebootTest, OversizedArraysAreReportedAndNotSaved) {
  Machine machine({"--durable-bytes=120000"});
  Client client = machine.Boot();
  Must(client.Put(Iota<double>(10000), {10000}, {.name = Named("fits")}));
  machine.Settle(client);
  Must(client.Put(Iota<double>(10000), {10000}, {.name = Named("too-much")}));
  ASSERT_TRUE(
      machine.daemon().WaitForLog("an array is not kept on disk", std::chrono::seconds(100)));
  EXPECT_THAT(machine.Log(), HasSubstr(Named("too-much")));
  EXPECT_EQ(machine.Files().size(), 1u);
  // It is saved when there is room again.
  Must(client.DeleteArray(Named("fits")));
  machine.Settle(client);
  ASSERT_TRUE(Eventually([&] { return machine.Files().size() == 1; }));
  machine.Settle(client);
  client = machine.Reboot();
  auto listed = Must(client.ListArrays("tenants/default"));
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].name, Named("too-much"));
}

TEST(RebootTest, WithoutTheFeatureNothingIsWritten) {
  Machine machine({"--durable-bytes=0"});
  Client client = machine.Boot();
  Must(client.Put<double>({1}, {1}, {.name = Named("x")}));
  EXPECT_FALSE(fs::exists(machine.state() + "/durable"));
}

// The cost for a client of a job that is on disk before it is accepted.
TEST(RebootTest, CostOfAJob) {
  for (const char* flag : {"--durable-bytes=0", "--durable-bytes=1000000000"}) {
    Machine machine({flag});
    Client client = machine.Boot();
    auto create = [](Client& client, std::vector<double>* times) {
      JobSpec spec;
      spec.operations = {Operation::Zeros({DataType::kFloat64, {1}}).ToJobHandle(1)};
      const auto begin = std::chrono::steady_clock::now();
      Must(client.CreateJob(spec));
      times->push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    };
    std::vector<double> warm, alone;
    for (int i = 0; i < 20; ++i) create(client, &warm);
    for (int i = 0; i < 300; ++i) create(client, &alone);
    std::sort(alone.begin(), alone.end());
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        Client own = machine.daemon().Connect();
        std::vector<double> times;
        for (int i = 0; i < 100; ++i) create(own, &times);
      });
    }
    for (auto& thread : threads) thread.join();
    const double together =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("  %s: CreateJob p50 %.2f ms, p99 %.2f ms; 8 clients %.0f jobs a second\n", flag,
                alone[150] * 1e3, alone[297] * 1e3, 800 / together);
    EXPECT_LT(alone[150], 1.0);
  }
}

// A clean shutdown waits for the disk.
TEST(RebootTest, CleanShutdownLosesNothing) {
  Machine machine;
  Client client = machine.Boot();
  for (int i = 0; i < 50; ++i)
    Must(client.Put(Iota<double>(1000, i), {1000}, {.name = Named(std::to_string(i))}));
  machine.daemon().Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return machine.Died(); }, std::chrono::seconds(40)));
  client = machine.Reboot();
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(Get<double>(client, client.Open(Named(std::to_string(i)))), Iota<double>(1000, i));
}

// Jobs acknowledged before the power loss, some with changes in place. Each change would show if it
// counted twice.
class Ledger {
 public:
  void Add(Client& client, std::mt19937& random) {
    const std::string id = std::to_string(next_++);
    JobSpec spec;
    spec.request_id = "request-" + id;
    const std::vector<double> given = {static_cast<double>(random() % 1000)};
    const Operand value = Operand::Inline<double>(std::span<const double>(given), {1});
    spec.operations = {
        Operation::Ufunc("add", {value, 1.0}).ToJobHandle(1),
        Operation::Ufunc("multiply", {Operand::JobHandle(1), 2.0}).ToName(Named("out" + id))};
    auto job = client.CreateJob(spec);
    if (job) made_[job->name] = {Named("out" + id), 2 * (given[0] + 1)};
  }
  void AddChange(Client& client) {
    Array count = client.Open(Named("count"));
    JobSpec spec;
    spec.operations = {Operation::Ufunc("add", {count, 1.0}).ToExisting(count)};
    auto job = client.CreateJob(spec);
    if (job) {
      changes_.push_back(job->name);
    } else {
      ++unanswered_;
    }
  }

  void Check(Client& client) {
    for (const auto& [name, result] : made_) {
      Job job = AwaitEnd(client, name);
      ASSERT_EQ(job.state, Job::State::kSucceeded) << name << " " << job.error->ToString();
      EXPECT_EQ(Get<double>(client, client.Open(result.first)), std::vector<double>{result.second});
    }
    int known = 0, unknown = 0;
    for (const std::string& name : changes_) {
      Job job = AwaitEnd(client, name);
      if (job.state == Job::State::kSucceeded) {
        ++known;
        continue;
      }
      EXPECT_EQ(job.error->reason, "WORKER_LOST") << job.error->ToString();
      ++unknown;
    }
    unknown_ = unknown;
    if (changes_.empty()) return;
    const double count = Get<double>(client, client.Open(Named("count")))[0];
    EXPECT_GE(count, known);
    // A job whose response was lost may have been accepted.
    EXPECT_LE(count, known + unknown + unanswered_);
  }
  size_t size() const { return made_.size() + changes_.size(); }
  int unknown() const { return unknown_; }

 private:
  int next_ = 0, unknown_ = 0, unanswered_ = 0;
  std::map<std::string, std::pair<std::string, double>> made_;
  std::vector<std::string> changes_;
};

TEST(RebootTest, RandomRebootsUnderLoad) {
  const char* text = std::getenv("STRIDE_KILLS");
  const int reboots = text != nullptr ? std::atoi(text) : 8;
  Machine machine({"--supervise"});
  std::mt19937 random(11);
  Ledger ledger;
  Client client = machine.Boot();
  Must(client.Put<double>({0}, {1}, {.name = Named("count")}));
  machine.Settle(client);
  for (int i = 0; i < reboots && !::testing::Test::HasFatalFailure(); ++i) {
    std::atomic<bool> stop{false};
    std::thread load([&] {
      auto connected = Client::Connect({.address = machine.daemon().address()});
      if (!connected) return;  // immediate power loss
      Client own = *std::move(connected);
      while (!stop) {
        ledger.Add(own, random);
        if (random() % 4 == 0) ledger.AddChange(own);
      }
    });
    std::this_thread::sleep_for(milliseconds(100 + 150 * (i % 5)));
    if (i % 3 == 2) {  // a restart in between
      kill(machine.daemon().ServingPid(), SIGKILL);
      machine.daemon().WaitReady(2, std::chrono::seconds(100));
      std::this_thread::sleep_for(milliseconds(50));
    }
    kill(machine.daemon().pid(), SIGKILL);
    kill(machine.daemon().ServingPid(), SIGKILL);
    stop = true;
    load.join();
    client = machine.Reboot();
  }
  ledger.Check(client);
  std::printf("  %d reboots, %zu jobs; %d were changing an array in place\n", reboots,
              ledger.size(), ledger.unknown());
}

// Power loss at each step of the write; the next daemon has everything reported as saved.
class PowerTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PowerTest, ReportedStateSurvivesPowerLoss) {
  Machine machine;
  Ledger ledger;
  std::mt19937 random(3);
  std::map<std::string, std::vector<double>> arrays;
  {
    Client client = machine.Boot({std::string("STRIDE_CRASH_POINT=") + GetParam()});
    for (int i = 0; i < 400 && !machine.Died(); ++i) {
      const std::string name = Named("a" + std::to_string(i));
      const std::vector<double> content = Iota<double>(100 + i, i);
      if (client.Put(content, {100 + i}, {.name = name})) arrays[name] = content;
      ledger.Add(client, random);
    }
  }
  ASSERT_TRUE(machine.Died()) << "it never died there";
  Client client = machine.Reboot();
  // An array may have been too late for the disk; it is whole or absent.
  int found = 0;
  for (const ArrayInfo& info : Must(client.ListArrays("tenants/default"))) {
    if (arrays.count(info.name) == 0) continue;
    ++found;
    EXPECT_EQ(Get<double>(client, client.Open(info.name)), arrays[info.name]) << info.name;
  }
  std::printf("  %d of %zu arrays, %zu jobs\n", found, arrays.size(), ledger.size());
  ledger.Check(client);
}

INSTANTIATE_TEST_SUITE_P(Points, PowerTest,
                         ::testing::Values("durable.file_written:5", "durable.file_named:5",
                                           "durable.before_commit:8", "durable.after_commit:8"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

// The daemon dies while it reads the disk after a reboot, and its holder starts it again.
class ReadingTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ReadingTest, NothingIsLost) {
  Machine machine({"--supervise"});
  Client client = machine.Boot();
  Must(client.Put(Iota<double>(1000), {1000}, {.name = Named("x")}));
  machine.Settle(client);
  Hold(client, 100'000);
  JobSpec spec;
  spec.operations = {
      Operation::Ufunc("add", {client.Open(Named("x")), 1.0}).ToName(Named("result"))};
  const std::string job = Must(client.CreateJob(spec)).name;
  machine.PowerOff();
  client = machine.Boot({std::string("STRIDE_CRASH_POINT=") + GetParam()});
  EXPECT_THAT(machine.daemon().Log(), HasSubstr("starting it again"));
  EXPECT_EQ(AwaitEnd(client, job).state, Job::State::kSucceeded);
  EXPECT_EQ(Get<double>(client, client.Open(Named("result"))), Iota<double>(1000, 1));
  EXPECT_EQ(Get<double>(client, client.Open(Named("x"))), Iota<double>(1000));
}

INSTANTIATE_TEST_SUITE_P(Points, ReadingTest,
                         ::testing::Values("durable.arrays_restored:1", "durable.jobs_restored:1"),
                         [](const auto& info) { return "n" + std::to_string(info.index); });

}  // namespace
}  // namespace stride::testing
