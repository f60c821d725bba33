#include "server/ops/shape.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/base/error.h"

namespace stride::ops {

std::string ToString(absl::Span<const int64_t> shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

absl::Status CheckShape(absl::Span<const int64_t> shape, DType dtype, std::string_view field) {
  if (shape.size() > kMaxRank) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, field,
        absl::StrCat("an array has at most ", kMaxRank, " axes; this one has ", shape.size()));
  }
  int64_t bytes = ItemSize(dtype);
  bool overflow = false;
  for (int64_t extent : shape) {
    if (extent < 0) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                          absl::StrCat("extents must not be negative: ", ToString(shape)));
    }
    // An empty array must still report overflow of its strides, so count zero extents as one.
    overflow |= __builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes);
  }
  if (overflow) {
    return InvalidField(
        v1::ERROR_REASON_SIZE_LIMIT, field,
        absl::StrCat("the array's size in bytes does not fit 63 bits: ", ToString(shape)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<DType>> ReadDataType(int number, std::string_view field) {
  if (number == 0) return std::optional<DType>();
  std::optional<DType> dtype = DTypeFromNumber(number);
  if (!dtype) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                        absl::StrCat("no such data type: ", number));
  }
  return dtype;
}

absl::StatusOr<ArrayInfo> ReadSpec(const v1::ArraySpec& spec, std::string_view field) {
  std::string type_field = absl::StrCat(std::string(field), ".data_type");
  auto dtype = ReadDataType(spec.data_type(), type_field);
  if (!dtype.ok()) return dtype.status();
  if (!*dtype)
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, type_field, "the data type is missing");
  Shape shape(spec.shape().begin(), spec.shape().end());
  auto status = CheckShape(shape, **dtype, absl::StrCat(std::string(field), ".shape"));
  if (!status.ok()) return status;
  return Contiguous(**dtype, std::move(shape));
}

absl::StatusOr<Shape> BroadcastShapes(absl::Span<const Shape> shapes, std::string_view field) {
  size_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  Shape result(rank, 1);
  for (const Shape& shape : shapes) {
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& extent = result[rank - shape.size() + i];
      if (extent == 1) {
        extent = shape[i];
      } else if (shape[i] != 1 && shape[i] != extent) {
        auto text = [](std::string* out, const Shape& s) { out->append(ToString(s)); };
        return InvalidField(
            v1::ERROR_REASON_SHAPE_MISMATCH, field,
            absl::StrCat(
                "shapes do not broadcast together; each axis, counted from the last, must be equal "
                "or 1: ",
                absl::StrJoin(shapes, " ", text)));
      }
    }
  }
  return result;
}

std::vector<int64_t> BroadcastStrides(const ArrayInfo& array, absl::Span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 0);
  size_t lead = shape.size() - array.shape.size();
  for (size_t i = 0; i < array.shape.size(); ++i) {
    if (array.shape[i] != 1) strides[lead + i] = array.strides[i];
  }
  return strides;
}

absl::StatusOr<std::vector<int>> NormalizeAxes(absl::Span<const int32_t> axes, size_t rank,
                                               std::string_view field) {
  std::vector<int> result;
  for (int32_t axis : axes) {
    int64_t normal = axis < 0 ? int64_t{axis} + static_cast<int64_t>(rank) : axis;
    if (normal < 0 || normal >= static_cast<int64_t>(rank)) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                          absl::StrCat("an axis is out of range: ", axis, " of ", rank, " axes"));
    }
    result.push_back(static_cast<int>(normal));
  }
  std::sort(result.begin(), result.end());
  auto twice = std::adjacent_find(result.begin(), result.end());
  if (twice != result.end()) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field,
                        absl::StrCat("an axis is named twice: ", *twice));
  }
  return result;
}

}  // namespace stride::ops
