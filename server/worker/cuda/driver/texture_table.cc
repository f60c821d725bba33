#include "server/worker/cuda/driver/texture_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/dtype.h"
#include "server/worker/cuda/driver/cuda_status.h"

namespace stride::cuda {
namespace {

absl::StatusOr<CUarray_format> FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return CU_AD_FORMAT_SIGNED_INT8;
    case DType::kUInt8:
      return CU_AD_FORMAT_UNSIGNED_INT8;
    case DType::kInt16:
      return CU_AD_FORMAT_SIGNED_INT16;
    case DType::kUInt16:
      return CU_AD_FORMAT_UNSIGNED_INT16;
    case DType::kInt32:
      return CU_AD_FORMAT_SIGNED_INT32;
    case DType::kUInt32:
      return CU_AD_FORMAT_UNSIGNED_INT32;
    case DType::kFloat16:
      return CU_AD_FORMAT_HALF;
    case DType::kFloat32:
      return CU_AD_FORMAT_FLOAT;
    default:
      return absl::InternalError("a texture of a type that has no texels");
  }
}

// One layout for the driver's calls.
struct Image {
  CUarray_format format;
  bool is_integer;
  unsigned channels;
  uint64_t width, height, depth;  // 1 for a missing axis
  uint64_t row_bytes, pitch;
  uint64_t bytes() const { return row_bytes * height * depth; }
};

absl::StatusOr<Image> ImageOf(const wire::Texture& texture) {
  const int num_axes = texture.extents_size();
  const auto dtype = DTypeFromNumber(texture.array().dtype());
  if (!dtype || num_axes < 1 || num_axes > 3 || texture.address_modes_size() != num_axes ||
      texture.border_color_size() != 4) {
    return absl::InternalError("a texture's description is not whole");
  }
  auto format = FormatOf(*dtype);
  if (!format.ok()) return format.status();
  Image image;
  image.format = *format;
  image.is_integer = *dtype != DType::kFloat16 && *dtype != DType::kFloat32;
  image.channels = texture.channels();
  image.width = texture.extents(0);
  image.height = num_axes > 1 ? texture.extents(1) : 1;
  image.depth = num_axes > 2 ? texture.extents(2) : 1;
  image.row_bytes = image.width * image.channels * static_cast<uint64_t>(ItemSize(*dtype));
  image.pitch = texture.pitch_bytes();
  if (image.bytes() == 0) return absl::InternalError("a texture without texels");
  return image;
}

CUDA_TEXTURE_DESC Sampling(const wire::Texture& texture, const Image& image) {
  CUDA_TEXTURE_DESC sampling = {};
  for (int axis = 0; axis < 3; ++axis) {
    sampling.addressMode[axis] = axis < texture.address_modes_size()
                                     ? static_cast<CUaddress_mode>(texture.address_modes(axis))
                                     : CU_TR_ADDRESS_MODE_CLAMP;
  }
  sampling.filterMode =
      texture.linear_filter() ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
  if (texture.normalized_coordinates()) sampling.flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (image.is_integer && !texture.normalized_values()) sampling.flags |= CU_TRSF_READ_AS_INTEGER;
  for (int c = 0; c < 4; ++c) sampling.borderColor[c] = texture.border_color(c);
  return sampling;
}

uint64_t Attribute(const Driver& driver, CUdevice device, CUdevice_attribute attribute,
                   uint64_t otherwise) {
  int value = 0;
  const CUresult result = driver.cuDeviceGetAttribute(&value, attribute, device);
  return result == CUDA_SUCCESS && value > 0 ? static_cast<uint64_t>(value) : otherwise;
}

}  // namespace

TextureTable::Limits TextureTable::ReadLimits(const Driver& driver, CUdevice device) {
  const Limits usual;
  Limits limits;
  limits.alignment =
      Attribute(driver, device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, usual.alignment);
  limits.pitch_alignment =
      Attribute(driver, device, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, usual.pitch_alignment);
  limits.max_pitched_width = Attribute(
      driver, device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, usual.max_pitched_width);
  limits.max_pitched_height =
      Attribute(driver, device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT,
                usual.max_pitched_height);
  limits.max_pitch = Attribute(driver, device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH,
                               usual.max_pitch);
  return limits;
}

absl::StatusOr<uint64_t> TextureTable::BytesOf(const wire::Texture& texture) {
  absl::StatusOr<Image> image = ImageOf(texture);
  if (!image.ok()) return image.status();
  return (image->height * image->depth - 1) * image->pitch + image->row_bytes;
}

TextureTable::~TextureTable() {
  for (Entry& entry : entries_) Destroy(&entry);
}

