#include "server/base/request_check.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "stride/v1/array_service.pb.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/device_service.pb.h"
#include "stride/v1/function_service.pb.h"
#include "stride/v1/job_service.pb.h"
#include "stride/v1/kernel_service.pb.h"
#include "stride/v1/local_service.pb.h"
#include "stride/v1/program_service.pb.h"
#include "stride/v1/region_service.pb.h"
#include "stride/v1/session_service.pb.h"
#include "stride/v1/tenant_service.pb.h"

namespace stride {
namespace {

constexpr RequestLimits kWide{1 << 30, int64_t{1} << 40};

template <typename Message>
absl::StatusOr<int64_t> Check(std::string_view bytes, const RequestLimits& limits = kWide) {
  return CheckRequest(absl::MakeConstSpan(&bytes, 1), ShapeOf<Message>(), limits);
}

std::string FieldOf(const absl::Status& status) {
  auto payload = status.GetPayload("type.googleapis.com/google.rpc.BadRequest");
  google::rpc::BadRequest request;
  if (!payload.has_value() || !request.ParseFromString(std::string(*payload))) return "none";
  return request.field_violations(0).field();
}

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}

std::string Within(uint32_t number, const std::string& message) {
  return Varint(number << 3 | 2) + Varint(message.size()) + message;
}

std::string Repeated(const std::string& field, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += field;
  return out;
}

v1::RunRequest SomeRun() {
  v1::RunRequest request;
  request.set_session("sessions/s");
  auto* operation = request.mutable_operation();
  operation->mutable_expression()->set_text("x + y");
  auto& inputs = *operation->mutable_expression()->mutable_inputs();
  inputs["x"].mutable_inline_array()->set_data(std::string(300, 'x'));
  inputs["x"].mutable_inline_array()->mutable_spec()->add_shape(300);
  inputs["y"].mutable_scalar()->set_int_value(-3);
  operation->add_outputs()->set_inline_result(true);
  operation->set_priority(-2);
  return request;
}

TEST(RequestCheckTest, ValidRequestPassesInAnySplit) {
  const std::string bytes = SomeRun().SerializeAsString();
  const auto whole = Check<v1::RunRequest>(bytes);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (size_t size : {1, 2, 3, 7, 100}) {
    std::vector<std::string_view> pieces{""};
    for (size_t at = 0; at < bytes.size(); at += size)
      pieces.push_back(std::string_view(bytes).substr(at, size));
    EXPECT_EQ(CheckRequest(pieces, ShapeOf<v1::RunRequest>(), kWide).value(), *whole);
  }
}

TEST(RequestCheckTest, TruncatedMessageIsRefused) {
  const std::string bytes = SomeRun().SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string_view part = std::string_view(bytes).substr(0, size);
    const bool parses = v1::RunRequest().ParseFromString(std::string(part));
    EXPECT_EQ(Check<v1::RunRequest>(part).ok(), parses) << size;
  }
}

// Elements of an attack: two bytes each that become an object.
TEST(RequestCheckTest, EstimateCoversProtobufMemory) {
  constexpr int kCount = 1000;
  auto expect = [](auto message, const std::string& bytes) {
    ASSERT_TRUE(message.ParseFromString(bytes));
    const auto estimate = Check<decltype(message)>(bytes);
    ASSERT_TRUE(estimate.ok()) << estimate.status();
    EXPECT_GE(*estimate, static_cast<int64_t>(message.SpaceUsedLong()))
        << message.GetDescriptor()->name();
    EXPECT_LE(*estimate, 4 * static_cast<int64_t>(message.SpaceUsedLong()) + 4096);
  };
  expect(SomeRun(), SomeRun().SerializeAsString());
  for (uint32_t number : {2, 9, 10})
    expect(v1::CreateJobRequest(), Within(3, Repeated(Within(number, ""), kCount)));
  expect(v1::ExecuteRequest(), Repeated(Within(2, ""), kCount));
  expect(v1::WatchDevicesRequest(), Repeated(Within(1, ""), kCount));
  expect(v1::WatchDevicesRequest(), Repeated(Within(1, std::string(100, 'n')), kCount));
  expect(v1::CreateModuleRequest(), Within(3, Repeated(Within(7, ""), kCount)));
  expect(v1::CreateProgramRequest(), Within(3, Repeated(Within(3, ""), kCount)));
  expect(v1::CreateProgramRequest(), Within(3, Repeated("\x20\x01", kCount)));
  expect(v1::CreateProgramRequest(), Within(3, Within(4, std::string(kCount, '\1'))));
  std::string entries;
  for (int i = 0; i < kCount; ++i) entries += Within(2, Within(1, absl::StrCat(i)));
  expect(v1::RunRequest(), Within(2, Within(2, entries)));
}

TEST(RequestCheckTest, TooManyElementsAreRefusedBeforeAllocation) {
  const std::string bytes = Within(3, Repeated(Within(10, ""), 2000));
  const absl::Status status = Check<v1::CreateJobRequest>(bytes, {1 << 20, 100000}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_SIZE_LIMIT);
  EXPECT_EQ(FieldOf(status), "job.results");
}

TEST(RequestCheckTest, TooManyBytesAreRefused) {
  const absl::Status status =
      Check<v1::GetJobRequest>(Within(1, std::string(200, 'n')), {100, 1000}).status();
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_SIZE_LIMIT);
}

