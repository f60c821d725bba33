#include "stride/array.h"

#include "client/cpp/src/array_state.h"
#include "client/cpp/src/status.h"

namespace stride {
namespace {

Error Empty() {
  return internal::LocalError(Code::kInvalidArgument, "This Array stands for nothing");
}

}  // namespace

std::optional<int64_t> NumElements(const ArraySpec& spec) {
  int64_t count = 1;
  for (int64_t extent : spec.shape) {
    if (extent < 0) return std::nullopt;
  }
  for (int64_t extent : spec.shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

std::optional<int64_t> SizeBytes(const ArraySpec& spec) {
  const auto count = NumElements(spec);
  int64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, ItemSize(spec.data_type), &bytes))
    return std::nullopt;
  return bytes;
}

std::string ToString(const ArraySpec& spec) {
  std::string text(Name(spec.data_type));
  text += '[';
  for (size_t i = 0; i < spec.shape.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(spec.shape[i]);
  }
  return text + ']';
}

std::string Array::name() const {
  if (!state_) return "";
  auto name = state_->Name();
  return name ? *name : "";
}

Result<ArraySpec> Array::Spec(const CallOptions& options) const {
  return state_ ? state_->Spec(options) : Result<ArraySpec>(Empty());
}

Result<void> Array::Wait(const CallOptions& options) const {
  return state_ ? state_->Wait(options) : Result<void>(Empty());
}

Result<stride::Timeline> Array::Timeline(const CallOptions& options) const {
  return state_ ? state_->Timeline(options) : Result<stride::Timeline>(Empty());
}

Result<ArrayInfo> Array::Describe(const CallOptions& options) const {
  return state_ ? state_->Describe(options) : Result<ArrayInfo>(Empty());
}

}  // namespace stride
