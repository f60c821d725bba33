#include <functional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/plan_helpers.h"

namespace stride::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using wire::Parameter;

Parameter Pointer(const char* type, DType pointee, bool is_const) {
  Parameter parameter;
  parameter.set_kind(Parameter::KIND_POINTER);
  parameter.set_size(8);
  parameter.set_type(type);
  parameter.set_pointee_dtype(static_cast<int>(pointee));
  parameter.set_pointee_const(is_const);
  return parameter;
}

Parameter ByValue(Parameter::Kind kind, const char* type, uint32_t size, bool is_signed = true) {
  Parameter parameter;
  parameter.set_kind(kind);
  parameter.set_size(size);
  parameter.set_type(type);
  parameter.set_is_signed(is_signed);
  return parameter;
}

v1::Scalar Int(int64_t value) {
  v1::Scalar scalar;
  scalar.set_int_value(value);
  return scalar;
}
v1::Scalar Real(double value, v1::DataType dtype = v1::DATA_TYPE_UNSPECIFIED) {
  v1::Scalar scalar;
  scalar.set_float_value(value);
  scalar.set_data_type(dtype);
  return scalar;
}
v1::Scalar Imaginary(double value) {
  v1::Scalar scalar;
  scalar.mutable_complex_value()->set_imaginary(value);
  return scalar;
}

