#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/kernel_aggregate.h"
#include "server/ops/kernel_texture.h"
#include "server/ops/plan.h"
#include "server/ops/scalar.h"
#include "server/ops/scalar_fit.h"
#include "server/ops/shape.h"

// Checks a launch's arguments against the parameters of the compiled kernel.
namespace stride::ops {
namespace {

using Parameter = wire::Parameter;

constexpr uint32_t kPointerBytes = 8;
constexpr uint32_t kHandleBytes = 8;

// Returns the type's name in CUDA C++.
const char* CudaName(DType dtype) {
  constexpr const char* kNames[] = {"",
                                    "bool",
                                    "signed char",
                                    "short",
                                    "int",
                                    "long long",
                                    "unsigned char",
                                    "unsigned short",
                                    "unsigned int",
                                    "unsigned long long",
                                    "__half",
                                    "__nv_bfloat16",
                                    "float",
                                    "double",
                                    "cuFloatComplex",
                                    "cuDoubleComplex"};
  return kNames[static_cast<int>(dtype)];
}

// Context of an error about one argument.
struct Place {
  int index;
  const std::string& kernel;
  const Parameter* parameter;  // nullptr: the kernel has no type information

  std::string Field(const char* member) const {
    return absl::StrCat("kernel_launch.arguments[", index, "].", member);
  }

