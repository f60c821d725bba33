#include "server/worker/cpu/lower/arena_table.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <limits>

#include "server/base/memory_file.h"
#include "server/store/dtype.h"

namespace stride::cpu {
namespace {

constexpr uint64_t kSize = 1000;

class ArenaTableTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = *CreateMemoryFile("arena", kSize);
    ASSERT_TRUE(table_.Map(7, kSize, file_.get()).ok());
  }
  bool Fits(uint64_t offset, std::vector<int64_t> strides, std::vector<int64_t> extents,
            DType dtype = DType::kFloat64) {
    wire::Operand operand;
    operand.set_arena(7);
    operand.set_offset(offset);
    operand.set_dtype(static_cast<int>(dtype));
    for (int64_t stride : strides) operand.add_strides(stride);
    return table_.Elements(operand, extents).ok();
  }
  UniqueFd file_;
  ArenaTable table_;
};

TEST_F(ArenaTableTest, ChecksBytes) {
  EXPECT_TRUE(table_.Bytes(7, 0, kSize).ok());
  EXPECT_TRUE(table_.Bytes(7, kSize, 0).ok());
  EXPECT_FALSE(table_.Bytes(7, 1, kSize).ok());
  EXPECT_FALSE(table_.Bytes(7, kSize + 1, 0).ok());
  EXPECT_FALSE(table_.Bytes(7, std::numeric_limits<uint64_t>::max(), 2).ok());
  EXPECT_FALSE(table_.Bytes(7, 2, std::numeric_limits<uint64_t>::max()).ok());
  EXPECT_FALSE(table_.Bytes(8, 0, 1).ok());
}

TEST_F(ArenaTableTest, ChecksElements) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(Fits(0, {8}, {125}));
  EXPECT_FALSE(Fits(0, {8}, {126}));
  EXPECT_FALSE(Fits(8, {8}, {125}));
  EXPECT_TRUE(Fits(992, {-8}, {125}));
  EXPECT_FALSE(Fits(984, {-8}, {125}));
  EXPECT_TRUE(Fits(0, {0, 8}, {kMax, 125}));
  EXPECT_TRUE(Fits(992, {}, {}));
  EXPECT_FALSE(Fits(993, {}, {}));
  EXPECT_TRUE(Fits(999, {}, {}, DType::kInt8));
  EXPECT_FALSE(Fits(0, {kMax}, {kMax}));
  EXPECT_FALSE(Fits(0, {kMax, -kMax}, {kMax, kMax}));
  EXPECT_FALSE(Fits(0, {8}, {2, 2})) << "a stride is missing";
  EXPECT_FALSE(Fits(0, {8}, {2}, static_cast<DType>(99)));
}

TEST_F(ArenaTableTest, SharesMemoryWithItsFile) {
  Place place = *table_.Bytes(7, 10, 5);
  std::memcpy(place.address, "hello", 5);
  EXPECT_EQ(MemoryMap::Map(file_.get(), kSize, false)->view().substr(10, 5), "hello");
}

TEST_F(ArenaTableTest, MemoryOutlivesUnmapWhilePinned) {
  Place place = *table_.Bytes(7, 0, 1);
  ASSERT_TRUE(table_.Unmap(7).ok());
  EXPECT_FALSE(table_.Bytes(7, 0, 1).ok());
  EXPECT_FALSE(table_.Unmap(7).ok());
  *place.address = std::byte{1};
}

TEST_F(ArenaTableTest, RefusesFilesThatCouldShrink) {
  UniqueFd loose(memfd_create("loose", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(loose.get(), 4096), 0);
  EXPECT_FALSE(table_.Map(8, 4096, loose.get()).ok());
  EXPECT_FALSE(table_.Map(8, 1 << 20, file_.get()).ok()) << "smaller than declared";
  EXPECT_FALSE(table_.Map(7, kSize, file_.get()).ok()) << "mapped already";
}

TEST_F(ArenaTableTest, GuardPagesFault) {
  Place place = *table_.Bytes(7, 0, 1);
  volatile std::byte* data = place.address;
  auto write = [data](int64_t offset) {
    signal(SIGSEGV, SIG_DFL);  // a sanitizer would report it
    data[offset] = std::byte{1};
  };
  EXPECT_EXIT(write(-1), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(write(4096), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(write(int64_t{7} << 30), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace stride::cpu
