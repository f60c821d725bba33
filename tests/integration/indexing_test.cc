// Operations whose outcome depends on data, through a daemon: errors that arrays carry after a
// wrong index or count, and writes where outputs and inputs share memory.

#include <google/protobuf/text_format.h>

#include <cstring>

#include "gmock/gmock.h"
#include "stride/v1/array_service.pb.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/session_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kOutOfRange = 11;

class IndexingTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    daemon_ = std::make_unique<Daemon>(std::vector<std::string>{"--session-ttl=1h"});
    rpc_ = std::make_unique<Rpc>(daemon_->address());
    v1::CreateSessionRequest session;
    session.set_session_id("s");
    ASSERT_TRUE(rpc_->Call("SessionService/CreateSession", session).ok());
  }
  static void TearDownTestSuite() {
    rpc_.reset();
    daemon_.reset();
  }

  // `@(0 1 2)` is an inline array of int64, `?(0 1)` one of bool.
  static std::string Expand(const std::string& text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if ((text[i] != '@' && text[i] != '?') || text[i + 1] != '(') {
        out += text[i];
        continue;
      }
      const size_t end = text.find(')', i);
      std::istringstream numbers(text.substr(i + 2, end - i - 2));
      v1::InlineArray array;
      const bool is_bool = text[i] == '?';
      array.mutable_spec()->set_data_type(is_bool ? v1::DATA_TYPE_BOOL : v1::DATA_TYPE_INT64);
      int64_t number, count = 0;
      for (; numbers >> number; ++count)
        array.mutable_data()->append(reinterpret_cast<const char*>(&number), is_bool ? 1 : 8);
      array.mutable_spec()->add_shape(count);
      out += "inline_array { " + array.ShortDebugString() + " }";
      i = end;
    }
    return out;
  }

  Outcome Run(const std::string& text) {
    v1::RunRequest request;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        Expand("session: 'sessions/s' operation { " + text + " }"), &request))
        << Expand(text);
    return rpc_->Call("ComputeService/Run", request);
  }
  // The int64 results that were returned inline.
  std::vector<std::vector<int64_t>> Values(const Outcome& outcome) {
    EXPECT_TRUE(outcome.ok()) << outcome.ToString();
    std::vector<std::vector<int64_t>> values;
    v1::RunResponse response;
    if (!outcome.ok() || !response.ParseFromString(outcome.replies.at(0))) return values;
    for (const auto& result : response.results()) {
      const std::string& bytes = result.inline_array().data();
      values.emplace_back(bytes.size() / 8);
      std::memcpy(values.back().data(), bytes.data(), bytes.size() / 8 * 8);
    }
    return values;
  }
  std::vector<int64_t> Fetch(int handle) {
    auto values = Values(Run("copy { input { handle: " + std::to_string(handle) +
                             " } } outputs { inline_result: true }"));
    return values.empty() ? std::vector<int64_t>() : values[0];
  }
  void Make(int handle, const std::string& array) {
    const Outcome outcome =
        Run("copy { input { " + array + " } } outputs { handle: " + std::to_string(handle) + " }");
    ASSERT_TRUE(outcome.ok()) << outcome.ToString();
  }

  static inline std::unique_ptr<Daemon> daemon_;
  static inline std::unique_ptr<Rpc> rpc_;
};

TEST_F(IndexingTest, TwoResultsAreReturned) {
  const auto values = Values(Run(
      "ufunc { function: 'divmod' inputs { @(7 -7) } inputs { @(3) } } outputs { inline_result: "
      "true } outputs { inline_result: true }"));
  ASSERT_EQ(values.size(), 2u);
  EXPECT_THAT(values[0], ElementsAre(2, -3));
  EXPECT_THAT(values[1], ElementsAre(1, 2));
}

TEST_F(IndexingTest, IndexOutOfRangeFailsTheResult) {
  const Outcome direct =
      Run("gather { input { @(5 6 7) } indices { @(0 9) } } outputs { inline_result: true }");
  EXPECT_EQ(direct.code, kOutOfRange) << direct.ToString();
  EXPECT_EQ(direct.reason, "DATA_OUT_OF_RANGE") << direct.ToString();
  EXPECT_THAT(direct.message, HasSubstr("9"));
  // A handle carries the error, and so do results computed from it.
  Run("gather { input { @(5 6 7) } indices { @(0 -4) } } outputs { handle: 10 }");
  Run("ufunc { function: 'negative' inputs { handle: 10 } } outputs { handle: 11 }");
  const Outcome later = Run("copy { input { handle: 11 } } outputs { inline_result: true }");
  EXPECT_EQ(later.code, kOutOfRange) << later.ToString();
  EXPECT_EQ(later.reason, "DATA_OUT_OF_RANGE") << later.ToString();
}

