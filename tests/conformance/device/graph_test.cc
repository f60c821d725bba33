// Graphs: loaded once, replayed as one task each.

#include <chrono>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

constexpr int64_t kCount = 1000;

class GraphTest : public DeviceTest {
 protected:
  struct Graph {
    uint64_t id = 0;
    size_t num_slots = 0;
  };

  // An operation as a step: its arrays are the given slots, inputs first.
  void Add(const v1::Operation& operation, const std::vector<ArrayInfo>& inputs,
           const std::vector<ops::Location>& places, const std::string& label) {
    std::vector<ops::Input> described(inputs.begin(), inputs.end());
    std::vector<ops::Location> slots(places.begin(), places.begin() + inputs.size());
    for (const v1::Operand& operand : operation.ufunc().inputs()) {
      if (operand.source_case() != v1::Operand::kScalar) continue;
      described.emplace_back();  // scalars have a slot too
      slots.emplace_back();
    }
    slots.insert(slots.end(), places.begin() + inputs.size(), places.end());
    auto plan =
        ops::PlanOperation(operation, described, std::vector<ops::Input>(operation.outputs_size()));
    ASSERT_TRUE(plan.ok()) << plan.status();
    wire::Task step = plan->task;
    ops::Bind(&step, slots);
    if (plan->code.has_value()) {
      auto module = harness().Load(*plan->code);
      ASSERT_TRUE(module.ok()) << module.status();
      if (step.has_elementwise()) step.mutable_elementwise()->set_module(*module);
      if (step.has_reduce()) step.mutable_reduce()->set_module(*module);
      if (step.has_routine()) step.mutable_routine()->set_module(*module);
    }
    step.set_label(label);
    *steps_.add_steps() = step;
  }
  // function(slot `from`, number) into slot `to`.
  void AddScalar(const std::string& function, double number, ops::Location from, ops::Location to) {
    v1::Operation operation = UfuncOf(function, 1);
    operation.mutable_ufunc()->add_inputs()->mutable_scalar()->set_float_value(number);
    Add(operation, {Info()}, {from, to}, function);
  }
  // Slot 2 is scratch memory of this many bytes.
  uint64_t Load(uint64_t scratch_bytes = 0) {
    const uint64_t id = ++last_graph_;
    steps_.set_scratch_slot(scratch_bytes > 0 ? 2 : 0);
    steps_.set_scratch_bytes(scratch_bytes);
    EXPECT_TRUE(harness().device().LoadGraph(id, std::exchange(steps_, {})).ok());
    return id;
  }
  static ArrayInfo Info() { return Contiguous(DType::kFloat32, {kCount}); }
  DeviceArray New(double first) {
    return harness().Put(
        Make(DType::kFloat32, {kCount}, [=](int64_t i) { return Value(first + i % 100); }));
  }
  static wire::Task Replay(uint64_t graph, const std::vector<DeviceArray>& slots) {
    wire::Task task;
    task.mutable_graph()->set_graph(graph);
    for (const DeviceArray& slot : slots) {
      wire::Location* place = task.mutable_graph()->add_slots();
      place->set_arena(slot.arena);
      place->set_offset(slot.offset);
    }
    task.set_label("program");
    return task;
  }
  // (x + 1) * 2 - 3 into slot 1, through slot 2.
  uint64_t Chain() {
    AddScalar("add", 1, {0, 0}, {2, 0});
    AddScalar("multiply", 2, {2, 0}, {2, 8192});
    AddScalar("subtract", 3, {2, 8192}, {1, 0});
    return Load(16384);
  }
  void ExpectChain(const DeviceArray& output, double first) {
    const HostArray got = harness().Get(output);
    for (int64_t i = 0; i < kCount; ++i)
      ASSERT_EQ(got.At(i), Value((first + i % 100 + 1) * 2 - 3)) << i;
  }
  DeviceArray Scratch() { return {Harness::kArena, harness().Allocate(16384), Info()}; }
  void Unload(uint64_t graph) { EXPECT_TRUE(harness().device().UnloadGraph(graph).ok()); }

 private:
  wire::Graph steps_;
  static uint64_t last_graph_;
};
uint64_t GraphTest::last_graph_ = 0;

