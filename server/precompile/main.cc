// stride-precompile: compiles the operations of code_list.h with the build's own compilers into a
// folder that daemons read (broker/precompiled_modules.h). It runs while the product is built.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "server/broker/compiler_pool.h"
#include "server/broker/discovery.h"
#include "server/broker/spawner.h"
#include "server/precompile/code_list.h"

namespace stride::precompile {
namespace {

constexpr char kUsage[] =
    "stride-precompile --workers=DIR --output=DIR [--targets=TARGET,...] [--jobs=N]\n"
    "  TARGET: such as cpu:x86-64-v3 or cuda:sm_90; its kind's worker must be in the folder.\n";

// The block loops have by far the largest code.
constexpr absl::Duration kTimeout = absl::Minutes(10);
constexpr absl::Duration kListTimeout = absl::Seconds(60);
constexpr uint64_t kNoBound = uint64_t{1} << 40;
// Size limit of the folder in the product.
constexpr uint64_t kMaxBytes = 40'000'000;

struct Options {
  std::string workers, output;
  std::vector<std::string> targets = {"cpu:x86-64-v3", "cpu:x86-64-v4"};
  int jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
};

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view text = argv[i];
    if (absl::ConsumePrefix(&text, "--workers=")) {
      options->workers = std::string(text);
    } else if (absl::ConsumePrefix(&text, "--output=")) {
      options->output = std::string(text);
    } else if (absl::ConsumePrefix(&text, "--targets=")) {
      options->targets = absl::StrSplit(text, ',', absl::SkipEmpty());
    } else if (!absl::ConsumePrefix(&text, "--jobs=") || !absl::SimpleAtoi(text, &options->jobs) ||
               options->jobs < 1) {
      return false;
    }
  }
  return !options->workers.empty() && !options->output.empty();
}

// Compilations in flight and their results.
class Progress {
 public:
  void Begin() {
    absl::MutexLock lock(&mutex_);
    ++num_waiting_;
  }
  void End(const absl::StatusOr<std::shared_ptr<const broker::CompiledModule>>& module) {
    absl::MutexLock lock(&mutex_);
    --num_waiting_;
    if (module.ok()) {
      files_.insert(broker::ModuleFileName((*module)->key));
    } else if (!absl::IsUnimplemented(module.status())) {  // unsupported by this device kind
      first_error_.Update(module.status());
    }
  }
  // Waits for all compilations and returns the file names.
  absl::StatusOr<std::set<std::string>> Wait() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](int* waiting) { return *waiting == 0; }, &num_waiting_));
    if (!first_error_.ok()) return first_error_;
    return files_;
  }

 private:
  absl::Mutex mutex_;
  int num_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::string> files_ ABSL_GUARDED_BY(mutex_);
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
};

// Keeps files that this build already compiled.
absl::StatusOr<std::set<std::string>> CompileAll(const Options& options) {
  broker::Spawner spawner(broker::WorkerEnvironment());
  // No sandbox: the build compiles only its own text, and a sandbox would need privileges.
  broker::SandboxPolicy sandbox;
  sandbox.mode = broker::SandboxPolicy::Mode::kOff;
  auto found = broker::Discover(options.workers, kListTimeout, sandbox, &spawner);
  if (!found.ok()) return found.status();
  broker::CompilerOptions compilers;
  for (const auto& [kind, executable] : found->executables)
    compilers.kinds[kind] = {executable, broker::ToolchainOf(*found, kind)};
  compilers.cache_directory = options.output;
  compilers.num_compilers = options.jobs;
  compilers.num_more_compilers = 0;
  compilers.timeout = kTimeout;
  compilers.sandbox = sandbox;
  compilers.disk_bytes = kNoBound;
  compilers.compress_files = true;
  Progress progress;
  broker::CompilerPool pool(compilers, &spawner);
  for (const std::string& target : options.targets) {
    const std::string kind = target.substr(0, target.find(':'));
    if (compilers.kinds.count(kind) == 0 || found->toolchains[kind].empty())
      return absl::NotFoundError(absl::StrCat("no compiler makes code for ", target));
    for (const wire::Code& code : CodesFor(kind)) {
      progress.Begin();
      pool.Compile(TenantId{"build"}, target, code,
                   [&](const auto& module) { progress.End(module); });
    }
  }
  return progress.Wait();
}

int Main(int argc, char** argv) {
  namespace fs = std::filesystem;
  Options options;
  if (!Parse(argc, argv, &options)) {
    std::fputs(kUsage, stderr);
    return 64;
  }
  auto files = CompileAll(options);
  if (!files.ok()) {
    std::fprintf(stderr, "stride-precompile: %s\n", files.status().ToString().c_str());
    return 1;
  }
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(options.output)) {
    if (files->count(entry.path().filename()) > 0) {
      bytes += entry.file_size();
    } else {
      fs::remove(entry.path());  // from an earlier build
    }
  }
  std::printf("%zu modules, %.1f MB in %s\n", files->size(), static_cast<double>(bytes) / 1e6,
              options.output.c_str());
  if (bytes <= kMaxBytes) return 0;
  std::fprintf(stderr, "stride-precompile: more than %.0f MB\n", kMaxBytes / 1e6);
  return 1;
}

}  // namespace
}  // namespace stride::precompile

int main(int argc, char** argv) { return stride::precompile::Main(argc, argv); }