TEST(RequestCheckTest, UnknownFieldIsNamedByPathAndNumber) {
  const std::string unknown = Varint(99 << 3) + "\1";
  EXPECT_EQ(FieldOf(Check<v1::RunRequest>(unknown).status()), "99");
  const absl::Status kind = Check<v1::RunRequest>(Within(2, Within(999, ""))).status();
  EXPECT_EQ(kind.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ReasonOf(kind), v1::ERROR_REASON_NOT_IMPLEMENTED);
  EXPECT_EQ(FieldOf(kind), "operation.999");
  EXPECT_NE(kind.message().find("field 999"), std::string::npos) << kind;
  const std::string job =
      Within(3, Within(2, "") + Within(2, Within(1, Within(2, "") + Within(2, unknown))));
  EXPECT_EQ(FieldOf(Check<v1::CreateJobRequest>(job).status()),
            "job.operations[1].ufunc.inputs[1].99");
}

TEST(RequestCheckTest, MessagesOutsideTheContractAreMalformed) {
  auto expect = [](const std::string& bytes, const std::string& field) {
    const absl::Status status = Check<v1::RunRequest>(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(FieldOf(status), field) << status;
  };
  expect("\x08\x01", "session");                                // a number instead of text
  expect(Within(2, "\x88\x01"), "operation.priority");          // no value
  expect(Repeated("\x7b", 101) + Repeated("\x7c", 101), "15");  // groups
  expect("\x7b", "15");
  expect("\x06", "");  // no wire type
  expect(std::string(10, '\xff'), "");
  expect(Within(2, Within(15, "") + "\x0a\x05"), "operation.ufunc");
}

TEST(RequestCheckTest, InvalidUtf8IsNamed) {
  for (const std::string text :
       {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xe2\x82"}) {
    const std::string bytes = Within(2, Within(2, Within(1, text)));
    EXPECT_TRUE(Check<v1::RunRequest>(bytes).ok());
    EXPECT_FALSE(v1::RunRequest().ParseFromString(bytes));
    const std::string_view all = bytes;
    const absl::Status status =
        WhyMalformed(absl::MakeConstSpan(&all, 1), ShapeOf<v1::RunRequest>());
    EXPECT_EQ(FieldOf(status), "operation.expression.text") << status;
    EXPECT_NE(status.message().find("UTF-8"), std::string::npos) << status;
  }
}

// The walk enters a recursive type (the body of a loop in a program) at most this often.
constexpr int kMostWithinItself = 2;

// Collects every Duration and Timestamp that a request can contain. `path`: the types that contain
// `type`.
void ExpectTimesJudged(const google::protobuf::Descriptor* type, const std::string& prefix,
                       std::vector<const google::protobuf::Descriptor*> path,
                       const std::function<absl::Status(const std::string&)>& check, int* count) {
  if (std::count(path.begin(), path.end(), type) == kMostWithinItself) return;
  path.push_back(type);
  for (int i = 0; i < type->field_count(); ++i) {
    const auto& field = *type->field(i);
    if (field.message_type() == nullptr) continue;
    const auto number = static_cast<uint32_t>(field.number());
    auto within = [&](const std::string& bytes) { return check(Within(number, bytes)); };
    const std::string& name = field.message_type()->full_name();
    if (name == "google.protobuf.Duration") {
      ++*count;
      for (const auto& [seconds, nanos] : {std::pair<int64_t, int64_t>{1, -5},
                                           {-1, 5},
                                           {1, 1000000000},
                                           {INT64_MAX, 0},
                                           {INT64_MIN, 0}}) {
        EXPECT_EQ(within("\x08" + Varint(static_cast<uint64_t>(seconds)) + "\x10" +
                         Varint(static_cast<uint64_t>(nanos)))
                      .code(),
                  absl::StatusCode::kInvalidArgument)
            << prefix << field.full_name() << " " << seconds << " " << nanos;
      }
      EXPECT_TRUE(within("\x08\x01\x10\x05").ok());
      // In two halves, each of which is valid.
      if (!field.is_repeated()) {
        EXPECT_FALSE(check(Within(number, "\x08\x01") +
                           Within(number, "\x10" + Varint(static_cast<uint64_t>(-5))))
                         .ok());
      }
    } else if (name == "google.protobuf.Timestamp") {
      ++*count;
      EXPECT_FALSE(within("\x10" + Varint(static_cast<uint64_t>(-5))).ok()) << field.full_name();
      EXPECT_FALSE(within("\x08" + Varint(253402300800)).ok()) << field.full_name();
    } else if (!absl::StartsWith(name, "google.")) {
      ExpectTimesJudged(field.message_type(), prefix + field.name() + ".", path, within, count);
    }
  }
}

TEST(RequestCheckTest, EveryDurationAndTimestampIsChecked) {
  int count = 0, num_methods = 0;
  for (const auto* first :
       {v1::CreateArrayRequest::descriptor(), v1::RunRequest::descriptor(),
        v1::WatchDevicesRequest::descriptor(), v1::CreateFunctionRequest::descriptor(),
        v1::CreateJobRequest::descriptor(), v1::CreateModuleRequest::descriptor(),
        v1::CreateProgramRequest::descriptor(), v1::CreateRegionRequest::descriptor(),
        v1::CreateSessionRequest::descriptor(), v1::ConnectRequest::descriptor(),
        v1::GetUsageRequest::descriptor()}) {
    const auto* service = first->file()->service(0);
    for (int i = 0; i < service->method_count(); ++i) {
      ++num_methods;
      const auto* type = service->method(i)->input_type();
      ExpectTimesJudged(
          type, "", {},
          [&](const std::string& bytes) {
            const std::string_view all = bytes;
            return CheckRequest(absl::MakeConstSpan(&all, 1), ShapeOf(type), kWide).status();
          },
          &count);
    }
  }
  EXPECT_GE(num_methods, 38);
  EXPECT_GT(count, 10);
}

}  // namespace
}  // namespace stride
