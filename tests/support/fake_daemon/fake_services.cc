#include "tests/support/fake_daemon/fake_services.h"

#include <google/rpc/error_details.pb.h>

#include <cstring>

namespace stride::testing {
namespace {

v1::Array Describe(const std::string& name, const FakeArray& array) {
  v1::Array out;
  out.set_name(name);
  out.set_data_type(array.spec.data_type());
  *out.mutable_shape() = array.spec.shape();
  out.set_size_bytes(static_cast<int64_t>(array.data.size()));
  if (array.error.code() != 0) {
    out.set_state(v1::Array::STATE_FAILED);
    *out.mutable_error() = array.error;
  } else {
    const bool whole = array.arrived == static_cast<int64_t>(array.data.size());
    out.set_state(whole ? v1::Array::STATE_READY : v1::Array::STATE_PENDING);
  }
  out.add_devices("devices/cpu:0");
  return out;
}

int64_t NumBytes(const v1::ArraySpec& spec) {
  static constexpr int kSizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  int64_t bytes = kSizes[spec.data_type()];
  for (int64_t extent : spec.shape()) bytes *= extent;
  return bytes;
}

google::rpc::Status NotFound(const std::string& name) {
  return RichStatus(5, "ARRAY_NOT_FOUND", "No array " + name);
}

}  // namespace

google::rpc::Status RichStatus(int code, const std::string& reason, const std::string& message) {
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_domain("stride.v1");
  info.set_reason(reason);
  status.add_details()->PackFrom(info);
  return status;
}

grpc::Status ToGrpc(const google::rpc::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), status.message(),
                      status.SerializeAsString());
}

grpc::Status FakeSessionService::CreateSession(grpc::ServerContext*,
                                               const v1::CreateSessionRequest*,
                                               v1::CreateSessionResponse* response) {
  response->mutable_session()->set_name("sessions/s" + std::to_string(++state_.counters.sessions));
  ++state_.counters.open_sessions;
  return grpc::Status::OK;
}

grpc::Status FakeSessionService::RenewSession(grpc::ServerContext*, const v1::RenewSessionRequest*,
                                              v1::RenewSessionResponse*) {
  return grpc::Status::OK;
}

grpc::Status FakeSessionService::DeleteSession(grpc::ServerContext*,
                                               const v1::DeleteSessionRequest*,
                                               v1::DeleteSessionResponse*) {
  --state_.counters.open_sessions;
  return grpc::Status::OK;
}

grpc::Status FakeArrayService::PutArray(grpc::ServerContext*,
                                        grpc::ServerReader<v1::PutArrayRequest>* reader,
                                        v1::PutArrayResponse* response) {
  ++state_.counters.puts;
  v1::PutArrayRequest message;
  if (!reader->Read(&message) || !message.has_header())
    return {grpc::StatusCode::INVALID_ARGUMENT, "no header"};
  const v1::PutArrayRequest::Header header = message.header();
  const std::string name = header.parent() + "/arrays/" + header.array_id();
  {
    std::lock_guard lock(state_.mutex);
    auto [it, made] = state_.arrays.try_emplace(name);
    if (made) {
      it->second.spec = header.spec();
      it->second.data.resize(static_cast<size_t>(NumBytes(header.spec())));
    } else if (!header.has_range()) {
      return ToGrpc(RichStatus(6, "ALREADY_EXISTS", name + " exists"));
    }
  }
  int64_t at = header.range().begin();
  while (reader->Read(&message)) {
    std::lock_guard lock(state_.mutex);
    FakeArray& array = state_.arrays[name];
    const int64_t size = static_cast<int64_t>(message.data().size());
    if (at + size > static_cast<int64_t>(array.data.size()))
      return ToGrpc(RichStatus(3, "SIZE_MISMATCH", "too many bytes"));
    std::memcpy(array.data.data() + at, message.data().data(), message.data().size());
    at += size;
    array.arrived += size;
  }
  std::lock_guard lock(state_.mutex);
  *response->mutable_array() = Describe(name, state_.arrays[name]);
  return grpc::Status::OK;
}

grpc::Status FakeArrayService::FetchArray(grpc::ServerContext*,
                                          const v1::FetchArrayRequest* request,
                                          grpc::ServerWriter<v1::FetchArrayResponse>* writer) {
  ++state_.counters.fetches;
  FakeArray array;
  {
    std::lock_guard lock(state_.mutex);
    const auto it = state_.arrays.find(request->name());
    if (it == state_.arrays.end()) return ToGrpc(NotFound(request->name()));
    array = it->second;
  }
  if (array.error.code() != 0) return ToGrpc(array.error);
  v1::FetchArrayResponse response;
  *response.mutable_array() = Describe(request->name(), array);
  writer->Write(response);
  const auto begin = static_cast<size_t>(request->range().begin());
  const size_t end =
      request->has_range() ? static_cast<size_t>(request->range().end()) : array.data.size();
  constexpr size_t kChunk = 300'000;  // an odd size: receivers must not depend on it
  for (size_t at = begin; at < end; at += kChunk) {
    if (state_.faults.short_fetch && at > begin) return grpc::Status::OK;
    response.Clear();
    response.set_data(array.data.substr(at, std::min(kChunk, end - at)));
    if (!writer->Write(response)) break;
  }
  return grpc::Status::OK;
}

grpc::Status FakeArrayService::GetArray(grpc::ServerContext*, const v1::GetArrayRequest* request,
                                        v1::GetArrayResponse* response) {
  std::lock_guard lock(state_.mutex);
  const auto it = state_.arrays.find(request->name());
  if (it == state_.arrays.end()) return ToGrpc(NotFound(request->name()));
  *response->mutable_array() = Describe(it->first, it->second);
  return grpc::Status::OK;
}