TEST_F(IndexingTest, AssignmentChangesAnArrayInPlace) {
  Make(20, "@(0 1 2 3 4 5)");
  ASSERT_TRUE(Run("scatter { values { @(70 71 72) } indices { @(1 -1 1) } } outputs { handle: 20 "
                  "existing: true }")
                  .ok());
  EXPECT_THAT(Fetch(20), ElementsAre(0, 72, 2, 3, 4, 71));
  // x[[1, 2, 3]] = x[0:3] reads the old values.
  Make(21, "@(0 1 2 3 4 5)");
  ASSERT_TRUE(Run("view { input { handle: 21 } steps { slice { start: 0 stop: 3 } } } outputs { "
                  "handle: 22 }")
                  .ok());
  ASSERT_TRUE(Run("scatter { values { handle: 22 } indices { @(1 2 3) } } outputs { handle: 21 "
                  "existing: true }")
                  .ok());
  EXPECT_THAT(Fetch(21), ElementsAre(0, 0, 1, 2, 4, 5));
}

TEST_F(IndexingTest, MaskedResultOverItsInputKeepsOtherElements) {
  // x[1:] = x[:-1] + 10 where the mask is set.
  Make(30, "@(0 1 2 3 4)");
  Run("view { input { handle: 30 } steps { slice { start: 1 } } } outputs { handle: 31 }");
  Run("view { input { handle: 30 } steps { slice { stop: -1 } } } outputs { handle: 32 }");
  const Outcome outcome =
      Run("ufunc { function: 'add' inputs { handle: 32 } inputs { scalar { int_value: 10 } } where "
          "{ ?(1 0 1 1) } } outputs { handle: 31 existing: true }");
  ASSERT_TRUE(outcome.ok()) << outcome.ToString();
  EXPECT_THAT(Fetch(30), ElementsAre(0, 10, 2, 12, 13));
}

TEST_F(IndexingTest, TwoOutputsMayNotShareMemory) {
  Make(40, "@(0 1 2 3)");
  Run("view { input { handle: 40 } steps { slice { step: -1 } } } outputs { handle: 41 }");
  const Outcome outcome =
      Run("ufunc { function: 'divmod' inputs { @(7 7 7 7) } inputs { @(2) } } outputs { handle: 40 "
          "existing: true } outputs { handle: 41 existing: true }");
  EXPECT_EQ(outcome.reason, "INVALID_FIELD") << outcome.ToString();
  ASSERT_FALSE(outcome.violations.empty());
  EXPECT_EQ(outcome.violations[0].field, "operation.outputs[1]");
}

TEST_F(IndexingTest, CountThenCompress) {
  Make(50, "@(4 0 6 0 8)");
  const auto count =
      Values(Run("reduction { function: FUNCTION_COUNT_NONZERO input { handle: 50 } } outputs { "
                 "inline_result: true }"));
  ASSERT_THAT(count, ElementsAre(ElementsAre(3)));
  EXPECT_THAT(
      Values(Run("nonzero { input { handle: 50 } count: 3 } outputs { inline_result: true }")),
      ElementsAre(ElementsAre(0, 2, 4)));
  EXPECT_THAT(
      Values(Run("compress { input { handle: 50 } mask { ?(1 1 0 0 1) } count: 3 } outputs { "
                 "inline_result: true }")),
      ElementsAre(ElementsAre(4, 0, 8)));
  const Outcome wrong =
      Run("compress { input { handle: 50 } mask { ?(1 1 0 0 1) } count: 2 } outputs { "
          "inline_result: true }");
  EXPECT_EQ(wrong.reason, "DATA_OUT_OF_RANGE") << wrong.ToString();
  EXPECT_THAT(wrong.message, HasSubstr("count"));
}

TEST_F(IndexingTest, SortSearchAccumulateAndRandom) {
  EXPECT_THAT(
      Values(Run("sort { input { @(3 1 2 1) } indices: true } outputs { inline_result: true }")),
      ElementsAre(ElementsAre(1, 3, 2, 0)));
  EXPECT_THAT(Values(Run("search { sorted { @(1 3 3 5) } values { @(3 9) } right: true } outputs { "
                         "inline_result: true }")),
              ElementsAre(ElementsAre(3, 4)));
  EXPECT_THAT(
      Values(Run("accumulation { function: 'add' input { @(1 2 3) } include_initial: true } "
                 "outputs { inline_result: true }")),
      ElementsAre(ElementsAre(0, 1, 3, 6)));
  EXPECT_THAT(
      Values(Run("creation { random { spec { data_type: DATA_TYPE_UINT64 shape: 2 } bits {} } } "
                 "outputs { inline_result: true }")),
      ElementsAre(ElementsAre(int64_t(0xe169c58d6627e8d5), int64_t(0x9b00dbd8bc57ac4c))));
}

}  // namespace
}  // namespace stride::testing
