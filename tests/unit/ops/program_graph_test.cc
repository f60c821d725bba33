// Programs as one task: placement of results, programs that need several tasks, and nested
// programs.
#include "server/ops/program_graph.h"

#include <google/protobuf/text_format.h>

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/ops/inline_program.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

using testing::FieldOf;

v1::Program ProgramOf(const std::string& text) {
  v1::Program program;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &program)) << text;
  return program;
}

std::string Copy(int from, int to) {
  return "operations { copy { input { handle: " + std::to_string(from) +
         " } } outputs { handle: " + std::to_string(to) + " } } ";
}

std::optional<ProgramGraph> GraphOf(const std::string& text, const std::vector<ArrayInfo>& inputs) {
  const v1::Program program = ProgramOf(text);
  EXPECT_TRUE(CheckProgram(program).ok()) << CheckProgram(program);
  auto plan = PlanProgram(program, inputs, nullptr);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? MakeGraph(*plan) : std::nullopt;
}

TEST(OffsetPlanner, LiveBuffersDoNotOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    struct Block {
      int64_t offset, bytes;
      size_t first, last;
    };
    OffsetPlanner planner;
    std::vector<Block> blocks;
    int64_t together = 0;
    size_t first = 0;
    for (int i = 0; i < 40; ++i) {
      first += random() % 3;
      Block block{.bytes = static_cast<int64_t>(random() % 5000),
                  .first = first,
                  .last = first + random() % 6};
      block.offset = planner.Add(block.bytes, block.first, block.last);
      together += block.bytes;
      EXPECT_EQ(block.offset % OffsetPlanner::kAlignment, 0);
      EXPECT_LE(block.offset + block.bytes, planner.total_bytes());
      for (const Block& other : blocks) {
        const bool alive = other.last >= block.first;
        const bool apart = other.offset + other.bytes <= block.offset ||
                           block.offset + block.bytes <= other.offset;
        EXPECT_TRUE(!alive || apart || block.bytes == 0 || other.bytes == 0) << round << " " << i;
      }
      blocks.push_back(block);
    }
    EXPECT_LT(planner.total_bytes(), together) << "places are used again";
  }
}

TEST(ProgramGraph, IntermediateResultsShareOneBuffer) {
  std::string text = "inputs { handle: 1 } outputs: 12 ";
  for (int i = 1; i < 12; ++i) text += Copy(i, i + 1);
  auto graph = GraphOf(text, {Contiguous(DType::kFloat32, {1000})});
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(graph->steps.size(), 11u);
  EXPECT_EQ(graph->num_inputs, 1u);
  EXPECT_EQ(graph->result_bytes, std::vector<int64_t>{4000});
  EXPECT_EQ(graph->scratch_bytes, 2 * 4096) << "one is read while the next is made";
  EXPECT_EQ(graph->num_slots(), 3u);
  EXPECT_EQ(graph->steps.front().places[0].arena, 0u);
  EXPECT_EQ(graph->steps.back().places[1].arena, 1u);
  EXPECT_EQ(graph->steps[1].places[0].arena, 2u);
  EXPECT_EQ(graph->written, std::vector<bool>{false});
  EXPECT_LE(graph->codes.size(), 1u) << "equal code is one";
}

TEST(ProgramGraph, ViewsShareTheirBaseBuffer) {
  auto graph = GraphOf("inputs { handle: 1 } outputs: 2 outputs: 3 " + Copy(1, 2) +
                           "operations { view { input { handle: 2 } steps { slice { axis: 0 start: "
                           "2 } } } outputs { handle: 3 } }" +
                           Copy(3, 4),
                       {Contiguous(DType::kInt64, {5})});
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(graph->steps.size(), 2u);
  ASSERT_EQ(graph->outputs.size(), 2u);
  EXPECT_EQ(graph->outputs[0].slot, graph->outputs[1].slot);
  EXPECT_EQ(graph->outputs[1].info.offset, 16);
  EXPECT_EQ(graph->result_bytes.size(), 1u);
}

