// Texture objects: handles of stride::cpucuda::Texture, and the functions that sample them.
#pragma once

#include "texture.h"

typedef unsigned long long cudaTextureObject_t;

namespace __stride {
typedef stride::cpucuda::Texture Texture;

// A vector's components, or the number itself.
template <class T>
struct Texel {
  typedef T Component;
  static constexpr int count = 1;
};
#define STRIDE_TEXELS(N)                  \
  template <>                             \
  struct Texel<N##1> {                    \
    typedef decltype(N##1 ::x) Component; \
    static constexpr int count = 1;       \
  };                                      \
  template <>                             \
  struct Texel<N##2> {                    \
    typedef decltype(N##2 ::x) Component; \
    static constexpr int count = 2;       \
  };                                      \
  template <>                             \
  struct Texel<N##4> {                    \
    typedef decltype(N##4 ::x) Component; \
    static constexpr int count = 4;       \
  };
STRIDE_TEXELS(char)
STRIDE_TEXELS(uchar)
STRIDE_TEXELS(short)
STRIDE_TEXELS(ushort)
STRIDE_TEXELS(int)
STRIDE_TEXELS(uint)
STRIDE_TEXELS(long)
STRIDE_TEXELS(ulong)
STRIDE_TEXELS(float)
#undef STRIDE_TEXELS

// A channel as CUDA returns it: 32 bits of an integer or a float.
STRIDE_DEVICE unsigned channel_bits(const Texture* t, const unsigned char* texel, int c) {
  switch (t->format) {
    case Texture::kInt8:
      return (unsigned)(int)((const signed char*)texel)[c];
    case Texture::kUInt8:
      return texel[c];
    case Texture::kInt16:
      return (unsigned)(int)((const short*)texel)[c];
    case Texture::kUInt16:
      return ((const unsigned short*)texel)[c];
    case Texture::kFloat16:
      return __builtin_bit_cast(unsigned, (float)((const __half*)texel)[c]);
    case Texture::kNormalizedInt8: {
      const float value = (float)((const signed char*)texel)[c] / 127.0f;
      return __builtin_bit_cast(unsigned, value < -1.0f ? -1.0f : value);
    }
    case Texture::kNormalizedUInt8:
      return __builtin_bit_cast(unsigned, (float)texel[c] / 255.0f);
    case Texture::kNormalizedInt16: {
      const float value = (float)((const short*)texel)[c] / 32767.0f;
      return __builtin_bit_cast(unsigned, value < -1.0f ? -1.0f : value);
    }
    case Texture::kNormalizedUInt16:
      return __builtin_bit_cast(unsigned, (float)((const unsigned short*)texel)[c] / 65535.0f);
    default:
      return ((const unsigned*)texel)[c];
  }
}

template <class C>
struct ChannelAs {
  static STRIDE_METHOD C of(unsigned bits) { return (C)bits; }
};
template <>
struct ChannelAs<float> {
  static STRIDE_METHOD float of(unsigned bits) { return __builtin_bit_cast(float, bits); }
};

// Null outside of a border.
STRIDE_DEVICE const unsigned char* texel_at(const Texture* t, int x, int y, int z) {
  if (x < 0 || y < 0 || z < 0) return nullptr;
  const unsigned long row = (unsigned long)z * (unsigned long)t->extents[1] + (unsigned long)y;
  return t->texels + row * t->pitch + (unsigned long)x * t->texel_bytes;
}

template <class T>
STRIDE_DEVICE T texel(const Texture* t, const unsigned char* from) {
  typedef typename Texel<T>::Component C;
  T made;
  C* out = (C*)&made;
#pragma unroll
  for (int c = 0; c < Texel<T>::count; ++c) {
    if (c >= (int)t->channels)
      out[c] = (C)0;
    else if (from == nullptr)
      out[c] = ChannelAs<C>::of(__builtin_bit_cast(unsigned, t->border[c]));
    else
      out[c] = ChannelAs<C>::of(channel_bits(t, from, c));
  }
  return made;
}

// A coordinate in texels. Those that an image repeats are brought into its first two, so that
// numbers of texels fit an int.
STRIDE_DEVICE float texel_coordinate(const Texture* t, int axis, float x) {
  const float most = 1073741824.0f;
  if (!(x == x)) return 0.0f;
  if (t->normalized_coordinates) {
    const int mode = t->address_modes[axis];
    if (mode == Texture::kWrap) x -= __builtin_floorf(x);
    if (mode == Texture::kMirror) x -= 2.0f * __builtin_floorf(0.5f * x);
    x *= (float)t->extents[axis];
  }
  return x < -most ? -most : x > most ? most : x;
}

// The texel of an axis that a number stands for; -1: the border.
STRIDE_DEVICE int texel_number(const Texture* t, int axis, int i) {
  const int n = t->extents[axis];
  if (i >= 0 && i < n) return i;
  int mode = t->address_modes[axis];
  if (mode == Texture::kBorder) return -1;
  if (mode == Texture::kClamp || !t->normalized_coordinates) return i < 0 ? 0 : n - 1;
  const int period = mode == Texture::kWrap ? n : 2 * n;
  i %= period;
  if (i < 0) i += period;
  return i < n ? i : period - 1 - i;
}

// The two texels of an axis around a coordinate, and the weight of the second in steps of 1/256, as
// CUDA has it.
struct Neighbours {
  int at[2];
  float weight[2];
};
STRIDE_DEVICE Neighbours neighbours(const Texture* t, int axis, float coordinate) {
  const float x = texel_coordinate(t, axis, coordinate) - 0.5f;
  const float begin = __builtin_floorf(x);
  const float weight = __builtin_floorf((x - begin) * 256.0f + 0.5f) / 256.0f;
  const int i = (int)begin;
  return {{texel_number(t, axis, i), texel_number(t, axis, i + 1)}, {1.0f - weight, weight}};
}

// The weighted sum of a channel over the neighbours; `num_axes` of them.
template <int num_axes>
STRIDE_DEVICE float filtered(const Texture* t, const Neighbours* axes, int channel) {
  float sum = 0;
#pragma unroll
  for (int corner = 0; corner < (1 << num_axes); ++corner) {
    const int i = corner & 1, j = (corner >> 1) & 1, k = (corner >> 2) & 1;
    float weight = axes[0].weight[i];
    if (num_axes > 1) weight *= axes[1].weight[j];
    if (num_axes > 2) weight *= axes[2].weight[k];
    const unsigned char* from = texel_at(t, axes[0].at[i], num_axes > 1 ? axes[1].at[j] : 0,
                                         num_axes > 2 ? axes[2].at[k] : 0);
    const float value = from == nullptr ? t->border[channel]
                                        : __builtin_bit_cast(float, channel_bits(t, from, channel));
    // A texel without weight does not count, not even an infinite one.
    sum += weight == 0.0f ? 0.0f : weight * value;
  }
  return sum;
}

template <class T, int num_axes>
STRIDE_DEVICE T sample(cudaTextureObject_t handle, float x, float y, float z) {
  const Texture* t = (const Texture*)handle;
  if (!t->linear_filter) {
    const float at[3] = {x, y, z};
    int number[3] = {0, 0, 0};
#pragma unroll
    for (int axis = 0; axis < num_axes; ++axis) {
      const float coordinate = __builtin_floorf(texel_coordinate(t, axis, at[axis]));
      number[axis] = texel_number(t, axis, (int)coordinate);
    }
    return texel<T>(t, texel_at(t, number[0], number[1], number[2]));
  }
  Neighbours axes[3];
  axes[0] = neighbours(t, 0, x);
  if (num_axes > 1) axes[1] = neighbours(t, 1, y);
  if (num_axes > 2) axes[2] = neighbours(t, 2, z);
  typedef typename Texel<T>::Component C;
  T made;
  C* out = (C*)&made;
#pragma unroll
  for (int c = 0; c < Texel<T>::count; ++c) {
    const float value = c < (int)t->channels ? filtered<num_axes>(t, axes, c) : 0.0f;
    out[c] = ChannelAs<C>::of(__builtin_bit_cast(unsigned, value));
  }
  return made;
}
}  // namespace __stride

