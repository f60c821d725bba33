#include "server/broker/compiler_pool.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/memory_file.h"
#include "server/base/system_error.h"
#include "server/broker/content_key.h"

namespace stride::broker {
namespace {

absl::Status ShuttingDown() {
  return MakeError(absl::StatusCode::kUnavailable, v1::ERROR_REASON_DRAINING,
                   "the service is shutting down");
}

}  // namespace

CompilerPool::CompilerPool(CompilerOptions options, Spawner* spawner)
    : options_(std::move(options)),
      spawner_(spawner),
      memory_(options_.memory_bytes, options_.memory_modules),
      files_(options_.cache_directory, options_.disk_bytes, options_.compress_files),
      precompiled_(options_.precompiled_directory) {
  LoadBlockLoops();
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, kind] : options_.kinds) {
    queues_.emplace(
        name, Queue{.kind = kind,
                    .jobs = CompileQueue(options_.num_compilers, options_.num_more_compilers)});
  }
  // Start one thread per kind now, so that no request finds the machine without a thread.
  for (auto& [name, queue] : queues_) {
    ++queue.num_threads;
    threads_.emplace_back([this, queue = &queue] { RunThread(queue); });
  }
}

const CompilerOptions::Kind* CompilerPool::FindKind(const std::string& target) const {
  auto found = options_.kinds.find(target.substr(0, target.find(':')));
  return found == options_.kinds.end() ? nullptr : &found->second;
}

std::string CompilerPool::KeyOf(const TenantId& tenant, const std::string& target,
                                const wire::Code& code, const std::string& serialized) const {
  const CompilerOptions::Kind* kind = FindKind(target);
  std::string toolchain = kind == nullptr ? "" : kind->toolchain;
  if (HasClientText(code)) absl::StrAppend(&toolchain, "\ntenant ", tenant.value);
  return ContentKey(target, toolchain, serialized);
}

void CompilerPool::LoadBlockLoops() {
  wire::Code code;
  code.mutable_block_loops();
  const std::string serialized = SerializeCode(code);
  for (const auto& [target, targets] : options_.precompiled_targets) {
    auto entry = FindPrecompiled(target, serialized);
    if (!entry.has_value()) continue;
    const Job job{.tenant = {}, .key = KeyOf({}, target, code, serialized), .target = target};
    auto module = MakeModule(job, std::move(entry->reply), entry->object);
    if (!module.ok()) continue;
    block_loops_[target] = *std::move(module);
  }
}

std::vector<std::string> CompilerPool::PrecompiledKeys(const std::string& target,
                                                       const std::string& code) const {
  std::vector<std::string> keys;
  auto targets = options_.precompiled_targets.find(target);
  const CompilerOptions::Kind* kind = FindKind(target);
  if (targets == options_.precompiled_targets.end() || kind == nullptr) return keys;
  for (const std::string& other : targets->second)
    keys.push_back(ContentKey(other, kind->toolchain, code));
  return keys;
}

std::optional<ModuleFiles::Entry> CompilerPool::FindPrecompiled(const std::string& target,
                                                                const std::string& code) const {
  for (const std::string& key : PrecompiledKeys(target, code)) {
    if (auto entry = precompiled_.Read(key)) return entry;
  }
  return std::nullopt;
}

bool CompilerPool::IsPrecompiled(const std::string& target, const wire::Code& code) {
  if (precompiled_.size() == 0) return false;
  const std::vector<std::string> keys = PrecompiledKeys(target, SerializeCode(code));
  return std::any_of(keys.begin(), keys.end(),
                     [this](const std::string& key) { return precompiled_.Has(key); });
}

CompilerPool::Module CompilerPool::Lookup(const TenantId& tenant, const std::string& target,
                                          const wire::Code& code) {
  return memory_.Find(KeyOf(tenant, target, code, SerializeCode(code)));
}

CompilerPool::Module CompilerPool::BlockLoops(const std::string& target) {
  auto found = block_loops_.find(target);
  return found == block_loops_.end() ? nullptr : found->second;
}

