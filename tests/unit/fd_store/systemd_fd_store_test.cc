#include "server/fd_store/systemd_fd_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "gtest/gtest.h"
#include "server/fd_store/packet.h"

namespace stride::fd_store {
namespace {

// systemd's handling of the store messages: a thread that serves a socket.
class FakeManager {
 public:
  FakeManager() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    socklen_t size = sizeof(sa_family_t);  // a name chosen by the kernel
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
    size = sizeof(name);
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size);
    address_ = "@" + std::string(name.sun_path + 1, size - sizeof(sa_family_t) - 1);
    setenv("NOTIFY_SOCKET", address_.c_str(), 1);
    setenv("FDSTORE", "3", 1);
    thread_ = std::thread([this] { Run(); });
  }
  ~FakeManager() {
    UniqueFd sender(::socket(AF_UNIX, SOCK_DGRAM, 0));
    EXPECT_TRUE(SendPacket(sender.get(), "END", -1, address_).ok());
    thread_.join();
    unsetenv("NOTIFY_SOCKET");
    unsetenv("FDSTORE");
  }

  // After a barrier.
  size_t num_stored() {
    std::lock_guard lock(mutex_);
    return store_.size();
  }
  bool stores(const std::string& name) {
    std::lock_guard lock(mutex_);
    return store_.count(name) > 0;
  }

  std::atomic<bool> answers_barriers{true};
  std::atomic<int> num_messages{0};

 private:
  void Run() {
    Packet packet;
    while (ReceivePacket(socket_.get(), &packet).ok() && packet.text != "END") {
      size_t at = packet.text.find("FDNAME=");
      std::string name = at == std::string::npos ? "" : packet.text.substr(at + 7);
      {
        std::lock_guard lock(mutex_);
        if (packet.text.rfind("FDSTOREREMOVE=1", 0) == 0) store_.erase(name);
        if (packet.text.rfind("FDSTORE=1", 0) == 0) store_[name] = std::move(packet.fd);
      }
      if (packet.text == "BARRIER=1" && !answers_barriers) held_.push_back(std::move(packet.fd));
      packet.fd.Reset();
      ++num_messages;
    }
  }

  std::mutex mutex_;
  std::map<std::string, UniqueFd> store_;
  UniqueFd socket_;
  std::string address_;
  std::vector<UniqueFd> held_;
  std::thread thread_;
};

UniqueFd File() { return UniqueFd(memfd_create("test", MFD_CLOEXEC)); }

TEST(SystemdFdStoreTest, StoresReplacesAndRemoves) {
  FakeManager manager;
  std::vector<NamedFd> passed;
  auto fd_store = MakeSystemdFdStore(&passed);
  ASSERT_NE(fd_store, nullptr);
  EXPECT_TRUE(fd_store->keeps());
  UniqueFd file = File();
  ASSERT_TRUE(fd_store->Store("arena-1", file.get()).ok());
  EXPECT_TRUE(manager.stores("stride-arena-1"));
  ASSERT_TRUE(fd_store->Store("arena-1", file.get()).ok());
  ASSERT_TRUE(fd_store->Store("arena-2", file.get()).ok());
  fd_store->Remove("arena-1");
  ASSERT_TRUE(fd_store->Store("arena-3", file.get()).ok());
  EXPECT_EQ(manager.num_stored(), 2u);
  EXPECT_FALSE(manager.stores("stride-arena-1"));
  EXPECT_FALSE(fd_store->Store("has:colon", file.get()).ok());
}

// The manager would silently drop descriptors over its limit.
TEST(SystemdFdStoreTest, FullStoreIsReported) {
  FakeManager manager;
  std::vector<NamedFd> passed;
  auto fd_store = MakeSystemdFdStore(&passed);
  UniqueFd file = File();
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(fd_store->Store(name, file.get()).ok());
  EXPECT_EQ(fd_store->Store("d", file.get()).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(fd_store->Store("b", file.get()).ok());
  fd_store->Remove("a");
  EXPECT_TRUE(fd_store->Store("d", file.get()).ok());
}

TEST(SystemdFdStoreTest, TakesOnlyItsOwnDescriptors) {
  FakeManager manager;
  std::vector<NamedFd> passed;
  passed.push_back({"strided.socket", File()});
  passed.push_back({"stride-arena-7", File()});
  passed.push_back({"", File()});
  auto fd_store = MakeSystemdFdStore(&passed);
  ASSERT_EQ(passed.size(), 2u);
  EXPECT_EQ(passed[0].name, "strided.socket");
  auto kept = fd_store->TakeAll();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].name, "arena-7");
  EXPECT_TRUE(kept[0].fd.valid());
  // It counts, and can be removed.
  UniqueFd file = File();
  ASSERT_TRUE(fd_store->Store("a", file.get()).ok());
  ASSERT_TRUE(fd_store->Store("b", file.get()).ok());
  EXPECT_FALSE(fd_store->Store("c", file.get()).ok());
  fd_store->Remove("arena-7");
  EXPECT_TRUE(fd_store->Store("c", file.get()).ok());
}

TEST(SystemdFdStoreTest, AbsentWithoutManagerOrStore) {
  std::vector<NamedFd> passed;
  EXPECT_EQ(MakeSystemdFdStore(&passed), nullptr);
  FakeManager manager;
  setenv("FDSTORE", "0", 1);
  EXPECT_EQ(MakeSystemdFdStore(&passed), nullptr);
  unsetenv("FDSTORE");
  EXPECT_EQ(MakeSystemdFdStore(&passed), nullptr);
}

TEST(PassedFdsTest, DescriptorsOfAnotherProcessAreIgnored) {
  setenv("LISTEN_PID", "1", 1);
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_FDNAMES", "x", 1);
  EXPECT_TRUE(TakePassedFds().empty());
  EXPECT_EQ(std::getenv("LISTEN_FDS"), nullptr);
  EXPECT_EQ(std::getenv("LISTEN_FDNAMES"), nullptr);
}

}  // namespace
}  // namespace stride::fd_store
