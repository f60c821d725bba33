#include "server/api/listening_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::TemporaryFolder;
using ::testing::HasSubstr;

Address Unix(const std::string& path) { return *ParseAddress("unix:" + path); }

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

TEST(ListeningSocketTest, UnixSocketIsOpenToOwnerAndGroup) {
  TemporaryFolder folder;
  auto socket = Listen(Unix(folder.Path("s")), Reach::kLocalOnly);
  ASSERT_TRUE(socket.ok()) << socket.status();
  struct stat info;
  ASSERT_EQ(stat(folder.Path("s").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
  socket->fd.Reset();
  RemoveSocketFile(*socket);
  EXPECT_FALSE(Exists(folder.Path("s")));
}

TEST(ListeningSocketTest, OnlyStaleSocketIsReplaced) {
  TemporaryFolder folder;
  auto first = Listen(Unix(folder.Path("s")), Reach::kLocalOnly);
  ASSERT_TRUE(first.ok());
  auto second = Listen(Unix(folder.Path("s")), Reach::kLocalOnly);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  first->fd.Reset();  // as after SIGKILL: the file stays
  ASSERT_TRUE(Exists(folder.Path("s")));
  second = Listen(Unix(folder.Path("s")), Reach::kLocalOnly);
  EXPECT_TRUE(second.ok()) << second.status();
  RemoveSocketFile(*first);
  EXPECT_TRUE(Exists(folder.Path("s"))) << "the successor's file is left alone";
}

TEST(ListeningSocketTest, OnlySocketsAreReplaced) {
  TemporaryFolder folder;
  std::ofstream(folder.Path("s")) << "precious";
  EXPECT_FALSE(Listen(Unix(folder.Path("s")), Reach::kLocalOnly).ok());
  EXPECT_TRUE(Exists(folder.Path("s")));
}

TEST(ListeningSocketTest, PortZeroReportsTheChosenPort) {
  auto socket = Listen(*ParseAddress("tcp:127.0.0.1:0"), Reach::kLocalOnly);
  ASSERT_TRUE(socket.ok());
  EXPECT_GT(socket->address.port, 0);
  auto taken = Listen(socket->address, Reach::kLocalOnly);
  EXPECT_THAT(std::string(taken.status().message()), HasSubstr(socket->address.ToString()));
}

TEST(ListeningSocketTest, RemoteAddressesNeedInsecure) {
  Address any = *ParseAddress("tcp:0.0.0.0:0");
  auto refused = Listen(any, Reach::kLocalOnly);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--insecure"));
  EXPECT_TRUE(Listen(any, Reach::kAnywhere).ok());
}

TEST(ListeningSocketTest, AdoptedSocketsMustListenAndBeLocal) {
  EXPECT_FALSE(AdoptSocket(UniqueFd(socket(AF_UNIX, SOCK_STREAM, 0)), Reach::kLocalOnly).ok());
  auto open = Listen(*ParseAddress("tcp:0.0.0.0:0"), Reach::kAnywhere);
  ASSERT_TRUE(open.ok());
  EXPECT_FALSE(AdoptSocket(std::move(open->fd), Reach::kLocalOnly).ok());
  auto local = Listen(*ParseAddress("tcp:[::1]:0"), Reach::kLocalOnly);
  if (!local.ok()) GTEST_SKIP() << "no IPv6 here";
  auto adopted = AdoptSocket(std::move(local->fd), Reach::kLocalOnly);
  ASSERT_TRUE(adopted.ok());
  EXPECT_EQ(adopted->address.host, "::1");
}

}  // namespace
}  // namespace stride::api