TEST_F(GraphTest, ReplaysAtTheSameAndAtOtherLocations) {
  const uint64_t graph = Chain();
  const DeviceArray scratch = Scratch(), other_scratch = Scratch();
  std::vector<DeviceArray> inputs, outputs;
  constexpr int kPlaces = 80;
  for (int i = 0; i < kPlaces; ++i) {
    inputs.push_back(New(i));
    outputs.push_back(New(-1));
  }
  // The same locations repeatedly, then more of them than a device caches, twice.
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(harness().Run(Replay(graph, {inputs[0], outputs[0], scratch})).ok());
    ExpectChain(outputs[0], 0);
  }
  for (int round = 0; round < 2; ++round) {
    uint64_t last = 0;
    for (int i = 0; i < kPlaces; ++i) {
      const DeviceArray& place = i % 3 == 0 ? scratch : other_scratch;
      last = harness().Submit(Replay(graph, {inputs[i], outputs[i], place}));
    }
    ASSERT_TRUE(harness().recorder().AwaitTask(last).ok());
    for (int i = 0; i < kPlaces; ++i) ExpectChain(outputs[i], i);
  }
  Unload(graph);
}

TEST_F(GraphTest, ConsecutiveReplaysKeepOrderAndReportOnce) {
  const uint64_t graph = Chain();
  const DeviceArray scratch = Scratch(), x = New(0), y = New(0);
  const size_t before = harness().recorder().tasks().size();
  // Each reads the result of the previous one.
  uint64_t last = 0;
  for (int i = 0; i < 10; ++i)
    last = harness().Submit(Replay(graph, {i % 2 == 0 ? x : y, i % 2 == 0 ? y : x, scratch}));
  // The queue still uses those: they are not changed.
  Unload(graph);
  ASSERT_TRUE(harness().recorder().AwaitTask(last).ok());
  double expected = 5;
  for (int i = 0; i < 10; ++i) expected = (expected + 1) * 2 - 3;
  EXPECT_EQ(harness().Get(x).At(5), Value(expected));
  const auto tasks = harness().recorder().tasks();
  ASSERT_EQ(tasks.size(), before + 10);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(tasks[before + i].sequence, last - 9 + i);
  EXPECT_EQ(harness().status_page().completed_sequence.load(), static_cast<uint32_t>(last));
}

TEST_F(GraphTest, FailingStepFailsTheTask) {
  // x[index], then twice that.
  v1::Operation gather;
  gather.mutable_gather()->mutable_input()->set_handle(1);
  gather.mutable_gather()->add_indices()->set_handle(2);
  gather.mutable_gather()->set_mode(v1::INDEX_MODE_RAISE);
  gather.add_outputs()->set_handle(3);
  AddScalar("add", 1, {0, 0}, {3, 0});
  Add(gather, {Info(), Contiguous(DType::kInt64, {kCount})}, {{3, 0}, {1, 0}, {3, 8192}}, "gather");
  AddScalar("multiply", 2, {3, 8192}, {2, 0});
  const uint64_t graph = Load();
  auto indices = [&](int64_t last) {
    return harness().Put(Make(DType::kInt64, {kCount}, [=](int64_t i) {
      return Value(static_cast<double>(i == kCount - 1 ? last : kCount - 1 - i));
    }));
  };
  const DeviceArray good = indices(0), bad = indices(kCount), x = New(1), y = New(0),
                    scratch = Scratch();
  // Pipelined, so that each needs its own result.
  std::vector<uint64_t> sequences;
  for (int i = 0; i < 30; ++i)
    sequences.push_back(harness().Submit(Replay(graph, {x, i % 3 == 1 ? bad : good, y, scratch})));
  for (int i = 0; i < 30; ++i) {
    const absl::Status status = harness().recorder().AwaitTask(sequences[i]);
    if (i % 3 != 1) {
      EXPECT_TRUE(status.ok()) << i << ": " << status;
      continue;
    }
    EXPECT_TRUE(absl::IsOutOfRange(status)) << i << ": " << status;
    EXPECT_NE(status.message().find("step 1 of the program (gather)"), absl::string_view::npos)
        << status;
  }
  EXPECT_EQ(harness().Get(y).At(0), Value((1 + (kCount - 1) % 100 + 1) * 2));
  Unload(graph);
}

TEST_F(GraphTest, MissingSlotFailsOnlyItsTask) {
  const DeviceArray x = New(0), y = New(0), scratch = Scratch();
  EXPECT_REFUSED(harness().Run(Replay(987654, {x, y, scratch})));
  const uint64_t graph = Chain();
  EXPECT_FALSE(harness().device().LoadGraph(graph, {}).ok());
  EXPECT_REFUSED(harness().Run(Replay(graph, {x, y})));  // a slot is missing
  DeviceArray nowhere = scratch;
  nowhere.arena = 4711;
  EXPECT_REFUSED(harness().Run(Replay(graph, {x, y, nowhere})));
  DeviceArray beyond = y;
  beyond.offset = Harness::kArenaBytes;
  EXPECT_REFUSED(harness().Run(Replay(graph, {x, beyond, scratch})));
  ASSERT_TRUE(harness().Run(Replay(graph, {x, y, scratch})).ok());
  ExpectChain(y, 0);
  Unload(graph);
  EXPECT_REFUSED(harness().Run(Replay(graph, {x, y, scratch})));
  EXPECT_FALSE(harness().device().UnloadGraph(graph).ok());
}

