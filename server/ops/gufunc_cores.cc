#include "server/ops/gufunc_cores.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::ops {
namespace {

constexpr char kInputs[] = "gufunc.inputs";
constexpr char kAxes[] = "gufunc.axes";
constexpr char kAxis[] = "gufunc.axis";
constexpr char kKeepDims[] = "gufunc.keep_dims";

size_t RankOf(const Input& input) { return input ? input->shape.size() : 0; }

absl::Status ReadSizes(const CoreLayout& layout, Inputs inputs, Cores* cores) {
  std::vector<std::optional<int64_t>> sizes(layout.dimensions.size());
  for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = layout.dimensions[d].fixed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    size_t axis = RankOf(inputs[i]) - cores->ranks[i];
    for (int dimension : layout.operands[i]) {
      if (cores->missing[dimension]) continue;
      const int64_t extent = inputs[i]->shape[axis++];
      std::optional<int64_t>& size = sizes[dimension];
      if (size && *size != extent) {
        return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, absl::StrCat(kInputs, "[", i, "]"),
                            absl::StrCat("the array does not fit the layout's dimension ",
                                         layout.dimensions[dimension].name, ", which is ", *size,
                                         ", not ", extent));
      }
      size = extent;
    }
  }
  for (size_t d = 0; d < sizes.size(); ++d)
    cores->sizes.push_back(cores->missing[d] ? 1 : sizes[d].value_or(1));
  return absl::OkStatus();
}

// `axis` and `keep_dims` require that every operand has one core axis, the same for all, or none.
absl::Status CheckOneAxis(const CoreLayout& layout, const char* field) {
  std::set<int> dimensions;
  bool fits = true;
  for (const auto& operand : layout.operands) {
    fits = fits && operand.size() <= 1;
    dimensions.insert(operand.begin(), operand.end());
  }
  if (fits && dimensions.size() == 1) return absl::OkStatus();
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                      "only for layouts whose operands have one axis, the same for all, or none");
}

absl::StatusOr<std::vector<size_t>> ReadAxes(const v1::Gufunc::Axes& given, size_t count,
                                             size_t rank, const std::string& field) {
  if (static_cast<size_t>(given.axes_size()) != count) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, field,
                        absl::StrCat("one for each axis of the operand in the layout: ", count,
                                     ", not ", given.axes_size()));
  }
  std::vector<size_t> axes;
  for (int i = 0; i < given.axes_size(); ++i) {
    const int64_t axis = given.axes(i) + (given.axes(i) < 0 ? static_cast<int64_t>(rank) : 0);
    if (axis < 0 || axis >= static_cast<int64_t>(rank) ||
        std::count(axes.begin(), axes.end(), static_cast<size_t>(axis)) > 0) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                          absl::StrCat("no such axis, or one that is named twice: ", given.axes(i),
                                       " of an array with ", rank, " axes"));
    }
    axes.push_back(static_cast<size_t>(axis));
  }
  return axes;
}

}  // namespace

absl::StatusOr<Cores> ReadCoreRanks(const CoreLayout& layout, Inputs inputs) {
  Cores cores;
  cores.missing.assign(layout.dimensions.size(), false);
  for (const auto& operand : layout.operands) cores.ranks.push_back(operand.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t rank = RankOf(inputs[i]);
    for (int dimension : layout.operands[i]) {
      if (rank >= cores.ranks[i]) break;
      if (!layout.dimensions[dimension].optional || cores.missing[dimension]) continue;
      cores.missing[dimension] = true;
      for (size_t j = 0; j < layout.operands.size(); ++j) {
        cores.ranks[j] -= static_cast<size_t>(
            std::count(layout.operands[j].begin(), layout.operands[j].end(), dimension));
      }
    }
    if (rank >= cores.ranks[i]) continue;
    return InvalidField(v1::ERROR_REASON_SHAPE_MISMATCH, absl::StrCat(kInputs, "[", i, "]"),
                        absl::StrCat("the array has fewer axes than the layout needs: ", rank,
                                     ", not ", cores.ranks[i]));
  }
  return cores;
}

