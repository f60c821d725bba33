#include "server/engine/core/argument_text.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/base/error.h"
#include "stride/v1/operation.pb.h"

namespace stride::engine {
namespace {

constexpr int kMaxArguments = 32;  // in the text; a kernel may have hundreds

template <typename Shape>
std::string ShapeText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

std::string ScalarText(const v1::Scalar& scalar) {
  switch (scalar.value_case()) {
    case v1::Scalar::kBoolValue:
      return scalar.bool_value() ? "true" : "false";
    case v1::Scalar::kIntValue:
      return absl::StrCat(scalar.int_value());
    case v1::Scalar::kUintValue:
      return absl::StrCat(scalar.uint_value());
    case v1::Scalar::kFloatValue:
      return absl::StrCat(scalar.float_value());
    default:
      return "a number";
  }
}

std::string NewArrayText(const v1::ArraySpec& spec) {
  const std::string name = v1::DataType_Name(spec.data_type());
  return absl::StrCat("new ", absl::AsciiStrToLower(absl::StripPrefix(name, "DATA_TYPE_")),
                      ShapeText(spec.shape()));
}

std::string ArrayText(const ops::Input& input) {
  if (!input) return "an array";
  const std::string_view name = Name(input->dtype);
  return absl::StrCat(absl::string_view(name.data(), name.size()), ShapeText(input->shape));
}

// Empty for a task that launches no client's kernel.
std::string ArgumentText(const Task& task) {
  if (task.kernel == nullptr || !task.kernel->operation->has_kernel_launch()) return "";
  const auto& arguments = task.kernel->operation->kernel_launch().arguments();
  std::vector<std::string> texts;
  size_t next_input = 0;
  for (const v1::KernelArgument& argument : arguments) {
    if (static_cast<int>(texts.size()) == kMaxArguments) {
      texts.push_back(absl::StrCat("and ", arguments.size() - kMaxArguments, " more"));
      break;
    }
    switch (argument.value_case()) {
      case v1::KernelArgument::kArray:
        texts.push_back(next_input < task.kernel->inputs.size()
                            ? ArrayText(task.kernel->inputs[next_input])
                            : "an array");
        ++next_input;
        break;
      case v1::KernelArgument::kNewArray:
        texts.push_back(NewArrayText(argument.new_array().spec()));
        break;
      case v1::KernelArgument::kScalar:
        texts.push_back(ScalarText(argument.scalar()));
        break;
      case v1::KernelArgument::kRaw:
        texts.push_back(absl::StrCat(argument.raw().size(), " bytes"));
        break;
      case v1::KernelArgument::kAggregate:
        texts.push_back(absl::StrCat("a struct of ", argument.aggregate().size_bytes(), " bytes"));
        for (const auto& member : argument.aggregate().members()) next_input += member.has_array();
        break;
      case v1::KernelArgument::kTexture:
        texts.push_back(
            absl::StrCat("a texture of ", next_input < task.kernel->inputs.size()
                                              ? ArrayText(task.kernel->inputs[next_input])
                                              : "an array"));
        ++next_input;
        break;
      case v1::KernelArgument::VALUE_NOT_SET:
        break;
    }
  }
  return absl::StrJoin(texts, ", ");
}

}  // namespace

absl::Status WithArguments(const absl::Status& fault, const Task& task) {
  const std::string arguments = ArgumentText(task);
  const absl::string_view text = fault.message();
  if (arguments.empty()) {
    return MakeError(fault.code(), v1::ERROR_REASON_KERNEL_FAULT, {text.data(), text.size()},
                     {{"operation", task.label}});
  }
  return MakeError(fault.code(), v1::ERROR_REASON_KERNEL_FAULT,
                   absl::StrCat(text, "; its arguments: ", arguments),
                   {{"operation", task.label}, {"arguments", arguments}});
}

}  // namespace stride::engine
