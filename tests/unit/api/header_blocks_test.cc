#include "server/api/header_blocks.h"

#include <random>
#include <string>

#include "gtest/gtest.h"

namespace stride::api {
namespace {

constexpr int kData = 0, kHeaders = 1, kContinuation = 9, kEnd = 4;
const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string FrameHeader(int type, int flags, size_t length) {
  std::string text;
  for (int shift : {16, 8, 0}) text += static_cast<char>(length >> shift);
  text += static_cast<char>(type);
  text += static_cast<char>(flags);
  return text + std::string("\0\0\0\1", 4);
}

// The payload itself looks like frames without an end flag.
std::string Frame(int type, int flags, size_t length) {
  std::string payload;
  while (payload.size() < length) payload += FrameHeader(kHeaders, 0, 1 << 23);
  return FrameHeader(type, flags, length) + payload.substr(0, length);
}

// Returns the number of bytes after which the block is too large, fed in pieces of at most `most`;
// npos if never.
size_t TooLargeAfter(const std::string& bytes, size_t most, uint32_t seed = 1) {
  HeaderBlocks blocks;
  std::mt19937 random(seed);
  for (size_t i = 0; i < bytes.size();) {
    size_t size = std::min(bytes.size() - i, most == 1 ? 1 : 1 + random() % most);
    i += size;
    if (!blocks.Take(reinterpret_cast<const uint8_t*>(bytes.data()) + i - size, size)) return i;
  }
  return std::string::npos;
}

TEST(HeaderBlocksTest, ManyFinishedBlocksPassInAnySplit) {
  std::string bytes = kPreface + Frame(4, 0, 18);
  for (int call = 0; call < 300; ++call) {
    bytes += Frame(kHeaders, 0, 16384) + Frame(kContinuation, 0, 16384) +
             Frame(kContinuation, kEnd, 16384) + Frame(kData, 0, 16384) + Frame(kData, 1, 0);
  }
  for (size_t most : {size_t{1}, size_t{10}, size_t{100000}, bytes.size()})
    EXPECT_EQ(TooLargeAfter(bytes, most), std::string::npos) << most;
}

TEST(HeaderBlocksTest, OversizedBlockIsDetectedAtFrameHeader) {
  std::string fine = kPreface + Frame(kHeaders, 0, HeaderBlocks::kMaxBytes - 100);
  EXPECT_EQ(TooLargeAfter(fine + Frame(kContinuation, kEnd, 100), 1), std::string::npos);
  EXPECT_EQ(TooLargeAfter(fine + Frame(kContinuation, kEnd, 101), 1), fine.size() + 9);
  EXPECT_EQ(TooLargeAfter(kPreface + Frame(kHeaders, kEnd, 1 << 20), 1), kPreface.size() + 9);
}

TEST(HeaderBlocksTest, EmptyFramesAreCounted) {
  std::string bytes = kPreface + Frame(kHeaders, 0, 0);
  for (int i = 1; i < HeaderBlocks::kMaxFrames; ++i) bytes += Frame(kContinuation, 0, 0);
  EXPECT_EQ(TooLargeAfter(bytes, 1), std::string::npos);
  EXPECT_EQ(TooLargeAfter(bytes + Frame(kContinuation, 0, 0), 1), bytes.size() + 9);
}

TEST(HeaderBlocksTest, OtherFramesDoNotEndABlock) {
  std::string bytes = kPreface;
  for (int i = 0; i <= static_cast<int>(HeaderBlocks::kMaxBytes / 16384); ++i)
    bytes += Frame(kHeaders, 0, 16384) + Frame(6, 0, 8);
  EXPECT_NE(TooLargeAfter(bytes, 1000), std::string::npos);
}

TEST(HeaderBlocksTest, ResetsAreCountedInAnySplit) {
  constexpr int kReset = 3;
  std::string bytes = kPreface;
  for (int call = 0; call < 300; ++call)
    bytes += Frame(kHeaders, kEnd, 50) + Frame(kData, 0, 100) + Frame(kReset, 0, 4);
  for (size_t most : {size_t{1}, size_t{7}, bytes.size()}) {
    HeaderBlocks blocks;
    uint64_t resets = 0;
    for (size_t i = 0; i < bytes.size(); i += most) {
      size_t size = std::min(most, bytes.size() - i);
      ASSERT_TRUE(blocks.Take(reinterpret_cast<const uint8_t*>(bytes.data()) + i, size));
      resets += blocks.TakeResets();
    }
    EXPECT_EQ(resets, 300u) << most;
  }
}

TEST(HeaderBlocksTest, OversizedBlockStaysRefused) {
  HeaderBlocks blocks;
  std::string bytes = kPreface + Frame(kHeaders, 0, HeaderBlocks::kMaxBytes + 1);
  EXPECT_FALSE(blocks.Take(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  uint8_t byte = 0;
  EXPECT_FALSE(blocks.Take(&byte, 1));
}

}  // namespace
}  // namespace stride::api
