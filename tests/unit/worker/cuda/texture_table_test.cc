// A CUDA worker's texture objects, with a driver of fake functions.
#include "server/worker/cuda/driver/texture_table.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "server/store/dtype.h"

namespace stride::cuda {
namespace {

struct FakeTextures {
  std::set<CUtexObject> objects;
  std::set<CUarray> images;
  std::set<CUdeviceptr> memory;
  CUDA_RESOURCE_DESC last_resource = {};
  CUDA_TEXTURE_DESC last_sampling = {};
  CUDA_ARRAY3D_DESCRIPTOR last_image = {};
  CUDA_MEMCPY3D last_copy = {};
  int num_image_copies = 0, num_copies = 0, num_waits = 0;
  bool makes = true;
};
FakeTextures g_fake;

template <typename Handle>
CUresult Take(Handle* handle, std::set<Handle>& all) {
  static uint64_t last = 0;
  *handle = (Handle)(++last << 12);
  all.insert(*handle);
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult Give(Handle handle, std::set<Handle>& all) {
  EXPECT_EQ(all.erase(handle), 1u) << "destroyed twice, or never made";
  return CUDA_SUCCESS;
}

class TextureTableTest : public testing::Test {
 protected:
  void SetUp() override {
    g_fake = FakeTextures();
    driver_.cuTexObjectCreate = [](CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                                   const CUDA_TEXTURE_DESC* sampling,
                                   const CUDA_RESOURCE_VIEW_DESC*) {
      g_fake.last_resource = *resource;
      g_fake.last_sampling = *sampling;
      return g_fake.makes ? Take(object, g_fake.objects) : CUDA_ERROR_INVALID_VALUE;
    };
    driver_.cuTexObjectDestroy = [](CUtexObject object) { return Give(object, g_fake.objects); };
    driver_.cuArray3DCreate = [](CUarray* image, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
      g_fake.last_image = *shape;
      return Take(image, g_fake.images);
    };
    driver_.cuArrayDestroy = [](CUarray image) { return Give(image, g_fake.images); };
    driver_.cuMemAllocAsync = [](CUdeviceptr* memory, size_t, CUstream) {
      return Take(memory, g_fake.memory);
    };
    driver_.cuMemFreeAsync = [](CUdeviceptr memory, CUstream) {
      return Give(memory, g_fake.memory);
    };
    driver_.cuMemcpyDtoDAsync = [](CUdeviceptr, CUdeviceptr, size_t, CUstream) {
      ++g_fake.num_copies;
      return CUDA_SUCCESS;
    };
    driver_.cuMemcpy3DAsync = [](const CUDA_MEMCPY3D* copy, CUstream) {
      g_fake.last_copy = *copy;
      ++g_fake.num_image_copies;
      return CUDA_SUCCESS;
    };
    driver_.cuStreamSynchronize = [](CUstream) {
      ++g_fake.num_waits;
      return CUDA_SUCCESS;
    };
  }
  void TearDown() override {
    table_.reset();
    EXPECT_TRUE(g_fake.objects.empty() && g_fake.images.empty() && g_fake.memory.empty());
  }
  static wire::Texture Described(std::vector<uint32_t> extents, uint64_t pitch,
                                 DType dtype = DType::kFloat32, uint64_t arena = 1) {
    wire::Texture texture;
    texture.mutable_array()->set_arena(arena);
    texture.mutable_array()->set_dtype(static_cast<int>(dtype));
    for (uint32_t extent : extents) {
      texture.add_extents(extent);
      texture.add_address_modes(wire::Texture::ADDRESS_MODE_CLAMP);
    }
    texture.set_pitch_bytes(pitch);
    texture.set_channels(1);
    for (int c = 0; c < 4; ++c) texture.add_border_color(0);
    return texture;
  }
  CUtexObject Launch(const wire::Texture& texture, CUdeviceptr address) {
    table_->BeginLaunch();
    absl::StatusOr<CUtexObject> object = table_->Take(texture, address);
    EXPECT_TRUE(object.ok()) << object.status();
    return object.value_or(0);
  }
  Driver driver_;
  std::optional<TextureTable> table_{std::in_place, driver_, nullptr, TextureTable::Limits()};
};

TEST_F(TextureTableTest, AlignedMemoryIsReadInPlace) {
  wire::Texture numbers = Described({100}, 400);
  numbers.set_linear(true);
  const CUtexObject object = Launch(numbers, 512);
  EXPECT_EQ(g_fake.last_resource.resType, CU_RESOURCE_TYPE_LINEAR);
  EXPECT_EQ(g_fake.last_resource.res.linear.devPtr, 512u);
  EXPECT_EQ(g_fake.last_resource.res.linear.sizeInBytes, 400u);
  EXPECT_EQ(Launch(numbers, 512), object) << "kept";
  EXPECT_NE(Launch(numbers, 1024), object);
  const CUtexObject image = Launch(Described({16, 4}, 64), 512);
  EXPECT_EQ(g_fake.last_resource.resType, CU_RESOURCE_TYPE_PITCH2D);
  EXPECT_EQ(g_fake.last_resource.res.pitch2D.pitchInBytes, 64u);
  EXPECT_EQ(g_fake.last_resource.res.pitch2D.width, 16u);
  EXPECT_NE(image, object);
  EXPECT_EQ(g_fake.num_copies + g_fake.num_image_copies, 0);
  EXPECT_EQ(table_->copied_bytes(), 0u);
}

TEST_F(TextureTableTest, UnalignedMemoryIsCopiedByEachLaunch) {
  wire::Texture numbers = Described({100}, 400);
  numbers.set_linear(true);
  Launch(numbers, 512 + 256);
  Launch(numbers, 512 + 256);
  EXPECT_EQ(g_fake.num_copies, 2);
  EXPECT_EQ(g_fake.memory.count(g_fake.last_resource.res.linear.devPtr), 1u);
  Launch(Described({15, 4}, 60), 512);  // the pitch
  EXPECT_EQ(g_fake.last_resource.resType, CU_RESOURCE_TYPE_ARRAY);
  EXPECT_EQ(g_fake.last_image.Width, 15u);
  EXPECT_EQ(g_fake.last_image.Height, 4u);
  EXPECT_EQ(g_fake.last_image.Depth, 0u);
  Launch(Described({16, 65001}, 64), 512);  // too many rows
  EXPECT_EQ(g_fake.last_resource.resType, CU_RESOURCE_TYPE_ARRAY);
  Launch(Described({16}, 64), 512);  // by coordinates
  EXPECT_EQ(g_fake.last_image.Height, 0u);
  EXPECT_EQ(g_fake.last_copy.Height, 1u);
  Launch(Described({8, 4, 2}, 32), 512);
  EXPECT_EQ(g_fake.last_image.Depth, 2u);
  EXPECT_EQ(g_fake.last_copy.srcHeight, 4u);
  EXPECT_EQ(g_fake.last_copy.WidthInBytes, 32u);
  EXPECT_EQ(g_fake.num_image_copies, 4);
  EXPECT_EQ(table_->copied_bytes(), 400u + 240 + 64 * 65001 + 64 + 256);
}

TEST_F(TextureTableTest, IntegersAreReadUnchangedUnlessNormalized) {
  wire::Texture bytes = Described({64, 4}, 64, DType::kUInt8);
  Launch(bytes, 512);
  EXPECT_EQ(g_fake.last_sampling.flags, unsigned{CU_TRSF_READ_AS_INTEGER});
  bytes.set_normalized_values(true);
  bytes.set_normalized_coordinates(true);
  bytes.set_linear_filter(true);
  bytes.set_address_modes(1, wire::Texture::ADDRESS_MODE_MIRROR);
  Launch(bytes, 512);
  EXPECT_EQ(g_fake.last_sampling.flags, unsigned{CU_TRSF_NORMALIZED_COORDINATES});
  EXPECT_EQ(g_fake.last_sampling.filterMode, CU_TR_FILTER_MODE_LINEAR);
  EXPECT_EQ(g_fake.last_sampling.addressMode[1], CU_TR_ADDRESS_MODE_MIRROR);
  Launch(Described({16, 4}, 64), 512);
  EXPECT_EQ(g_fake.last_sampling.flags, 0u);
}

TEST_F(TextureTableTest, UnmappingAnArenaDestroysItsTextures) {
  Launch(Described({15}, 60, DType::kFloat32, 1), 512);
  Launch(Described({15}, 60, DType::kFloat32, 2), 1 << 20);
  table_->Forget(1);
  EXPECT_EQ(table_->size(), 1);
  EXPECT_EQ(g_fake.images.size(), 1u);
  EXPECT_EQ(table_->copied_bytes(), 60u);
  table_->Forget(2);
  EXPECT_EQ(table_->size(), 0);
}

TEST_F(TextureTableTest, OldestTexturesAreEvicted) {
  for (size_t i = 0; i < TextureTable::kMaxTextures; ++i) Launch(Described({16, 4}, 64), 512 * i);
  EXPECT_EQ(g_fake.num_waits, 0);
  // All textures of one launch stay until it is enqueued.
  table_->BeginLaunch();
  const auto kept = table_->Take(Described({16, 4}, 64), 512);
  const auto more = table_->Take(Described({32, 2}, 128), 512);
  ASSERT_TRUE(kept.ok() && more.ok());
  EXPECT_EQ(g_fake.num_waits, 1) << "the launches before may still read theirs";
  EXPECT_EQ(table_->size(), 2);
  EXPECT_EQ(g_fake.objects.count(*kept) + g_fake.objects.count(*more), 2u);
}

TEST_F(TextureTableTest, CopiesAreBounded) {
  // 128 MiB each.
  for (uint64_t i = 1; i <= 4; ++i) Launch(Described({1 << 13, 1 << 12, 1}, 1 << 15), i << 30);
  EXPECT_EQ(table_->copied_bytes(), TextureTable::kMaxCopiedBytes);
  EXPECT_EQ(g_fake.images.size(), 2u);
}

TEST_F(TextureTableTest, RefusalLeavesNoObjects) {
  g_fake.makes = false;
  table_->BeginLaunch();
  EXPECT_FALSE(table_->Take(Described({15}, 60), 512).ok());
  EXPECT_EQ(table_->size(), 0);
  EXPECT_EQ(table_->copied_bytes(), 0u);
  EXPECT_TRUE(g_fake.images.empty());
}

}  // namespace
}  // namespace stride::cuda