template <class T>
STRIDE_DEVICE T tex1Dfetch(cudaTextureObject_t handle, int i) {
  const __stride::Texture* t = (const __stride::Texture*)handle;
  if (i >= 0 && i < t->extents[0]) return __stride::texel<T>(t, __stride::texel_at(t, i, 0, 0));
  return T{};
}
template <class T>
STRIDE_DEVICE T tex1D(cudaTextureObject_t t, float x) {
  return __stride::sample<T, 1>(t, x, 0, 0);
}
template <class T>
STRIDE_DEVICE T tex2D(cudaTextureObject_t t, float x, float y) {
  return __stride::sample<T, 2>(t, x, y, 0);
}
template <class T>
STRIDE_DEVICE T tex3D(cudaTextureObject_t t, float x, float y, float z) {
  return __stride::sample<T, 3>(t, x, y, z);
}
// Levels of detail and slopes choose among smaller copies of the image, and there is one image.
template <class T>
STRIDE_DEVICE T tex1DLod(cudaTextureObject_t t, float x, float) {
  return tex1D<T>(t, x);
}
template <class T>
STRIDE_DEVICE T tex2DLod(cudaTextureObject_t t, float x, float y, float) {
  return tex2D<T>(t, x, y);
}
template <class T>
STRIDE_DEVICE T tex3DLod(cudaTextureObject_t t, float x, float y, float z, float) {
  return tex3D<T>(t, x, y, z);
}
template <class T>
STRIDE_DEVICE T tex1DGrad(cudaTextureObject_t t, float x, float, float) {
  return tex1D<T>(t, x);
}
template <class T>
STRIDE_DEVICE T tex2DGrad(cudaTextureObject_t t, float x, float y, float2, float2) {
  return tex2D<T>(t, x, y);
}
template <class T>
STRIDE_DEVICE T tex3DGrad(cudaTextureObject_t t, float x, float y, float z, float4, float4) {
  return tex3D<T>(t, x, y, z);
}
// One channel of the four texels that a linear filter would weigh, from the lower left on against
// the clock's hands, as CUDA orders them.
template <class T>
STRIDE_DEVICE T tex2Dgather(cudaTextureObject_t handle, float x, float y, int channel = 0) {
  typedef typename __stride::Texel<T>::Component C;
  const __stride::Texture* t = (const __stride::Texture*)handle;
  const __stride::Neighbours h = __stride::neighbours(t, 0, x), v = __stride::neighbours(t, 1, y);
  const int columns[] = {0, 1, 1, 0}, rows[] = {1, 1, 0, 0};
  T made;
  C* out = (C*)&made;
#pragma unroll
  for (int corner = 0; corner < 4; ++corner) {
    const unsigned char* from = __stride::texel_at(t, h.at[columns[corner]], v.at[rows[corner]], 0);
    const unsigned bits = channel >= (int)t->channels ? 0
                          : from == nullptr ? __builtin_bit_cast(unsigned, t->border[channel])
                                            : __stride::channel_bits(t, from, channel);
    out[corner] = __stride::ChannelAs<C>::of(bits);
  }
  return made;
}

// The older form: the result by a pointer.
template <class T>
STRIDE_DEVICE void tex1Dfetch(T* out, cudaTextureObject_t t, int i) {
  *out = tex1Dfetch<T>(t, i);
}
template <class T>
STRIDE_DEVICE void tex1D(T* out, cudaTextureObject_t t, float x) {
  *out = tex1D<T>(t, x);
}
template <class T>
STRIDE_DEVICE void tex2D(T* out, cudaTextureObject_t t, float x, float y) {
  *out = tex2D<T>(t, x, y);
}
template <class T>
STRIDE_DEVICE void tex3D(T* out, cudaTextureObject_t t, float x, float y, float z) {
  *out = tex3D<T>(t, x, y, z);
}
