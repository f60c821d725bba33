#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/broker/compile_queue.h"
#include "server/broker/compiler.h"
#include "server/broker/compiler_process.h"
#include "server/broker/module_cache.h"
#include "server/broker/module_files.h"
#include "server/broker/precompiled_modules.h"
#include "server/broker/spawner.h"

namespace stride::broker {

struct CompilerOptions {
  struct Kind {
    std::string executable;
    std::string toolchain;  // part of the cache key of the code that it compiles
  };
  std::map<std::string, Kind> kinds;  // by the part of a target before its colon
  std::string cache_directory;        // empty: memory only
  std::string precompiled_directory;  // see precompiled_modules.h; empty: none
  // By a device's target: compatible targets of precompiled code, the best first.
  std::map<std::string, std::vector<std::string>> precompiled_targets;
  int num_compilers = 2;  // most processes per kind
  // Additional processes for tenants with no compilation in flight, so that they do not wait for
  // other tenants' code.
  int num_more_compilers = 6;
  absl::Duration timeout = absl::Seconds(60);
  absl::Duration idle_time = absl::Seconds(60);  // a process that is idle for this long is ended
  int max_compilations = 64;  // most compilations per process, which bounds its leaks
  size_t max_later = 32;      // most pending background jobs per tenant
  SandboxPolicy sandbox;
  uint64_t memory_bytes = 256 << 20;
  size_t memory_modules = 512;
  uint64_t disk_bytes = uint64_t{1} << 30;
  bool compress_files = false;  // compress the cache directory's files (ModuleFiles)
};

// The broker's compiler: threads that each own at most one compiler process, and the caches in
// front of them.
class CompilerPool : public Compiler {
 public:
  // `spawner` must outlive the pool.
  CompilerPool(CompilerOptions options, Spawner* spawner);
  ~CompilerPool() override { Shutdown(); }

  std::shared_ptr<const CompiledModule> Lookup(const TenantId& tenant, const std::string& target,
                                               const wire::Code& code) override;
  std::shared_ptr<const CompiledModule> BlockLoops(const std::string& target) override;
  bool IsPrecompiled(const std::string& target, const wire::Code& code) override;
  void Compile(const TenantId& tenant, const std::string& target, const wire::Code& code,
               Done done) override;
  void CompileLater(const TenantId& tenant, const std::string& target, const wire::Code& code,
                    Done done) override;

  // Modules in the folder of precompiled code; its status() says why the folder is not used.
  const PrecompiledModules& precompiled() const { return precompiled_; }

  // Kills the processes, answers pending requests with UNAVAILABLE and joins the threads.
  void Shutdown();

 private:
  using Job = CompileQueue::Job;
  using Module = std::shared_ptr<const CompiledModule>;
  struct Queue {
    CompilerOptions::Kind kind;
    CompileQueue jobs;
    int num_threads = 0;
    int num_idle = 0;
  };
  // Callers that wait for one code.
  struct Waiting {
    std::vector<Done> calls;
    std::set<TenantId> tenants;  // tenants with a queued job for it
    bool begun = false;
  };

  const CompilerOptions::Kind* FindKind(const std::string& target) const;
  std::string KeyOf(const TenantId& tenant, const std::string& target, const wire::Code& code,
                    const std::string& serialized) const;
  void LoadBlockLoops();
  void Request(const TenantId& tenant, const std::string& target, const wire::Code& code,
               bool later, Done done);
  // Keys of precompiled code that runs on the target, the best first.
  std::vector<std::string> PrecompiledKeys(const std::string& target,
                                           const std::string& code) const;
  std::optional<ModuleFiles::Entry> FindPrecompiled(const std::string& target,
                                                    const std::string& code) const;
  Queue& QueueFor(const std::string& target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts another thread if there is work for it.
  void AddThread(Queue& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The next job that no thread has begun or finished; nullopt: there is none.
  std::optional<Job> Begin(Queue& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunThread(Queue* queue);
  absl::StatusOr<Module> Make(const Queue& queue, const Job& job,
                              std::unique_ptr<CompilerProcess>* process);
  absl::StatusOr<CompilerProcess::Output> RunProcess(const std::string& executable, const Job& job,
                                                     std::unique_ptr<CompilerProcess>* process);
  absl::StatusOr<std::shared_ptr<CompiledModule>> MakeModule(const Job& job,
                                                             wire::CompileReply reply,
                                                             const std::string& object);
  absl::StatusOr<Module> Keep(const Job& job, wire::CompileReply reply, const std::string& object);
  void Finish(Queue& queue, const Job& job, const absl::StatusOr<Module>& result);
  // Lets Shutdown kill the process while it compiles. False when Shutdown has begun.
  bool SetRunning(CompilerProcess* process, bool running);

  const CompilerOptions options_;
  Spawner* const spawner_;
  ModuleCache memory_;
  ModuleFiles files_;
  const PrecompiledModules precompiled_;
  std::map<std::string, Module> block_loops_;  // by target; made by the constructor
  std::atomic<uint64_t> last_module_{0};

  absl::Mutex mutex_;
  std::map<std::string, Queue> queues_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // by key
  std::vector<CompilerProcess*> running_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace stride::broker
