#include <algorithm>

#include "client/cpp/src/array_state.h"
#include "client/cpp/src/background.h"
#include "client/cpp/src/call.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/core.h"
#include "client/cpp/src/operation_impl.h"
#include "client/cpp/src/status.h"
#include "client/cpp/src/watch.h"
#include "stride/client.h"
#include "stride/v1/compute_service.grpc.pb.h"
#include "stride/v1/session_service.grpc.pb.h"

namespace stride {

using internal::ArrayState;

namespace {

// The destination of each result of a message.
struct Target {
  uint64_t handle = 0;
  std::string name;
  bool owns = false;
};

std::vector<Target> ChooseTargets(internal::Core& core, v1::Operation& message, int num_outputs) {
  std::vector<Target> targets;
  for (v1::Output* output : internal::MutableOutputs(message, num_outputs)) {
    const bool chosen = output->target_case() != v1::Output::TARGET_NOT_SET;
    if (!chosen) output->set_handle(core.NextHandle());
    targets.push_back({output->handle(), output->name(), !chosen});
  }
  return targets;
}

// A kernel may write through any pointer that it gets.
bool WritesExisting(const v1::Operation& operation) {
  for (const auto& output : operation.outputs()) {
    if (output.existing()) return true;
  }
  for (const auto& argument : operation.kernel_launch().arguments()) {
    if (argument.has_array()) return true;
    for (const auto& member : argument.aggregate().members()) {
      if (member.has_array()) return true;
    }
  }
  return false;
}

// Like the blocking stub, but polls for the answer at first.
Result<v1::RunResponse> RunByGrpc(internal::Core& core, grpc::ClientContext* context,
                                  const v1::RunRequest& request) {
  using NextStatus = grpc::CompletionQueue::NextStatus;
  const auto stub = v1::ComputeService::NewStub(core.channels.control());
  grpc::CompletionQueue queue;
  grpc::Status status;
  v1::RunResponse response;
  const auto call = stub->AsyncRun(context, request, &queue);
  call->Finish(&response, &status, nullptr);
  const gpr_timespec past = gpr_inf_past(GPR_CLOCK_MONOTONIC);
  void* tag = nullptr;
  bool ok = false;
  const bool answered =
      internal::Watch([&] { return queue.AsyncNext(&tag, &ok, past) == NextStatus::GOT_EVENT; });
  if (!answered) queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  if (!status.ok()) return internal::ToError(status);
  return response;
}

// Uses a local connection if one is available.
Result<v1::RunResponse> CallRun(internal::Core& core, const v1::RunRequest& request,
                                const CallOptions& options) {
  const auto deadline =
      internal::LocalDeadlineAfter(internal::TimeoutOf(options, core.default_timeout));
  if (auto answer = core.local.Run(request, options, deadline)) return *std::move(answer);
  CallOptions rest = options;  // with the remaining time
  if (deadline) {
    rest.timeout = std::max<std::chrono::nanoseconds>(std::chrono::nanoseconds(1),
                                                      *deadline - std::chrono::steady_clock::now());
  }
  internal::Call call(rest, {});
  return RunByGrpc(core, call.context(), request);
}

Result<RunReply> RunInline(internal::Core& core, const Operation& operation,
                           const CallOptions& options) {
  if (operation.impl().error) return *operation.impl().error;
  v1::RunRequest request;
  *request.mutable_operation() = operation.impl().message;
  for (v1::Output* output :
       internal::MutableOutputs(*request.mutable_operation(), operation.num_outputs())) {
    if (output->target_case() == v1::Output::TARGET_NOT_SET) output->set_inline_result(true);
  }
  core.AwaitWrites(options);
  if (!operation.impl().arrays.empty()) {
    auto session = core.session.Name();
    if (!session) return session.error();
    request.set_session(*session);
    // Run does not use the command stream, so the operands must have arrived.
    for (const auto& array : operation.impl().arrays) {
      if (auto spec = array->Spec(options); !spec) return spec.error();
    }
  }
  const auto response = CallRun(core, request, options);
  if (!response) return response.error();
  RunReply reply{.timeline = internal::FromProto(response->timeline()),
                 .printed = {response->printed(), response->dropped_lines()}};
  for (const auto& result : response->results()) {
    const auto* data = reinterpret_cast<const std::byte*>(result.inline_array().data().data());
    reply.values.push_back({internal::FromProto(result.array()).spec,
                            {data, data + result.inline_array().data().size()}});
    if (result.has_inline_array())
      reply.values.back().spec = internal::FromProto(result.inline_array().spec());
  }
  return reply;
}

}  // namespace

std::vector<Array> Client::ComputeAll(const Operation& operation, const ComputeOptions& options) {
  v1::Command command;
  *command.mutable_operation() = operation.impl().message;
  command.set_wait(options.timeline);
  const auto timeout = internal::TimeoutOf(options, core_->default_timeout);
  if (timeout.count() != 0) internal::ToProto(timeout, command.mutable_timeout());
  const auto targets = ChooseTargets(*core_, *command.mutable_operation(), operation.num_outputs());
  const bool writes = WritesExisting(command.operation());
  const auto& refused = operation.impl().error;
  const auto pending = refused ? core_->Refuse(*refused) : core_->stream.Submit(std::move(command));
  if (writes) core_->NoteWrite(pending);
  std::vector<Array> arrays;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Target& target = targets[i];
    const int index = static_cast<int>(i);
    arrays.emplace_back(
        target.handle != 0
            ? std::make_shared<ArrayState>(core_, target.handle, pending, index, options.timeline,
                                           target.owns)
            : std::make_shared<ArrayState>(core_, target.name, pending, index, options.timeline));
  }
  return arrays;
}

