#include "client/cpp/src/array_state.h"
#include "client/cpp/src/background.h"
#include "client/cpp/src/bulk.h"
#include "client/cpp/src/call.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/core.h"
#include "client/cpp/src/status.h"
#include "client/cpp/src/user_region.h"
#include "stride/client.h"
#include "stride/v1/array_service.grpc.pb.h"

namespace stride {

using internal::ArrayState;
using internal::LocalError;

namespace {

// Downloads of up to this size use the command stream, without an answer to the commands before it.
constexpr size_t kFetchOnStreamBytes = 256 << 10;

// Splits `tenants/t/arrays/a` into `tenants/t` and `a`.
std::optional<std::pair<std::string, std::string>> SplitName(const std::string& name) {
  const size_t at = name.find("/arrays/");
  if (at == std::string::npos) return std::nullopt;
  return std::make_pair(name.substr(0, at), name.substr(at + std::string_view("/arrays/").size()));
}

Result<void> CheckFits(const ArraySpec& spec, size_t bytes, DataType expected) {
  if (expected != DataType::kUnspecified && spec.data_type != expected) {
    return LocalError(Code::kInvalidArgument,
                      "The array is " + ToString(spec) + ", not of " + std::string(Name(expected)));
  }
  if (SizeBytes(spec) != static_cast<int64_t>(bytes)) {
    return LocalError(Code::kInvalidArgument, "The array is " + ToString(spec) +
                                                  "; the memory for it has " +
                                                  std::to_string(bytes) + " bytes");
  }
  return {};
}

bool RidesOnStream(const ArrayState& state, std::span<std::byte> out) {
  return state.handle() != 0 && out.size() <= kFetchOnStreamBytes;
}

std::shared_ptr<internal::PendingCommand> SubmitFetch(internal::Core& core,
                                                      const ArrayState& state) {
  v1::Command command;
  command.mutable_fetch()->set_handle(state.handle());
  return core.stream.Submit(std::move(command));
}

Result<void> AwaitFetch(internal::Core& core, internal::PendingCommand& pending,
                        std::span<std::byte> out, DataType expected,
                        const TransferOptions& options) {
  auto answer = pending.Wait(options, core.default_timeout);
  if (!answer) return answer.error();
  if ((*answer)->results_size() != 1)
    return LocalError(Code::kInternal, "The daemon's answer lacks the array");
  const auto& array = (*answer)->results(0).inline_array();
  if (auto fits = CheckFits(internal::FromProto(array.spec()), out.size(), expected); !fits)
    return fits;
  if (array.data().size() != out.size())
    return LocalError(Code::kDataLoss, "The daemon sent too few bytes");
  std::copy_n(reinterpret_cast<const std::byte*>(array.data().data()), out.size(), out.begin());
  if (options.progress) options.progress(static_cast<int64_t>(out.size()));
  return {};
}

Result<void> FetchState(internal::Core& core, const ArrayState& state, std::span<std::byte> out,
                        DataType expected, const TransferOptions& options) {
  if (RidesOnStream(state, out))
    return AwaitFetch(core, *SubmitFetch(core, state), out, expected, options);
  // Wait until the daemon knows the handle: bulk transfers use other connections and may overtake
  // the stream.
  core.AwaitWrites(options);
  auto spec = state.Spec(options);
  if (!spec) return spec.error();
  if (auto fits = CheckFits(*spec, out.size(), expected); !fits) return fits;
  auto name = state.Name();
  if (!name) return name.error();
  return internal::FetchBulk(core.bulk(), *name, out, options, core.default_timeout);
}

Result<Array> PutState(const std::shared_ptr<internal::Core>& core, std::span<const std::byte> data,
                       const ArraySpec& spec, const PutOptions& options) {
  if (SizeBytes(spec) != static_cast<int64_t>(data.size())) {
    return LocalError(Code::kInvalidArgument, "The shape says " + ToString(spec) +
                                                  "; the data has " + std::to_string(data.size()) +
                                                  " bytes");
  }
  if (!options.name.empty()) {
    const auto parts = SplitName(options.name);
    if (!parts)
      return LocalError(Code::kInvalidArgument, "Not an array's full name: " + options.name);
    auto put = internal::PutNamed(core->bulk(), parts->first, parts->second, spec, data, options,
                                  core->default_timeout);
    if (!put) return put.error();
    return Array(std::make_shared<ArrayState>(core, options.name));
  }
  auto session = core->session.Name();
  if (!session) return session.error();
  const uint64_t handle = core->NextHandle();
  auto put = internal::PutBulk(core->bulk(), *session, std::to_string(handle), spec, data, options,
                               core->default_timeout);
  if (!put) {
    if (put.error().reason == "SESSION_NOT_FOUND") core->session.Forget(*session);
    return put.error();
  }
  return Array(std::make_shared<ArrayState>(core, handle, spec));
}

}  // namespace

Result<Array> Client::PutBytes(std::span<const std::byte> data, const ArraySpec& spec,
                               const PutOptions& options) {
  return PutState(core_, data, spec, options);
}

Result<void> Client::FetchBytes(const Array& array, std::span<std::byte> out, DataType expected,
                                const TransferOptions& options) {
  if (!array) return LocalError(Code::kInvalidArgument, "This Array stands for nothing");
  return FetchState(*core_, *array.state(), out, expected, options);
}

Future<Array> Client::PutAsync(std::span<const std::byte> data, const ArraySpec& spec,
                               PutOptions options) {
  return internal::RunInBackground<Array>(
      *core_, std::move(options),
      [core = core_, data, spec](const PutOptions& o) { return PutState(core, data, spec, o); });
}

Future<void> Client::FetchAsync(const Array& array, std::span<std::byte> out,
                                TransferOptions options) {
  // Send it now, so that it precedes operations that the caller sends next.
  std::shared_ptr<internal::PendingCommand> sent;
  if (array && RidesOnStream(*array.state(), out)) sent = SubmitFetch(*core_, *array.state());
  return internal::RunInBackground<void>(
      *core_, std::move(options),
      [core = core_, state = array.state(), sent, out](const TransferOptions& o) -> Result<void> {
        if (sent) return AwaitFetch(*core, *sent, out, DataType::kUnspecified, o);
        if (!state) return LocalError(Code::kInvalidArgument, "This Array stands for nothing");
        return FetchState(*core, *state, out, DataType::kUnspecified, o);
      });
}

Result<SharedBuffer> Client::AllocateShared(size_t bytes) {
  auto region = core_->shared.Allocate(static_cast<int64_t>(bytes));
  if (!region) return region.error();
  return SharedBuffer(std::make_shared<internal::UserRegion>(core_, *std::move(region)));
}

Array Client::Open(std::string name) {
  return Array(std::make_shared<ArrayState>(core_, std::move(name)));
}

Result<std::vector<ArrayInfo>> Client::ListArrays(const std::string& parent,
                                                  const CallOptions& options) {
  auto stub = v1::ArrayService::NewStub(core_->channels.control());
  std::vector<ArrayInfo> arrays;
  v1::ListArraysRequest request;
  request.set_parent(parent);
  request.set_page_size(1000);
  do {
    internal::Call call(options, core_->default_timeout);
    v1::ListArraysResponse response;
    if (auto status = stub->ListArrays(call.context(), request, &response); !status.ok()) {
      return internal::ToError(status);
    }
    for (const auto& array : response.arrays()) arrays.push_back(internal::FromProto(array));
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return arrays;
}

Result<void> Client::DeleteArray(const std::string& name, const CallOptions& options) {
  internal::Call call(options, core_->default_timeout);
  v1::DeleteArrayRequest request;
  request.set_name(name);
  v1::DeleteArrayResponse response;
  auto stub = v1::ArrayService::NewStub(core_->channels.control());
  if (auto status = stub->DeleteArray(call.context(), request, &response); !status.ok()) {
    return internal::ToError(status);
  }
  return {};
}

}  // namespace stride