grpc::Status FakeArrayService::ListArrays(grpc::ServerContext*,
                                          const v1::ListArraysRequest* request,
                                          v1::ListArraysResponse* response) {
  std::lock_guard lock(state_.mutex);
  // One per page, so that clients must request further pages.
  const std::string prefix = request->parent() + "/arrays/";
  for (const auto& [name, array] : state_.arrays) {
    if (name.rfind(prefix, 0) != 0 || name <= request->page_token()) continue;
    if (response->arrays_size() == 1) {
      response->set_next_page_token(response->arrays(0).name());
      break;
    }
    *response->add_arrays() = Describe(name, array);
  }
  return grpc::Status::OK;
}

grpc::Status FakeArrayService::DeleteArray(grpc::ServerContext*,
                                           const v1::DeleteArrayRequest* request,
                                           v1::DeleteArrayResponse*) {
  std::lock_guard lock(state_.mutex);
  return state_.arrays.erase(request->name()) ? grpc::Status::OK
                                              : ToGrpc(NotFound(request->name()));
}

grpc::Status FakeComputeService::Execute(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::ExecuteResponse, v1::ExecuteRequest>* stream) {
  ++state_.counters.streams;
  v1::ExecuteRequest request;
  std::string session;
  while (stream->Read(&request)) {
    if (state_.faults.break_streams.exchange(false))
      return {grpc::StatusCode::UNAVAILABLE, "broken on purpose"};
    ++state_.counters.messages;
    if (session.empty()) session = request.session();
    v1::ExecuteResponse response;
    for (const auto& command : request.commands()) {
      ++state_.counters.commands;
      *response.add_results() = Answer(session, command);
    }
    if (!state_.faults.hold_answers) stream->Write(response);
  }
  return grpc::Status::OK;
}

v1::CommandResult FakeComputeService::Answer(const std::string& session,
                                             const v1::Command& command) {
  std::lock_guard lock(state_.mutex);
  v1::CommandResult result;
  result.set_id(command.id());
  if (command.has_release()) {
    for (uint64_t handle : command.release().handles()) {
      state_.counters.released +=
          static_cast<int>(state_.arrays.erase(session + "/arrays/" + std::to_string(handle)));
    }
  } else if (command.has_fetch()) {
    const std::string name = session + "/arrays/" + std::to_string(command.fetch().handle());
    const auto it = state_.arrays.find(name);
    if (it == state_.arrays.end()) {
      *result.mutable_status() = NotFound(name);
    } else if (it->second.error.code() != 0) {
      *result.mutable_status() = it->second.error;
    } else {
      auto* inline_array = result.add_results()->mutable_inline_array();
      *inline_array->mutable_spec() = it->second.spec;
      inline_array->set_data(it->second.data);
    }
  } else if (command.has_operation()) {
    return Operate(session, command);
  }
  return result;
}

// Caller holds the state's lock.
v1::CommandResult FakeComputeService::Operate(const std::string& session,
                                              const v1::Command& command) {
  v1::CommandResult result;
  result.set_id(command.id());
  const auto& ufunc = command.operation().ufunc();
  const std::string name =
      session + "/arrays/" + std::to_string(command.operation().outputs(0).handle());
  FakeArray made;
  std::vector<const FakeArray*> inputs;
  for (const auto& input : ufunc.inputs()) {
    const auto it = state_.arrays.find(session + "/arrays/" + std::to_string(input.handle()));
    if (it == state_.arrays.end()) {
      made.error = NotFound(std::to_string(input.handle()));
    } else {
      inputs.push_back(&it->second);
      if (made.error.code() == 0) made.error = it->second.error;
    }
  }
  if (made.error.code() == 0 && (ufunc.function() != "add" || inputs.size() != 2)) {
    made.error = RichStatus(3, "UNKNOWN_FUNCTION", "No ufunc " + ufunc.function());
  }
  if (made.error.code() == 0) {
    made = *inputs[0];
    for (size_t at = 0; at < made.data.size(); at += 4) {
      int32_t a, b;
      std::memcpy(&a, inputs[0]->data.data() + at, 4);
      std::memcpy(&b, inputs[1]->data.data() + at, 4);
      a += b;
      std::memcpy(made.data.data() + at, &a, 4);
    }
  } else {
    *result.mutable_status() = made.error;
  }
  if (command.wait()) result.mutable_timeline()->set_device("devices/cpu:0");
  state_.arrays[name] = made;
  *result.add_results()->mutable_array() = Describe(name, made);
  return result;
}

grpc::Status FakeDeviceService::ListDevices(grpc::ServerContext*, const v1::ListDevicesRequest*,
                                            v1::ListDevicesResponse* response) {
  auto* device = response->add_devices();
  device->set_name("devices/cpu:0");
  device->set_kind("cpu");
  device->set_model("Fake CPU");
  device->set_state(v1::Device::STATE_SERVING);
  return grpc::Status::OK;
}

grpc::Status FakeDeviceService::WatchDevices(grpc::ServerContext* context,
                                             const v1::WatchDevicesRequest* request,
                                             grpc::ServerWriter<v1::WatchDevicesResponse>* writer) {
  for (int i = 0;
       !context->IsCancelled() && (request->max_samples() == 0 || i < request->max_samples());
       ++i) {
    v1::WatchDevicesResponse response;
    auto* sample = response.add_samples();
    sample->set_device("devices/cpu:0");
    sample->set_queue_depth(i);
    sample->set_utilization_ratio(0.5);
    if (!writer->Write(response)) break;
  }
  return grpc::Status::OK;
}

}  // namespace stride::testing
