#include "server/api/ticket_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/base/memory_file.h"
#include "server/base/message_descriptors.h"
#include "server/base/surroundings.h"
#include "tests/support/await.h"
#include "tests/support/local_client.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::ReceiveDescriptor;
using stride::testing::TemporaryFolder;

class TicketSocketTest : public ::testing::Test {
 protected:
  TicketSocketTest() {
    UniqueFd calls(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un name = NameOf(folder_.Path("calls"));
    EXPECT_EQ(bind(calls.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    EXPECT_EQ(chmod(folder_.Path("calls").c_str(), 0640), 0);
    file_ = *CreateMemoryFile("region", 4096);
    Start();
  }
  void Start() {
    auto redeem = [this](std::string_view ticket) {
      absl::StatusOr<TicketSocket::Redeemed> redeemed = absl::NotFoundError("no");
      if (ticket == "good") redeemed = TicketSocket::Redeemed{nullptr, file_.get(), "it"};
      if (ticket == "passing") redeemed = TicketSocket::Redeemed{nullptr, file_.get(), ""};
      return redeemed;
    };
    auto socket = TicketSocket::Start(
        folder_.Path("calls"), {.redeem = redeem,
                                .hold = [this](const std::string&) { ++num_held_; },
                                .let_go = [this](const std::string&, auto) { --num_held_; }});
    ASSERT_TRUE(socket.ok()) << socket.status();
    socket_ = *std::move(socket);
  }

  static sockaddr_un NameOf(const std::string& path) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path.data(), path.size());
    return name;
  }
  UniqueFd Connect() {
    UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un name = NameOf(socket_->path());
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0)
        << std::strerror(errno);
    timeval patience{20, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
  }
  static void Say(const UniqueFd& fd, const std::string& packet) {
    (void)!send(fd.get(), packet.data(), packet.size(), MSG_NOSIGNAL);
  }
  bool HeldBecome(int count) const {
    return ::stride::testing::Eventually([&] { return num_held_ == count; });
  }
  UniqueFd Redeem(const std::string& ticket) {
    UniqueFd fd = Connect();
    Say(fd, ticket);
    return ReceiveDescriptor(fd);
  }

  TemporaryFolder folder_;
  UniqueFd file_;
  std::atomic<int> num_held_ = 0;
  std::unique_ptr<TicketSocket> socket_;
};

TEST_F(TicketSocketTest, TicketIsExchangedForTheDescriptor) {
  UniqueFd fd = Redeem("good");
  ASSERT_TRUE(fd.valid());
  struct stat theirs, ours;
  fstat(fd.get(), &theirs);
  fstat(file_.get(), &ours);
  EXPECT_EQ(theirs.st_ino, ours.st_ino);
  // The count rises after the send, which may be after the reception.
  const SteadyTime deadline = Now() + absl::Seconds(100);
  while (socket_->stats().handed_out == 0 && Now() < deadline)
    absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(socket_->stats().handed_out, 1);
}

TEST_F(TicketSocketTest, ConnectionPinsItsRegionUntilClosed) {
  std::vector<UniqueFd> holders;
  for (size_t i = 0; i < TicketSocket::kMaxConnections + 5; ++i) {
    holders.push_back(Connect());
    Say(holders.back(), "good");
    EXPECT_TRUE(ReceiveDescriptor(holders.back()).valid());
  }
  EXPECT_TRUE(HeldBecome(static_cast<int>(holders.size())));
  holders.pop_back();
  Say(holders.back(), "more");
  EXPECT_TRUE(HeldBecome(static_cast<int>(holders.size()) - 1));
  // The end of the daemon does not end the connections.
  socket_.reset();
  EXPECT_EQ(num_held_, static_cast<int>(holders.size()) - 1);
}

TEST_F(TicketSocketTest, UnknownTicketClosesTheConnection) {
  UniqueFd fd = Connect();
  Say(fd, "passing");
  EXPECT_TRUE(ReceiveDescriptor(fd).valid());
  EXPECT_FALSE(ReceiveDescriptor(fd).valid());
  EXPECT_EQ(num_held_, 0);
}

TEST_F(TicketSocketTest, SocketHasPathAndModeOfTheMainSocket) {
  EXPECT_EQ(socket_->path(), folder_.Path("calls") + ".regions");
  struct stat info;
  ASSERT_EQ(lstat(socket_->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  const std::string path = socket_->path();
  socket_.reset();
  EXPECT_NE(lstat(path.c_str(), &info), 0);
}

TEST_F(TicketSocketTest, FileOfEarlierDaemonIsReplaced) {
  std::unique_ptr<TicketSocket> earlier = std::move(socket_);
  Start();
  EXPECT_TRUE(Redeem("good").valid());
  // A daemon that ends later leaves the file of its successor in place.
  earlier.reset();
  EXPECT_TRUE(Redeem("good").valid());
}

TEST_F(TicketSocketTest, InvalidInputOnlyClosesTheConnection) {
  for (const std::string& packet :
       {std::string("bad"), std::string("good "), std::string(1, '\0'), std::string(100000, 'x')}) {
    EXPECT_FALSE(Redeem(packet).valid());
  }
  EXPECT_EQ(socket_->stats().refused, 4);
  // No bytes at all, a half-closed connection, and one closed before the response.
  UniqueFd silent = Connect();
  shutdown(silent.get(), SHUT_WR);
  EXPECT_FALSE(ReceiveDescriptor(silent).valid());
  {
    UniqueFd gone = Connect();
    Say(gone, "good");
  }
  EXPECT_TRUE(Redeem("good").valid());
}

TEST_F(TicketSocketTest, SilentConnectionTimesOut) {
  UniqueFd silent = Connect();
  EXPECT_FALSE(ReceiveDescriptor(silent).valid());
  EXPECT_EQ(socket_->stats().evicted, 1);
}

TEST_F(TicketSocketTest, SilentConnectionsDoNotBlockOthers) {
  std::vector<UniqueFd> silent;
  for (size_t i = 0; i < 300; ++i) {
    silent.push_back(Connect());
    if (i % 50 == 0) {
      EXPECT_TRUE(Redeem("good").valid());
    }
  }
  EXPECT_TRUE(Redeem("good").valid());
  EXPECT_GE(socket_->stats().evicted, 300 - static_cast<int64_t>(TicketSocket::kMaxConnections));
}

TEST_F(TicketSocketTest, ReceivedDescriptorsAreClosed) {
  UniqueFd fd = Connect();
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec content{const_cast<char*>("good"), 4};
  msghdr header{};
  header.msg_iov = &content;
  header.msg_iovlen = 1;
  PutDescriptors({file_.get()}, control, &header);
  ASSERT_EQ(sendmsg(fd.get(), &header, MSG_NOSIGNAL), 4);
  EXPECT_TRUE(ReceiveDescriptor(fd).valid());
}

}  // namespace
}  // namespace stride::api
