// Kernels that read arrays through textures: each kernel here gives the same numbers on every
// device kind.
#include <cmath>
#include <functional>

#include "tests/conformance/device/kernel_fixture.h"

namespace stride::conformance {
namespace {

// Reads texels at the coordinates or indices in `at`, three per thread.
constexpr char kReaders[] = R"(
extern "C" __global__ void fetch(cudaTextureObject_t t, const float* at, float* out) {
  const int i = threadIdx.x;
  out[i] = tex1Dfetch<float>(t, (int)at[3 * i]);
}
extern "C" __global__ void fetch4(cudaTextureObject_t t, const float* at, float* out) {
  const int i = threadIdx.x;
  int2 two;
  tex1Dfetch(&two, t, (int)at[3 * i]);
  out[i] = two.x * 1000 + two.y;
}
extern "C" __global__ void line(cudaTextureObject_t t, const float* at, float* out) {
  const int i = threadIdx.x;
  out[i] = tex1D<float>(t, at[3 * i]);
}
extern "C" __global__ void image(cudaTextureObject_t t, const float* at, float* out) {
  const int i = threadIdx.x;
  out[i] = tex2D<float>(t, at[3 * i], at[3 * i + 1]);
}
extern "C" __global__ void image4(cudaTextureObject_t t, const float* at, float* out) {
  const int i = threadIdx.x;
  const uchar4 texel = tex2D<uchar4>(t, at[3 * i], at[3 * i + 1]);
  out[i] = texel.x + 10 * texel.y + 100 * texel.z + 1000 * texel.w;
}
extern "C" __global__ void volume(cudaTextureObject_t t, const float* at, float* out) {
  const int i = threadIdx.x;
  out[i] = tex3D<float>(t, at[3 * i], at[3 * i + 1], at[3 * i + 2]);
}
)";

struct Point {
  float x, y = 0, z = 0;
};

wire::Texture Described(std::vector<uint32_t> extents, uint64_t row_bytes,
                        wire::Texture::AddressMode mode = wire::Texture::ADDRESS_MODE_CLAMP) {
  wire::Texture texture;
  for (uint32_t extent : extents) {
    texture.add_extents(extent);
    texture.add_address_modes(mode);
  }
  texture.set_pitch_bytes(row_bytes);
  texture.set_channels(1);
  for (int c = 0; c < 4; ++c) texture.add_border_color(0);
  return texture;
}

class TextureTest : public KernelTest {
 protected:
  // Values that `entry` reads from `array` at each point.
  std::vector<double> Read(const std::string& entry, wire::Texture texture,
                           const DeviceArray& array, const std::vector<Point>& points) {
    const auto count = static_cast<int64_t>(points.size());
    const DeviceArray at = harness().Put(Make(DType::kFloat32, {count * 3}, [&](int64_t i) {
      const Point& point = points[static_cast<size_t>(i / 3)];
      return Value(i % 3 == 0 ? point.x : i % 3 == 1 ? point.y : point.z);
    }));
    const DeviceArray out = Zeros(DType::kFloat32, {count});
    wire::Task task = Launch(kReaders, entry, {1}, {static_cast<uint32_t>(count)});
    wire::Operand* operand = texture.mutable_array();
    operand->set_arena(array.arena);
    operand->set_offset(array.offset);
    operand->set_dtype(static_cast<int>(array.info.dtype));
    *task.mutable_kernel()->add_arguments()->mutable_texture() = texture;
    Pass(&task, at);
    Pass(&task, out);
    const absl::Status status = harness().Run(task);
    EXPECT_TRUE(status.ok()) << entry << ": " << status;
    return Values(out, count);
  }
  void Check(const std::string& entry, const wire::Texture& texture, const DeviceArray& array,
             const std::vector<Point>& points, const std::vector<double>& wanted,
             double tolerance = 0) {
    const std::vector<double> got = Read(entry, texture, array, points);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(got[i], wanted[i], tolerance)
          << entry << " at (" << points[i].x << ", " << points[i].y << ", " << points[i].z << ")";
    }
  }
  // 0, 1, 2, ...
  DeviceArray Counted(DType dtype, std::vector<int64_t> shape) {
    return harness().Put(
        Make(dtype, std::move(shape), [](int64_t i) { return Value(static_cast<double>(i)); }));
  }
};

TEST_F(TextureTest, TexelsByIndex) {
  wire::Texture texture = Described({20}, 80);
  texture.set_linear(true);
  Check("fetch", texture, Counted(DType::kFloat32, {20}), {{0}, {19}, {7}, {20}, {-1}},
        {0, 19, 7, 0, 0});
  wire::Texture pairs = Described({10}, 80);
  pairs.set_linear(true);
  pairs.set_channels(2);
  Check("fetch4", pairs, Counted(DType::kInt32, {20}), {{0}, {9}, {10}}, {1, 18019, 0});
}

// The memory of an array need not have the alignment of a GPU texture.
TEST_F(TextureTest, UnalignedArrays) {
  DeviceArray array = Counted(DType::kFloat32, {64});
  array.offset += 4;
  wire::Texture numbers = Described({60}, 240);
  numbers.set_linear(true);
  Check("fetch", numbers, array, {{0}, {59}}, {1, 60});
  Check("image", Described({5, 4}, 20), array, {{0, 0}, {4, 3}, {2, 1}}, {1, 20, 8});
  // A later launch reads the array's new values.
  const std::vector<float> sevens(60, 7);
  const std::string bytes(reinterpret_cast<const char*>(sevens.data()), 240);
  const absl::Status uploaded = harness().Upload(array.arena, array.offset, bytes);
  ASSERT_TRUE(uploaded.ok()) << uploaded;
  Check("fetch", numbers, array, {{0}, {5}}, {7, 7});
  Check("image", Described({5, 4}, 20), array, {{0, 0}, {4, 3}}, {7, 7});
}

