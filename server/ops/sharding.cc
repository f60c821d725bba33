#include "server/ops/sharding.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/ops/operation_kind.h"
#include "server/ops/shape.h"

namespace stride::ops {
namespace {

constexpr char kAdvice[] = "; Copy it to one device, or with another `sharding`, first";

absl::Status Misfit(const SpreadArray& array, std::string_view why) {
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, array.field,
                      absl::StrCat(std::string(why), kAdvice));
}

// By the rule of the kind. `spread` is named where there is none.
absl::StatusOr<LoopAxes> LoopOf(const OperationView& operation,
                                absl::Span<const SpreadArray> inputs, const SpreadArray& spread,
                                absl::Span<const Shape> outputs) {
  auto loop = operation.kind().rules.divide(*operation, inputs, outputs);
  if (!absl::IsUnimplemented(loop.status())) return loop;
  const std::string name = operation.kind().name;
  return NotImplemented(absl::StrCat(name, " of a sharded array"),
                        absl::StrCat("not implemented over several devices: ", name, ", at ",
                                     spread.field, "; Copy the array to one device first"));
}

// The loop axis that one of an array's axes goes along; -1: none.
int LoopAxis(const std::vector<int>& axes, int axis) {
  auto found = std::find(axes.begin(), axes.end(), axis);
  return found == axes.end() ? -1 : static_cast<int>(found - axes.begin());
}

}  // namespace

std::vector<int64_t> SplitAxis(int64_t length, size_t num_parts) {
  const auto parts = static_cast<int64_t>(num_parts);
  std::vector<int64_t> begin = {0};
  for (int64_t i = 0; i < parts; ++i)
    begin.push_back(begin.back() + length / parts + (i < length % parts ? 1 : 0));
  return begin;
}

ArrayInfo SliceOf(const ArrayInfo& array, int axis, int64_t begin, int64_t end) {
  ArrayInfo slice = array;
  slice.shape[axis] = end - begin;
  if (end > begin) slice.offset += begin * array.strides[axis];
  return slice;
}

std::vector<int64_t> PartShape(const std::vector<int64_t>& whole, int axis, int64_t length) {
  std::vector<int64_t> shape = whole;
  shape[axis] = length;
  return shape;
}

absl::StatusOr<Division> Divide(const OperationView& operation,
                                absl::Span<const SpreadArray> inputs,
                                absl::Span<const SpreadArray> existing,
                                absl::Span<const std::vector<int64_t>> outputs) {
  // A split array decides; without one, all spread arrays are replicated.
  const SpreadArray* first = nullptr;
  for (absl::Span<const SpreadArray> arrays : {inputs, existing}) {
    for (const SpreadArray& array : arrays) {
      if (array.spread == nullptr) continue;
      if (first == nullptr || (first->spread->replicated && !array.spread->replicated))
        first = &array;
    }
  }
  Division division;
  division.devices = first->spread->devices;
  for (absl::Span<const SpreadArray> arrays : {inputs, existing}) {
    for (const SpreadArray& array : arrays) {
      if (array.spread != nullptr && array.spread->devices != division.devices) {
        return Misfit(array, absl::StrCat("spread over other devices, or in another order, than ",
                                          first->field));
      }
    }
  }
  if (first->spread->replicated) {
    if (operation->has_kernel_launch() || operation->has_program_call())
      return LoopOf(operation, inputs, *first, outputs).status();
    for (const SpreadArray& array : existing) {
      if (!array.field.empty() && array.spread == nullptr)
        return Misfit(array, absl::StrCat("in one piece, while ", first->field, " is replicated"));
    }
    division.replicated = true;
    division.input_axes.assign(inputs.size(), -1);
    division.output_axes.assign(outputs.size(), -1);
    return division;
  }

  auto loop = LoopOf(operation, inputs, *first, outputs);
  if (!loop.ok()) return loop.status();
  // The axis of the loop along which everything is cut.
  int axis = -1;
  auto check = [&](const SpreadArray& array, const std::vector<int>& axes) -> absl::Status {
    if (array.spread == nullptr || array.spread->replicated) return absl::OkStatus();
    const int along = LoopAxis(axes, array.spread->axis);
    if (along < 0) {
      return Misfit(
          array, absl::StrCat("split along an axis that is broadcast: axis ", array.spread->axis));
    }
    if (axis >= 0 && along != axis) {
      return Misfit(array, absl::StrCat("split along another axis than ", first->field, ": axis ",
                                        array.spread->axis));
    }
    axis = along;
    return absl::OkStatus();
  };
  // The deciding array comes first, so that errors of others name it.
  for (bool deciding : {true, false}) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if ((&inputs[i] == first) != deciding) continue;
      if (auto s = check(inputs[i], loop->input_axes[i]); !s.ok()) return s;
    }
    for (size_t j = 0; j < existing.size(); ++j) {
      if ((&existing[j] == first) != deciding) continue;
      if (auto s = check(existing[j], loop->output_axes[j]); !s.ok()) return s;
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int along = loop->input_axes[i][axis];
    division.input_axes.push_back(along);
    if (along >= 0) division.length = inputs[i].shape[along];
  }
  for (size_t j = 0; j < outputs.size(); ++j) {
    const int along = loop->output_axes[j][axis];
    division.output_axes.push_back(along);
    division.partial = along < 0;
    if (along >= 0) division.length = outputs[j][along];
  }
  for (size_t j = 0; j < existing.size(); ++j) {
    const SpreadArray& array = existing[j];
    if (array.field.empty()) continue;
    const bool spread = array.spread != nullptr;
    if (division.partial && spread)
      return Misfit(array, "spread, while the result is in one piece");
    if (!division.partial && (!spread || array.spread->replicated)) {
      return Misfit(array, absl::StrCat(spread ? "replicated" : "in one piece",
                                        ", while the result is split as ", first->field, " is"));
    }
  }
  return division;
}

ByteRuns::ByteRuns(const ArrayInfo& whole, int axis, size_t num_parts) {
  int64_t inner = ItemSize(whole.dtype);
  for (size_t i = static_cast<size_t>(axis) + 1; i < whole.shape.size(); ++i)
    inner *= whole.shape[i];
  for (int64_t begin : SplitAxis(whole.shape[axis], num_parts)) begin_.push_back(begin * inner);
  row_ = begin_.back();
  longest_ = begin_[1];
  for (int i = 0; i < axis; ++i) rows_ *= whole.shape[i];
}

ByteRuns::Run ByteRuns::At(int64_t position) const {
  const int64_t within = position % row_;
  auto next = std::upper_bound(begin_.begin(), begin_.end(), within);
  return {static_cast<int>(next - begin_.begin()) - 1, *next - within};
}

int64_t ByteRuns::Before(int part, int64_t position) const {
  if (row_ == 0) return 0;
  const int64_t own = begin_[part + 1] - begin_[part];
  return position / row_ * own + std::clamp<int64_t>(position % row_ - begin_[part], 0, own);
}

int64_t ByteRuns::PositionOf(int part, int64_t offset) const {
  const int64_t own = begin_[part + 1] - begin_[part];
  return own == 0 ? 0 : offset / own * row_ + begin_[part] + offset % own;
}

}  // namespace stride::ops
