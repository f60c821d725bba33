#include "server/ops/kernel_texture.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::ops {
namespace {

// CUDA's limits for compute capability 6.0 and newer, in texels.
constexpr uint64_t kMaxLinear = uint64_t{1} << 27;
constexpr uint64_t kMaxWidth1D = 131072;
constexpr uint64_t kMaxImage2D[] = {131072, 65536};
constexpr uint64_t kMaxExtent3D = 16384;
constexpr int kMaxAxes = 3;
constexpr int kMaxChannels = 4;

std::string Path(std::string_view field, const char* member) {
  return absl::StrCat(std::string(field), ".texture.", member);
}

absl::Status Invalid(std::string_view field, const char* member, const std::string& text) {
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, Path(field, member), text);
}

bool IsFloatTexel(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kFloat32; }

bool IsTexelType(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kInt32:
    case DType::kUInt32:
    case DType::kFloat16:
    case DType::kFloat32:
      return true;
    default:
      return false;
  }
}

absl::Status CheckEnums(const v1::Texture& texture, std::string_view field) {
  if (!v1::Texture::Layout_IsValid(texture.layout()))
    return Invalid(field, "layout", absl::StrCat("no such layout: ", texture.layout()));
  if (!v1::Texture::Filter_IsValid(texture.filter()))
    return Invalid(field, "filter", absl::StrCat("no such filter: ", texture.filter()));
  if (texture.address_modes_size() > kMaxAxes)
    return Invalid(field, "address_modes", "at most three address modes, one for each axis");
  for (int mode : texture.address_modes()) {
    if (!v1::Texture::AddressMode_IsValid(mode))
      return Invalid(field, "address_modes", absl::StrCat("no such address mode: ", mode));
  }
  if (texture.border_color_size() > kMaxChannels)
    return Invalid(field, "border_color", "at most four numbers, one for each channel");
  return absl::OkStatus();
}

absl::Status CheckSampling(const v1::Texture& texture, DType dtype, std::string_view field) {
  if (texture.normalized_values() && (IsFloatTexel(dtype) || ItemSize(dtype) > 2)) {
    return Invalid(field, "normalized_values",
                   absl::StrCat("only integers of 8 and 16 bits are normalized, not ",
                                std::string(Name(dtype))));
  }
  const bool linear_filter = texture.filter() == v1::Texture::FILTER_LINEAR;
  if (linear_filter && !IsFloatTexel(dtype) && !texture.normalized_values()) {
    return Invalid(field, "filter",
                   absl::StrCat("a linear filter needs floats: an array of float16 or float32, or "
                                "normalized_values; the array is ",
                                std::string(Name(dtype))));
  }
  if (texture.layout() != v1::Texture::LAYOUT_LINEAR) return absl::OkStatus();
  if (linear_filter)
    return Invalid(field, "filter", "LAYOUT_LINEAR has no filter; use LAYOUT_IMAGE");
  if (texture.normalized_coordinates()) {
    return Invalid(field, "normalized_coordinates",
                   "LAYOUT_LINEAR has no coordinates; use LAYOUT_IMAGE");
  }
  return absl::OkStatus();
}

// Returns the given extents, or the array's.
absl::StatusOr<std::vector<uint64_t>> ExtentsOf(const v1::Texture& texture, const ArrayInfo& array,
                                                uint64_t channels, std::string_view field) {
  std::vector<uint64_t> extents(texture.extents().begin(), texture.extents().end());
  const bool linear = texture.layout() == v1::Texture::LAYOUT_LINEAR;
  if (extents.empty() && linear) {
    const uint64_t elements = static_cast<uint64_t>(array.size_bytes()) / ItemSize(array.dtype);
    extents.push_back(elements / channels);
  } else if (extents.empty()) {
    extents.assign(array.shape.rbegin(), array.shape.rend());
    if (!extents.empty()) extents[0] /= channels;
  }
  const size_t most = linear ? 1 : kMaxAxes;
  if (extents.empty() || extents.size() > most) {
    return Invalid(field, "extents",
                   absl::StrCat("the texture has ", extents.size(), " axes; ",
                                linear ? "LAYOUT_LINEAR has one" : "it can have one to three"));
  }
  return extents;
}

uint64_t MaxExtent(bool linear, size_t num_axes, size_t axis) {
  if (linear) return kMaxLinear;
  if (num_axes == 1) return kMaxWidth1D;
  return num_axes == 2 ? kMaxImage2D[axis] : kMaxExtent3D;
}

