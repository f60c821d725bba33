#include "server/broker/compiler_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "server/base/error.h"
#include "server/base/memory_file.h"
#include "server/broker/content_key.h"
#include "server/wire/exit_code.h"
#include "tests/support/await.h"
#include "tests/support/temporary_folder.h"

namespace stride::broker {
namespace {

namespace fs = std::filesystem;
using Module = std::shared_ptr<const CompiledModule>;

const TenantId kTenant{"a"}, kOther{"b"};

// Code written by the daemon itself; the number makes each text unique.
wire::Code OwnCode(int number) {
  wire::Code code;
  code.mutable_matmul()->set_dtype(number);
  return code;
}

class CompilerPoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              absl::StrCat("compiler_pool_", getpid(), "_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    options_.kinds["fake"] = {std::string(FAKE_WORKERS) + "/stride-worker-fake", "v1"};
    options_.cache_directory = folder_;
    Restart();
  }
  void TearDown() override {
    pool_.reset();
    stride::test_support::RemoveFolder(folder_);
  }
  void Restart() {
    pool_.reset();
    pool_ = std::make_unique<CompilerPool>(options_, &spawner_);
  }

  static wire::Code Source(const std::string& text) {
    wire::Code code;
    code.mutable_source()->set_text(text);
    return code;
  }

  absl::StatusOr<Module> Compile(const std::string& text) {
    absl::StatusOr<Module> result = absl::InternalError("not called");
    absl::Notification called;
    pool_->Compile(kTenant, "fake:1", Source(text), [&](absl::StatusOr<Module> module) {
      result = std::move(module);
      called.Notify();
    });
    AWAIT(called.HasBeenNotified());
    return result;
  }

  std::string ObjectOf(const Module& module) {
    auto map = MemoryMap::Map(module->object.get(), module->size, false);
    return std::string(map->view());
  }
  // The fake's log: its process and its number of compilations.
  std::string ProcessOf(const Module& module) {
    return std::vector<std::string>(absl::StrSplit(module->log, ' '))[0];
  }

  fs::path OnlyFile() {
    fs::path file;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      EXPECT_TRUE(file.empty());
      file = entry.path();
    }
    return file;
  }

  fs::path folder_;
  CompilerOptions options_;
  Spawner spawner_{WorkerEnvironment()};
  std::unique_ptr<CompilerPool> pool_;
};

TEST_F(CompilerPoolTest, CompilesOnceAndCaches) {
  EXPECT_EQ(pool_->Lookup(kTenant, "fake:1", Source("object one")), nullptr);
  auto module = Compile("object one");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(ObjectOf(*module), "one");
  EXPECT_EQ((*module)->description.kernels(0).entry(), "main");
  EXPECT_EQ((*module)->target, "fake:1");
  EXPECT_NE((*module)->id, 0u);
  EXPECT_EQ(pool_->Lookup(kTenant, "fake:1", Source("object one")), *module);
  EXPECT_EQ(Compile("object one").value(), *module);
  EXPECT_EQ(pool_->Lookup(kTenant, "fake:2", Source("object one")), nullptr) << "another target";
}

TEST_F(CompilerPoolTest, ProcessIsReusedAndThenReplaced) {
  options_.num_compilers = 1;
  options_.max_compilations = 3;
  Restart();
  std::vector<std::string> processes;
  for (int i = 0; i < 4; ++i)
    processes.push_back(ProcessOf(*Compile(absl::StrCat("n", i, std::string(i, ' ')))));
  EXPECT_EQ(processes[0], processes[1]);
  EXPECT_EQ(processes[0], processes[2]);
  EXPECT_NE(processes[0], processes[3]);
}

TEST_F(CompilerPoolTest, EqualRequestsInFlightAreJoined) {
  constexpr int kRequests = 10;
  absl::Mutex mutex;
  std::vector<Module> modules;
  for (int i = 0; i < kRequests; ++i) {
    pool_->Compile(kTenant, "fake:1", Source("slow"), [&](absl::StatusOr<Module> module) {
      absl::MutexLock lock(&mutex);
      modules.push_back(*module);
    });
  }
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(
      +[](std::vector<Module>* modules) { return modules->size() == kRequests; }, &modules));
  for (const Module& module : modules) EXPECT_EQ(module, modules[0]);
}