  absl::Status Mismatch(const char* member, const std::string& text) const {
    ErrorMetadata metadata = {{"kernel", kernel}, {"argument", absl::StrCat(index)}};
    std::string where = absl::StrCat("; argument ", index, " of ", kernel);
    if (parameter != nullptr && !parameter->type().empty()) {
      metadata.emplace_back("parameter_type", parameter->type());
      absl::StrAppend(&where, ", parameter type `", parameter->type(), "`");
    }
    return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, Field(member), text + where,
                        std::move(metadata));
  }
};

absl::Status CheckPointer(const Place& place, DType dtype, const char* member) {
  const Parameter* parameter = place.parameter;
  if (parameter == nullptr) return absl::OkStatus();
  bool is_pointer = parameter->kind() == Parameter::KIND_POINTER ||
                    parameter->kind() == Parameter::KIND_UNSPECIFIED;
  if (!is_pointer || parameter->size() != kPointerBytes) {
    return place.Mismatch(
        member,
        absl::StrCat("an array was given where the kernel takes no pointer; pass a scalar or raw "
                     "bytes of ",
                     parameter->size(), " bytes"));
  }
  int pointee = parameter->pointee_dtype();
  if (pointee == 0 || pointee == static_cast<int>(dtype)) return absl::OkStatus();
  auto expected = DTypeFromNumber(pointee);
  std::string expected_name(expected ? Name(*expected) : "another type");
  return place.Mismatch(
      member, absl::StrCat("the array's type is not what the parameter points to: the array is ",
                           std::string(Name(dtype)), ", the parameter wants ", expected_name,
                           "; copy the array with that data_type, or declare the parameter as `",
                           CudaName(dtype), "*`"));
}

DType IntegerType(uint32_t size, bool is_signed) {
  switch (size) {
    case 1:
      return is_signed ? DType::kInt8 : DType::kUInt8;
    case 2:
      return is_signed ? DType::kInt16 : DType::kUInt16;
    case 4:
      return is_signed ? DType::kInt32 : DType::kUInt32;
    default:
      return is_signed ? DType::kInt64 : DType::kUInt64;
  }
}

bool IsBrainFloat(const std::string& type) { return absl::StrContains(type, "bfloat16"); }

// Returns the element type of a by-value parameter, or nullopt for a struct that only raw bytes can
// fill.
std::optional<DType> TypeOf(const Parameter& parameter, const ScalarOperand& scalar) {
  uint32_t size = parameter.size();
  const std::string& type = parameter.type();
  bool is_complex = std::holds_alternative<std::complex<double>>(scalar.value) ||
                    (scalar.dtype && IsComplex(*scalar.dtype));
  switch (parameter.kind()) {
    case Parameter::KIND_BOOL:
      return DType::kBool;
    case Parameter::KIND_INTEGER:
      if (size > 8) return std::nullopt;
      return IntegerType(size, parameter.is_signed());
    case Parameter::KIND_FLOAT:
      if (size == 2) return IsBrainFloat(type) ? DType::kBFloat16 : DType::kFloat16;
      return size == 4 ? DType::kFloat32 : DType::kFloat64;
    case Parameter::KIND_AGGREGATE:
      if (size == 2 && IsBrainFloat(type)) return DType::kBFloat16;
      if (size == 2 && absl::StrContains(type, "half")) return DType::kFloat16;
      if (absl::StrContains(type, "omplex") || absl::StrContains(type, "float2") ||
          absl::StrContains(type, "double2")) {
        if (size == 8) return DType::kComplex64;
        if (size == 16) return DType::kComplex128;
      }
      return std::nullopt;
    case Parameter::KIND_UNSPECIFIED:
      // Only the size is known: use the scalar's type, or the usual type of that size.
      if (scalar.dtype) return ItemSize(*scalar.dtype) == size ? scalar.dtype : std::nullopt;
      if (is_complex) {
        if (size == 8) return DType::kComplex64;
        return size == 16 ? std::optional(DType::kComplex128) : std::nullopt;
      }
      if (std::holds_alternative<double>(scalar.value)) {
        if (size == 4) return DType::kFloat32;
        return size == 8 ? std::optional(DType::kFloat64) : std::nullopt;
      }
      if (size != 1 && size != 2 && size != 4 && size != 8) return std::nullopt;
      return IntegerType(size, std::get<Integer>(scalar.value) < 0);
    default:
      return std::nullopt;
  }
}

absl::StatusOr<std::string> BindScalar(const Place& place, const v1::Scalar& message) {
  auto scalar = ReadScalar(message, place.Field("scalar"));
  if (!scalar.ok()) return scalar.status();
  std::optional<DType> to;
  if (place.parameter != nullptr) {
    if (place.parameter->kind() == Parameter::KIND_POINTER) {
      return place.Mismatch("scalar",
                            "a scalar was given where the kernel takes a pointer; pass an array");
    }
    to = TypeOf(*place.parameter, *scalar);
    if (!to) {
      return place.Mismatch("scalar",
                            absl::StrCat("a number does not fill this parameter; pass its ",
                                         place.parameter->size(), " bytes as raw"));
    }
  } else {
    if (!scalar->dtype) {
      return place.Mismatch(
          "scalar",
          "this kernel does not declare its parameters' types; set the scalar's data_type");
    }
    to = scalar->dtype;
  }
  if (!LosesNothing(*scalar, *to)) {
    return place.Mismatch(
        "scalar", absl::StrCat("the number does not fit the parameter without loss; its type is ",
                               std::string(Name(*to))));
  }
  auto encoded = EncodeScalar(scalar->value, *to, place.Field("scalar"));
  if (!encoded.ok()) return encoded.status();
  return encoded->value();
}

absl::Status CheckRaw(const Place& place, const std::string& raw) {
  const Parameter* parameter = place.parameter;
  if (parameter == nullptr) return absl::OkStatus();
  if (parameter->kind() == Parameter::KIND_POINTER) {
    return place.Mismatch("raw",
                          "raw bytes were given where the kernel takes a pointer; pass an array");
  }
  if (raw.size() == parameter->size()) return absl::OkStatus();
  return InvalidField(
      v1::ERROR_REASON_SIZE_MISMATCH, place.Field("raw"),
      absl::StrCat("raw bytes must have the parameter's exact size: argument ", place.index, " of ",
                   place.kernel, " has ", raw.size(), " bytes, the parameter ", parameter->size()));
}

absl::Status CheckCount(const v1::KernelLaunch& launch, const wire::KernelDescription& kernel) {
  if (launch.arguments_size() == kernel.parameters_size()) return absl::OkStatus();
  return InvalidField(
      v1::ERROR_REASON_ARGUMENT_COUNT, "kernel_launch.arguments",
      absl::StrCat("the number of arguments differs from the kernel's parameters: ", kernel.entry(),
                   " takes ", kernel.parameters_size(), ", not ", launch.arguments_size()),
      {{"kernel", kernel.entry()}});
}

// Returns whether nothing is known of the parameters, not even their sizes.
bool IsOpaque(const wire::KernelDescription& kernel) {
  return !kernel.parameters_known() && kernel.parameters().empty();
}

// Checks only the size of a struct: kernels do not describe its pointers.
absl::Status CheckStruct(const Place& place, uint32_t size) {
  const Parameter* parameter = place.parameter;
  if (parameter == nullptr || parameter->size() == size) return absl::OkStatus();
  return InvalidField(
      v1::ERROR_REASON_SIZE_MISMATCH, place.Field("aggregate.size_bytes"),
      absl::StrCat("a struct must have the parameter's exact size: argument ", place.index, " of ",
                   place.kernel, " has ", size, " bytes, the parameter ", parameter->size()));
}

// A texture's handle is an 8-byte integer.
absl::Status CheckHandle(const Place& place) {
  const Parameter* parameter = place.parameter;
  if (parameter == nullptr) return absl::OkStatus();
  const bool is_integer = parameter->kind() == Parameter::KIND_INTEGER ||
                          parameter->kind() == Parameter::KIND_UNSPECIFIED;
  if (is_integer && parameter->size() == kHandleBytes) return absl::OkStatus();
  return place.Mismatch("texture",
                        "a texture was given where the kernel takes no `cudaTextureObject_t`");
}

absl::Status BindTexture(const v1::Texture& texture, absl::Span<const Input> inputs,
                         const std::string& field, uint32_t* next_array, wire::Texture* bound) {
  if (*next_array >= inputs.size() || !inputs[*next_array]) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field + ".texture.array",
                        "the texture's array is missing");
  }
  const ArrayInfo& array = *inputs[*next_array];
  auto read = ReadTexture(texture, array, field);
  if (!read.ok()) return read.status();
  *bound = *std::move(read);
  *bound->mutable_array() = PointerTo(array, (*next_array)++);
  return absl::OkStatus();
}

}  // namespace

