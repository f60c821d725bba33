#include "server/main/logging.h"

#include "gtest/gtest.h"

namespace stride {
namespace {

TEST(LoggingTest, TextIsEscapedForJson) {
  EXPECT_EQ(EscapeJson("plain"), "plain");
  EXPECT_EQ(EscapeJson("a \"b\" \\ c\nd\te\x01"), "a \\\"b\\\" \\\\ c\\nd\\u0009e\\u0001");
  EXPECT_EQ(EscapeJson("\xc3\xa4"), "\xc3\xa4");
}

TEST(LoggingTest, MessagesAreOneShortPrintableLine) {
  EXPECT_EQ(PrintableComplaint("bad\nvalue \x01\xff"), "bad\\nvalue \\x01\\xff");
  EXPECT_EQ(PrintableComplaint(std::string(1000, 'x')), std::string(200, 'x') + "...");
}

}  // namespace
}  // namespace stride
