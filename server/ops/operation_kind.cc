#include "server/ops/operation_kind.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/error.h"

namespace stride::ops {
namespace {

constexpr size_t kMaxDetail = 80;

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The path from a message to a part of it; empty: the part is not in it. A part that is not set has
// no address of its own: it is the field of its type after `missing` others that are not set.
std::string PathTo(const Message& from, const Message& part, int64_t& missing) {
  if (const auto* expression = dynamic_cast<const v1::Expression*>(&from)) {
    for (const auto& [name, operand] : expression->inputs()) {
      if (&operand == &part) return absl::StrCat("inputs[", name, "]");
    }
    return "";
  }
  const auto* reflection = from.GetReflection();
  for (int f = 0; f < from.GetDescriptor()->field_count(); ++f) {
    const FieldDescriptor* field = from.GetDescriptor()->field(f);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (field->message_type() == v1::Body::descriptor()) continue;  // has operations of its own
    if (!field->is_repeated() && !reflection->HasField(from, field)) {
      const bool is_alike = field->message_type() == part.GetDescriptor();
      if (is_alike && field->containing_oneof() == nullptr && missing-- == 0) return field->name();
      continue;
    }
    const int count = field->is_repeated() ? reflection->FieldSize(from, field) : 1;
    for (int i = 0; i < count; ++i) {
      const Message& next = field->is_repeated() ? reflection->GetRepeatedMessage(from, field, i)
                                                 : reflection->GetMessage(from, field);
      const std::string below = &next == &part ? "" : PathTo(next, part, missing);
      if (below.empty() && &next != &part) continue;
      return absl::StrCat(field->name(), field->is_repeated() ? absl::StrCat("[", i, "]") : "",
                          below.empty() ? "" : ".", below);
    }
  }
  return "";
}

template <typename Part>
std::string PathOf(const v1::Operation& operation, absl::Span<const Part* const> parts, size_t i) {
  const Part* const unset = &Part::default_instance();
  int64_t missing = -1;
  if (parts[i] == unset)
    missing = std::count(parts.begin(), parts.begin() + static_cast<int64_t>(i), unset);
  return PathTo(operation, *parts[i], missing);
}

// The kind's message.
const Message& MessageOf(const OperationKind& kind, const v1::Operation& operation) {
  return operation.GetReflection()->GetMessage(
      operation, operation.GetDescriptor()->FindFieldByName(kind.name));
}

OperandList OperandsBy(const OperationKind& kind, const v1::Operation& operation) {
  OperandList operands;
  kind.operands(operation, operands);
  return operands;
}

OutputList OutputsBy(const OperationKind& kind, const v1::Operation& operation) {
  OutputList outputs;
  if (kind.outputs != nullptr) {
    kind.outputs(operation, outputs);
  } else {
    for (const v1::Output& output : operation.outputs()) outputs.push_back(&output);
  }
  return outputs;
}

}  // namespace

const OperationKind kNoKind = {
    .name = "operation",
    .operands = [](const v1::Operation&, OperandList&) {},
    .plan = [](const v1::Operation&, Inputs, absl::Span<const Input>,
               const FunctionTable*) -> absl::StatusOr<Plan> {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "",
                          "the operation is empty; set one of its kinds");
    },
    .rules = {ListedResults, NoKey, NoBatching, Undivided},
};

OperandList OperandsOf(const v1::Operation& operation) {
  return OperandsBy(KindOf(operation), operation);
}

OutputList OutputsOf(const v1::Operation& operation) {
  return OutputsBy(KindOf(operation), operation);
}

OperationView::OperationView(const v1::Operation& operation) : OperationView(operation, Kinds()) {}

OperationView::OperationView(const v1::Operation& operation, const KindTable& kinds)
    : operation_(operation),
      kind_(kinds.Of(operation)),
      operands_(OperandsBy(kind_, operation)),
      outputs_(OutputsBy(kind_, operation)) {}

std::string OperationView::label() const {
  if (kind_.detail == nullptr) return kind_.label != nullptr ? kind_.label : kind_.name;
  std::string detail = kind_.detail(operation_);
  if (detail.size() > kMaxDetail) detail.resize(kMaxDetail);
  return kind_.label != nullptr ? kind_.label + detail : detail;
}

std::string OperationView::OperandPath(size_t operand) const {
  return PathOf<v1::Operand>(operation_, operands_, operand);
}

std::string OperationView::OutputPath(size_t output) const {
  return PathOf<v1::Output>(operation_, outputs_, output);
}

void ListLimits::Check(std::string_view field, int length, int limit) {
  if (length <= limit || !status_.ok()) return;
  status_ = InvalidField(v1::ERROR_REASON_SIZE_LIMIT, field,
                         absl::StrCat("at most ", limit, ", not ", length),
                         {{"limit", std::to_string(limit)}, {"value", std::to_string(length)}});
}

void ListLimits::CheckField(const v1::Operation& operation, int length, int limit) {
  if (length <= limit) return;
  const OperationKind& kind = KindOf(operation);
  const Message& message = MessageOf(kind, operation);
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated() && message.GetReflection()->FieldSize(message, field) == length)
      Check(absl::StrCat(kind.name, ".", field->name()), length, limit);
  }
}

absl::Status CheckLists(const OperationView& operation) {
  ListLimits limits;
  limits.Check("outputs", operation->outputs_size(), kMaxListedOutputs);
  if (operation.kind().lists != nullptr) operation.kind().lists(*operation, limits);
  return limits.status();
}

int OneResult(const v1::Operation&, Inputs, const FunctionTable*) { return 1; }
int ListedResults(const v1::Operation& operation, Inputs, const FunctionTable*) {
  return operation.outputs_size();
}

bool NoKey(const OperationView&, const TenantId&, KeyWriter&) { return false; }

bool WholeKey(const OperationView& operation, const TenantId&, KeyWriter& key) {
  if (operation->ByteSizeLong() > PlanKey::kMaxBytes) return false;
  v1::Operation kept = *operation;
  kept.clear_outputs();
  kept.clear_device();
  kept.clear_priority();
  OperandList operands;
  operation.kind().operands(kept, operands);
  for (const v1::Operand* operand : operands) {
    // An operand of `kept`, which is not constant.
    if (!operand->has_scalar()) const_cast<v1::Operand*>(operand)->Clear();
  }
  key.AddMessage(kept);
  return true;
}

PlanKey::PlanKey(const TenantId& tenant, const OperationView& operation,
                 absl::Span<const ArrayInfo* const> inputs,
                 absl::Span<const ArrayInfo* const> existing) {
  KeyWriter key(this);
  key.Add(operation->kind_case());
  if (!operation.kind().rules.key(operation, tenant, key)) return;
  key.AddArrays(inputs);
  key.AddArrays(existing);
  key.End();
}

std::string FunctionLabel(std::string_view function) {
  return absl::AsciiStrToLower(absl::StripPrefix({function.data(), function.size()}, "FUNCTION_"));
}

}  // namespace stride::ops
