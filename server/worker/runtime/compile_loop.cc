#include "server/worker/runtime/compile_loop.h"

#include <utility>
#include <vector>

#include "server/base/memory_file.h"
#include "server/base/unknown_entry.h"
#include "server/wire/status.h"
#include "server/worker/runtime/process_setup.h"

namespace stride::worker {
namespace {

constexpr uint64_t kMaxCodeBytes = 64 << 20;

absl::Status ReadLargeCode(const std::vector<UniqueFd>& descriptors, wire::Code* code) {
  if (descriptors.size() != 1) return absl::InternalError("a request lacks its descriptor");
  if (absl::Status s = CheckMemoryFile(descriptors[0].get(), 0); !s.ok()) return s;
  absl::StatusOr<uint64_t> size = MemoryFileSize(descriptors[0].get());
  if (!size.ok()) return size.status();
  if (*size > kMaxCodeBytes) return absl::ResourceExhaustedError("the source is too large");
  auto map = MemoryMap::Map(descriptors[0].get(), *size, /*writable=*/false);
  if (!map.ok()) return map.status();
  if (!code->ParseFromArray(map->data(), static_cast<int>(map->size()))) {
    return absl::InternalError("a request's descriptor holds no code");
  }
  return absl::OkStatus();
}

absl::StatusOr<CompiledCode> Answer(CodeCompiler* compiler, wire::CompileRequest& request,
                                    const std::vector<UniqueFd>& descriptors,
                                    absl::Duration processor_time) {
  if (request.code_in_descriptor()) {
    absl::Status status = ReadLargeCode(descriptors, request.mutable_code());
    if (!status.ok()) return status;
  }
  AllowProcessorTime(processor_time);
  return compiler->Compile(request.target(), request.code());
}

absl::Status Reply(wire::Channel* channel, uint64_t id, absl::StatusOr<CompiledCode> code) {
  wire::CompileReply reply;
  reply.set_id(id);
  absl::StatusOr<UniqueFd> object = absl::InternalError("nothing was compiled");
  if (code.ok()) object = CreateSealedCopy("stride-object", code->object);
  if (!code.ok() || !object.ok()) {
    *reply.mutable_status() = wire::FromStatus(code.ok() ? object.status() : code.status());
    // The client's text: convert it to UTF-8 like a status.
    const std::string entry = UnknownEntryOf(code.status());
    reply.set_unknown_entry(wire::FromStatus(absl::UnknownError(entry)).message());
    return channel->Send(reply);
  }
  // Warnings are as untrusted as the source: convert them to UTF-8 and shorten them like a status.
  reply.set_log(wire::FromStatus(absl::UnknownError(code->log)).message());
  reply.set_size(code->object.size());
  *reply.mutable_description() = std::move(code->description);
  return channel->Send(reply, {object->get()});
}

}  // namespace

int RunCompileLoop(wire::Channel* channel, CodeCompiler* compiler, absl::Duration processor_time) {
  wire::CompileRequest request;
  std::vector<UniqueFd> descriptors;
  for (;;) {
    auto outcome = channel->Receive(&request, &descriptors);
    if (!outcome.ok()) return 2;
    if (*outcome != wire::Channel::Outcome::kMessage) return 0;
    absl::Status sent =
        Reply(channel, request.id(), Answer(compiler, request, descriptors, processor_time));
    if (absl::IsResourceExhausted(sent)) {  // too many kernels to describe in one packet
      sent = Reply(channel, request.id(), absl::ResourceExhaustedError(sent.message()));
    }
    if (!sent.ok()) return absl::IsUnavailable(sent) ? 0 : 1;
  }
}

}  // namespace stride::worker
