// Client functions: read, refused with the field, typed and planned.

#include <google/protobuf/text_format.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/ops/client_function.h"
#include "server/ops/signature.h"
#include "server/ops/trial_plans.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

using testing::Array;
using testing::FieldOf;
using ::testing::HasSubstr;
using Extents = std::vector<int64_t>;

TEST(ParseLayout, FollowsNumPysGrammar) {
  auto layout = ParseLayout(" (m?, n),(n,p?) -> (m?,p?) ", "f");
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->num_inputs, 2u);
  EXPECT_EQ(layout->operands, (std::vector<std::vector<int>>{{0, 1}, {1, 2}, {0, 2}}));
  EXPECT_TRUE(layout->dimensions[0].optional);
  EXPECT_FALSE(layout->dimensions[1].optional);
  layout = ParseLayout("(3),()->(3),(2)", "f");
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->dimensions[0].fixed, 3);
  EXPECT_EQ(layout->operands, (std::vector<std::vector<int>>{{0}, {}, {0}, {1}}));
}

TEST(ParseLayout, RefusesWithTheField) {
  for (const char* text :
       {"", "(n)", "(n)->", "n->n", "(n,)->()", "(n)->(m)", "(n?),(n)->()", "(-1)->()", "(n)->()x",
        "(n),->()", "((n))->()", "(9999999999999)->()"}) {
    const absl::Status status = ParseLayout(text, "gufunc.layout").status();
    EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_INVALID_FIELD) << text << ": " << status;
    EXPECT_EQ(FieldOf(status), "gufunc.layout") << text;
  }
}

class Table : public FunctionTable {
 public:
  absl::Status Add(const std::string& id, const std::string& text) {
    v1::Function function;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &function)) << text;
    auto read = ReadFunction(function, id);
    if (read.ok()) known_[id] = *std::move(read);
    return read.status();
  }
  const ClientFunction* Find(std::string_view name) const override {
    auto found = known_.find(std::string(name));
    return found == known_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, ClientFunction> known_;
};

v1::Operation OperationOf(const std::string& text) {
  v1::Operation operation;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &operation)) << text;
  if (operation.outputs_size() == 0) operation.add_outputs()->set_handle(9);
  return operation;
}

Plan Good(const Table& table, const std::string& text, const std::vector<Input>& inputs) {
  const v1::Operation operation = OperationOf(text);
  auto plan =
      PlanOperation(operation, inputs, std::vector<Input>(operation.outputs_size()), &table);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Plan();
}

absl::Status Refusal(const Table& table, const std::string& text,
                     const std::vector<Input>& inputs) {
  const v1::Operation operation = OperationOf(text);
  return PlanOperation(operation, inputs, std::vector<Input>(operation.outputs_size()), &table)
      .status();
}

constexpr char kMix[] =
    "ufunc { signatures: 'float32,float32->float32' signatures: 'float64,float64->float64' body { "
    "device_function { source: '__device__ double mix(double a, double b);' entry: 'mix' } } }";

