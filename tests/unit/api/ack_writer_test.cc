#include "server/api/ack_writer.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace stride::api {
namespace {

// Records the messages written.
class RememberingWire : public CommandWire {
 public:
  bool Read(v1::ExecuteRequest*) override { return false; }
  bool Write(const v1::ExecuteResponse& response) override {
    written.push_back(response);
    return !broken;
  }

  std::vector<v1::ExecuteResponse> written;
  bool broken = false;
};

class AckWriterTest : public ::testing::Test {
 protected:
  void AddSmall(uint64_t id) {
    v1::CommandResult* result = writer_.AddSmall();
    ASSERT_NE(result, nullptr);
    EXPECT_EQ(result->ByteSizeLong(), 0u);
    result->set_id(id);
  }
  bool AddLarge(uint64_t id, size_t bytes) {
    auto result = std::make_unique<v1::CommandResult>();
    result->set_id(id);
    result->add_results()->mutable_inline_array()->set_data(std::string(bytes, 'x'));
    return writer_.Add(std::move(result));
  }
  std::vector<uint64_t> IdsWritten() const {
    std::vector<uint64_t> ids;
    for (const auto& response : wire_.written) {
      for (const auto& result : response.results()) ids.push_back(result.id());
    }
    return ids;
  }

  RememberingWire wire_;
  AckWriter writer_{&wire_};
};

TEST_F(AckWriterTest, CollectsBothKindsInOrder) {
  AddSmall(1);
  EXPECT_TRUE(AddLarge(2, 1000));
  AddSmall(3);
  EXPECT_TRUE(wire_.written.empty());
  EXPECT_TRUE(writer_.Flush());
  ASSERT_EQ(wire_.written.size(), 1u);
  EXPECT_EQ(IdsWritten(), std::vector<uint64_t>({1, 2, 3}));
  EXPECT_TRUE(writer_.Flush());
  EXPECT_EQ(wire_.written.size(), 1u) << "there was nothing";
  AddSmall(4);
  writer_.Flush();
  EXPECT_EQ(IdsWritten().back(), 4u);
}

TEST_F(AckWriterTest, MessageSizeIsBounded) {
  std::vector<uint64_t> expected;
  for (uint64_t id = 1; id <= 12; ++id) {
    expected.push_back(id);
    if (id % 2 == 0) {
      AddSmall(id);
    } else {
      EXPECT_TRUE(AddLarge(id, 1 << 20));
    }
  }
  for (uint64_t id = 13; id <= 3000; ++id) {
    expected.push_back(id);
    AddSmall(id);
  }
  EXPECT_TRUE(writer_.Flush());
  EXPECT_EQ(IdsWritten(), expected);
  for (const auto& response : wire_.written) {
    EXPECT_LT(response.ByteSizeLong(), size_t{4} << 20);
    EXPECT_LE(response.results_size(), 1000);
  }
}

TEST_F(AckWriterTest, SmallResultsCountTheirFinalSize) {
  for (uint64_t id = 1; id <= 400; ++id) {
    v1::CommandResult* result = writer_.AddSmall();
    ASSERT_NE(result, nullptr);
    result->mutable_status()->set_message(std::string(10000, 'x'));
  }
  EXPECT_TRUE(writer_.Flush());
  EXPECT_GT(wire_.written.size(), 10u);
}

TEST_F(AckWriterTest, WriteFailureIsReported) {
  wire_.broken = true;
  EXPECT_TRUE(AddLarge(1, 300 << 10));
  EXPECT_EQ(writer_.AddSmall(), nullptr);
  AddSmall(2);
  EXPECT_FALSE(writer_.Flush());
}

}  // namespace
}  // namespace stride::api
