#include "server/broker/compiler_process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/memory_file.h"
#include "server/wire/status.h"

namespace stride::broker {
namespace {

// The shortest wait that is worth another poll.
constexpr absl::Duration kLeastWait = absl::Milliseconds(1);
constexpr absl::Duration kSendTimeout = absl::Seconds(2);
// Time for a process to exit after its socket is closed. A busy machine needs long to end a large
// process, and a process killed here would count as killed from outside.
constexpr absl::Duration kExitGrace = absl::Seconds(10);
// Larger code travels in a descriptor; wire::kMaxPacketBytes less room for the rest.
constexpr size_t kMaxInlineCodeBytes = 96 << 10;
constexpr uint64_t kMaxObjectBytes = 256 << 20;

absl::Status Refusal(const wire::CompileReply& reply) {
  absl::Status status = wire::ToStatus(reply.status());
  if (absl::IsNotFound(status)) {
    return MakeError(absl::StatusCode::kInvalidArgument, v1::ERROR_REASON_UNKNOWN_ENTRY,
                     {status.message().data(), status.message().size()},
                     {{"entry", reply.unknown_entry()}});
  }
  if (!absl::IsInvalidArgument(status)) return status;
  return MakeError(status.code(), v1::ERROR_REASON_COMPILE_FAILED,
                   {status.message().data(), status.message().size()});
}

bool LeavesProcessUsable(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsUnimplemented(status);
}

absl::StatusOr<std::string> ReadObject(const UniqueFd& fd, uint64_t size) {
  auto map = MemoryMap::Map(fd.get(), size, /*writable=*/false);
  if (!map.ok()) return map.status();
  return std::string(map->view());
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompilerProcess>> CompilerProcess::Start(
    const std::string& executable, const SandboxPolicy& sandbox, Spawner* spawner) {
  auto sockets = wire::CreateSocketPair();
  if (!sockets.ok()) return sockets.status();
  SpawnRequest request;
  request.executable = executable;
  request.arguments = {"--compile", absl::StrCat("--fd=", kChildSocket)};
  for (std::string& argument : CompilerSandboxArguments(sandbox)) {
    request.arguments.push_back(std::move(argument));
  }
  request.socket = sockets->second.get();
  // The compiler's standard error, such as a crash report, may quote the source or machine paths.
  if (!KeepsStandardError(sandbox)) request.standard_error = -1;
  auto child = spawner->Spawn(std::move(request));
  if (!child.ok()) return child.status();
  std::unique_ptr<CompilerProcess> process(
      new CompilerProcess(*std::move(child), std::move(sockets->first)));
  if (absl::Status s = process->channel_.SetSendTimeout(kSendTimeout); !s.ok()) return s;
  return process;
}

absl::Status CompilerProcess::SendRequest(const std::string& target,
                                          const std::string& serialized_code) {
  wire::CompileRequest request;
  request.set_id(++last_id_);
  request.set_target(target);
  if (serialized_code.size() <= kMaxInlineCodeBytes) {
    if (!request.mutable_code()->ParseFromString(serialized_code)) {
      return absl::InternalError("code does not parse");
    }
    return channel_.Send(request);
  }
  request.set_code_in_descriptor(true);
  auto file = CreateSealedCopy("stride-code", serialized_code);
  if (!file.ok()) return file.status();
  return channel_.Send(request, {file->get()});
}

absl::StatusOr<CompilerProcess::Output> CompilerProcess::Compile(const std::string& target,
                                                                 const std::string& serialized_code,
                                                                 absl::Duration timeout) {
  ++num_compiled_;
  usable_ = false;  // until it has sent a valid answer
  absl::Status sent = SendRequest(target, serialized_code);
  if (absl::IsUnavailable(sent)) return Dead(DeathOf(End()));  // it died idle, or during its start
  if (!sent.ok()) return sent;
  wire::CompileReply reply;
  std::vector<UniqueFd> descriptors;
  auto outcome = Await(&reply, &descriptors, timeout);
  if (!outcome.ok()) return Lie();
  if (*outcome == wire::Channel::Outcome::kTimeout) {
    child_.Kill();
    return Dead(CompilerDeath::kTime);
  }
  if (*outcome == wire::Channel::Outcome::kClosed) {
    return Dead(DeathOf(End()));
  }
  auto output = Check(std::move(reply), std::move(descriptors));
  usable_ = death_ == CompilerDeath::kNone && (output.ok() || LeavesProcessUsable(output.status()));
  return output;
}

absl::StatusOr<wire::Channel::Outcome> CompilerProcess::Await(wire::CompileReply* reply,
                                                              std::vector<UniqueFd>* descriptors,
                                                              absl::Duration timeout) {
  const absl::Duration waited = WaitedForProcessor(child_.pid());
  absl::Duration taken;
  for (absl::Duration allowed = timeout;;) {
    auto outcome = channel_.Receive(reply, descriptors, allowed - taken);
    if (!outcome.ok() || *outcome != wire::Channel::Outcome::kTimeout) return outcome;
    taken = allowed;
    allowed = ClockTimeFor(timeout, WaitedForProcessor(child_.pid()) - waited);
    if (allowed <= taken + kLeastWait) return outcome;
  }
}

ChildExit CompilerProcess::End() {
  if (!child_.WaitEnded(kExitGrace)) child_.Kill();
  return child_.Reap();
}

absl::Status CompilerProcess::Dead(CompilerDeath death) {
  usable_ = false;
  // Keep the first cause.
  if (death_ == CompilerDeath::kNone) death_ = death;
  return absl::AbortedError("the compiler process died");
}

absl::StatusOr<CompilerProcess::Output> CompilerProcess::Check(wire::CompileReply reply,
                                                               std::vector<UniqueFd> descriptors) {
  if (reply.id() != last_id_) return Lie();
  if (reply.status().code() != 0) return descriptors.empty() ? Refusal(reply) : Lie();
  if (descriptors.size() != 1) return Lie();
  // A compromised compiler must not send a long log either.
  if (reply.log().size() > wire::kMaxStatusText) return Lie();
  if (reply.size() > kMaxObjectBytes || !CheckMemoryFile(descriptors[0].get(), reply.size()).ok())
    return Lie();
  auto object = ReadObject(descriptors[0], reply.size());
  if (!object.ok()) return object.status();
  return Output{std::move(reply), *std::move(object)};
}

}  // namespace stride::broker
