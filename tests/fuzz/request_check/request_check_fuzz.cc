// Requests as bytes: the check before parsing holds for any bytes. A request that passes has no
// unknown field and takes no more memory than the check computed. The first byte of the input
// chooses the message, the second how the rest is cut into pieces.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/request_check.h"
#include "stride/v1/array_service.pb.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/device_service.pb.h"
#include "stride/v1/function_service.pb.h"
#include "stride/v1/job_service.pb.h"
#include "stride/v1/kernel_service.pb.h"
#include "stride/v1/program_service.pb.h"
#include "stride/v1/session_service.pb.h"

namespace {

namespace v1 = stride::v1;

const google::protobuf::Message* const kTypes[] = {
    &v1::RunRequest::default_instance(),           &v1::ExecuteRequest::default_instance(),
    &v1::CreateJobRequest::default_instance(),     &v1::CreateModuleRequest::default_instance(),
    &v1::CreateProgramRequest::default_instance(), &v1::CreateFunctionRequest::default_instance(),
    &v1::PutArrayRequest::default_instance(),      &v1::CreateSessionRequest::default_instance(),
    &v1::WatchDevicesRequest::default_instance(),
};
constexpr size_t kNumTypes = sizeof(kTypes) / sizeof(kTypes[0]);

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "request_check_fuzz: %s\n", what);
  std::abort();
}

bool KnowsAll(const google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  if (!reflection->GetUnknownFields(message).empty()) return false;
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) {
      if (!KnowsAll(reflection->GetMessage(message, field))) return false;
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i)
      if (!KnowsAll(reflection->GetRepeatedMessage(message, field, i))) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size < 2) return 0;
  const google::protobuf::Message& prototype = *kTypes[bytes[0] % kNumTypes];
  const std::string_view input(reinterpret_cast<const char*>(bytes) + 2, size - 2);
  std::vector<std::string_view> pieces;
  const size_t step = bytes[1] == 0 ? input.size() + 1 : bytes[1];
  for (size_t at = 0; at < input.size(); at += step) pieces.push_back(input.substr(at, step));
  const stride::MessageShape& shape = stride::ShapeOf(prototype.GetDescriptor());
  const auto judged = stride::CheckRequest(pieces, shape, {1 << 30, int64_t{1} << 40});
  if (!judged.ok()) return 0;
  std::unique_ptr<google::protobuf::Message> message(prototype.New());
  if (!message->ParseFromString(std::string(input))) {
    Require(!stride::WhyMalformed(pieces, shape).ok(), "no reason for what protobuf refuses");
    return 0;
  }
  Require(KnowsAll(*message), "a field that is not known has passed");
  Require(*judged >= static_cast<int64_t>(message->SpaceUsedLong()),
          "the message takes more than was said");
  return 0;
}