absl::StatusOr<Cores> ReadCores(const CoreLayout& layout, Inputs inputs) {
  auto cores = ReadCoreRanks(layout, inputs);
  if (!cores.ok()) return cores.status();
  if (absl::Status status = ReadSizes(layout, inputs, &*cores); !status.ok()) return status;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i])
      shapes.emplace_back(inputs[i]->shape.begin(), inputs[i]->shape.end() - cores->ranks[i]);
  }
  auto loop = BroadcastShapes(shapes, kInputs);
  if (!loop.ok()) return loop.status();
  cores->loop = *std::move(loop);
  return cores;
}

absl::StatusOr<CorePlaces> ReadCorePlaces(const v1::Gufunc& gufunc, const CoreLayout& layout,
                                          const Cores& ranks, Inputs inputs) {
  if (gufunc.has_axis() && !gufunc.axes().empty()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kAxis, "either this or `axes`, not both");
  }
  if (gufunc.has_axis()) {
    if (auto s = CheckOneAxis(layout, kAxis); !s.ok()) return s;
  }
  CorePlaces places;
  places.keeps = gufunc.keep_dims();
  if (places.keeps) {
    if (auto s = CheckOneAxis(layout, kKeepDims); !s.ok()) return s;
    for (size_t j = layout.num_inputs; j < layout.operands.size(); ++j) {
      if (layout.operands[j].empty()) continue;
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kKeepDims,
                          "only for layouts whose outputs have no axis");
    }
  }
  size_t loop = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    loop = std::max(loop, RankOf(inputs[i]) - ranks.ranks[i]);
  const auto given = static_cast<size_t>(gufunc.axes_size());
  bool outputs_without = true;
  for (size_t j = layout.num_inputs; j < layout.operands.size(); ++j)
    outputs_without = outputs_without && ranks.ranks[j] == 0;
  if (given != 0 && given != layout.operands.size() &&
      !(given == layout.num_inputs && outputs_without)) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, kAxes,
                        absl::StrCat("one entry for each input and output; operands: ",
                                     layout.operands.size(), ", entries: ", given));
  }
  for (size_t i = 0; i < layout.operands.size(); ++i) {
    const bool is_input = i < layout.num_inputs;
    const size_t count = !is_input && places.keeps ? 1 : ranks.ranks[i];
    const size_t rank = is_input ? RankOf(inputs[i]) : loop + count;
    v1::Gufunc::Axes axes;
    if (i < given) {
      axes = gufunc.axes(static_cast<int>(i));
    } else if (gufunc.has_axis()) {
      for (size_t k = 0; k < count; ++k) axes.add_axes(gufunc.axis());
    } else {
      for (size_t k = 0; k < count; ++k) axes.add_axes(static_cast<int32_t>(rank - count + k));
    }
    const std::string field =
        i < given || !gufunc.has_axis() ? absl::StrCat(kAxes, "[", i, "]") : kAxis;
    auto read = ReadAxes(axes, count, rank, field);
    if (!read.ok()) return read.status();
    places.axes.push_back(*std::move(read));
  }
  return places;
}

ArrayInfo WithLastAxes(const ArrayInfo& array, absl::Span<const size_t> axes) {
  ArrayInfo view = array;
  view.shape.clear();
  view.strides.clear();
  auto add = [&](size_t axis) {
    view.shape.push_back(array.shape[axis]);
    view.strides.push_back(array.strides[axis]);
  };
  for (size_t axis = 0; axis < array.shape.size(); ++axis) {
    if (std::count(axes.begin(), axes.end(), axis) == 0) add(axis);
  }
  for (size_t axis : axes) add(axis);
  return view;
}

Shape FromLastAxes(const Shape& shape, absl::Span<const size_t> axes) {
  Shape placed(shape.size(), -1);
  const size_t before = shape.size() - axes.size();
  for (size_t k = 0; k < axes.size(); ++k) placed[axes[k]] = shape[before + k];
  size_t next = 0;
  for (int64_t& extent : placed) {
    if (extent < 0) extent = shape[next++];
  }
  return placed;
}

}  // namespace stride::ops