void CompilerPool::Compile(const TenantId& tenant, const std::string& target,
                           const wire::Code& code, Done done) {
  Request(tenant, target, code, /*later=*/false, std::move(done));
}

void CompilerPool::CompileLater(const TenantId& tenant, const std::string& target,
                                const wire::Code& code, Done done) {
  Request(tenant, target, code, /*later=*/true, std::move(done));
}

void CompilerPool::Request(const TenantId& tenant, const std::string& target,
                           const wire::Code& code, bool later, Done done) {
  Job job{
      .tenant = tenant, .key = {}, .target = target, .code = SerializeCode(code), .later = later};
  job.key = KeyOf(tenant, target, code, job.code);
  if (Module module = memory_.Find(job.key)) return done(std::move(module));
  if (FindKind(target) == nullptr) {
    return done(absl::InternalError(absl::StrCat("no compiler makes code for ", target)));
  }
  absl::Status refusal = ShuttingDown();
  {
    absl::MutexLock lock(&mutex_);
    Queue& queue = QueueFor(target);
    const bool too_many = later && queue.jobs.num_later(tenant) >= options_.max_later;
    if (too_many) refusal = absl::UnavailableError("much is to be compiled already");
    if (!stopping_ && !too_many) {
      Waiting& waiting = waiting_[job.key];
      const bool is_new = waiting.calls.empty();
      waiting.calls.push_back(std::move(done));
      // Equal code in another tenant's queue, or as a background job, may be far from its turn:
      // queue it for this tenant too. Begin skips the later duplicate.
      if (waiting.begun || (later ? !is_new : !waiting.tenants.insert(tenant).second)) return;
      queue.jobs.Add(std::move(job));
      AddThread(queue);
      return;
    }
  }
  done(std::move(refusal));
}

CompilerPool::Queue& CompilerPool::QueueFor(const std::string& target) {
  return queues_.at(target.substr(0, target.find(':')));
}

void CompilerPool::AddThread(Queue& queue) {
  if (queue.num_idle >= static_cast<int>(queue.jobs.num_waiting())) return;
  const bool one_of_few = queue.num_threads < options_.num_compilers;
  const bool all_at_work = queue.jobs.num_running() == queue.num_threads;
  if (!one_of_few && !(all_at_work && queue.jobs.CanBegin())) return;
  // If the machine refuses a new thread, the existing ones do the work.
  absl::StatusOr<std::thread> thread = StartThread([this, &queue] { RunThread(&queue); });
  if (!thread.ok()) return;
  ++queue.num_threads;
  threads_.push_back(*std::move(thread));
}

std::optional<CompilerPool::Job> CompilerPool::Begin(Queue& queue) {
  while (queue.jobs.CanBegin()) {
    Job job = queue.jobs.Begin();
    auto waiting = waiting_.find(job.key);
    if (waiting != waiting_.end() && !std::exchange(waiting->second.begun, true)) return job;
    queue.jobs.End(job.tenant, job.later);
  }
  return std::nullopt;
}

void CompilerPool::RunThread(Queue* queue) {
  std::unique_ptr<CompilerProcess> process;
  auto due = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || queue->jobs.CanBegin();
  };
  for (;;) {
    std::optional<Job> job;
    {
      absl::MutexLock lock(&mutex_);
      ++queue->num_idle;
      bool woken = Await(mutex_, absl::Condition(&due),
                         process ? Now() + options_.idle_time : SteadyTime::InfiniteFuture());
      --queue->num_idle;
      if (stopping_) break;
      if (woken) {
        job = Begin(*queue);
        if (!job.has_value()) continue;
        AddThread(*queue);  // for jobs that need not wait for this one
      }
    }
    if (!job.has_value()) {
      process.reset();
    } else {
      Finish(*queue, *job, Make(*queue, *job, &process));
    }
  }
}

