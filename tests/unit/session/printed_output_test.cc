#include "server/session/printed_output.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace stride::session {
namespace {

std::shared_ptr<ControlAccount> Account(int64_t limit) {
  return std::make_shared<ControlAccount>(TenantId{"t"}, limit, std::make_shared<RoomMaker>());
}

TEST(PrintedOutput, TakeReturnsPiecesOfWholeLines) {
  PrintedOutput output;
  output.Append("one\ntwo\nthree\n", 0, nullptr);
  PrintedOutput::Piece piece = output.Take(9);
  EXPECT_EQ(piece.printed.text, "one\ntwo\n");
  EXPECT_TRUE(piece.more);
  piece = output.Take(9);
  EXPECT_EQ(piece.printed.text, "three\n");
  EXPECT_FALSE(piece.more);
  EXPECT_TRUE(output.Take(9).printed.empty());
}

TEST(PrintedOutput, LineLongerThanAPieceIsTruncated) {
  PrintedOutput output;
  output.Append("abcdef\n", 0, nullptr);
  EXPECT_EQ(output.Take(4).printed.text, "abcd");
  EXPECT_EQ(output.Take(4).printed.text, "ef\n");
}

TEST(PrintedOutput, DroppedLinesAreCountedInTheLastPiece) {
  PrintedOutput output;
  output.Append("one\ntwo\n", 5, nullptr);
  EXPECT_EQ(output.Take(5).printed.dropped_lines, 0u);
  EXPECT_EQ(output.Take(5).printed.dropped_lines, 5u);
  output.Append("three\n", 0, nullptr);
  EXPECT_EQ(output.Take(100).printed.text, "three\n") << "read text makes room";
}

TEST(PrintedOutput, FloodKeepsFirstLinesAndCountsTheRest) {
  PrintedOutput output;
  const std::string kilobyte = std::string(1023, 'x') + "\n";
  for (int i = 0; i < 5000; ++i) output.Append(kilobyte, 0, nullptr);
  const PrintedText printed = output.Take(PrintedOutput::kMostBytes).printed;
  EXPECT_EQ(printed.text.size(), PrintedOutput::kMostBytes);
  EXPECT_EQ(printed.dropped_lines, 5000u - 4096u);
}

TEST(PrintedOutput, TextIsChargedAsControlBytes) {
  const auto account = Account(128 << 10);
  const std::string kilobyte = std::string(1023, 'x') + "\n";
  PrintedOutput output;
  for (int i = 0; i < 200; ++i) output.Append(kilobyte, 0, account);
  EXPECT_EQ(account->used(), 128 << 10);
  const PrintedText printed = output.Take(1 << 20).printed;
  EXPECT_EQ(printed.text.size(), 128u << 10);
  EXPECT_EQ(printed.dropped_lines, 72u);
  EXPECT_EQ(account->used(), 0);
}

}  // namespace
}  // namespace stride::session