TEST_F(TextureTest, PointsAndAddressModes) {
  const DeviceArray array = Counted(DType::kFloat32, {8, 16});
  const wire::Texture clamp = Described({16, 8}, 64);
  Check("image", clamp, array, {{0, 0}, {15.9f, 7.9f}, {3.5f, 2.2f}, {-3, -9}, {99, 99}},
        {0, 127, 35, 0, 127});
  wire::Texture border = Described({16, 8}, 64, wire::Texture::ADDRESS_MODE_BORDER);
  border.set_border_color(0, 0.5);
  Check("image", border, array, {{-0.5f, 0}, {3, 8}, {15, 7}}, {0.5, 0.5, 127});
  for (auto mode : {wire::Texture::ADDRESS_MODE_WRAP, wire::Texture::ADDRESS_MODE_MIRROR}) {
    const bool wraps = mode == wire::Texture::ADDRESS_MODE_WRAP;
    wire::Texture repeated = Described({16, 8}, 64, mode);
    Check("image", repeated, array, {{-3, 2}, {17, 2}}, {32, 47});  // clamped
    repeated.set_normalized_coordinates(true);
    const std::vector<Point> points = {
        {0.03125f, 0.0625f}, {1.03125f, 0.0625f}, {-0.03125f, 0.0625f}, {2.28125f, 1.0625f}};
    Check("image", repeated, array, points,
          wraps ? std::vector<double>{0, 0, 15, 4} : std::vector<double>{0, 15, 0, 116});
  }
  // One of three rows, of which four texels each are not part of the image.
  Check("image", Described({12, 3}, 64), array, {{11, 0}, {12, 1}, {0, 2}}, {11, 27, 32});
  Check("line", Described({16}, 64), array, {{0}, {7.5f}, {16}, {-1}}, {0, 7, 15, 0});
  Check("volume", Described({4, 4, 8}, 16), array, {{1, 2, 3}, {9, 9, 9}, {0, 0, 7.5f}},
        {57, 127, 112});
}

TEST_F(TextureTest, ChannelsAndNormalizedValues) {
  const DeviceArray bytes = Counted(DType::kUInt8, {2, 16});
  wire::Texture four = Described({4, 2}, 16);
  four.set_channels(4);
  Check("image4", four, bytes, {{0, 0}, {1, 0}, {3, 1}}, {3210, 7654, 31 * 1000 + 3000 + 290 + 28});
  wire::Texture floats = Described({16, 2}, 16);
  floats.set_normalized_values(true);
  Check("image", floats, bytes, {{0, 0}, {15, 1}, {5, 0}}, {0, 31 / 255.0, 5 / 255.0}, 1e-7);
  const DeviceArray shorts = harness().Put(Make(
      DType::kInt16, {4}, [](int64_t i) { return Value(i == 3 ? -32768.0 : i * 32767.0 / 2); }));
  wire::Texture signed_floats = Described({4}, 8);
  signed_floats.set_normalized_values(true);
  Check("line", signed_floats, shorts, {{0}, {2}, {3}}, {0, 1, -1}, 1e-7);
  Check("image", Described({8, 2}, 16), Counted(DType::kFloat16, {2, 8}), {{5, 1}, {0, 0}},
        {13, 0});
}

// A weight has 8 bits of fraction. The device may round to either neighbour.
TEST_F(TextureTest, LinearFilters) {
  const DeviceArray array = Counted(DType::kFloat32, {8, 16});
  wire::Texture image = Described({16, 8}, 64);
  image.set_linear_filter(true);
  Check("image", image, array, {{0.5f, 0.5f}, {3.5f, 2.5f}, {3.75f, 2.5f}, {3.5f, 3.0f}},
        {0, 35, 35.25, 43});
  Check("image", image, array, {{0, 0}, {-5, 99}, {16, 8}}, {0, 112, 127});
  Check("image", image, array, {{4.6f, 1.3f}, {9.123f, 6.789f}},
        {4.1 + 16 * 0.8, 8.623 + 16 * 6.289}, 17 / 256.0);
  wire::Texture line = Described({128}, 512, wire::Texture::ADDRESS_MODE_BORDER);
  line.set_linear_filter(true);
  Check("line", line, array, {{0.25f}, {127.75f}, {64}}, {0, 127 * 0.75, 63.5});
  wire::Texture ring = Described({128}, 512, wire::Texture::ADDRESS_MODE_WRAP);
  ring.set_linear_filter(true);
  ring.set_normalized_coordinates(true);
  Check("line", ring, array, {{0}, {1}, {0.5f}}, {63.5, 63.5, 63.5});
  wire::Texture volume = Described({4, 4, 8}, 16);
  volume.set_linear_filter(true);
  Check("volume", volume, array, {{2, 2, 4}, {0.5f, 1.5f, 2.5f}}, {1.5 + 6 + 56, 36});
}

TEST_F(TextureTest, ManyTexturesOfOneLaunchAndOfManyLaunches) {
  for (int round = 0; round < 300; ++round) {
    const uint32_t width = 4 + static_cast<uint32_t>(round % 150);
    const DeviceArray array = Counted(DType::kFloat32, {static_cast<int64_t>(width) * 2});
    Check("image", Described({width, 2}, width * 4), array,
          {{0, 1}, {static_cast<float>(width), 1}}, {static_cast<double>(width), 2.0 * width - 1});
  }
}

}  // namespace
}  // namespace stride::conformance