// A tenant's queue and its longest compilation delay no other tenant.
TEST_F(CompilerPoolTest, TenantDoesNotWaitForAnotherTenant) {
  options_.num_compilers = 1;
  Restart();
  absl::Mutex mutex;
  int num_done = 0;
  const auto count = [&](const absl::StatusOr<Module>&) {
    absl::MutexLock lock(&mutex);
    ++num_done;
  };
  pool_->Compile(kTenant, "fake:1", Source("hang"), count);
  for (int i = 0; i < 100; ++i) pool_->Compile(kTenant, "fake:1", OwnCode(i), count);
  const auto compile = [&](const wire::Code& code) {
    absl::Notification called;
    pool_->Compile(kOther, "fake:1", code, [&](const absl::StatusOr<Module>& module) {
      EXPECT_TRUE(module.ok()) << module.status();
      called.Notify();
    });
    AWAIT(called.HasBeenNotified());
  };
  compile(Source("object x"));
  compile(Source("object y"));
  compile(OwnCode(99));  // although it is already in the queue, as its last
  {
    absl::MutexLock lock(&mutex);
    EXPECT_EQ(num_done, 1) << "what both wanted; the first in that queue goes on";
  }
  pool_->Shutdown();
}

TEST_F(CompilerPoolTest, CompileErrorReturnsLogAndIsNotCached) {
  auto module = Compile("wrong");
  EXPECT_TRUE(absl::IsInvalidArgument(module.status()));
  EXPECT_EQ(ReasonOf(module.status()), v1::ERROR_REASON_COMPILE_FAILED);
  EXPECT_EQ(module.status().message(), "line 1: that is wrong");
  EXPECT_EQ(ReasonOf(Compile("unheard of").status()), v1::ERROR_REASON_NOT_IMPLEMENTED);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(CompilerPoolTest, LargeSourceIsSentByDescriptor) {
  auto module = Compile(std::string(3 << 20, 'x'));
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(ObjectOf(*module), absl::StrCat(3 << 20, " bytes"));
}

TEST_F(CompilerPoolTest, CompilerDeathFailsOneRequest) {
  for (const char* order : {"crash", "lie"}) {
    EXPECT_TRUE(absl::IsAborted(Compile(order).status())) << order;
    EXPECT_TRUE(Compile(std::string("object after ") + order).ok());
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(Compile("spin").status()));
}

// The ways in which a compiler ends, and how many of each are attributed to the machine.
struct CompilerEnd {
  std::string how;
  CompilerDeath death;
  int tries;  // among new processes
  absl::StatusCode code;
  v1::ErrorReason reason;
};

std::vector<CompilerEnd> CompilerEnds() {
  using Code = absl::StatusCode;
  const auto by_exit = [](int code) { return absl::StrCat("exit ", code); };
  const auto by_signal = [](int signal) { return absl::StrCat("signal ", signal); };
  return {
      {by_signal(SIGSEGV), CompilerDeath::kCrash, 2, Code::kAborted, v1::ERROR_REASON_WORKER_LOST},
      {by_signal(SIGABRT), CompilerDeath::kCrash, 2, Code::kAborted, v1::ERROR_REASON_WORKER_LOST},
      {by_signal(SIGBUS), CompilerDeath::kCrash, 2, Code::kAborted, v1::ERROR_REASON_WORKER_LOST},
      {by_exit(0), CompilerDeath::kCrash, 2, Code::kAborted, v1::ERROR_REASON_WORKER_LOST},
      {by_signal(SIGXCPU), CompilerDeath::kTime, 2, Code::kDeadlineExceeded,
       v1::ERROR_REASON_DEADLINE},
      {by_exit(wire::kOutOfMemoryExit), CompilerDeath::kMemory, 2, Code::kResourceExhausted,
       v1::ERROR_REASON_COMPILE_FAILED},
      {by_exit(wire::kNoThreadExit), CompilerDeath::kNoStart, 2, Code::kUnavailable,
       v1::ERROR_REASON_WORKER_LOST},
      {by_exit(wire::kNoSandboxExit), CompilerDeath::kNoStart, 2, Code::kUnavailable,
       v1::ERROR_REASON_WORKER_LOST},
      {by_signal(SIGKILL), CompilerDeath::kKilled, 3, Code::kAborted, v1::ERROR_REASON_WORKER_LOST},
  };
}

TEST_F(CompilerPoolTest, UnrepeatedDeathIsNoError) {
  options_.sandbox.mode = SandboxPolicy::Mode::kOff;  // its deaths are counted in a file
  for (const CompilerEnd& end : CompilerEnds()) {
    Restart();
    const fs::path deaths = folder_ / "deaths";
    auto module = Compile(absl::StrCat("die 1 ", deaths.string(), " ", end.how));
    EXPECT_TRUE(module.ok()) << end.how << ": " << module.status();
    EXPECT_EQ(fs::file_size(deaths), 1u) << end.how;
    fs::remove(deaths);
  }
}

TEST_F(CompilerPoolTest, RepeatedDeathIsAttributedToTheSource) {
  options_.sandbox.mode = SandboxPolicy::Mode::kOff;
  for (const CompilerEnd& end : CompilerEnds()) {
    Restart();
    const fs::path deaths = folder_ / "deaths";
    absl::Status status = Compile(absl::StrCat("die 100 ", deaths.string(), " ", end.how)).status();
    EXPECT_EQ(status.code(), end.code) << end.how << ": " << status;
    EXPECT_EQ(ReasonOf(status), end.reason) << end.how;
    EXPECT_EQ(fs::file_size(deaths), static_cast<uintmax_t>(end.tries)) << end.how;
    fs::remove(deaths);
  }
}

// State of earlier sources may have used up the compiler's memory or time.
TEST_F(CompilerPoolTest, DeathOfAUsedCompilerIsNotCounted) {
  options_.sandbox.mode = SandboxPolicy::Mode::kOff;
  options_.num_compilers = 1;
  for (const CompilerEnd& end : CompilerEnds()) {
    if (end.death == CompilerDeath::kKilled) continue;
    Restart();
    ASSERT_TRUE(Compile(absl::StrCat("object before ", end.how)).ok());
    const fs::path deaths = folder_ / "deaths";
    auto module = Compile(absl::StrCat("die 2 ", deaths.string(), " ", end.how));
    EXPECT_TRUE(module.ok()) << end.how << ": " << module.status();
    fs::remove(deaths);
  }
}

TEST(CompilerDeathTest, ExitsAndSignals) {
  for (const CompilerEnd& end : CompilerEnds()) {
    const std::vector<std::string> words = absl::StrSplit(end.how, ' ');
    EXPECT_EQ(DeathOf({words[0] == "signal", std::stoi(words[1])}), end.death) << end.how;
  }
}

// A machine too busy to run the compiler proves nothing about the source.
TEST(CompilerDeathTest, WaitsForAProcessorExtendTheTime) {
  EXPECT_EQ(ClockTimeFor(absl::Seconds(60), absl::ZeroDuration()), absl::Seconds(60));
  EXPECT_EQ(ClockTimeFor(absl::Seconds(60), absl::Seconds(45)), absl::Seconds(105));
  EXPECT_EQ(ClockTimeFor(absl::Seconds(60), absl::Hours(1)), absl::Minutes(5));
  EXPECT_GE(WaitedForProcessor(getpid()), absl::ZeroDuration());
  EXPECT_EQ(WaitedForProcessor(-1), absl::ZeroDuration()) << "there is no such process";
}

TEST_F(CompilerPoolTest, SlowCompilationIsEnded) {
  options_.timeout = absl::Milliseconds(100);
  options_.num_compilers = 1;
  Restart();
  auto module = Compile("hang");
  EXPECT_TRUE(absl::IsDeadlineExceeded(module.status()));
  EXPECT_EQ(ReasonOf(module.status()), v1::ERROR_REASON_DEADLINE);
}

TEST_F(CompilerPoolTest, ProcessKilledWhileIdleIsReplaced) {
  options_.num_compilers = 1;
  Restart();
  pid_t pid = std::stoi(ProcessOf(*Compile("first")));
  kill(pid, SIGKILL);
  auto second = Compile("second");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(std::stoi(ProcessOf(*second)), pid);
}

TEST_F(CompilerPoolTest, DiskCacheOutlivesThePool) {
  std::string log = (*Compile("object kept"))->log;
  Restart();
  auto module = Compile("object kept");
  ASSERT_TRUE(module.ok());
  EXPECT_EQ((*module)->log, log) << "compiled again";
  EXPECT_EQ(ObjectOf(*module), "kept");
  EXPECT_EQ((*module)->description.kernels(0).entry(), "main");
}

TEST_F(CompilerPoolTest, ToolchainIsPartOfTheKey) {
  std::string log = (*Compile("object kept"))->log;
  options_.kinds["fake"].toolchain = "v2";
  Restart();
  EXPECT_NE((*Compile("object kept"))->log, log);
}

TEST_F(CompilerPoolTest, DamagedFilesAreRemovedAndRebuilt) {
  std::string log = (*Compile("object kept"))->log;
  fs::path file = OnlyFile();
  uintmax_t size = fs::file_size(file);
  struct {
    const char* what;
    std::function<void()> damage;
  } const damages[] = {
      {"a flipped byte",
       [&] {
         std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
         stream.seekp(size - 1);
         stream.put('X');
       }},
      {"cut short", [&] { fs::resize_file(file, size - 1); }},
      {"empty", [&] { fs::resize_file(file, 0); }},
      {"sizes out of range",
       [&] {
         std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
         stream.seekp(8);
         stream.write("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
       }},
  };
  for (const auto& c : damages) {
    c.damage();
    Restart();
    auto module = Compile("object kept");
    ASSERT_TRUE(module.ok()) << c.what;
    EXPECT_NE((*module)->log, log) << c.what << " was believed";
    EXPECT_EQ(ObjectOf(*module), "kept");
    log = (*module)->log;
    EXPECT_EQ(fs::file_size(file), size) << c.what;
  }
}

TEST_F(CompilerPoolTest, DiskCacheIsBounded) {
  options_.disk_bytes = 1000;
  Restart();
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(Compile(absl::StrCat("object ", i, std::string(100, 'x'))).ok());
  uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) bytes += entry.file_size();
  EXPECT_LE(bytes, 1000u);
  EXPECT_GT(bytes, 0u);
}

TEST_F(CompilerPoolTest, MemoryCacheIsBounded) {
  options_.memory_modules = 2;
  options_.cache_directory.clear();
  Restart();
  for (const char* text : {"object a", "object b", "object a", "object c"})
    ASSERT_TRUE(Compile(text).ok());
  EXPECT_NE(pool_->Lookup(kTenant, "fake:1", Source("object a")), nullptr);
  EXPECT_EQ(pool_->Lookup(kTenant, "fake:1", Source("object b")), nullptr) << "used least recently";
  EXPECT_NE(pool_->Lookup(kTenant, "fake:1", Source("object c")), nullptr);
}

TEST_F(CompilerPoolTest, ShutdownCompletesEveryRequest) {
  options_.num_compilers = 1;
  Restart();
  absl::Mutex mutex;
  std::vector<absl::Status> answers;
  for (const char* text : {"hang", "object x", "object y"}) {
    pool_->Compile(kTenant, "fake:1", Source(text), [&](absl::StatusOr<Module> module) {
      absl::MutexLock lock(&mutex);
      answers.push_back(module.status());
    });
  }
  pool_->Shutdown();
  ASSERT_EQ(answers.size(), 3u);
  for (const absl::Status& answer : answers) EXPECT_TRUE(absl::IsUnavailable(answer)) << answer;
  EXPECT_TRUE(absl::IsUnavailable(Compile("object z").status()));
}

class PrecompiledTest : public CompilerPoolTest {
 protected:
  // Like a build: compiles into a folder, for a target that several devices run.
  void SetUp() override {
    CompilerPoolTest::SetUp();
    precompiled_ = folder_.string() + "_precompiled";
    built_ = options_;
    built_.cache_directory = precompiled_;
    {
      CompilerPool pool(built_, &spawner_);
      log_ = CompileIn(pool, kTenant, "fake:base", OwnCode(1))->log;
      wire::Code loops;
      loops.mutable_block_loops();
      CompileIn(pool, kTenant, "fake:base", loops);
    }
    options_.cache_directory.clear();
    options_.precompiled_directory = precompiled_;
    options_.precompiled_targets["fake:1"] = {"fake:best", "fake:base"};
    Restart();
  }
  void TearDown() override {
    CompilerPoolTest::TearDown();
    stride::test_support::RemoveFolder(precompiled_);
  }

  static Module CompileIn(CompilerPool& pool, const TenantId& tenant, const std::string& target,
                          const wire::Code& code) {
    absl::StatusOr<Module> result = absl::InternalError("not called");
    absl::Notification called;
    pool.Compile(tenant, target, code, [&](absl::StatusOr<Module> module) {
      result = std::move(module);
      called.Notify();
    });
    AWAIT(called.HasBeenNotified());
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : nullptr;
  }
  // Returns whether the first use reads the module of the build.
  bool IsUsed() {
    Restart();
    return CompileIn(*pool_, kTenant, "fake:1", OwnCode(1))->log == log_;
  }
  void ForEachFile(const std::function<void(const fs::path&)>& change) {
    for (const auto& entry : fs::directory_iterator(precompiled_)) change(entry.path());
  }

  fs::path precompiled_;
  CompilerOptions built_;
  std::string log_;
};

TEST_F(PrecompiledTest, FirstUseReadsTheFile) {
  EXPECT_TRUE(pool_->precompiled().status().ok());
  EXPECT_EQ(pool_->precompiled().size(), 2u);
  EXPECT_TRUE(pool_->IsPrecompiled("fake:1", OwnCode(1)));
  EXPECT_FALSE(pool_->IsPrecompiled("fake:1", OwnCode(2)));
  EXPECT_FALSE(pool_->IsPrecompiled("fake:other", OwnCode(1)));
  Module module = CompileIn(*pool_, kTenant, "fake:1", OwnCode(1));
  EXPECT_EQ(module->log, log_);
  EXPECT_EQ(module->target, "fake:1");
  EXPECT_EQ(pool_->Lookup(kOther, "fake:1", OwnCode(1)), module);
  EXPECT_NE(CompileIn(*pool_, kTenant, "fake:other", OwnCode(1))->log, log_);
}

TEST_F(PrecompiledTest, BlockLoopsAreNeverCompiled) {
  ASSERT_NE(pool_->BlockLoops("fake:1"), nullptr);
  EXPECT_EQ(pool_->BlockLoops("fake:1"), pool_->BlockLoops("fake:1"));
  EXPECT_EQ(pool_->BlockLoops("fake:other"), nullptr);
  options_.precompiled_directory.clear();
  Restart();
  EXPECT_EQ(pool_->BlockLoops("fake:1"), nullptr);
}

TEST_F(PrecompiledTest, FilesOfAnotherVersionAreNotFound) {
  options_.kinds["fake"].toolchain = "v2";
  EXPECT_FALSE(IsUsed());
  EXPECT_EQ(pool_->BlockLoops("fake:1"), nullptr);
}

TEST_F(PrecompiledTest, DamagedFilesAreNotUsedAndStay) {
  ForEachFile([](const fs::path& file) { fs::resize_file(file, fs::file_size(file) - 1); });
  EXPECT_FALSE(IsUsed());
  EXPECT_EQ(pool_->precompiled().size(), 2u);
  EXPECT_EQ(pool_->BlockLoops("fake:1"), nullptr);
}

TEST_F(PrecompiledTest, FilesWritableByOthersAreNotUsed) {
  ForEachFile([](const fs::path& file) {
    fs::permissions(file, fs::perms::group_write, fs::perm_options::add);
  });
  EXPECT_FALSE(IsUsed());
}

TEST_F(PrecompiledTest, LinksAreNotFollowed) {
  const fs::path elsewhere = precompiled_.string() + "_elsewhere";
  fs::rename(precompiled_, elsewhere);
  fs::create_directory_symlink(elsewhere, precompiled_);
  EXPECT_FALSE(IsUsed());
  EXPECT_FALSE(pool_->precompiled().status().ok());
  fs::remove(precompiled_);
  fs::create_directory(precompiled_);
  for (const auto& entry : fs::directory_iterator(elsewhere))
    fs::create_symlink(entry.path(), precompiled_ / entry.path().filename());
  EXPECT_FALSE(IsUsed());
  stride::test_support::RemoveFolder(elsewhere);
}

TEST_F(PrecompiledTest, FolderWritableByOthersIsNotUsed) {
  fs::permissions(precompiled_, fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(IsUsed());
  EXPECT_TRUE(absl::IsFailedPrecondition(pool_->precompiled().status()));
}

TEST_F(PrecompiledTest, FilesOfAnotherUserAreNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr uid_t kSomeUser = 4242;
  ForEachFile([](const fs::path& file) { ASSERT_EQ(chown(file.c_str(), kSomeUser, 0), 0); });
  EXPECT_FALSE(IsUsed());
  ASSERT_EQ(chown(precompiled_.c_str(), kSomeUser, 0), 0);
  EXPECT_FALSE(IsUsed());
  EXPECT_TRUE(absl::IsFailedPrecondition(pool_->precompiled().status()));
}

// Compilation time must not reveal the code of another tenant.
TEST_F(PrecompiledTest, TenantsShareOnlyCodeOfTheDaemon) {
  const wire::Code source = Source("object one");
  wire::Code calls = OwnCode(0);
  calls.mutable_elementwise()->mutable_program()->add_functions()->set_source("object two");
  for (const wire::Code& code : {source, calls}) {
    Module own = CompileIn(*pool_, kTenant, "fake:1", code);
    EXPECT_EQ(pool_->Lookup(kTenant, "fake:1", code), own);
    EXPECT_EQ(pool_->Lookup(kOther, "fake:1", code), nullptr);
    EXPECT_NE(CompileIn(*pool_, kOther, "fake:1", code)->log, own->log);
  }
  EXPECT_EQ(CompileIn(*pool_, kTenant, "fake:1", OwnCode(7)),
            CompileIn(*pool_, kOther, "fake:1", OwnCode(7)));
}

// Every field that may contain a client function.
TEST(ContentKeyTest, ClientTextIsDetectedEverywhere) {
  const auto has = [](auto set) {
    wire::Code code;
    set(code);
    return HasClientText(code);
  };
  EXPECT_FALSE(has([](wire::Code& code) { code.mutable_block_loops(); }));
  EXPECT_FALSE(has([](wire::Code& code) { code.mutable_reduce()->mutable_map(); }));
  EXPECT_TRUE(has([](wire::Code& code) { code.mutable_source(); }));
  EXPECT_TRUE(has(
      [](wire::Code& code) { code.mutable_elementwise()->mutable_program()->add_functions(); }));
  EXPECT_TRUE(has([](wire::Code& code) { code.mutable_reduce()->mutable_map()->add_functions(); }));
  EXPECT_TRUE(has(
      [](wire::Code& code) { code.mutable_reduce()->mutable_combine_program()->add_functions(); }));
  EXPECT_TRUE(
      has([](wire::Code& code) { code.mutable_reduce()->mutable_finish()->add_functions(); }));
  EXPECT_TRUE(has([](wire::Code& code) { code.mutable_routine()->mutable_function(); }));
  EXPECT_TRUE(has([](wire::Code& code) {
    code.mutable_routine()->add_programs();
    code.mutable_routine()->add_programs()->mutable_program()->add_functions();
  }));
}

TEST_F(PrecompiledTest, BackgroundCompilationsAreBounded) {
  options_.num_compilers = 1;
  options_.max_later = 2;
  Restart();
  // The only compiler is busy.
  pool_->Compile(kTenant, "fake:1", Source("hang"), [](const absl::StatusOr<Module>&) {});
  absl::Mutex mutex;
  std::vector<absl::Status> answers;
  for (int i = 0; i < 4; ++i) {
    pool_->CompileLater(kTenant, "fake:1", OwnCode(i + 10),
                        [&](const absl::StatusOr<Module>& module) {
                          absl::MutexLock lock(&mutex);
                          answers.push_back(module.status());
                        });
  }
  {
    absl::MutexLock lock(&mutex);
    ASSERT_EQ(answers.size(), 2u) << "beyond the bound they are refused at once";
    for (const absl::Status& answer : answers) EXPECT_TRUE(absl::IsUnavailable(answer)) << answer;
  }
  pool_->Shutdown();
  EXPECT_EQ(answers.size(), 4u);
}

}  // namespace
}  // namespace stride::broker
