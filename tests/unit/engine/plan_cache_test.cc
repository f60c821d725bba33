#include "server/engine/core/plan_cache.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace stride::engine {
namespace {

const ArrayInfo kRow = Contiguous(DType::kFloat32, {1000});

v1::Operation Add(uint64_t a, uint64_t b) {
  v1::Operation operation;
  operation.mutable_ufunc()->set_function("add");
  operation.mutable_ufunc()->add_inputs()->set_handle(a);
  operation.mutable_ufunc()->add_inputs()->set_handle(b);
  operation.add_outputs()->set_handle(a + b);
  return operation;
}

std::string KeyOf(const TenantId& tenant, const v1::Operation& operation,
                  std::vector<ops::Input> inputs, std::vector<ops::Input> existing) {
  auto pointers = [](const std::vector<ops::Input>& arrays) {
    std::vector<const ArrayInfo*> out;
    for (const ops::Input& array : arrays) out.push_back(array.has_value() ? &*array : nullptr);
    return out;
  };
  return std::string(ops::PlanKey(tenant, operation, pointers(inputs), pointers(existing)).bytes());
}

std::string Key(const v1::Operation& operation, std::vector<ops::Input> inputs = {kRow, kRow},
                std::vector<ops::Input> existing = {std::nullopt}) {
  return KeyOf({"tenant"}, operation, std::move(inputs), std::move(existing));
}

v1::Operation Launch() {
  v1::Operation operation;
  auto* launch = operation.mutable_kernel_launch();
  launch->set_source("code");
  launch->set_entry("f");
  launch->mutable_grid()->set_x(2);
  launch->mutable_block()->set_x(32);
  launch->add_arguments()->mutable_array()->set_handle(1);
  launch->add_arguments()->mutable_scalar()->set_int_value(7);
  return operation;
}

TEST(PlanCacheTest, KeyIgnoresArrayNames) {
  v1::Operation other = Add(3, 4);
  other.set_device("devices/cpu:0");
  other.set_priority(3);
  EXPECT_FALSE(Key(Add(1, 2)).empty());
  EXPECT_EQ(Key(Add(1, 2)), Key(other));
}

TEST(PlanCacheTest, KeyIncludesArrayLayout) {
  const std::string plain = Key(Add(1, 2));
  ArrayInfo shifted = kRow, reversed = kRow;
  shifted.offset = 4;
  reversed.strides[0] = -4;
  EXPECT_NE(Key(Add(1, 2), {kRow, shifted}), plain);
  EXPECT_NE(Key(Add(1, 2), {reversed, kRow}), plain);
  EXPECT_NE(Key(Add(1, 2), {kRow, Contiguous(DType::kFloat64, {1000})}), plain);
  EXPECT_NE(Key(Add(1, 2), {kRow, Contiguous(DType::kFloat32, {1000, 1})}), plain);
  EXPECT_NE(Key(Add(1, 2), {kRow, kRow}, {kRow}), plain);
}

TEST(PlanCacheTest, KeyIncludesEachFieldOfAnOperation) {
  const v1::Operation add = Add(1, 2);
  std::vector<v1::Operation> others(5, add);
  others[0].mutable_ufunc()->set_function("subtract");
  others[1].mutable_ufunc()->set_data_type(v1::DATA_TYPE_FLOAT64);
  others[2].mutable_ufunc()->set_casting(v1::CASTING_SAFE);
  others[3].mutable_ufunc()->mutable_inputs(1)->mutable_scalar()->set_float_value(2);
  others[4].mutable_ufunc()->mutable_where()->set_handle(9);
  for (const v1::Operation& other : others) EXPECT_NE(Key(other), Key(add)) << other.DebugString();
  v1::Operation three = others[3];
  three.mutable_ufunc()->mutable_inputs(1)->mutable_scalar()->set_float_value(3);
  EXPECT_NE(Key(three), Key(others[3]));

  v1::Operation sum;
  sum.mutable_reduction()->set_function(v1::Reduction::FUNCTION_SUM);
  std::vector<v1::Operation> sums(11, sum);
  sums[0].mutable_reduction()->set_function(v1::Reduction::FUNCTION_MEAN);
  sums[1].mutable_reduction()->set_function_name("add");
  sums[2].mutable_reduction()->set_data_type(v1::DATA_TYPE_FLOAT64);
  sums[3].mutable_reduction()->set_keep_dims(true);
  sums[4].mutable_reduction()->add_axes(0);
  sums[5].mutable_reduction()->mutable_initial()->set_int_value(1);
  sums[6].mutable_reduction()->mutable_where()->set_handle(9);
  sums[7].mutable_reduction()->set_skip_nan(true);
  sums[8].mutable_reduction()->mutable_expression()->set_text("x + 1");
  (*sums[8].mutable_reduction()->mutable_expression()->mutable_inputs())["x"].set_handle(1);
  sums[9] = sums[8];
  sums[9].mutable_reduction()->mutable_expression()->set_text("x - 1");
  sums[10].mutable_reduction()->set_correction(1);
  for (const v1::Operation& other : sums) EXPECT_NE(Key(other), Key(sum)) << other.DebugString();
  EXPECT_NE(Key(sums[9]), Key(sums[8]));

  v1::Operation expression;
  expression.mutable_expression()->set_text("x + y");
  (*expression.mutable_expression()->mutable_inputs())["x"].set_handle(1);
  v1::Operation renamed = expression, retyped = expression;
  renamed.mutable_expression()->set_text("x - y");
  retyped.mutable_expression()->set_data_type(v1::DATA_TYPE_FLOAT64);
  EXPECT_NE(Key(renamed), Key(expression));
  EXPECT_NE(Key(retyped), Key(expression));

  v1::Operation product;
  product.mutable_matmul()->mutable_left()->set_handle(1);
  product.mutable_matmul()->mutable_right()->set_handle(2);
  v1::Operation wide = product;
  wide.mutable_matmul()->set_data_type(v1::DATA_TYPE_INT32);
  EXPECT_NE(Key(wide), Key(product));

  v1::Operation copy;
  copy.mutable_copy()->mutable_input()->set_handle(1);
  v1::Operation cast = copy, move = copy;
  cast.mutable_copy()->set_data_type(v1::DATA_TYPE_FLOAT64);
  move.mutable_copy()->set_move(true);
  EXPECT_NE(Key(cast), Key(copy));
  EXPECT_TRUE(Key(move).empty());
}

// A new field of these messages must be part of the key: update this count and the test above.
TEST(PlanCacheTest, KeyCoversEveryField) {
  EXPECT_EQ(v1::Ufunc::descriptor()->field_count(), 5);
  EXPECT_EQ(v1::Expression::descriptor()->field_count(), 3);
  EXPECT_EQ(v1::Reduction::descriptor()->field_count(), 12);
  EXPECT_EQ(v1::Matmul::descriptor()->field_count(), 3);
  EXPECT_EQ(v1::Copy::descriptor()->field_count(), 3);
}

TEST(PlanCacheTest, LaunchKeyIgnoresOnlyHandlesAndNumbers) {
  const v1::Operation launch = Launch();
  const std::string key = Key(launch, {kRow}, {});
  ASSERT_FALSE(key.empty());
  v1::Operation other = launch;
  other.mutable_kernel_launch()->mutable_arguments(0)->mutable_array()->set_handle(9);
  other.mutable_kernel_launch()->mutable_arguments(1)->mutable_scalar()->set_int_value(8);
  EXPECT_EQ(Key(other, {kRow}, {}), key);

  std::vector<v1::Operation> others(12, launch);
  auto change = [&](int i) { return others[i].mutable_kernel_launch(); };
  change(0)->set_source("another");
  change(1)->set_ptx("code");
  change(2)->set_binary("code");
  change(3)->set_module("code");
  change(4)->set_entry("g");
  change(5)->add_options("-DN=1");
  change(6)->mutable_grid()->set_y(2);
  change(7)->mutable_block()->set_y(2);
  change(8)->set_shared_memory_bytes(16);
  change(9)->set_cooperative(true);
  change(10)->mutable_arguments(1)->mutable_array()->set_handle(1);
  change(11)->add_arguments()->mutable_scalar()->set_int_value(7);
  for (const v1::Operation& one : others) EXPECT_NE(Key(one, {kRow}, {}), key) << one.DebugString();
  EXPECT_NE(Key(launch, {Contiguous(DType::kFloat64, {1000})}, {}), key);
}

// By reflection: the operations with one more field of the message set, or with another value.
std::vector<v1::Operation> WithOtherFields(const v1::Operation& operation) {
  std::vector<v1::Operation> others;
  const auto* kind = operation.GetReflection()->GetOneofFieldDescriptor(
      operation, operation.GetDescriptor()->FindOneofByName("kind"));
  const auto* type = kind->message_type();
  for (int i = 0; i < type->field_count(); ++i) {
    const auto* field = type->field(i);
    v1::Operation other = operation;
    google::protobuf::Message* message = other.GetReflection()->MutableMessage(&other, kind);
    const auto* reflection = message->GetReflection();
    if (field->is_repeated() || field->message_type() != nullptr) continue;
    switch (field->cpp_type()) {
      case google::protobuf::FieldDescriptor::CPPTYPE_INT32:
        reflection->SetInt32(message, field, 11);
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_INT64:
        reflection->SetInt64(message, field, 11);
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_BOOL:
        reflection->SetBool(message, field, true);
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_ENUM:
        reflection->SetEnumValue(message, field, 2);
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_STRING:
        reflection->SetString(message, field, "other");
        break;
      default:
        ADD_FAILURE() << "give this field another value: " << field->full_name();
    }
    others.push_back(std::move(other));
  }
  return others;
}

TEST(PlanCacheTest, OtherKeysIgnoreOnlyHandles) {
  std::vector<v1::Operation> kinds(8);
  kinds[0].mutable_sort()->mutable_input();
  kinds[1].mutable_accumulation()->mutable_input();
  kinds[2].mutable_gather()->mutable_input();
  kinds[3].mutable_fft()->mutable_input();
  kinds[4].mutable_search()->mutable_sorted();
  kinds[5].mutable_histogram()->mutable_input();
  kinds[6].mutable_top_k()->mutable_input();
  kinds[7].mutable_partition()->mutable_input();
  size_t num_others = 0;
  for (const v1::Operation& operation : kinds) {
    const std::string key = Key(operation, {kRow});
    ASSERT_FALSE(key.empty()) << operation.DebugString();
    v1::Operation placed = operation;
    placed.set_device("devices/cpu:0");
    placed.set_priority(3);
    placed.add_outputs()->set_handle(9);
    EXPECT_EQ(Key(placed, {kRow}), key);
    const std::vector<v1::Operation> others = WithOtherFields(operation);
    num_others += others.size();
    for (const v1::Operation& other : others)
      EXPECT_NE(Key(other, {kRow}), key) << other.DebugString();
    EXPECT_NE(Key(operation, {Contiguous(DType::kFloat64, {1000})}), key);
  }
  EXPECT_GE(num_others, 15U);
  v1::Operation first, second;
  first.mutable_gather()->mutable_input()->set_handle(1);
  first.mutable_gather()->add_indices()->set_handle(2);
  second.mutable_gather()->mutable_input()->set_handle(3);
  second.mutable_gather()->add_indices()->set_handle(4);
  EXPECT_EQ(Key(first), Key(second));
  second.mutable_gather()->add_indices()->set_handle(5);
  EXPECT_NE(Key(first), Key(second));
  v1::Operation random;
  random.mutable_creation()->mutable_random();
  EXPECT_TRUE(Key(random, {}).empty());
}

TEST(PlanCacheTest, TenantsShareNoClientCode) {
  EXPECT_NE(KeyOf({"a"}, Launch(), {kRow}, {}), KeyOf({"b"}, Launch(), {kRow}, {}));
  EXPECT_EQ(KeyOf({"a"}, Add(1, 2), {kRow, kRow}, {}), KeyOf({"b"}, Add(1, 2), {kRow, kRow}, {}));
}

TEST(PlanCacheTest, LongOrStructuredLaunchesAndProgramsAreNotCached) {
  EXPECT_EQ(v1::KernelLaunch::descriptor()->field_count(), 12);
  std::vector<v1::Operation> launches(6, Launch());
  auto change = [&](int i) { return launches[i].mutable_kernel_launch(); };
  change(0)->mutable_arguments(1)->set_raw("1234");
  change(1)->mutable_arguments(1)->mutable_new_array();
  change(2)->mutable_arguments(1)->mutable_aggregate();
  change(3)->mutable_arguments(1)->mutable_texture();
  change(4)->add_globals()->set_name("g");
  change(5)->set_source(std::string(5000, 'x'));
  for (const v1::Operation& one : launches)
    EXPECT_TRUE(Key(one, {kRow}, {}).empty()) << one.ShortDebugString().substr(0, 200);
  v1::Operation operation;
  operation.mutable_program_call()->set_program("tenants/t/programs/p");
  EXPECT_TRUE(Key(operation, {}).empty());
}

TEST(PlanCacheTest, CacheSizeIsBounded) {
  PlanCache cache;
  std::shared_ptr<const Planned> planned = MakePlanned({});
  for (int i = 0; i < 10000; ++i) cache.Keep(std::to_string(i), planned);
  EXPECT_EQ(cache.Find("9999"), planned);
  EXPECT_EQ(cache.Find("0"), nullptr);
  EXPECT_LT(planned.use_count(), 5000);
}

}  // namespace
}  // namespace stride::engine
