#include "server/api/connection_table.h"

#include <sys/socket.h>

#include <vector>

#include "gtest/gtest.h"
#include "server/base/unique_fd.h"

namespace stride::api {
namespace {

using Verdict = ConnectionTable::Verdict;

UniqueFd NewSocket() { return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

TEST(ConnectionTableTest, LimitsCountOpenConnections) {
  ConnectionTable table(3, 2);
  UniqueFd a = NewSocket(), b = NewSocket(), c = NewSocket(), d = NewSocket();
  EXPECT_EQ(table.Admit(a.get(), "x"), Verdict::kAdmitted);
  EXPECT_EQ(table.Admit(b.get(), "x"), Verdict::kAdmitted);
  EXPECT_EQ(table.Admit(c.get(), "x"), Verdict::kTooManyOfPeer);
  EXPECT_EQ(table.Admit(c.get(), "y"), Verdict::kAdmitted);
  EXPECT_EQ(table.Admit(d.get(), "z"), Verdict::kTooMany);
  a.Reset();
  EXPECT_EQ(table.Admit(d.get(), "x"), Verdict::kAdmitted);
  EXPECT_EQ(table.Sweep(), 3u);
}

TEST(ConnectionTableTest, ReusedDescriptorNumberIsAnotherConnection) {
  ConnectionTable table(1, 1);
  UniqueFd first = NewSocket();
  int number = first.get();
  EXPECT_EQ(table.Admit(number, "x"), Verdict::kAdmitted);
  first.Reset();
  UniqueFd second = NewSocket();
  ASSERT_EQ(second.get(), number);
  EXPECT_EQ(table.Admit(number, "x"), Verdict::kAdmitted);
}

}  // namespace
}  // namespace stride::api
