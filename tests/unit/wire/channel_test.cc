#include "server/wire/channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "server/base/environment.h"
#include "server/base/memory_file.h"
#include "server/wire/worker.pb.h"
#include "tests/support/descriptors.h"

namespace stride::wire {
namespace {

using ::stride::testing::NumDescriptors;
using Outcome = Channel::Outcome;

class ChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = CreateSocketPair();
    ASSERT_TRUE(pair.ok());
    left_ = std::make_unique<Channel>(std::move(pair->first));
    right_ = std::make_unique<Channel>(std::move(pair->second));
  }

  static Command PingCommand(uint64_t id) {
    Command command;
    command.mutable_ping()->set_id(id);
    return command;
  }

  std::unique_ptr<Channel> left_, right_;
  Command received_;
  std::vector<UniqueFd> fds_;
};

TEST_F(ChannelTest, OnePacketIsOneMessage) {
  ASSERT_TRUE(left_->Send(PingCommand(1)).ok());
  ASSERT_TRUE(left_->Send(PingCommand(2)).ok());
  for (uint64_t id : {1, 2}) {
    ASSERT_EQ(right_->Receive(&received_, &fds_).value(), Outcome::kMessage);
    EXPECT_EQ(received_.ping().id(), id);
    EXPECT_TRUE(fds_.empty());
  }
}

// With a thread that sleeps and with one that polls.
TEST_F(ChannelTest, WaitsUntilTheDeadline) {
  for (absl::Duration spin : {absl::ZeroDuration(), absl::Milliseconds(1), absl::Seconds(20)}) {
    EXPECT_EQ(right_->Receive(&received_, &fds_, absl::ZeroDuration(), spin).value(),
              Outcome::kTimeout);
    const SteadyTime begin = Now();
    EXPECT_EQ(right_->Receive(&received_, &fds_, absl::Milliseconds(5), spin).value(),
              Outcome::kTimeout);
    EXPECT_GE(Now() - begin, absl::Milliseconds(5));
    std::thread sender([&] {
      absl::SleepFor(absl::Milliseconds(3));
      ASSERT_TRUE(left_->Send(PingCommand(3)).ok());
    });
    EXPECT_EQ(right_->Receive(&received_, &fds_, absl::Seconds(100), spin).value(),
              Outcome::kMessage);
    EXPECT_EQ(received_.ping().id(), 3u);
    sender.join();
  }
}

