#include "server/worker/cpu/lower/kernel_texture.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/dtype.h"

namespace stride::cpu {
namespace {

absl::StatusOr<cpucuda::Texture::Format> FormatOf(DType dtype, bool normalized) {
  switch (dtype) {
    case DType::kInt8:
      return normalized ? cpucuda::Texture::kNormalizedInt8 : cpucuda::Texture::kInt8;
    case DType::kUInt8:
      return normalized ? cpucuda::Texture::kNormalizedUInt8 : cpucuda::Texture::kUInt8;
    case DType::kInt16:
      return normalized ? cpucuda::Texture::kNormalizedInt16 : cpucuda::Texture::kInt16;
    case DType::kUInt16:
      return normalized ? cpucuda::Texture::kNormalizedUInt16 : cpucuda::Texture::kUInt16;
    case DType::kInt32:
      return cpucuda::Texture::kInt32;
    case DType::kUInt32:
      return cpucuda::Texture::kUInt32;
    case DType::kFloat16:
      return cpucuda::Texture::kFloat16;
    case DType::kFloat32:
      return cpucuda::Texture::kFloat32;
    default:
      return absl::InternalError("a texture of a type that has no texels");
  }
}

}  // namespace

absl::StatusOr<cpucuda::Texture> MakeTexture(const ArenaTable& arenas, const wire::Texture& texture,
                                             Place* place) {
  const auto dtype = DTypeFromNumber(texture.array().dtype());
  if (!dtype) return absl::InternalError("a texture's array has no type");
  const int num_axes = texture.extents_size();
  if (num_axes < 1 || num_axes > 3 || texture.address_modes_size() != num_axes ||
      texture.border_color_size() != 4 || texture.channels() < 1 || texture.channels() > 4) {
    return absl::InternalError("a texture's description is not whole");
  }
  auto format = FormatOf(*dtype, texture.normalized_values());
  if (!format.ok()) return format.status();
  cpucuda::Texture made = {};
  made.format = *format;
  made.pitch = texture.pitch_bytes();
  made.channels = texture.channels();
  made.texel_bytes = texture.channels() * static_cast<unsigned>(ItemSize(*dtype));
  made.linear_filter = texture.linear_filter();
  made.normalized_coordinates = texture.normalized_coordinates();
  uint64_t rows = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const uint32_t extent = axis < num_axes ? texture.extents(axis) : 1;
    // Kernels compute coordinates in 32 bits.
    if (extent < 1 || extent > uint32_t{std::numeric_limits<int>::max()} / 2)
      return absl::InternalError(absl::StrCat("a texture's extent is ", extent));
    made.extents[axis] = static_cast<int>(extent);
    made.address_modes[axis] =
        axis < num_axes ? static_cast<cpucuda::Texture::AddressMode>(texture.address_modes(axis))
                        : cpucuda::Texture::kClamp;
    if (axis > 0) rows *= extent;
  }
  for (int c = 0; c < 4; ++c) made.border[c] = texture.border_color(c);
  const uint64_t row_bytes = uint64_t{made.texel_bytes} * texture.extents(0);
  if (rows > 1 && made.pitch > (std::numeric_limits<uint64_t>::max() - row_bytes) / (rows - 1))
    return absl::InternalError("a texture's pitch is too large");
  auto found = arenas.Bytes(texture.array().arena(), texture.array().offset(),
                            (rows - 1) * made.pitch + row_bytes);
  if (!found.ok()) return found.status();
  *place = *std::move(found);
  made.texels = reinterpret_cast<const unsigned char*>(place->address);
  return made;
}

}  // namespace stride::cpu