absl::StatusOr<CompilerPool::Module> CompilerPool::Make(const Queue& queue, const Job& job,
                                                        std::unique_ptr<CompilerProcess>* process) {
  if (std::optional<ModuleFiles::Entry> entry = files_.Read(job.key)) {
    return Keep(job, std::move(entry->reply), entry->object);
  }
  if (std::optional<ModuleFiles::Entry> entry = FindPrecompiled(job.target, job.code)) {
    return Keep(job, std::move(entry->reply), entry->object);
  }
  auto output = RunProcess(queue.kind.executable, job, process);
  if (*process &&
      (!(*process)->usable() || (*process)->num_compiled() >= options_.max_compilations)) {
    process->reset();
  }
  if (!output.ok()) return output.status();
  wire::CompileReply& reply = output->reply;
  reply.clear_id();
  // Without a file on disk later starts are only slower; the disk may be full or read-only.
  if (absl::Status s = files_.Write(job.key, reply, output->object); !s.ok()) {
    std::fprintf(stderr, "compiled code is not kept: %s\n", s.ToString().c_str());
  }
  return Keep(job, std::move(reply), output->object);
}

absl::StatusOr<CompilerProcess::Output> CompilerPool::RunProcess(
    const std::string& executable, const Job& job, std::unique_ptr<CompilerProcess>* process) {
  for (CompilerVerdict verdict;;) {
    if (*process == nullptr) {
      auto started = CompilerProcess::Start(executable, options_.sandbox, spawner_);
      if (!started.ok()) return started.status();
      *process = *std::move(started);
    }
    const bool fresh = (*process)->num_compiled() == 0;
    if (!SetRunning(process->get(), true)) return ShuttingDown();
    auto output = (*process)->Compile(job.target, job.code, options_.timeout);
    bool stopping = !SetRunning(process->get(), false);
    if (!output.ok() && stopping) return ShuttingDown();
    const CompilerDeath death = (*process)->death();
    if (death == CompilerDeath::kNone) return output;
    verdict.Died(death, fresh);
    if (!verdict.may_try_again()) return verdict.status(options_.timeout);
    process->reset();
  }
}

bool CompilerPool::SetRunning(CompilerProcess* process, bool running) {
  absl::MutexLock lock(&mutex_);
  if (running && !stopping_) running_.push_back(process);
  if (!running) running_.erase(std::find(running_.begin(), running_.end(), process));
  return !stopping_;
}

absl::StatusOr<std::shared_ptr<CompiledModule>> CompilerPool::MakeModule(
    const Job& job, wire::CompileReply reply, const std::string& object) {
  auto module = std::make_shared<CompiledModule>();
  auto file = CreateSealedCopy("stride-module", object);
  if (!file.ok()) return file.status();
  module->id = ++last_module_;
  module->target = job.target;
  module->key = job.key;
  module->object = *std::move(file);
  module->size = object.size();
  module->description = std::move(*reply.mutable_description());
  module->log = std::move(*reply.mutable_log());
  return module;
}

absl::StatusOr<CompilerPool::Module> CompilerPool::Keep(const Job& job, wire::CompileReply reply,
                                                        const std::string& object) {
  auto module = MakeModule(job, std::move(reply), object);
  if (module.ok()) memory_.Put(*module);
  return module;
}

void CompilerPool::Finish(Queue& queue, const Job& job, const absl::StatusOr<Module>& result) {
  std::vector<Done> calls;
  {
    absl::MutexLock lock(&mutex_);
    queue.jobs.End(job.tenant, job.later);
    auto found = waiting_.find(job.key);
    calls = std::move(found->second.calls);
    waiting_.erase(found);
  }
  for (Done& done : calls) done(result);
}

void CompilerPool::Shutdown() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (CompilerProcess* process : running_) process->Kill();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, Waiting> waiting;
  {
    absl::MutexLock lock(&mutex_);
    waiting.swap(waiting_);
  }
  for (auto& [key, one] : waiting) {
    for (Done& done : one.calls) done(ShuttingDown());
  }
}

}  // namespace stride::broker