absl::Status BindKernelArguments(const v1::KernelLaunch& launch, absl::Span<const Input> inputs,
                                 const wire::KernelDescription& kernel, wire::Task* task) {
  bool opaque = IsOpaque(kernel);
  if (!opaque) {
    if (auto status = CheckCount(launch, kernel); !status.ok()) return status;
  }
  task->mutable_kernel()->clear_arguments();
  uint32_t next_array = 0, next_output = static_cast<uint32_t>(inputs.size());
  for (int i = 0; i < launch.arguments_size(); ++i) {
    Place place{i, launch.entry(), opaque ? nullptr : &kernel.parameters(i)};
    auto* bound = task->mutable_kernel()->add_arguments();
    const v1::KernelArgument& argument = launch.arguments(i);
    switch (argument.value_case()) {
      case v1::KernelArgument::kArray: {
        if (next_array >= inputs.size() || !inputs[next_array]) {
          return InvalidField(v1::ERROR_REASON_INVALID_FIELD, place.Field("array"),
                              "the argument's array is missing");
        }
        const ArrayInfo& array = *inputs[next_array];
        if (auto status = CheckPointer(place, array.dtype, "array"); !status.ok()) return status;
        *bound->mutable_array() = PointerTo(array, next_array++);
        break;
      }
      case v1::KernelArgument::kNewArray: {
        auto array = ReadSpec(argument.new_array().spec(), place.Field("new_array.spec"));
        if (!array.ok()) return array.status();
        if (auto status = CheckPointer(place, array->dtype, "new_array"); !status.ok())
          return status;
        *bound->mutable_array() = PointerTo(*array, next_output++);
        break;
      }
      case v1::KernelArgument::kScalar: {
        auto raw = BindScalar(place, argument.scalar());
        if (!raw.ok()) return raw.status();
        bound->set_raw(*raw);
        break;
      }
      case v1::KernelArgument::kRaw:
        if (auto status = CheckRaw(place, argument.raw()); !status.ok()) return status;
        bound->set_raw(argument.raw());
        break;
      case v1::KernelArgument::kAggregate: {
        absl::Status status = CheckStruct(place, argument.aggregate().size_bytes());
        if (status.ok()) {
          status = BindAggregate(argument.aggregate(), inputs,
                                 absl::StrCat("kernel_launch.arguments[", i, "]"), &next_array,
                                 &next_output, bound->mutable_aggregate());
        }
        if (!status.ok()) return status;
        break;
      }
      case v1::KernelArgument::kTexture: {
        absl::Status status = CheckHandle(place);
        if (status.ok()) {
          status = BindTexture(argument.texture(), inputs,
                               absl::StrCat("kernel_launch.arguments[", i, "]"), &next_array,
                               bound->mutable_texture());
        }
        if (!status.ok()) return status;
        break;
      }
      case v1::KernelArgument::VALUE_NOT_SET:
        return InvalidField(
            v1::ERROR_REASON_INVALID_FIELD, absl::StrCat("kernel_launch.arguments[", i, "]"),
            "the argument is empty: array, new_array, scalar, raw, aggregate or texture");
    }
  }
  return absl::OkStatus();
}

std::vector<int> WrittenOperands(const v1::KernelLaunch& launch,
                                 const wire::KernelDescription& kernel) {
  std::vector<int> written;
  int operand = 0;
  for (int i = 0; i < launch.arguments_size(); ++i) {
    const v1::KernelArgument& argument = launch.arguments(i);
    // Kernels do not describe a struct's pointers, so assume that their arrays are written.
    for (const auto& member : argument.aggregate().members()) {
      if (member.has_array()) written.push_back(operand++);
    }
    operand += argument.has_texture();  // textures are read-only
    if (!argument.has_array()) continue;
    bool is_const = kernel.parameters_known() && i < kernel.parameters_size() &&
                    kernel.parameters(i).kind() == Parameter::KIND_POINTER &&
                    kernel.parameters(i).pointee_const();
    if (!is_const) written.push_back(operand);
    ++operand;
  }
  return written;
}

}  // namespace stride::ops
