#include "server/wire/status.h"

#include <gtest/gtest.h>

#include "server/base/error.h"

namespace stride::wire {
namespace {

TEST(WireStatusTest, LinearAlgebraKeepsItsReason) {
  const absl::Status singular = MakeError(
      absl::StatusCode::kOutOfRange, v1::ERROR_REASON_LINEAR_ALGEBRA, "the matrix is singular");
  EXPECT_EQ(ReasonOf(ToStatus(FromStatus(singular))), v1::ERROR_REASON_LINEAR_ALGEBRA);
  EXPECT_EQ(ReasonOf(ToStatus(FromStatus(absl::OutOfRangeError("an index")))),
            v1::ERROR_REASON_DATA_OUT_OF_RANGE);
  // A worker sets no other reason, and this reason only with its code.
  wire::Status status = FromStatus(singular);
  status.set_code(static_cast<int>(absl::StatusCode::kInternal));
  EXPECT_EQ(ReasonOf(ToStatus(status)), v1::ERROR_REASON_INTERNAL);
  status = FromStatus(singular);
  status.set_reason(v1::ERROR_REASON_QUOTA);
  EXPECT_EQ(ReasonOf(ToStatus(status)), v1::ERROR_REASON_DATA_OUT_OF_RANGE);
}

TEST(WireStatusTest, CarriesCodeTextAndReason) {
  absl::Status status =
      ToStatus(FromStatus(absl::FailedPreconditionError("illegal memory access by kernel add")));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "illegal memory access by kernel add");
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_KERNEL_FAULT);
  EXPECT_TRUE(ToStatus(FromStatus(absl::OkStatus())).ok());
}

TEST(WireStatusTest, UnknownCodesAreInternal) {
  for (int code : {-1, 17, 1 << 30}) {
    Status status;
    status.set_code(code);
    EXPECT_EQ(ToStatus(status).code(), absl::StatusCode::kInternal) << code;
  }
}

TEST(WireStatusTest, TextIsMadeUtf8) {
  std::string text = "a\xff\xc0\xaf \xed\xa0\x80 \xc3\xa9 \xf0\x9f\x98\x80 \xe2\x82";
  Status status = FromStatus(absl::InternalError(text));
  Status parsed;
  ASSERT_TRUE(parsed.ParseFromString(status.SerializeAsString()));
  EXPECT_EQ(parsed.message(), "a??? ??? \xc3\xa9 \xf0\x9f\x98\x80 ??");
}

TEST(WireStatusTest, LongTextKeepsItsEnds) {
  Status status = FromStatus(absl::InternalError("begin" + std::string(1 << 20, 'x') + "end"));
  EXPECT_LE(status.message().size(), kMaxStatusText);
  EXPECT_EQ(status.message().substr(0, 5), "begin");
  EXPECT_EQ(status.message().substr(status.message().size() - 3), "end");
}

}  // namespace
}  // namespace stride::wire