TEST_F(ChannelTest, DescriptorsArriveCloseOnExec) {
  auto file = CreateSealedCopy("test", "content");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(
      left_->Send(PingCommand(1), {file->get(), file->get(), file->get(), file->get()}).ok());
  ASSERT_EQ(right_->Receive(&received_, &fds_).value(), Outcome::kMessage);
  ASSERT_EQ(fds_.size(), 4u);
  for (const UniqueFd& fd : fds_) {
    EXPECT_EQ(fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
    char text[8] = {};
    EXPECT_EQ(pread(fd.get(), text, 7, 0), 7);
    EXPECT_STREQ(text, "content");
  }
}

TEST_F(ChannelTest, DistinguishesTimeoutFromEnd) {
  EXPECT_EQ(right_->Receive(&received_, &fds_, absl::Milliseconds(1)).value(), Outcome::kTimeout);
  left_.reset();
  EXPECT_EQ(right_->Receive(&received_, &fds_, absl::Seconds(5)).value(), Outcome::kClosed);
  EXPECT_EQ(right_->Send(PingCommand(1)).code(), absl::StatusCode::kUnavailable);
}

// The last packets of a worker that dies with unread commands must still be read.
TEST_F(ChannelTest, ReadsPacketsOfADeadPeer) {
  ASSERT_TRUE(right_->Send(PingCommand(1)).ok());  // never read
  ASSERT_TRUE(left_->Send(PingCommand(7)).ok());
  left_.reset();
  ASSERT_EQ(right_->Receive(&received_, &fds_).value(), Outcome::kMessage);
  EXPECT_EQ(received_.ping().id(), 7u);
  EXPECT_EQ(right_->Receive(&received_, &fds_).value(), Outcome::kClosed);
}

TEST_F(ChannelTest, RefusesOversizedPackets) {
  Command large;
  large.mutable_start()->set_device_id(std::string(kMaxPacketBytes, 'x'));
  EXPECT_EQ(left_->Send(large).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(left_->Send(Command()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(left_->Send(PingCommand(1), {0, 0, 0, 0, 0}).code(),
            absl::StatusCode::kInvalidArgument);
  large.mutable_start()->set_device_id(std::string(kMaxPacketBytes - 64, 'x'));
  ASSERT_TRUE(left_->Send(large).ok());
  ASSERT_EQ(right_->Receive(&received_, &fds_).value(), Outcome::kMessage);
  EXPECT_EQ(received_.start().device_id().size(), kMaxPacketBytes - 64);
}

TEST_F(ChannelTest, SendToBlockedPeerEnds) {
  ASSERT_TRUE(left_->SetSendTimeout(absl::Milliseconds(20)).ok());
  absl::Status status;
  for (int i = 0; i < 100000 && status.ok(); ++i) status = left_->Send(PingCommand(i));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ChannelTest, TrySendToBlockedPeerReturnsAtOnce) {
  const std::string message = PingCommand(1).SerializeAsString();
  absl::Status status;
  int sent = -1;
  for (; sent < 100000 && status.ok(); ++sent) status = left_->TrySend(message);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  for (int i = 0; i < sent; ++i)
    ASSERT_EQ(right_->Receive(&received_, &fds_).value(), Outcome::kMessage);
  EXPECT_TRUE(left_->TrySend(message).ok());
}

// Raw packets of a hostile peer.
class HostilePeerTest : public ChannelTest {
 protected:
  void SendRaw(const std::string& bytes, int num_descriptors = 0) {
    std::vector<int> fds(num_descriptors, 0);
    std::vector<char> control(CMSG_SPACE(sizeof(int) * std::max(num_descriptors, 1)));
    iovec content{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr header{};
    header.msg_iov = &content;
    header.msg_iovlen = 1;
    if (num_descriptors > 0) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* c = CMSG_FIRSTHDR(&header);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(sizeof(int) * num_descriptors);
      memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * num_descriptors);
    }
    ASSERT_GE(sendmsg(left_->fd(), &header, 0), 0);
  }
};

TEST_F(HostilePeerTest, InvalidPacketsAreErrorsAndLeakNothing) {
  int before = NumDescriptors();
  SendRaw("\xff\xff\xff garbage");
  EXPECT_EQ(right_->Receive(&received_, &fds_).status().code(), absl::StatusCode::kInvalidArgument);
  SendRaw(std::string(kMaxPacketBytes + 1, '\0'));
  EXPECT_EQ(right_->Receive(&received_, &fds_).status().code(), absl::StatusCode::kInvalidArgument);
  SendRaw(PingCommand(1).SerializeAsString(), 40);
  EXPECT_EQ(right_->Receive(&received_, &fds_).status().code(), absl::StatusCode::kInvalidArgument);
  SendRaw("\xff garbage with descriptors", 3);
  EXPECT_EQ(right_->Receive(&received_, &fds_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(NumDescriptors(), before);
}

TEST_F(ChannelTest, ConcurrentSendsStayWhole) {
  constexpr int kThreads = 4, kEach = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) ASSERT_TRUE(left_->Send(PingCommand(t * kEach + i)).ok());
    });
  }
  std::vector<bool> seen(kThreads * kEach);
  for (int i = 0; i < kThreads * kEach; ++i) {
    ASSERT_EQ(right_->Receive(&received_, &fds_).value(), Outcome::kMessage);
    ASSERT_FALSE(seen.at(received_.ping().id()));
    seen[received_.ping().id()] = true;
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace stride::wire
