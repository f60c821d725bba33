#include <functional>
#include <set>
#include <string>

#include "server/ops/batching.h"
#include "server/ops/operation_kind.h"
#include "server/ops/sharding.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {

extern const OperationKind kDoubledKind;  // doubled_kind.cc

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing::FieldOf;

const google::protobuf::OneofDescriptor& KindField() {
  return *v1::Operation::descriptor()->FindOneofByName("kind");
}

// An operation of each kind, with an empty message.
void ForEachKind(const std::function<void(v1::Operation&, Message&)>& visit) {
  for (int i = 0; i < KindField().field_count(); ++i) {
    v1::Operation operation;
    Message* message = operation.GetReflection()->MutableMessage(&operation, KindField().field(i));
    visit(operation, *message);
  }
}

TEST(OperationKindsTest, EachKindOfTheProtocol_HasAFullRow) {
  std::set<std::string> names;
  for (int i = 0; i < KindField().field_count(); ++i) {
    const FieldDescriptor& field = *KindField().field(i);
    const OperationKind* kind = Kinds().Find(static_cast<size_t>(field.number()));
    ASSERT_NE(kind, nullptr) << "no row in operation_kinds.h: " << field.name();
    EXPECT_EQ(kind->name, field.name());
    EXPECT_TRUE(names.insert(kind->name).second) << kind->name;
    EXPECT_NE(kind->operands, nullptr) << kind->name;
    EXPECT_NE(kind->plan, nullptr) << kind->name;
    EXPECT_NE(kind->rules.num_results, nullptr) << kind->name;
    EXPECT_NE(kind->rules.key, nullptr) << kind->name;
    EXPECT_NE(kind->rules.batch, nullptr) << kind->name;
    EXPECT_NE(kind->rules.divide, nullptr) << kind->name;
  }
}

TEST(OperationKindsTest, OperationOfNoKind_IsRefused) {
  const v1::Operation empty;
  EXPECT_EQ(&KindOf(empty), &kNoKind);
  const absl::Status status = PlanOperation(empty, {}, {}).status();
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_INVALID_FIELD) << status;
}

// A repeated field without a limit lets a message of 4 MiB occupy the engine.
TEST(OperationKindsTest, EachRepeatedField_IsBounded) {
  int num_fields = 0;
  ForEachKind([&](v1::Operation& operation, Message& message) {
    const auto* reflection = message.GetReflection();
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message.GetDescriptor()->field(i);
      if (!field->is_repeated()) continue;
      ++num_fields;
      for (int n = 0; n < 5000; ++n) {
        if (field->is_map()) {
          (*operation.mutable_expression()->mutable_inputs())[std::to_string(n)].set_handle(1);
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
          reflection->AddMessage(&message, field);
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
          reflection->AddInt32(&message, field, n);
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
          reflection->AddInt64(&message, field, n);
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
          reflection->AddString(&message, field, "");
        } else {
          FAIL() << "how is an entry added? " << field->full_name();
        }
      }
      const absl::Status status = CheckLists(operation);
      const std::string path = std::string(KindOf(operation).name) + "." + field->name();
      EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_SIZE_LIMIT) << path;
      EXPECT_EQ(FieldOf(status), path);
      reflection->ClearField(&message, field);
    }
  });
  EXPECT_GE(num_fields, 20);
}

// Operands are needed where the row lists them unset, and follow the order of their fields.
TEST(OperationKindsTest, EachOperand_IsListedWithItsPath) {
  int num_operands = 0;
  ForEachKind([&](v1::Operation& operation, Message& message) {
    const std::string name = KindOf(operation).name;
    if (name == "expression" || name == "kernel_launch") return;  // nested: tests of their own
    const auto* reflection = message.GetReflection();
    std::vector<std::string> unset, all;
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message.GetDescriptor()->field(i);
      if (field->message_type() != v1::Operand::descriptor()) continue;
      if (!field->is_repeated()) unset.push_back(name + "." + field->name());
    }
    {
      const OperationView view(operation);
      ASSERT_LE(view.operands().size(), unset.size()) << name;
      for (size_t i = 0; i < view.operands().size(); ++i) EXPECT_EQ(view.OperandPath(i), unset[i]);
    }
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message.GetDescriptor()->field(i);
      if (field->message_type() != v1::Operand::descriptor()) continue;
      for (int n = 0; n < (field->is_repeated() ? 2 : 1); ++n) {
        Message* operand = field->is_repeated() ? reflection->AddMessage(&message, field)
                                                : reflection->MutableMessage(&message, field);
        static_cast<v1::Operand*>(operand)->set_handle(1);
        all.push_back(name + "." + field->name());
        if (field->is_repeated()) all.back() += "[" + std::to_string(n) + "]";
      }
    }
    const OperationView view(operation);
    ASSERT_EQ(view.operands().size(), all.size()) << name;
    num_operands += static_cast<int>(all.size());
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(view.OperandPath(i), all[i]);
  });
  EXPECT_GE(num_operands, 50);
}