absl::StatusOr<CUtexObject> TextureTable::Take(const wire::Texture& texture, CUdeviceptr address) {
  wire::Texture description = texture;
  description.mutable_array()->clear_arena();
  description.mutable_array()->clear_offset();
  description.mutable_array()->clear_strides();
  std::string key = absl::StrCat(address, " ", description.SerializeAsString());
  auto found = known_.find(key);
  if (found == known_.end()) {
    Entry entry;
    entry.key = key;
    entry.arena = texture.array().arena();
    absl::Status status = Make(texture, address, &entry);
    if (!status.ok()) {
      Destroy(&entry);
      return status;
    }
    copied_bytes_ += entry.copied_bytes;
    entries_.push_front(std::move(entry));
    found = known_.emplace(std::move(key), entries_.begin()).first;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  Entry& entry = entries_.front();
  entry.launch = launch_;
  if (absl::Status status = Copy(texture, address, entry); !status.ok()) return status;
  return entry.object;
}

bool TextureTable::LiesOver(const wire::Texture& texture, CUdeviceptr address) const {
  if (address % limits_.alignment != 0) return false;
  if (texture.linear()) return true;
  return texture.extents_size() == 2 && texture.pitch_bytes() % limits_.pitch_alignment == 0 &&
         texture.pitch_bytes() <= limits_.max_pitch &&
         texture.extents(0) <= limits_.max_pitched_width &&
         texture.extents(1) <= limits_.max_pitched_height;
}

absl::Status TextureTable::Make(const wire::Texture& texture, CUdeviceptr address, Entry* entry) {
  absl::StatusOr<Image> image = ImageOf(texture);
  if (!image.ok()) return image.status();
  const bool copies = !LiesOver(texture, address);
  if (absl::Status status = MakeRoom(copies ? image->bytes() : 0); !status.ok()) return status;
  CUDA_RESOURCE_DESC memory = {};
  if (texture.linear()) {
    if (copies) {
      STRIDE_CUDA_RETURN(driver_.cuMemAllocAsync(&entry->texels, image->bytes(), stream_),
                         "reserving memory for a texture");
    }
    memory.resType = CU_RESOURCE_TYPE_LINEAR;
    memory.res.linear.devPtr = copies ? entry->texels : address;
    memory.res.linear.format = image->format;
    memory.res.linear.numChannels = image->channels;
    memory.res.linear.sizeInBytes = image->bytes();
  } else if (!copies) {
    memory.resType = CU_RESOURCE_TYPE_PITCH2D;
    memory.res.pitch2D.devPtr = address;
    memory.res.pitch2D.format = image->format;
    memory.res.pitch2D.numChannels = image->channels;
    memory.res.pitch2D.width = image->width;
    memory.res.pitch2D.height = image->height;
    memory.res.pitch2D.pitchInBytes = image->pitch;
  } else {
    CUDA_ARRAY3D_DESCRIPTOR shape = {};
    const int num_axes = texture.extents_size();
    shape.Width = image->width;
    shape.Height = num_axes > 1 ? image->height : 0;  // 0: no such axis
    shape.Depth = num_axes > 2 ? image->depth : 0;
    shape.Format = image->format;
    shape.NumChannels = image->channels;
    STRIDE_CUDA_RETURN(driver_.cuArray3DCreate(&entry->image, &shape),
                       "reserving memory for a texture");
    memory.resType = CU_RESOURCE_TYPE_ARRAY;
    memory.res.array.hArray = entry->image;
  }
  entry->copied_bytes = copies ? image->bytes() : 0;
  const CUDA_TEXTURE_DESC sampling = Sampling(texture, *image);
  return ToStatus(driver_.cuTexObjectCreate(&entry->object, &memory, &sampling, nullptr),
                  "making a texture");
}

absl::Status TextureTable::Copy(const wire::Texture& texture, CUdeviceptr from,
                                const Entry& entry) {
  if (entry.texels != 0) {
    return ToStatus(driver_.cuMemcpyDtoDAsync(entry.texels, from, entry.copied_bytes, stream_),
                    "copying to a texture");
  }
  if (entry.image == nullptr) return absl::OkStatus();
  absl::StatusOr<Image> image = ImageOf(texture);
  if (!image.ok()) return image.status();
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.srcPitch = image->pitch;
  copy.srcHeight = image->height;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = entry.image;
  copy.WidthInBytes = image->row_bytes;
  copy.Height = image->height;
  copy.Depth = image->depth;
  return ToStatus(driver_.cuMemcpy3DAsync(&copy, stream_), "copying to a texture");
}

absl::Status TextureTable::MakeRoom(uint64_t bytes) {
  const bool fits =
      entries_.size() < kMaxTextures && (bytes == 0 || copied_bytes_ + bytes <= kMaxCopiedBytes);
  if (fits || entries_.empty()) return absl::OkStatus();
  STRIDE_CUDA_RETURN(driver_.cuStreamSynchronize(stream_), "waiting for launches with textures");
  for (auto entry = entries_.begin(); entry != entries_.end();)
    entry = entry->launch == launch_ ? std::next(entry) : Erase(entry);
  return absl::OkStatus();
}

void TextureTable::Forget(uint64_t arena) {
  for (auto entry = entries_.begin(); entry != entries_.end();)
    entry = entry->arena == arena ? Erase(entry) : std::next(entry);
}

TextureTable::Entries::iterator TextureTable::Erase(Entries::iterator entry) {
  Destroy(&*entry);
  copied_bytes_ -= entry->copied_bytes;
  known_.erase(entry->key);
  return entries_.erase(entry);
}

void TextureTable::Destroy(Entry* entry) {
  if (entry->object != 0) driver_.cuTexObjectDestroy(entry->object);
  if (entry->image != nullptr) driver_.cuArrayDestroy(entry->image);
  if (entry->texels != 0) driver_.cuMemFreeAsync(entry->texels, stream_);
}

}  // namespace stride::cuda