class KernelArguments : public ::testing::Test {
 protected:
  KernelArguments() {
    launch_.set_entry("add");
    kernel_.set_entry("add");
    kernel_.set_parameters_known(true);
  }
  absl::Status Bind() { return BindKernelArguments(launch_, inputs_, kernel_, &task_); }
  // One scalar for one parameter: returns its bytes, or the reason of the refusal.
  std::string Scalar(const Parameter& parameter, const v1::Scalar& scalar) {
    launch_.clear_arguments();
    kernel_.clear_parameters();
    *launch_.add_arguments()->mutable_scalar() = scalar;
    *kernel_.add_parameters() = parameter;
    absl::Status status = Bind();
    if (!status.ok()) return v1::ErrorReason_Name(ReasonOf(status));
    return task_.kernel().arguments(0).raw();
  }
  template <typename T>
  static std::string Bytes(T value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  v1::KernelLaunch launch_;
  wire::KernelDescription kernel_;
  std::vector<Input> inputs_;
  wire::Task task_;
};

constexpr char kMismatch[] = "ERROR_REASON_DATA_TYPE_MISMATCH";

TEST_F(KernelArguments, WrongArrayTypeSuggestsTheFix) {
  inputs_ = {testing::Array(DType::kInt64, {100})};
  launch_.add_arguments()->mutable_array()->set_handle(1);
  *kernel_.add_parameters() = Pointer("const int*", DType::kInt32, true);
  absl::Status status = Bind();
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  std::string text(status.message());
  for (const char* part :
       {"argument 0", "`const int*`", "int64", "int32", "copy", "`long long*`"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST_F(KernelArguments, ArraysGetSlots) {
  inputs_ = {testing::Array(DType::kFloat32, {4}), testing::Array(DType::kInt8, {4})};
  launch_.add_arguments()->mutable_array()->set_handle(1);
  auto* spec = launch_.add_arguments()->mutable_new_array()->mutable_spec();
  spec->set_data_type(v1::DATA_TYPE_FLOAT16);
  spec->add_shape(4);
  launch_.add_arguments()->mutable_array()->set_handle(2);
  *kernel_.add_parameters() = Pointer("const float*", DType::kFloat32, true);
  *kernel_.add_parameters() = Pointer("__half*", DType::kFloat16, false);
  Parameter untyped = Pointer("void*", DType::kBool, false);
  untyped.set_pointee_dtype(0);
  *kernel_.add_parameters() = untyped;
  ASSERT_TRUE(Bind().ok());
  EXPECT_EQ(task_.kernel().arguments(0).array().arena(), 0u);
  EXPECT_EQ(task_.kernel().arguments(1).array().arena(), 2u);
  EXPECT_EQ(task_.kernel().arguments(2).array().arena(), 1u);
  EXPECT_THAT(WrittenOperands(launch_, kernel_), ElementsAre(1));
  kernel_.set_parameters_known(false);
  EXPECT_THAT(WrittenOperands(launch_, kernel_), ElementsAre(0, 1));
}

TEST_F(KernelArguments, ScalarsAreConvertedWithoutLoss) {
  Parameter i32 = ByValue(Parameter::KIND_INTEGER, "int", 4);
  Parameter u8 = ByValue(Parameter::KIND_INTEGER, "unsigned char", 1, false);
  Parameter i64 = ByValue(Parameter::KIND_INTEGER, "long", 8);
  Parameter f32 = ByValue(Parameter::KIND_FLOAT, "float", 4);
  Parameter half = ByValue(Parameter::KIND_AGGREGATE, "__half", 2);
  Parameter brain = ByValue(Parameter::KIND_FLOAT, "__nv_bfloat16", 2);
  EXPECT_EQ(Scalar(i32, Int(-5)), Bytes(int32_t{-5}));
  EXPECT_EQ(Scalar(i64, Int(-5)), Bytes(int64_t{-5}));
  EXPECT_EQ(Scalar(i32, Int(int64_t{1} << 31)), kMismatch);
  EXPECT_EQ(Scalar(u8, Int(255)), std::string("\xff"));
  EXPECT_EQ(Scalar(u8, Int(-1)), kMismatch);
  EXPECT_EQ(Scalar(i32, Real(2.0)), Bytes(int32_t{2}));
  EXPECT_EQ(Scalar(i32, Real(2.5)), kMismatch);
  EXPECT_EQ(Scalar(f32, Real(0.1)), Bytes(0.1f));
  EXPECT_EQ(Scalar(f32, Real(0.1, v1::DATA_TYPE_FLOAT64)), kMismatch);
  EXPECT_EQ(Scalar(f32, Real(0.5, v1::DATA_TYPE_FLOAT64)), Bytes(0.5f));
  EXPECT_EQ(Scalar(f32, Real(1e300)), kMismatch);
  EXPECT_EQ(Scalar(f32, Int(1 << 24)), Bytes(16777216.0f));
  EXPECT_EQ(Scalar(f32, Int((1 << 24) + 1)), kMismatch);
  EXPECT_EQ(Scalar(half, Real(1.0)), Bytes(uint16_t{0x3C00}));
  EXPECT_EQ(Scalar(brain, Real(1.0)), Bytes(uint16_t{0x3F80}));
  EXPECT_EQ(Scalar(half, Int(65504)), Bytes(uint16_t{0x7BFF}));
  EXPECT_EQ(Scalar(half, Int(70000)), kMismatch);
  EXPECT_EQ(Scalar(ByValue(Parameter::KIND_BOOL, "bool", 1), Int(1)), std::string("\x01"));
  EXPECT_EQ(Scalar(ByValue(Parameter::KIND_BOOL, "bool", 1), Int(2)), kMismatch);
  EXPECT_EQ(Scalar(ByValue(Parameter::KIND_AGGREGATE, "float2", 8), Imaginary(2)),
            Bytes(0.0f) + Bytes(2.0f));
  EXPECT_EQ(Scalar(ByValue(Parameter::KIND_AGGREGATE, "Params", 8), Int(1)), kMismatch);
  EXPECT_EQ(Scalar(f32, Imaginary(1)), kMismatch);
  EXPECT_EQ(Scalar(Pointer("float*", DType::kFloat32, false), Int(0)), kMismatch);
}

TEST_F(KernelArguments, UnknownParametersAreCheckedBySize) {
  kernel_.set_parameters_known(false);
  Parameter eight = ByValue(Parameter::KIND_UNSPECIFIED, "", 8);
  Parameter four = ByValue(Parameter::KIND_UNSPECIFIED, "", 4);
  EXPECT_EQ(Scalar(four, Real(1.5)), Bytes(1.5f));
  EXPECT_EQ(Scalar(eight, Int(7)), Bytes(int64_t{7}));
  EXPECT_EQ(Scalar(eight, Real(1, v1::DATA_TYPE_FLOAT32)), kMismatch);
  launch_.clear_arguments();
  kernel_.clear_parameters();
  inputs_ = {testing::Array(DType::kFloat32, {4})};
  launch_.add_arguments()->mutable_array()->set_handle(1);
  *kernel_.add_parameters() = four;
  EXPECT_EQ(ReasonOf(Bind()), v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  *kernel_.mutable_parameters(0) = eight;
  EXPECT_TRUE(Bind().ok());
}

TEST_F(KernelArguments, CountsAndRawBytes) {
  launch_.add_arguments()->set_raw("12345678");
  EXPECT_EQ(ReasonOf(Bind()), v1::ERROR_REASON_ARGUMENT_COUNT);
  *kernel_.add_parameters() = ByValue(Parameter::KIND_AGGREGATE, "Params", 12);
  EXPECT_EQ(ReasonOf(Bind()), v1::ERROR_REASON_SIZE_MISMATCH);
  kernel_.mutable_parameters(0)->set_size(8);
  EXPECT_TRUE(Bind().ok());
  *kernel_.mutable_parameters(0) = Pointer("int*", DType::kInt32, false);
  EXPECT_EQ(ReasonOf(Bind()), v1::ERROR_REASON_DATA_TYPE_MISMATCH);
}

v1::Operation KernelOperation() {
  v1::Operation operation;
  auto* launch = operation.mutable_kernel_launch();
  launch->set_source("__global__ void add() {}");
  launch->set_entry("add");
  return operation;
}

Parameter Struct(uint32_t size) { return ByValue(Parameter::KIND_AGGREGATE, "View", size); }

TEST_F(KernelArguments, StructsHoldArrays) {
  *kernel_.add_parameters() = Struct(32);
  *kernel_.add_parameters() = Pointer("const int*", DType::kInt32, true);
  auto* aggregate = launch_.add_arguments()->mutable_aggregate();
  aggregate->set_size_bytes(32);
  auto add = [&](uint32_t offset) {
    auto* member = aggregate->add_members();
    member->set_offset_bytes(offset);
    return member;
  };
  add(24)->mutable_array();
  add(8)->set_raw("abc");
  auto* spec = add(0)->mutable_new_array()->mutable_spec();
  spec->set_data_type(v1::DATA_TYPE_FLOAT32);
  spec->add_shape(5);
  launch_.add_arguments()->mutable_array();
  inputs_ = {Contiguous(DType::kFloat64, {3}), Contiguous(DType::kInt32, {2})};
  ASSERT_TRUE(Bind().ok()) << Bind();
  const auto& bound = task_.kernel().arguments(0).aggregate();
  std::string raw(32, '\0');
  raw.replace(8, 3, "abc");
  EXPECT_EQ(bound.raw(), raw);
  ASSERT_EQ(bound.pointers_size(), 2);
  EXPECT_EQ(bound.pointers(0).offset(), 24u);
  EXPECT_EQ(bound.pointers(0).array().arena(), 0u);
  EXPECT_EQ(bound.pointers(1).offset(), 0u);
  EXPECT_EQ(bound.pointers(1).array().arena(), 2u) << "the slot of the new array";
  EXPECT_EQ(task_.kernel().arguments(1).array().arena(), 1u);
  EXPECT_THAT(WrittenOperands(launch_, kernel_), ElementsAre(0));
  ops::Bind(&task_, {{7, 100}, {8, 200}, {9, 300}});
  EXPECT_EQ(task_.kernel().arguments(0).aggregate().pointers(0).array().offset(), 100u);
  EXPECT_EQ(task_.kernel().arguments(0).aggregate().pointers(1).array().arena(), 9u);
  *kernel_.mutable_parameters(0) = Struct(24);
  EXPECT_EQ(ReasonOf(Bind()), v1::ERROR_REASON_SIZE_MISMATCH);
  v1::Operation operation;
  *operation.mutable_kernel_launch() = launch_;
  EXPECT_EQ(OperationView(operation).OperandPath(0),
            "kernel_launch.arguments[0].aggregate.members[0].array");
  EXPECT_EQ(OperationView(operation).OutputPath(0),
            "kernel_launch.arguments[0].aggregate.members[2].new_array.output");
}

v1::Texture* AddImage(v1::KernelLaunch* launch) {
  v1::Texture* texture = launch->add_arguments()->mutable_texture();
  texture->mutable_array();
  return texture;
}

TEST_F(KernelArguments, TexturesAreReadOnlyHandles) {
  *kernel_.add_parameters() = ByValue(Parameter::KIND_INTEGER, "cudaTextureObject_t", 8);
  *kernel_.add_parameters() = Pointer("float*", DType::kFloat32, false);
  v1::Texture* texture = AddImage(&launch_);
  texture->set_channels(2);
  texture->add_address_modes(v1::Texture::ADDRESS_MODE_MIRROR);
  texture->set_filter(v1::Texture::FILTER_LINEAR);
  texture->set_normalized_coordinates(true);
  texture->add_border_color(0.5);
  launch_.add_arguments()->mutable_array();
  inputs_ = {Contiguous(DType::kFloat16, {3, 10}), Contiguous(DType::kFloat32, {2})};
  ASSERT_TRUE(Bind().ok()) << Bind();
  const wire::Texture& bound = task_.kernel().arguments(0).texture();
  EXPECT_THAT(bound.extents(), ElementsAre(5, 3)) << "the width comes first, in texels";
  EXPECT_EQ(bound.pitch_bytes(), 20u);
  EXPECT_THAT(bound.address_modes(),
              ElementsAre(wire::Texture::ADDRESS_MODE_MIRROR, wire::Texture::ADDRESS_MODE_CLAMP));
  EXPECT_THAT(bound.border_color(), ElementsAre(0.5f, 0, 0, 0));
  EXPECT_TRUE(bound.linear_filter() && bound.normalized_coordinates());
  EXPECT_FALSE(bound.linear() || bound.normalized_values());
  EXPECT_EQ(bound.array().dtype(), static_cast<int>(DType::kFloat16));
  EXPECT_THAT(WrittenOperands(launch_, kernel_), ElementsAre(1)) << "the texture is read";
  ops::Bind(&task_, {{7, 100}, {8, 200}});
  EXPECT_EQ(task_.kernel().arguments(0).texture().array().arena(), 7u);
  EXPECT_EQ(task_.kernel().arguments(0).texture().array().offset(), 100u);
  EXPECT_EQ(task_.kernel().arguments(1).array().arena(), 8u);
  v1::Operation operation;
  *operation.mutable_kernel_launch() = launch_;
  EXPECT_EQ(OperationView(operation).OperandPath(0), "kernel_launch.arguments[0].texture.array");
  *kernel_.mutable_parameters(0) = Pointer("float*", DType::kFloat32, false);
  EXPECT_EQ(ReasonOf(Bind()), v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  EXPECT_THAT(std::string(Bind().message()), HasSubstr("cudaTextureObject_t"));
}

TEST(PlanKernel, ChecksTextures) {
  using Change = std::function<void(v1::Texture*)>;
  auto plan = [](DType dtype, std::vector<int64_t> shape, const Change& change) {
    v1::Operation operation = KernelOperation();
    change(AddImage(operation.mutable_kernel_launch()));
    return PlanOperation(operation, {Contiguous(dtype, std::move(shape))}, {}).status();
  };
  auto none = [](v1::Texture*) {};
  EXPECT_TRUE(plan(DType::kFloat32, {2, 3, 4}, none).ok());
  EXPECT_EQ(ReasonOf(plan(DType::kFloat64, {4}, none)), v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  EXPECT_EQ(ReasonOf(plan(DType::kFloat32, {0}, none)), v1::ERROR_REASON_SIZE_LIMIT);
  EXPECT_EQ(ReasonOf(plan(DType::kFloat32, {1, 2, 3, 4}, none)), v1::ERROR_REASON_INVALID_FIELD);
  EXPECT_EQ(ReasonOf(plan(DType::kFloat32, {}, none)), v1::ERROR_REASON_INVALID_FIELD);
  struct Case {
    const char* field;  // named by the error; nullptr if none
    DType dtype;
    Change change;
  };
  const Case cases[] = {
      {nullptr, DType::kInt8, [](v1::Texture* t) { t->set_normalized_values(true); }},
      {"normalized_values", DType::kInt32, [](v1::Texture* t) { t->set_normalized_values(true); }},
      {"normalized_values", DType::kFloat32,
       [](v1::Texture* t) { t->set_normalized_values(true); }},
      {"filter", DType::kInt16, [](v1::Texture* t) { t->set_filter(v1::Texture::FILTER_LINEAR); }},
      {nullptr, DType::kInt16,
       [](v1::Texture* t) {
         t->set_filter(v1::Texture::FILTER_LINEAR);
         t->set_normalized_values(true);
       }},
      {"filter", DType::kFloat32,
       [](v1::Texture* t) {
         t->set_layout(v1::Texture::LAYOUT_LINEAR);
         t->set_filter(v1::Texture::FILTER_LINEAR);
       }},
      {"normalized_coordinates", DType::kFloat32,
       [](v1::Texture* t) {
         t->set_layout(v1::Texture::LAYOUT_LINEAR);
         t->set_normalized_coordinates(true);
       }},
      {"layout", DType::kFloat32,
       [](v1::Texture* t) { t->set_layout(static_cast<v1::Texture::Layout>(9)); }},
      {"address_modes", DType::kFloat32,
       [](v1::Texture* t) { t->add_address_modes(static_cast<v1::Texture::AddressMode>(9)); }},
      {"channels", DType::kFloat32, [](v1::Texture* t) { t->set_channels(3); }},
      {"border_color", DType::kFloat32,
       [](v1::Texture* t) { t->mutable_border_color()->Resize(5, 1); }},
      {"pitch_bytes", DType::kFloat32, [](v1::Texture* t) { t->set_pitch_bytes(8); }},
      {"pitch_bytes", DType::kFloat32, [](v1::Texture* t) { t->set_pitch_bytes(18); }},
      {"extents", DType::kFloat32, [](v1::Texture* t) { t->set_pitch_bytes(20); }},
      {"extents", DType::kFloat32, [](v1::Texture* t) { t->set_pitch_bytes(~uint64_t{0} - 3); }},
      {"extents", DType::kFloat32, [](v1::Texture* t) { t->add_extents(17); }},
      {nullptr, DType::kFloat32, [](v1::Texture* t) { t->add_extents(16); }},
      {"extents", DType::kFloat32,
       [](v1::Texture* t) {
         for (int i = 0; i < 3; ++i) t->add_extents(1u << 31);
       }},
  };
  for (const Case& c : cases) {
    const absl::Status status = plan(c.dtype, {4, 4}, c.change);
    if (c.field == nullptr) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_FALSE(status.ok()) << c.field;
    EXPECT_EQ(testing::FieldOf(status),
              absl::StrCat("kernel_launch.arguments[0].texture.", c.field))
        << status;
  }
}

TEST_F(KernelArguments, GlobalsAreCheckedAgainstModule) {
  wire::ModuleDescription module;
  auto* table = module.add_globals();
  table->set_name("table");
  table->set_size(16);
  table->set_dtype(static_cast<int>(DType::kFloat32));
  module.add_globals()->set_name("opaque");
  inputs_ = {Contiguous(DType::kFloat64, {9}), Contiguous(DType::kFloat32, {4})};
  launch_.add_arguments()->mutable_array();
  auto* global = launch_.add_globals();
  global->set_name("table");
  global->mutable_array();
  auto bind = [&] { return BindKernelGlobals(launch_, inputs_, module, &task_); };
  EXPECT_EQ(NumGlobalOperands(launch_), 1);
  ASSERT_TRUE(bind().ok()) << bind();
  EXPECT_EQ(task_.kernel().globals(0).array().arena(), 1u);
  EXPECT_EQ(task_.kernel().globals(0).size(), 16u);
  ops::Bind(&task_, {{7, 100}, {8, 200}});
  EXPECT_EQ(task_.kernel().globals(0).array().arena(), 8u);
  EXPECT_EQ(task_.kernel().globals(0).array().offset(), 200u);
  kernel_.set_parameters_known(false);
  EXPECT_THAT(WrittenOperands(launch_, kernel_), ElementsAre(0)) << "globals are read";

  inputs_[1] = Contiguous(DType::kFloat32, {5});
  EXPECT_EQ(ReasonOf(bind()), v1::ERROR_REASON_SIZE_MISMATCH);
  inputs_[1] = Contiguous(DType::kInt32, {4});
  EXPECT_EQ(ReasonOf(bind()), v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  EXPECT_THAT(std::string(bind().message()), HasSubstr("int32"));
  inputs_.pop_back();
  *global->mutable_scalar() = Real(0.5);
  ASSERT_TRUE(bind().ok()) << bind();
  EXPECT_EQ(task_.kernel().globals(0).raw(), Bytes(0.5f));
  *global->mutable_scalar() = Imaginary(1);
  EXPECT_EQ(ReasonOf(bind()), v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  global->set_raw(std::string(17, 'x'));
  EXPECT_EQ(ReasonOf(bind()), v1::ERROR_REASON_SIZE_MISMATCH);

  global->set_name("opaque");  // unknown size and type: the device checks them
  EXPECT_TRUE(bind().ok()) << bind();
  *global->mutable_scalar() = Int(3);
  EXPECT_EQ(ReasonOf(bind()), v1::ERROR_REASON_DATA_TYPE_MISMATCH);
  *global->mutable_scalar() = Real(3, v1::DATA_TYPE_FLOAT64);
  ASSERT_TRUE(bind().ok()) << bind();
  EXPECT_EQ(task_.kernel().globals(0).raw(), Bytes(3.0));

  global->set_name("other");
  EXPECT_EQ(ReasonOf(bind()), v1::ERROR_REASON_UNKNOWN_ENTRY);
  EXPECT_THAT(std::string(bind().message()), HasSubstr("It has: table, opaque"));
  EXPECT_EQ(ReasonOf(CheckGlobalNames(launch_, {})), v1::ERROR_REASON_UNKNOWN_ENTRY);
}

TEST(PlanKernel, ChecksTheLaunch) {
  v1::Operation operation = KernelOperation();
  auto* launch = operation.mutable_kernel_launch();
  launch->mutable_grid()->set_x(250);
  launch->mutable_block()->set_x(1024);
  auto plan = PlanOperation(operation, {}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->code->source().entries(0), "add");
  EXPECT_THAT(plan->task.kernel().grid(), ElementsAre(250, 1, 1));
  launch->mutable_block()->set_y(2);
  EXPECT_EQ(ReasonOf(PlanOperation(operation, {}, {}).status()), v1::ERROR_REASON_SIZE_LIMIT);
  launch->mutable_block()->set_y(1);
  launch->mutable_grid()->set_y(65536);
  EXPECT_EQ(ReasonOf(PlanOperation(operation, {}, {}).status()), v1::ERROR_REASON_SIZE_LIMIT);
}

TEST(PlanKernel, ChecksStructsAndGlobals) {
  v1::Operation operation;
  auto* launch = operation.mutable_kernel_launch();
  launch->set_source("x");
  launch->set_entry("f");
  launch->set_cooperative(true);
  auto* aggregate = launch->add_arguments()->mutable_aggregate();
  auto plan = [&](std::vector<Input> inputs = {}) { return PlanOperation(operation, inputs, {}); };
  auto field = [&](std::vector<Input> inputs = {}) {
    return testing::FieldOf(plan(inputs).status());
  };
  EXPECT_EQ(field(), "kernel_launch.arguments[0].aggregate.size_bytes");
  aggregate->set_size_bytes(16);
  auto plain = plan();
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(plain->task.kernel().cooperative());
  auto* member = aggregate->add_members();
  EXPECT_EQ(field(), "kernel_launch.arguments[0].aggregate.members[0]");
  member->set_raw("12345");
  member->set_offset_bytes(12);
  EXPECT_EQ(field(), "kernel_launch.arguments[0].aggregate.members[0].offset_bytes");
  member->set_offset_bytes(4);
  aggregate->add_members()->mutable_array();
  const ArrayInfo array = Contiguous(DType::kFloat32, {4});
  EXPECT_EQ(field({array}), "kernel_launch.arguments[0].aggregate.members[0].offset_bytes");
  member->set_offset_bytes(8);
  EXPECT_TRUE(plan({array}).ok()) << plan({array}).status();
  ArrayInfo reversed = array;
  reversed.strides = {-4};
  reversed.offset = 12;
  EXPECT_EQ(field({reversed}), "kernel_launch.arguments[0].aggregate.members[1].array");

  for (const char* name : {"b", "a"}) {
    launch->add_globals()->set_name(name);
    const std::vector<Input> inputs(launch->globals_size(), array);
    EXPECT_EQ(field(inputs),
              absl::StrCat("kernel_launch.globals[", launch->globals_size() - 1, "]"));
    launch->mutable_globals()->rbegin()->mutable_array();
  }
  auto whole = plan({array, array, array});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->code->source().globals(), ElementsAre("a", "b"));
  EXPECT_EQ(field({array, array, reversed}), "kernel_launch.globals[1].array");
  launch->mutable_globals(1)->set_raw(std::string((32 << 10) + 1, 'x'));
  EXPECT_EQ(field({array, array}), "kernel_launch.globals[1].raw");
  launch->mutable_globals(1)->mutable_array();
  launch->mutable_globals(1)->set_name("b");
  EXPECT_EQ(field({array, array, array}), "kernel_launch.globals[1].name");
  launch->mutable_globals(1)->clear_name();
  EXPECT_EQ(field({array, array, array}), "kernel_launch.globals[1].name");
}

TEST(PlanKernel, ChecksOptionsAndArrays) {
  v1::Operation operation = KernelOperation();
  auto* launch = operation.mutable_kernel_launch();
  for (const char* good : {"-DN=4", "--std=c++17", "-std=c++20", "-O3", "--use_fast_math",
                           "-lineinfo", "--fmad=false"}) {
    launch->clear_options();
    launch->add_options(good);
    EXPECT_TRUE(PlanOperation(operation, {}, {}).ok()) << good;
  }
  for (const char* bad :
       {"--create-pch=/x", "-I/etc", "-include", "-O4", "--std=c++98", "-D", "-DX\n-I/", ""}) {
    launch->clear_options();
    launch->add_options(bad);
    EXPECT_EQ(ReasonOf(PlanOperation(operation, {}, {}).status()),
              v1::ERROR_REASON_OPTION_NOT_ALLOWED)
        << bad;
  }
  launch->clear_options();
  launch->add_arguments()->mutable_array()->set_handle(1);
  ArrayInfo every_other = Contiguous(DType::kInt8, {4});
  every_other.strides = {2};
  EXPECT_EQ(ReasonOf(PlanOperation(operation, {Input(every_other)}, {}).status()),
            v1::ERROR_REASON_SHAPE_MISMATCH);
  auto* spec = launch->add_arguments()->mutable_new_array()->mutable_spec();
  spec->set_data_type(v1::DATA_TYPE_INT8);
  spec->add_shape(3);
  auto plan = PlanOperation(operation, {testing::Array(DType::kInt8, {4})}, {Input()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->zeroed_outputs, ElementsAre(0));
  EXPECT_EQ(OperationView(operation).OutputPath(0), "kernel_launch.arguments[1].new_array.output");
}

}  // namespace
}  // namespace stride::ops