TEST(ProgramGraph, InputWrittenThroughViewIsReported) {
  auto graph = GraphOf(
      "inputs { handle: 1 } inputs { handle: 5 } outputs: 3 "
      "operations { view { input { handle: 1 } steps { slice { axis: 0 stop: 2 } "
      "} } outputs { handle: 2 } }"
      "operations { copy { input { handle: 5 } } outputs { handle: 2 existing: "
      "true } }" +
          Copy(1, 3),
      {Contiguous(DType::kInt64, {5}), Contiguous(DType::kInt64, {2})});
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(graph->written, (std::vector<bool>{true, false}));
}

TEST(ProgramGraph, ProgramThatOverwritesItsInputIsNoGraph) {
  const std::string shift =
      "inputs { handle: 1 } outputs: 2 " + Copy(1, 2) +
      "operations { view { input { handle: 2 } steps { slice { axis: 0 start: 1 } } } outputs { "
      "handle: 3 } }"
      "operations { view { input { handle: 2 } steps { slice { axis: 0 stop: -1 } } } outputs { "
      "handle: 4 } }"
      "operations { copy { input { handle: 4 } } outputs { handle: 3 existing: true } }";
  EXPECT_FALSE(GraphOf(shift, {Contiguous(DType::kInt64, {5})}).has_value());
}

TEST(InlinePrograms, InlinesOperationsOfCalledProgram) {
  const v1::Program inner =
      ProgramOf("inputs { handle: 1 } outputs: 3 outputs: 2 " + Copy(1, 2) + Copy(2, 3));
  auto find = [&](const std::string& name) -> absl::StatusOr<const v1::Program*> {
    if (name == "inner") return &inner;
    return absl::NotFoundError(name);
  };
  const std::string call =
      "operations { program_call { program: 'inner' inputs { handle: FROM } } outputs { handle: A "
      "} outputs { handle: B } } ";
  auto called = [&](int from, int a, int b) {
    std::string text = call;
    text.replace(text.find("FROM"), 4, std::to_string(from));
    text.replace(text.find("handle: A"), 9, "handle: " + std::to_string(a));
    text.replace(text.find("handle: B"), 9, "handle: " + std::to_string(b));
    return text;
  };
  const v1::Program outer = ProgramOf("inputs { handle: 3 } outputs: 9 outputs: 5 " +
                                      called(3, 4, 5) + called(4, 6, 7) + Copy(6, 9));
  ASSERT_TRUE(CheckProgram(outer).ok()) << CheckProgram(outer);
  EXPECT_TRUE(CallsPrograms(outer));
  auto whole = InlinePrograms(outer, find);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_FALSE(CallsPrograms(*whole));
  ASSERT_EQ(whole->operations_size(), 5);
  // Each operation reads the previous result, except for the last one of the first call.
  EXPECT_EQ(whole->operations(0).copy().input().handle(), 3u);
  for (int i = 1; i < 5; ++i) {
    EXPECT_EQ(whole->operations(i).copy().input().handle(),
              whole->operations(i - 1).outputs(0).handle())
        << i;
  }
  EXPECT_EQ(whole->outputs(0), whole->operations(4).outputs(0).handle());
  EXPECT_EQ(whole->outputs(1), whole->operations(0).outputs(0).handle());
  const v1::Program lost = ProgramOf(
      "inputs { handle: 1 } outputs: 2 operations { program_call { "
      "program: 'none' inputs { handle: 1 } } outputs { handle: 2 } }");
  EXPECT_TRUE(absl::IsNotFound(InlinePrograms(lost, find).status()));
  const v1::Program few = ProgramOf(
      "inputs { handle: 1 } outputs: 2 operations { program_call { "
      "program: 'inner' inputs { handle: 1 } } outputs { handle: 2 } }");
  EXPECT_EQ(FieldOf(InlinePrograms(few, find).status()), "operations[0].outputs");
}

}  // namespace
}  // namespace stride::ops
