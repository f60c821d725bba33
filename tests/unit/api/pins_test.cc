#include "server/api/local/pins.h"

#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"

namespace stride::api {
namespace {

using stride::testing::Eventually;

class PinsTest : public ::testing::Test {
 protected:
  UniqueFd Add(const std::string& memory) {
    auto end = pins_.Add(memory);
    EXPECT_TRUE(end.ok()) << end.status();
    return *std::move(end);
  }
  std::vector<std::string> released() {
    absl::MutexLock lock(&mutex_);
    return released_;
  }
  // Whether the daemon's side has closed.
  static bool Ended(const UniqueFd& end) {
    char byte;
    return recv(end.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  absl::Mutex mutex_;
  std::vector<std::string> released_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const void> last_end_ ABSL_GUARDED_BY(mutex_);
  Pins pins_{[this](const std::string& memory, std::shared_ptr<const void> end) {
    absl::MutexLock lock(&mutex_);
    released_.push_back(memory);
    last_end_ = std::move(end);
  }};
};

TEST_F(PinsTest, CloseReleasesItsMemoryOnly) {
  std::vector<UniqueFd> ends;
  for (int i = 0; i < 300; ++i) ends.push_back(Add(absl::StrCat(i)));
  EXPECT_EQ(pins_.size(), 300u);
  ends[17].Reset();
  EXPECT_TRUE(Eventually([&] { return released() == std::vector<std::string>{"17"}; }));
  EXPECT_EQ(pins_.size(), 299u);
}

TEST_F(PinsTest, BytesAndShutdownRelease) {
  UniqueFd chatty = Add("chatty"), quiet = Add("quiet");
  ASSERT_EQ(send(chatty.get(), "x", 1, 0), 1);
  EXPECT_TRUE(Eventually([&] { return released() == std::vector<std::string>{"chatty"}; }));
  ASSERT_EQ(shutdown(quiet.get(), SHUT_WR), 0);
  EXPECT_TRUE(Eventually([&] { return released().size() == 2; }));
}

TEST_F(PinsTest, ClientSeesTheEndOfTheRelease) {
  UniqueFd end = Add("it");
  ASSERT_EQ(shutdown(end.get(), SHUT_WR), 0);
  ASSERT_TRUE(Eventually([&] { return !released().empty(); }));
  EXPECT_FALSE(Ended(end));
  {
    absl::MutexLock lock(&mutex_);
    last_end_.reset();
  }
  EXPECT_TRUE(Ended(end));
}

TEST_F(PinsTest, DroppedPinIsClosedWithoutRelease) {
  UniqueFd deleted = Add("deleted"), other = Add("other");
  pins_.Drop("deleted");
  pins_.Drop("none");
  EXPECT_TRUE(Ended(deleted));
  EXPECT_EQ(pins_.size(), 1u);
  deleted.Reset();
  other.Reset();
  EXPECT_TRUE(Eventually([&] { return !released().empty(); }));
  EXPECT_EQ(released(), std::vector<std::string>{"other"});
}

TEST_F(PinsTest, StopReleasesNothing) {
  UniqueFd end = Add("it");
  pins_.Stop();
  end.Reset();
  EXPECT_TRUE(released().empty());
}

}  // namespace
}  // namespace stride::api