TEST(ReadFunction, RefusesWithTheField) {
  struct Case {
    const char *text, *field;
  };
  for (
      const Case& c : {
          Case{"", "kind"},
          Case{"ufunc {}", "ufunc.body"},
          Case{"ufunc { signatures: 'float32->float31' }", "ufunc.signatures[0]"},
          Case{"ufunc { signatures: 'float32' }", "ufunc.signatures[0]"},
          Case{"ufunc { signatures: 'int8->int8' signatures: 'int8,int8->int8' }",
               "ufunc.signatures[1]"},
          Case{"ufunc { body { device_function { source: 'x' entry: 'f' } } }", "ufunc.signatures"},
          Case{"ufunc { signatures: 'int8->int8' body { device_function { source: 'x' entry: "
               "'f()' } } }",
               "ufunc.body.device_function.entry"},
          Case{"ufunc { signatures: 'int8->int8' body { device_function { entry: 'f' } } }",
               "ufunc.body.device_function.source"},
          Case{
              "ufunc { signatures: 'int8->int8' body { expression { text: 'x+' parameters: 'x' } } "
              "}",
              "ufunc.body.expression.text"},
          Case{"ufunc { signatures: 'int8->int8' body { expression { text: 'x+y' parameters: 'x' } "
               "} }",
               "ufunc.body.expression.text"},
          Case{
              "ufunc { signatures: 'float32->int8' body { expression { text: 'x' parameters: 'x' } "
              "} }",
              "ufunc.body.expression.text"},
          Case{"ufunc { body { expression { text: 'x' parameters: 'x' parameters: 'x' } } }",
               "ufunc.body.expression.parameters[1]"},
          Case{
              "ufunc { body { expression { text: 'x' parameters: 'x' } } identity { int_value: 0 } "
              "}",
              "ufunc.identity"},
          Case{"reduction { signatures: 'int8->int8' }", "reduction.combine"},
          Case{"reduction { signatures: 'int8,int8->int8' combine { expression { text: 'a' "
               "parameters: 'a' parameters: 'b' } } }",
               "reduction.map"},
          Case{"reduction { signatures: 'float32->int8' combine { expression { text: 'a' "
               "parameters: "
               "'a' parameters: 'b' } } }",
               "reduction.signatures[0]"},
          Case{
              "ufunc { signatures: 'int8->int8,int8' body { expression { text: 'a' parameters: 'a' "
              "} } }",
              "ufunc.signatures[0]"},
          Case{"ufunc { body { expression { text: 'a' parameters: 'a' more_texts: 'b +' } } }",
               "ufunc.body.expression.more_texts[0]"},
          Case{"ufunc { signatures: 'float64->int8,int8' body { expression { text: 'a > 1' "
               "parameters: 'a' more_texts: 'a' } } }",
               "ufunc.body.expression.more_texts[0]"},
          Case{
              "ufunc { associative: true body { expression { text: 'a' parameters: 'a' parameters: "
              "'b' more_texts: 'b' } } }",
              "ufunc.associative"},
          Case{"gufunc { layout: '(n)->()' signatures: 'int8->int8' }", "gufunc.body.source"},
          Case{"gufunc { layout: '(n)->()' signatures: 'int8,int8->int8' }",
               "gufunc.signatures[0]"},
      }) {
    Table table;
    const absl::Status status = table.Add("f", c.text);
    EXPECT_FALSE(status.ok()) << c.text;
    EXPECT_EQ(FieldOf(status), c.field) << c.text << ": " << status;
  }
}

TEST(ReadFunction, TakenNamesAreRefused) {
  for (const char* id : {"add", "abs", "divmod", "matmul", "pi", "True", "", "9a", "a-b"}) {
    EXPECT_EQ(FieldOf(CheckFunctionId(id, "function_id")), "function_id") << id;
  }
  EXPECT_TRUE(CheckFunctionId("my_add", "function_id").ok());
}

TEST(PlanFunction, FirstSafeLoopIsChosen) {
  Table table;
  ASSERT_TRUE(table.Add("mix", kMix).ok());
  const std::string call = "ufunc { function: 'mix' inputs {} inputs {} }";
  EXPECT_EQ(
      Good(table, call, {Array(DType::kInt16, {4}), Array(DType::kFloat32, {3, 1})}).outputs[0],
      Contiguous(DType::kFloat32, {3, 4}));
  EXPECT_EQ(
      Good(table, call, {Array(DType::kInt32, {4}), Array(DType::kFloat32, {4})}).outputs[0].dtype,
      DType::kFloat64);
  const absl::Status status =
      Refusal(table, call, {Array(DType::kComplex64, {4}), Array(DType::kFloat32, {4})});
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_DATA_TYPE_MISMATCH) << status;
  EXPECT_EQ(FieldOf(status), "ufunc.inputs");
  // A number without a type adopts the array's.
  EXPECT_EQ(
      Good(table, "ufunc { function: 'mix' inputs {} inputs { scalar { float_value: 0.5 } } }",
           {Array(DType::kFloat32, {4}), std::nullopt})
          .outputs[0]
          .dtype,
      DType::kFloat32);
  EXPECT_EQ(
      Good(table, "ufunc { function: 'mix' inputs {} inputs {} data_type: DATA_TYPE_FLOAT32 }",
           {Array(DType::kFloat64, {4}), Array(DType::kFloat32, {4})})
          .outputs[0]
          .dtype,
      DType::kFloat32);
  EXPECT_FALSE(Refusal(table,
                       "ufunc { function: 'mix' inputs {} inputs {} data_type: DATA_TYPE_FLOAT32 "
                       "casting: CASTING_SAFE }",
                       {Array(DType::kFloat64, {4}), Array(DType::kFloat32, {4})})
                   .ok());
  EXPECT_EQ(ReasonOf(Refusal(table, "ufunc { function: 'mix' inputs {} }",
                             {Array(DType::kFloat64, {4})})),
            v1::ERROR_REASON_ARGUMENT_COUNT);
  // Functions of other tenants are unknown.
  EXPECT_EQ(
      ReasonOf(Refusal(Table(), call, {Array(DType::kFloat32, {4}), Array(DType::kFloat32, {4})})),
      v1::ERROR_REASON_UNKNOWN_FUNCTION);
}

