// The documented accuracy of elementary functions, over the whole range of their types.
#include <cstdlib>

#include "tests/conformance/device/harness.h"
#include "tests/support/cases.h"

namespace stride::conformance {
namespace {

using testing::OpCase;

// Not the build folder if the program was copied to a machine with a GPU.
std::string CasesFolder() {
  const char* given = std::getenv("STRIDE_TEST_CASES");
  return given != nullptr ? given : STRIDE_CASES;
}

class CasesTest : public DeviceTest {
 protected:
  DeviceArray Put(const testing::Column& column) {
    return harness().Put({Contiguous(column.dtype, {static_cast<int64_t>(column.bytes.size() /
                                                                         ItemSize(column.dtype))}),
                          column.bytes});
  }
};

TEST_F(CasesTest, ElementaryFunctionsOverTheirWholeRange) {
  auto cases = testing::ReadCases(CasesFolder() + "/accuracy.case");
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_GT(cases->size(), 80u);
  for (const OpCase& op_case : *cases) {
    std::vector<DeviceArray> inputs;
    for (const auto& column : op_case.inputs) inputs.push_back(Put(column));
    auto result = harness().Compute(UfuncOf(op_case.op, static_cast<int>(inputs.size())), inputs);
    ASSERT_TRUE(result.ok()) << op_case.op << ": " << result.status();
    ASSERT_EQ(result->info.dtype, op_case.expected.dtype);
    EXPECT_EQ(testing::Differences(op_case, harness().Get(*result).buffer), "");
    harness().Reset();
  }
}

}  // namespace
}  // namespace stride::conformance