Array Client::Compute(const Operation& operation, const ComputeOptions& options) {
  auto arrays = ComputeAll(operation, options);
  // A launch without new arrays returns none.
  return arrays.empty() ? Array() : std::move(arrays.front());
}

Array Client::Ufunc(std::string_view name, const std::vector<Operand>& inputs) {
  return Compute(Operation::Ufunc(name, inputs));
}

Array Client::Expression(std::string_view text, const std::map<std::string, Operand>& inputs) {
  return Compute(Operation::Expression(text, inputs));
}

Array Client::Reduce(Reduction function, const Operand& input, const ReduceOptions& options) {
  return Compute(Operation::Reduce(function, input, options));
}

Array Client::Matmul(const Operand& left, const Operand& right) {
  return Compute(Operation::Matmul(left, right));
}

std::vector<Array> Client::Kernel(const KernelOptions& options) {
  return ComputeAll(Operation::Kernel(options));
}

Array Client::Zeros(const ArraySpec& spec) { return Compute(Operation::Zeros(spec)); }

Array Client::Full(const ArraySpec& spec, const Operand& value) {
  return Compute(Operation::Full(spec, value));
}

Array Client::Arange(int64_t stop, DataType data_type) {
  return Compute(Operation::Arange(0, stop, 1, data_type));
}

Array Client::Linspace(double start, double stop, int64_t count) {
  return Compute(Operation::Linspace(start, stop, count));
}

Array Client::View(const Array& array, const ViewSteps& steps) {
  return Compute(Operation::View(array, steps));
}

Array Client::SliceOf(const Array& array, const Slice& slice) {
  return View(array, ViewSteps().Slice(slice));
}

Array Client::Transpose(const Array& array, std::vector<int32_t> axes) {
  return View(array, ViewSteps().Transpose(std::move(axes)));
}

Array Client::Reshape(const Array& array, std::vector<int64_t> shape) {
  return View(array, ViewSteps().Reshape(std::move(shape)));
}

Array Client::CopyTo(const Array& array, std::string_view device) {
  return Compute(Operation::Copy(array).OnDevice(device));
}

Result<void> Client::Synchronize(const CallOptions& options) {
  v1::Command command;
  command.mutable_synchronize();
  auto answer = core_->stream.Submit(std::move(command))->Wait(options, core_->default_timeout);
  if (!answer) return answer.error();
  if (auto refusal = core_->TakeRefusal()) return *std::move(refusal);
  return {};
}

Result<KernelOutput> Client::ReadPrinted(const CallOptions& options) {
  auto session = core_->session.Name();
  if (!session) return session.error();
  v1::ReadPrintedRequest request;
  request.set_name(*session);
  auto stub = v1::SessionService::NewStub(core_->channels.control());
  KernelOutput output;
  v1::ReadPrintedResponse response;
  do {
    internal::Call call(options, core_->default_timeout);
    if (auto status = stub->ReadPrinted(call.context(), request, &response); !status.ok())
      return internal::ToError(status);
    output.text += response.text();
    output.dropped_lines += response.dropped_lines();
  } while (response.more());
  return output;
}

Result<RunReply> Client::Run(const Operation& operation, const CallOptions& options) {
  return RunInline(*core_, operation, options);
}

Future<RunReply> Client::RunAsync(const Operation& operation, CallOptions options) {
  return internal::RunInBackground<RunReply>(
      *core_, std::move(options),
      [core = core_, operation](const CallOptions& o) { return RunInline(*core, operation, o); });
}

}  // namespace stride