TEST(PlanFunction, LargeFunctionExpressionIsRefusedEarly) {
  Table table;
  std::string body, call = "x";
  for (int i = 0; i < 40; ++i) body += (i ? "+cos(x*" : "cos(x*") + std::to_string(i + 2) + ")";
  ASSERT_TRUE(
      table.Add("f", "ufunc { body { expression { text: '" + body + "' parameters: 'x' } } }")
          .ok());
  for (int i = 0; i < 60; ++i) call = "f(" + call + ")";
  const absl::Status status =
      Refusal(table, "expression { text: '" + call + "' inputs { key: 'x' value {} } }",
              {Array(DType::kFloat32, {4})});
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_SIZE_LIMIT) << status;
}

TEST(PlanFunction, ReducesInOrderUnlessAssociative) {
  Table table;
  ASSERT_TRUE(table.Add("mix", kMix).ok());
  const std::string call = "reduction { function_name: 'mix' input {} axes: 1 }";
  const std::vector<Input> inputs = {Array(DType::kFloat32, {3, 4})};
  EXPECT_TRUE(Good(table, call, inputs).task.has_routine());
  EXPECT_EQ(FieldOf(Refusal(table, "reduction { function_name: 'mix' input {} }", inputs)),
            "reduction.axes");
  EXPECT_EQ(FieldOf(Refusal(table, call, {Array(DType::kFloat32, {3, 0})})), "reduction.input")
      << "nothing, and no identity";
  std::string associative(kMix);
  associative.insert(associative.size() - 1, "associative: true identity { int_value: 0 } ");
  ASSERT_TRUE(table.Add("any_order", associative).ok());
  const Plan plan = Good(table, "reduction { function_name: 'any_order' input {} keep_dims: true }",
                         {Array(DType::kFloat32, {3, 0})});
  EXPECT_EQ(plan.outputs[0], Contiguous(DType::kFloat32, {1, 1}));
  EXPECT_EQ(plan.code->reduce().combine(), wire::ReduceCode::COMBINE_PROGRAM);
  EXPECT_TRUE(plan.code->reduce().has_identity());
}

TEST(PlanFunction, BuiltInUfuncsReduceByName) {
  const Table none;
  const Plan sum =
      Good(none, "reduction { function_name: 'add' input {} }", {Array(DType::kInt8, {3})});
  EXPECT_EQ(sum.code->reduce().combine(), wire::ReduceCode::COMBINE_ADD);
  EXPECT_EQ(sum.outputs[0].dtype, DType::kInt64);
  EXPECT_EQ(FieldOf(Refusal(none, "reduction { function_name: 'cos' input {} }",
                            {Array(DType::kFloat32, {3})})),
            "reduction.function_name");
  EXPECT_EQ(
      FieldOf(Refusal(none, "reduction { function_name: 'add' function: FUNCTION_SUM input {} }",
                      {Array(DType::kFloat32, {3})})),
      "reduction.function_name");
  EXPECT_EQ(FieldOf(Refusal(none, "reduction { function_name: 'add' input {} more_inputs {} }",
                            {Array(DType::kFloat32, {3}), Array(DType::kFloat32, {3})})),
            "reduction.more_inputs");
}

constexpr char kProduct[] =
    "gufunc { layout: '(m?,n),(n,p?)->(m?,p?)' signatures: 'float32,float32->float32' body { "
    "source: "
    "'x' entry: 'f' } }";

