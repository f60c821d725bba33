#include "server/base/printed_text.h"

#include <gtest/gtest.h>

namespace stride {
namespace {

TEST(PrintedText, AppendKeepsWholeLinesWithinTheLimit) {
  PrintedText printed;
  printed.Append("one\ntwo\n", 0, 10);
  EXPECT_EQ(printed.text, "one\ntwo\n");
  EXPECT_EQ(printed.dropped_lines, 0u);
  printed.Append("3\n4\nfive", 2, 10);
  EXPECT_EQ(printed.text, "one\ntwo\n3\n");
  EXPECT_EQ(printed.dropped_lines, 4u) << "4, five and two that came dropped";
}

TEST(PrintedText, NothingIsAppendedAfterADroppedLine) {
  PrintedText printed;
  printed.Append("a long line\n", 0, 5);
  printed.Append("x\n", 0, 5);
  EXPECT_EQ(printed.text, "");
  EXPECT_EQ(printed.dropped_lines, 2u);
}

TEST(PrintedText, TruncateCountsDroppedLines) {
  PrintedText printed{"a\nb\nc\n", 1};
  printed.Truncate(6);
  EXPECT_EQ(printed.text, "a\nb\nc\n");
  printed.Truncate(5);
  EXPECT_EQ(printed.text, "a\nb\n");
  EXPECT_EQ(printed.dropped_lines, 2u);
  printed.Truncate(0);
  EXPECT_EQ(printed.text, "");
  EXPECT_EQ(printed.dropped_lines, 4u);
}

}  // namespace
}  // namespace stride
