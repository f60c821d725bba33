#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/error.h"
#include "server/ops/kernel_aggregate.h"
#include "server/ops/plan.h"
#include "server/ops/scalar.h"
#include "server/ops/scalar_fit.h"

// Values that a launch assigns to variables of its module.
namespace stride::ops {
namespace {

constexpr size_t kMaxNames = 50;  // names in one error message

std::string Field(int i, const char* member) {
  return absl::StrCat("kernel_launch.globals[", i, "].", member);
}

absl::Status Unknown(int i, const std::string& name, std::vector<std::string> known) {
  if (known.size() > kMaxNames) known.resize(kMaxNames);
  return InvalidField(v1::ERROR_REASON_UNKNOWN_ENTRY, Field(i, "name"),
                      absl::StrCat("the module has no variable `", name, "` to set. It has: ",
                                   known.empty() ? "none" : absl::StrJoin(known, ", ")),
                      {{"global", name}});
}

absl::Status Mismatch(int i, const char* member, const wire::GlobalDescription& global,
                      const std::string& text) {
  return InvalidField(v1::ERROR_REASON_DATA_TYPE_MISMATCH, Field(i, member), text,
                      {{"global", global.name()}});
}

std::optional<DType> TypeOf(const wire::GlobalDescription& global) {
  return global.dtype() == 0 ? std::nullopt : DTypeFromNumber(global.dtype());
}

absl::Status BindArray(int i, const ArrayInfo& array, uint32_t slot,
                       const wire::GlobalDescription& global, wire::GlobalValue* bound) {
  const std::optional<DType> type = TypeOf(global);
  if (type && *type != array.dtype) {
    return Mismatch(i, "array", global,
                    absl::StrCat("the array's type is not the variable's: the array is ",
                                 std::string(Name(array.dtype)), ", `", global.name(), "` is of ",
                                 std::string(Name(*type)), "; copy the array with that data_type"));
  }
  *bound->mutable_array() = PointerTo(array, slot);
  bound->set_size(static_cast<uint64_t>(array.size_bytes()));
  return absl::OkStatus();
}

absl::Status BindScalar(int i, const v1::Scalar& message, const wire::GlobalDescription& global,
                        wire::GlobalValue* bound) {
  auto scalar = ReadScalar(message, Field(i, "scalar"));
  if (!scalar.ok()) return scalar.status();
  const std::optional<DType> known = TypeOf(global);
  const std::optional<DType> to = known ? known : scalar->dtype;
  if (!to) {
    return Mismatch(
        i, "scalar", global,
        absl::StrCat("the type of `", global.name(), "` is not known; set the scalar's data_type"));
  }
  if (!LosesNothing(*scalar, *to)) {
    return Mismatch(i, "scalar", global,
                    absl::StrCat("the number does not fit `", global.name(),
                                 "` without loss; its type is ", std::string(Name(*to))));
  }
  auto encoded = EncodeScalar(scalar->value, *to, Field(i, "scalar"));
  if (!encoded.ok()) return encoded.status();
  bound->set_raw(encoded->value());
  bound->set_size(encoded->value().size());
  return absl::OkStatus();
}

absl::Status CheckLength(int i, const v1::GlobalVariable& given,
                         const wire::GlobalDescription& global, uint64_t size) {
  // A size of 0 is unknown until the module is loaded; the device checks it then.
  if (global.size() == 0 || size <= global.size()) return absl::OkStatus();
  const char* member = given.has_array() ? "array" : given.has_scalar() ? "scalar" : "raw";
  return InvalidField(v1::ERROR_REASON_SIZE_MISMATCH, Field(i, member),
                      absl::StrCat("the value is longer than the variable: ", size, " bytes, `",
                                   global.name(), "` has ", global.size()),
                      {{"global", global.name()}});
}

}  // namespace

absl::Status CheckGlobalNames(const v1::KernelLaunch& launch,
                              const google::protobuf::RepeatedPtrField<std::string>& known) {
  for (int i = 0; i < launch.globals_size(); ++i) {
    const std::string& name = launch.globals(i).name();
    if (std::find(known.begin(), known.end(), name) == known.end())
      return Unknown(i, name, {known.begin(), known.end()});
  }
  return absl::OkStatus();
}

int NumGlobalOperands(const v1::KernelLaunch& launch) {
  int count = 0;
  for (const v1::GlobalVariable& global : launch.globals()) count += global.has_array();
  return count;
}

absl::Status BindKernelGlobals(const v1::KernelLaunch& launch, absl::Span<const Input> inputs,
                               const wire::ModuleDescription& module, wire::Task* task) {
  task->mutable_kernel()->clear_globals();
  uint32_t slot = static_cast<uint32_t>(inputs.size()) - NumGlobalOperands(launch);
  for (int i = 0; i < launch.globals_size(); ++i) {
    const v1::GlobalVariable& given = launch.globals(i);
    const wire::GlobalDescription* global = nullptr;
    for (const auto& candidate : module.globals()) {
      if (candidate.name() == given.name()) global = &candidate;
    }
    if (global == nullptr) {
      std::vector<std::string> known;
      for (const auto& other : module.globals()) known.push_back(other.name());
      return Unknown(i, given.name(), std::move(known));
    }
    wire::GlobalValue* bound = task->mutable_kernel()->add_globals();
    bound->set_name(given.name());
    absl::Status status;
    switch (given.value_case()) {
      case v1::GlobalVariable::kArray:
        if (slot >= inputs.size() || !inputs[slot]) {
          return InvalidField(v1::ERROR_REASON_INVALID_FIELD, Field(i, "array"),
                              "the variable's array is missing");
        }
        status = BindArray(i, *inputs[slot], slot, *global, bound);
        ++slot;
        break;
      case v1::GlobalVariable::kScalar:
        status = BindScalar(i, given.scalar(), *global, bound);
        break;
      case v1::GlobalVariable::kRaw:
        bound->set_raw(given.raw());
        bound->set_size(given.raw().size());
        break;
      case v1::GlobalVariable::VALUE_NOT_SET:
        status = InvalidField(v1::ERROR_REASON_INVALID_FIELD,
                              absl::StrCat("kernel_launch.globals[", i, "]"),
                              "the value is missing: array, scalar or raw");
        break;
    }
    if (status.ok()) status = CheckLength(i, given, *global, bound->size());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace stride::ops