TEST(PlanGufunc, CoreAndLoopDimensions) {
  Table table;
  ASSERT_TRUE(table.Add("product", kProduct).ok());
  const std::string call = "gufunc { function: 'product' inputs {} inputs {} }";
  auto shape = [&](Extents left, Extents right) {
    return Good(table, call, {Array(DType::kFloat32, left), Array(DType::kFloat32, right)})
        .outputs[0]
        .shape;
  };
  EXPECT_EQ(shape({5, 1, 2, 3}, {7, 3, 4}), (Extents{5, 7, 2, 4}));
  EXPECT_EQ(shape({3}, {7, 3, 4}), (Extents{7, 4}));
  EXPECT_EQ(shape({2, 3}, {3}), (Extents{2}));
  EXPECT_EQ(shape({3}, {3}), (Extents{}));
  auto refused = [&](Extents left, Extents right) {
    return FieldOf(
        Refusal(table, call, {Array(DType::kFloat32, left), Array(DType::kFloat32, right)}));
  };
  EXPECT_EQ(refused({2, 3}, {4, 5}), "gufunc.inputs[1]");
  EXPECT_EQ(refused({2, 1}, {3, 5}), "gufunc.inputs[1]") << "cores do not broadcast";
  EXPECT_EQ(refused({}, {3, 5}), "gufunc.inputs[0]");
  EXPECT_EQ(refused({2, 2, 3}, {3, 3, 5}), "gufunc.inputs");
  // Operands of other types are copied.
  const Plan converted = Good(table, call, {Array(DType::kFloat32, {3}), Array(DType::kInt8, {3})});
  EXPECT_EQ(converted.converted_inputs,
            (std::vector<std::optional<DType>>{std::nullopt, DType::kFloat32}));
  EXPECT_EQ(converted.zeroed_outputs, (std::vector<int>{0}));
}

TEST(PlanGufunc, CoreAxesAtAnyPosition) {
  Table table;
  ASSERT_TRUE(table.Add("product", kProduct).ok());
  const Input a = Array(DType::kFloat32, {2, 5, 3}), b = Array(DType::kFloat32, {4, 3, 5});
  for (const char* name : {"product", "matmul"}) {
    const std::string call = absl::StrCat("gufunc { function: '", name, "' inputs {} inputs {} ");
    EXPECT_EQ(
        Good(
            table,
            call + "axes { axes: 0 axes: -1 } axes { axes: 1 axes: 0 } axes { axes: -1 axes: 0 } }",
            {a, b})
            .outputs[0],
        Contiguous(DType::kFloat32, {4, 5, 2}));
    EXPECT_EQ(Good(table, call + "axes { axes: -1 } axes { axes: 2 axes: 0 } axes { axes: 0 } }",
                   {Array(DType::kFloat32, {5}), b})
                  .outputs[0],
              Contiguous(DType::kFloat32, {4, 3}))
        << "optional dimensions";
    auto refused = [&](const std::string& rest) {
      return FieldOf(Refusal(table, call + rest, {a, b}));
    };
    EXPECT_EQ(refused("axes { axes: 0 } axes { axes: 1 axes: 0 } axes { axes: -1 axes: 0 } }"),
              "gufunc.axes[0]");
    EXPECT_EQ(
        refused("axes { axes: 0 axes: 3 } axes { axes: 1 axes: 0 } axes { axes: 1 axes: 0 } }"),
        "gufunc.axes[0]");
    EXPECT_EQ(
        refused("axes { axes: 0 axes: 2 } axes { axes: 1 axes: -2 } axes { axes: 1 axes: 0 } }"),
        "gufunc.axes[1]");
    EXPECT_EQ(refused("axes { axes: 0 axes: 2 } axes { axes: 1 axes: 0 } }"), "gufunc.axes");
    EXPECT_EQ(refused("axis: 0 }"), "gufunc.axis");
    EXPECT_EQ(refused("keep_dims: true }"), "gufunc.keep_dims");
  }
  const std::string dot = "gufunc { function: 'vecdot' inputs {} inputs {} ";
  EXPECT_EQ(Good(table, dot + "axis: 1 }", {a, a}).outputs[0].shape, (Extents{2, 3}));
  EXPECT_EQ(Good(table, dot + "axis: 1 keep_dims: true }", {a, a}).outputs[0].shape,
            (Extents{2, 1, 3}));
  EXPECT_EQ(Good(table, dot + "keep_dims: true }", {a, a}).outputs[0].shape, (Extents{2, 5, 1}));
  EXPECT_EQ(Good(table, dot + "axes { axes: 0 } axes { axes: 0 } }", {a, a}).outputs[0].shape,
            (Extents{5, 3}));
  EXPECT_EQ(FieldOf(Refusal(table, dot + "axis: 3 }", {a, a})), "gufunc.axis");
  EXPECT_EQ(FieldOf(Refusal(table, dot + "axis: 0 axes {} axes {} }", {a, a})), "gufunc.axis");
}