// Linear algebra and transforms between loops: steps that a device's graphs do not support run all
// the same.
TEST_F(GraphTest, MixesWithLibraries) {
  v1::Operation fft;
  fft.mutable_fft()->set_kind(v1::Fft::KIND_REAL_TO_COMPLEX);
  fft.mutable_fft()->mutable_input()->set_handle(1);
  fft.mutable_fft()->add_axes(0);
  fft.add_outputs()->set_handle(2);
  AddScalar("add", 1, {0, 0}, {2, 0});
  AddScalar("multiply", 2, {2, 0}, {2, 8192});
  Add(fft, {Info()}, {{2, 8192}, {2, 16384}}, "fft");
  Add(UfuncOf("absolute", 1), {Contiguous(DType::kComplex64, {kCount / 2 + 1})},
      {{2, 16384}, {1, 0}}, "absolute");
  const uint64_t graph = Load();
  const DeviceArray scratch{Harness::kArena, harness().Allocate(32768), Info()};
  const DeviceArray x =
      harness().Put(Make(DType::kFloat32, {kCount}, [](int64_t) { return Value(0.5); }));
  const DeviceArray y = New(-1);
  for (int i = 0; i < 4; ++i) {
    const absl::Status status = harness().Run(Replay(graph, {x, y, scratch}));
    if (absl::IsUnimplemented(status) || absl::IsUnavailable(status))
      GTEST_SKIP() << status;  // the library is not installed
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_NEAR(harness().Get(y).At(0).real(), 3 * kCount, 1e-2);
    EXPECT_NEAR(harness().Get(y).At(1).real(), 0, 1e-2);
  }
  Unload(graph);
}

// A library product between loops, at several locations: each replay is independent.
TEST_F(GraphTest, GraphContainsProducts) {
  const ArrayInfo matrix = Contiguous(DType::kFloat32, {20, 50});
  v1::Operation transposed = MatmulOf();
  AddScalar("add", 1, {0, 0}, {2, 0});
  Add(transposed, {matrix, Contiguous(DType::kFloat32, {50, 20})}, {{2, 0}, {2, 0}, {2, 8192}},
      "matmul");
  v1::Operation negative = UfuncOf("negative", 1);
  Add(negative, {Contiguous(DType::kFloat32, {20, 20})}, {{2, 8192}, {1, 0}}, "negative");
  const uint64_t graph = Load();
  const DeviceArray scratch = Scratch();
  for (int round = 0; round < 6; ++round) {
    const DeviceArray x =
        harness().Put(Make(DType::kFloat32, {kCount}, [=](int64_t) { return Value(round); }));
    const DeviceArray y = New(-1);
    const absl::Status status = harness().Run(Replay(graph, {x, y, scratch}));
    if (absl::IsUnavailable(status)) GTEST_SKIP() << status;  // the library is not installed
    ASSERT_TRUE(status.ok()) << status;
    const HostArray got = harness().Get(y);
    for (int64_t i = 0; i < 400; ++i)
      ASSERT_EQ(got.At(i), Value(-50.0 * (round + 1) * (round + 1))) << round << " " << i;
  }
  Unload(graph);
}

// Not a bound: printed for the log.
TEST_F(GraphTest, PrintsTimePerStep) {
  constexpr int kSteps = 100, kReplays = 200;
  for (int i = 0; i < kSteps; ++i) AddScalar("add", 1, {i == 0 ? 0u : 1u, 0}, {1, 0});
  const uint64_t graph = Load();
  const DeviceArray x = New(0), y = New(0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(harness().Run(Replay(graph, {x, y})).ok());
  const auto start = std::chrono::steady_clock::now();
  uint64_t last = 0;
  for (int i = 0; i < kReplays; ++i) last = harness().Submit(Replay(graph, {x, y}));
  ASSERT_TRUE(harness().recorder().AwaitTask(last).ok());
  const double each =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
      (kSteps * kReplays);
  EXPECT_EQ(harness().Get(y).At(1), Value(101));
  std::printf("replays of %d steps of %d elements: %.2f us a step\n", kSteps,
              static_cast<int>(kCount), each);
  Unload(graph);
}

}  // namespace
}  // namespace stride::conformance