absl::Status CheckExtents(const std::vector<uint64_t>& extents, bool linear,
                          std::string_view field) {
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const uint64_t most = MaxExtent(linear, extents.size(), axis);
    if (extents[axis] >= 1 && extents[axis] <= most) continue;
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, Path(field, "extents"),
                        absl::StrCat("axis ", axis, " has ", extents[axis],
                                     " texels; such a texture has from 1 to ", most));
  }
  return absl::OkStatus();
}

// Checks that all rows lie within the array.
absl::StatusOr<uint64_t> PitchOf(const v1::Texture& texture, const ArrayInfo& array,
                                 const std::vector<uint64_t>& extents, uint64_t channels,
                                 std::string_view field) {
  const uint64_t row = extents[0] * channels * ItemSize(array.dtype);
  const uint64_t pitch = texture.pitch_bytes() == 0 ? row : texture.pitch_bytes();
  const uint64_t bytes = static_cast<uint64_t>(array.size_bytes());
  if (pitch < row || pitch % ItemSize(array.dtype) != 0) {
    return Invalid(
        field, "pitch_bytes",
        absl::StrCat("a row has ", row, " bytes; the pitch is at least that and a ",
                     "multiple of an element's ", ItemSize(array.dtype), ", not ", pitch));
  }
  uint64_t rows = 1;
  for (size_t axis = 1; axis < extents.size(); ++axis) rows *= extents[axis];
  // Extents have limits, so only the pitch can overflow the product.
  const bool fits = row <= bytes && (rows == 1 || pitch <= (bytes - row) / (rows - 1));
  if (fits) return pitch;
  return InvalidField(
      v1::ERROR_REASON_SIZE_MISMATCH, Path(field, "extents"),
      absl::StrCat("the texture is larger than its array: ", rows, " rows of ", row,
                   " bytes, each ", pitch, " after the one before; the array has ", bytes));
}

}  // namespace

absl::StatusOr<wire::Texture> ReadTexture(const v1::Texture& texture, const ArrayInfo& array,
                                          std::string_view field) {
  if (!IsTexelType(array.dtype)) {
    return InvalidField(
        v1::ERROR_REASON_DATA_TYPE_MISMATCH, Path(field, "array"),
        absl::StrCat("texels are of int8, uint8, int16, uint16, int32, uint32, float16 or float32, "
                     "not ",
                     std::string(Name(array.dtype))));
  }
  const uint32_t channels = texture.channels() == 0 ? 1 : texture.channels();
  if (channels != 1 && channels != 2 && channels != 4)
    return Invalid(field, "channels", absl::StrCat("a texel has 1, 2 or 4 channels: ", channels));
  absl::Status status = CheckEnums(texture, field);
  if (status.ok()) status = CheckSampling(texture, array.dtype, field);
  if (!status.ok()) return status;
  auto extents = ExtentsOf(texture, array, channels, field);
  if (!extents.ok()) return extents.status();
  const bool linear = texture.layout() == v1::Texture::LAYOUT_LINEAR;
  if (status = CheckExtents(*extents, linear, field); !status.ok()) return status;
  auto pitch = PitchOf(texture, array, *extents, channels, field);
  if (!pitch.ok()) return pitch.status();
  wire::Texture made;
  made.set_linear(linear);
  made.set_pitch_bytes(*pitch);
  made.set_channels(channels);
  made.set_linear_filter(texture.filter() == v1::Texture::FILTER_LINEAR);
  made.set_normalized_coordinates(texture.normalized_coordinates());
  made.set_normalized_values(texture.normalized_values());
  for (size_t axis = 0; axis < extents->size(); ++axis) {
    made.add_extents(static_cast<uint32_t>((*extents)[axis]));
    const int index = static_cast<int>(axis);
    const int given = index < texture.address_modes_size() ? texture.address_modes(index) : 0;
    // The contract's values are one above CUDA's: 0 means unspecified.
    made.add_address_modes(given == v1::Texture::ADDRESS_MODE_UNSPECIFIED
                               ? wire::Texture::ADDRESS_MODE_CLAMP
                               : static_cast<wire::Texture::AddressMode>(given - 1));
  }
  for (int c = 0; c < kMaxChannels; ++c)
    made.add_border_color(c < texture.border_color_size() ? texture.border_color(c) : 0);
  return made;
}

}  // namespace stride::ops