TEST(PlanGufunc, BuiltInGufuncs) {
  const Table none;
  auto call = [](const char* name) {
    return std::string("gufunc { function: '") + name + "' inputs {} inputs {} }";
  };
  const Input m = Array(DType::kFloat32, {4, 2, 3}), v = Array(DType::kFloat32, {3}),
              w = Array(DType::kComplex64, {5, 1, 2});
  EXPECT_EQ(Good(none, call("matvec"), {m, v}).outputs[0], Contiguous(DType::kFloat32, {4, 2}));
  EXPECT_TRUE(Good(none, call("matvec"), {m, v}).task.has_reduce());
  EXPECT_EQ(Good(none, call("vecdot"), {m, v}).outputs[0].shape, (Extents{4, 2}));
  EXPECT_EQ(Good(none, call("vecmat"), {w, m}).outputs[0],
            Contiguous(DType::kComplex64, {5, 4, 3}));
  EXPECT_TRUE(Good(none, call("vecmat"), {w, m}).task.has_reduce()) << "conjugates";
  EXPECT_EQ(FieldOf(Refusal(none, call("matvec"), {v, v})), "gufunc.inputs[1]");
  EXPECT_EQ(FieldOf(Refusal(none, call("vecmat"), {v, m})), "gufunc.inputs[1]");
  EXPECT_EQ(FieldOf(Refusal(none, call("matmul"), {m, m})), "gufunc.inputs[1]");
  EXPECT_EQ(ReasonOf(Refusal(none, call("matvex"), {m, v})), v1::ERROR_REASON_UNKNOWN_FUNCTION);
}

TEST(TrialCodes, OneCodePerLoopWithText) {
  Table table;
  ASSERT_TRUE(table.Add("mix", kMix).ok());
  auto codes = TrialCodes(*table.Find("mix"));
  ASSERT_TRUE(codes.ok()) << codes.status();
  ASSERT_EQ(codes->size(), 2u);
  // The code equals that of a use.
  const Plan plan = Good(table, "ufunc { function: 'mix' inputs {} inputs {} }",
                         {Array(DType::kFloat64, {99}), Array(DType::kFloat64, {99})});
  EXPECT_EQ((*codes)[1].SerializeAsString(), plan.code->SerializeAsString());
  ASSERT_TRUE(table.Add("product", kProduct).ok());
  EXPECT_EQ(TrialCodes(*table.Find("product"))->size(), 1u);
  ASSERT_TRUE(
      table.Add("twice", "ufunc { body { expression { text: 'x+x' parameters: 'x' } } }").ok());
  EXPECT_TRUE(TrialCodes(*table.Find("twice"))->empty());
}

TEST(PlanMethods, MethodsRefuseWithTheField) {
  const Table none;
  const Input x = Array(DType::kFloat32, {3, 4}), i = Array(DType::kInt32, {2});
  EXPECT_EQ(
      FieldOf(Refusal(none, "reduce_at { function: 'add' input {} indices {} axis: 2 }", {x, i})),
      "reduce_at.axis");
  EXPECT_EQ(FieldOf(Refusal(none, "reduce_at { function: 'cos' input {} indices {} }", {x, i})),
            "reduce_at.function");
  EXPECT_EQ(FieldOf(Refusal(none, "reduce_at { function: 'add' input {} indices {} }", {x, x})),
            "reduce_at.indices");
  EXPECT_EQ(FieldOf(Refusal(none, "outer { function: 'cos' left {} right {} }", {x, i})), "outer");
  EXPECT_EQ(FieldOf(Refusal(none, "outer { function: 'nothing' left {} right {} }", {x, i})),
            "outer.function");
  EXPECT_EQ(FieldOf(Refusal(none, "apply_at { function: 'add' values {} indices {} }", {x, i})),
            "outputs[0].existing");
  EXPECT_EQ(Good(none, "outer { function: 'less' left {} right {} }", {x, i}).outputs[0],
            Contiguous(DType::kBool, {3, 4, 2}));
}

}  // namespace
}  // namespace stride::ops
