#include "server/api/local/local_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/memory_file.h"
#include "server/base/message_descriptors.h"
#include "tests/support/await.h"
#include "tests/support/local_client.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::ConnectUnix;
using stride::testing::Eventually;
using stride::testing::LocalClient;
using stride::testing::TemporaryFolder;

class LocalListenerTest : public ::testing::Test {
 protected:
  LocalListenerTest() {
    UniqueFd calls(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const std::string path = folder_.Path("calls");
    std::memcpy(name.sun_path, path.data(), path.size());
    EXPECT_EQ(bind(calls.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    EXPECT_EQ(chmod(path.c_str(), 0640), 0);
    Start();
  }
  void Start() {
    // Echoes bytes after the OPEN frame, so that a client sees that it was admitted.
    auto admit = [](std::string_view ticket, UniqueFd connection) {
      if (ticket != kGood) return false;
      char byte = '+';
      (void)!recv(connection.get(), &byte, 1, MSG_DONTWAIT);
      (void)!send(connection.get(), &byte, 1, MSG_NOSIGNAL);
      return true;
    };
    auto listener = LocalListener::Start(folder_.Path("calls"), admit);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }

  UniqueFd Connect() {
    UniqueFd fd = ConnectUnix(listener_->path());
    EXPECT_TRUE(fd.valid()) << std::strerror(errno);
    return fd;
  }
  static void Say(const UniqueFd& fd, const std::string& bytes) {
    (void)!send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // The first byte received; 0 if the connection was closed instead.
  static char Answer(const UniqueFd& fd) {
    char byte = 0;
    const ssize_t size = recv(fd.get(), &byte, 1, 0);
    EXPECT_FALSE(size < 0 && errno == EAGAIN) << "neither a byte nor the end came for 20 s";
    return size == 1 ? byte : '\0';
  }
  static std::string Opening(const std::string& ticket) {
    return LocalClient::FrameOf(v1::LOCAL_FRAME_OPEN, ticket);
  }
  bool Admitted() {
    UniqueFd fd = Connect();
    Say(fd, Opening(kGood));
    return Answer(fd) == '+';
  }

  inline static const std::string kGood = std::string(LocalListener::kTicketBytes, 'g');
  TemporaryFolder folder_;
  std::unique_ptr<LocalListener> listener_;
};

TEST_F(LocalListenerTest, TicketAdmitsItsConnection) {
  EXPECT_TRUE(Admitted());
  EXPECT_TRUE(Eventually([&] { return listener_->stats().admitted == 1; }));
}

TEST_F(LocalListenerTest, OpeningIsReadFromAnySplitAndNoByteAfterIt) {
  const std::string opening = Opening(kGood);
  UniqueFd slow = Connect();
  for (char byte : opening) Say(slow, {byte});
  EXPECT_EQ(Answer(slow), '+');
  UniqueFd early = Connect();
  Say(early, opening + "x");
  EXPECT_EQ(Answer(early), 'x');
}

TEST_F(LocalListenerTest, SocketHasPathAndModeOfTheMainSocket) {
  EXPECT_EQ(listener_->path(), folder_.Path("calls") + ".local");
  struct stat info;
  ASSERT_EQ(lstat(listener_->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  const std::string path = listener_->path();
  listener_.reset();
  EXPECT_NE(lstat(path.c_str(), &info), 0);
}

TEST_F(LocalListenerTest, FileOfEarlierDaemonIsReplaced) {
  std::unique_ptr<LocalListener> earlier = std::move(listener_);
  Start();
  EXPECT_TRUE(Admitted());
  // A daemon that ends later leaves the file of its successor in place.
  earlier.reset();
  EXPECT_TRUE(Admitted());
}

TEST_F(LocalListenerTest, InvalidInputOnlyClosesTheConnection) {
  const std::string wrong_size = LocalClient::FrameOf(v1::LOCAL_FRAME_OPEN, kGood + "x");
  for (const std::string& bytes :
       {Opening(std::string(LocalListener::kTicketBytes, 'b')), wrong_size,
        LocalClient::FrameOf(v1::LOCAL_FRAME_RUN, kGood), std::string(100000, 'x')}) {
    UniqueFd fd = Connect();
    Say(fd, bytes);
    EXPECT_EQ(Answer(fd), '\0');
  }
  EXPECT_TRUE(Eventually([&] { return listener_->stats().refused == 4; }));
  // No bytes at all, half a frame, and a connection closed before the answer.
  for (const std::string& bytes : {std::string(), Opening(kGood).substr(0, 40)}) {
    UniqueFd half = Connect();
    Say(half, bytes);
    shutdown(half.get(), SHUT_WR);
    EXPECT_EQ(Answer(half), '\0');
  }
  {
    UniqueFd gone = Connect();
    Say(gone, Opening(kGood));
  }
  EXPECT_TRUE(Admitted());
}

TEST_F(LocalListenerTest, SilentConnectionTimesOut) {
  UniqueFd silent = Connect();
  Say(silent, "half");
  EXPECT_EQ(Answer(silent), '\0');
  EXPECT_EQ(listener_->stats().evicted, 1);
}

TEST_F(LocalListenerTest, SilentConnectionsDoNotBlockOthers) {
  std::vector<UniqueFd> silent;
  for (size_t i = 0; i < 300; ++i) {
    silent.push_back(Connect());
    if (i % 50 == 0) {
      EXPECT_TRUE(Admitted());
    }
  }
  EXPECT_TRUE(Admitted());
  EXPECT_GE(listener_->stats().evicted, 300 - static_cast<int64_t>(LocalListener::kMaxConnections));
}

TEST_F(LocalListenerTest, ReceivedDescriptorsAreClosed) {
  UniqueFd file = *CreateMemoryFile("sent", 4096);
  std::string opening = Opening(kGood);
  UniqueFd fd = Connect();
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec content{opening.data(), opening.size()};
  msghdr header{};
  header.msg_iov = &content;
  header.msg_iovlen = 1;
  PutDescriptors({file.get()}, control, &header);
  ASSERT_EQ(sendmsg(fd.get(), &header, MSG_NOSIGNAL), static_cast<ssize_t>(opening.size()));
  EXPECT_EQ(Answer(fd), '+');
}

}  // namespace
}  // namespace stride::api
