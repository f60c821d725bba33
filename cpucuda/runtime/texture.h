// The target of a kernel's texture handle. Kernels include this same text, as they do
// block_context.h.
#ifndef STRIDE_CPUCUDA_TEXTURE_H_
#define STRIDE_CPUCUDA_TEXTURE_H_

namespace stride {
namespace cpucuda {

struct Texture {
  enum Format : unsigned {
    kInt8,
    kUInt8,
    kInt16,
    kUInt16,
    kInt32,
    kUInt32,
    kFloat16,
    kFloat32,
    // Read as floats from 0 or -1 to 1.
    kNormalizedInt8,
    kNormalizedUInt8,
    kNormalizedInt16,
    kNormalizedUInt16
  };
  enum AddressMode : unsigned { kWrap, kClamp, kMirror, kBorder };

  const unsigned char* texels;
  unsigned long pitch;  // bytes from row to row
  int extents[3];       // width, height, depth; 1 for missing axes
  Format format;
  unsigned channels;
  unsigned texel_bytes;
  AddressMode address_modes[3];
  bool linear_filter;
  bool normalized_coordinates;
  float border[4];
};

}  // namespace cpucuda
}  // namespace stride

#endif  // STRIDE_CPUCUDA_TEXTURE_H_