TEST(OperationKindsTest, PartsOfALaunchThatAreNotSet_HavePaths) {
  v1::Operation operation;
  auto* launch = operation.mutable_kernel_launch();
  launch->add_arguments()->mutable_array();
  launch->add_arguments()->mutable_texture();
  launch->add_arguments()->mutable_new_array();
  launch->add_arguments()->mutable_scalar();
  launch->add_arguments()->mutable_aggregate()->add_members()->mutable_new_array();
  launch->add_globals()->mutable_array();
  const OperationView view(operation);
  ASSERT_EQ(view.operands().size(), 3U);
  EXPECT_EQ(view.OperandPath(0), "kernel_launch.arguments[0].array");
  EXPECT_EQ(view.OperandPath(1), "kernel_launch.arguments[1].texture.array");
  EXPECT_EQ(view.OperandPath(2), "kernel_launch.globals[0].array");
  ASSERT_EQ(view.outputs().size(), 2U);
  EXPECT_EQ(view.OutputPath(0), "kernel_launch.arguments[2].new_array.output");
  EXPECT_EQ(view.OutputPath(1), "kernel_launch.arguments[4].aggregate.members[0].new_array.output");
}

TEST(OperationKindsTest, Labels) {
  std::vector<v1::Operation> operations(12);
  operations[0].mutable_ufunc()->set_function("add");
  operations[1].mutable_reduction()->set_function(v1::Reduction::FUNCTION_ARGMAX);
  operations[2].mutable_reduction()->set_function_name("mine");
  operations[3].mutable_linalg()->set_function(v1::Linalg::FUNCTION_QR);
  operations[4].mutable_copy()->set_move(true);
  operations[5].mutable_sort()->set_indices(true);
  operations[6].mutable_apply_at()->set_function("add");
  operations[7].mutable_program_call()->set_program("tenants/t/programs/p");
  operations[8].mutable_top_k();
  operations[9].mutable_creation();
  operations[10].mutable_expression()->set_text(std::string(100, 'x'));
  operations[11].mutable_group_reduce()->set_function("add");
  std::vector<std::string> labels;
  for (const v1::Operation& operation : operations)
    labels.push_back(OperationView(operation).label());
  EXPECT_EQ(labels, (std::vector<std::string>{"add", "reduce argmax", "reduce mine", "linalg qr",
                                              "move", "argsort", "add at", "program p", "top_k",
                                              "create", std::string(80, 'x'), "group add"}));
}

// --- a kind that is added ---

constexpr KindTable::Row kAdded = {v1::Operation::kProgramCall, &kDoubledKind};

v1::Operation Doubled() {
  v1::Operation operation;
  operation.mutable_program_call()->add_inputs()->set_handle(1);
  operation.add_outputs()->set_handle(2);
  return operation;
}

TEST(AddedKindTest, ItsRow_GivesPlanLabelKeyAndLimits) {
  const KindTable kinds = Kinds().With(kAdded);
  v1::Operation operation = Doubled();
  const ArrayInfo row = Contiguous(DType::kFloat32, {8});
  {
    const OperationView view(operation, kinds);
    EXPECT_EQ(view.label(), "doubled");
    EXPECT_EQ(view.OperandPath(0), "program_call.inputs[0]");
    auto plan = PlanOperation(view, {row}, {std::nullopt});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->outputs[0], row);
    const ArrayInfo* const inputs[] = {&row};
    const ArrayInfo* const existing[] = {nullptr};
    EXPECT_FALSE(PlanKey({"tenant"}, view, inputs, existing).bytes().empty());
    EXPECT_TRUE(PlanKey({"tenant"}, operation, inputs, existing).bytes().empty());
  }
  operation.mutable_program_call()->add_inputs()->set_handle(1);
  EXPECT_EQ(FieldOf(CheckLists(OperationView(operation, kinds))), "program_call.inputs");
}

TEST(AddedKindTest, ItsRow_DividesOverDevices) {
  const KindTable kinds = Kinds().With(kAdded);
  const Spread spread{.axis = 0, .devices = {0, 1}};
  const SpreadArray input{&spread, {4, 3}, "program_call.inputs[0]"};
  const v1::Operation operation = Doubled();
  auto division = Divide(OperationView(operation, kinds), {input}, {SpreadArray()}, {{4, 3}});
  ASSERT_TRUE(division.ok()) << division.status();
  EXPECT_EQ(division->output_axes, std::vector<int>{0});
}

TEST(AddedKindTest, ItsRow_BatchesPrograms) {
  const KindTable kinds = Kinds().With(kAdded);
  v1::Program program;
  program.add_inputs()->set_handle(1);
  *program.add_operations() = Doubled();
  program.add_outputs(2);
  program.mutable_batching()->add_inputs()->set_axis(1);
  const ArrayInfo input = Contiguous(DType::kFloat32, {3, 5});
  auto batched = BatchProgram(program, {input}, nullptr, kinds);
  ASSERT_TRUE(batched.ok()) << batched.status();
  EXPECT_TRUE(batched->operations(0).has_view());
  EXPECT_TRUE(batched->operations(1).has_program_call());
  EXPECT_EQ(ReasonOf(BatchProgram(program, {input}, nullptr).status()),
            v1::ERROR_REASON_NOT_IMPLEMENTED);
}

}  // namespace
}  // namespace stride::ops
