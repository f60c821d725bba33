// Random deaths of workers, compilers and the daemon under the mixed work of several tenants: no
// acknowledged result is lost, no work runs twice, nothing leaks. $STRIDE_TEST_KILLS is the number
// of deaths.

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <thread>

#include "gtest/gtest.h"
#include "server/identity/token.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/load.h"
#include "tests/support/descriptors.h"
#include "tests/support/temporary_folder.h"

namespace stride::testing {
namespace {

using std::chrono::milliseconds;

constexpr int kTenants = 3;

int KillsWanted() {
  const char* given = std::getenv("STRIDE_TEST_KILLS");
  return given != nullptr ? std::max(1, std::atoi(given)) : 30;
}

// The longest pause between two deaths: long enough that work begins in between. A process that
// uses a GPU takes half a second to start.
milliseconds LongestPause() { return milliseconds(OnCpu() ? 200 : 1200); }

class KillTest : public ::testing::Test {
 protected:
  KillTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kill-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::ofstream file(folder_ + "/tenants.conf");
    for (int i = 0; i < kTenants; ++i) {
      tokens_[i] = identity::NewToken();
      file << "[tenant t" << i << "]\ntoken = " << identity::ToText(identity::HashToken(tokens_[i]))
           << "\n";
    }
    file.close();
    daemon_ = std::make_unique<Daemon>(
        std::vector<std::string>{"--supervise", "--tenants=" + folder_ + "/tenants.conf"},
        Devices{.count = 2});
  }
  ~KillTest() override {
    daemon_.reset();
    stride::test_support::RemoveFolder(folder_);
  }

  // One of four deaths is the daemon's, one of twenty a compiler's, the others are workers'.
  // Returns false if no such process exists.
  bool KillOne() {
    if (random_() % 4 == 0) {
      const int times = daemon_->TimesReady();
      kill(daemon_->ServingPid(), SIGKILL);
      EXPECT_TRUE(daemon_->WaitReady(times + 1, kPatience)) << daemon_->Log();
      ++num_daemons_;
      return true;
    }
    const auto pids = random_() % 15 == 0 ? daemon_->Compilers() : daemon_->Workers();
    return !pids.empty() && kill(pids[random_() % pids.size()], SIGKILL) == 0;
  }

  std::mt19937 random_{7};
  std::string folder_, tokens_[kTenants];
  std::unique_ptr<Daemon> daemon_;
  int num_daemons_ = 0;
};

TEST_F(KillTest, WorkersAndDaemonDieUnderLoad) {
  const int wanted = KillsWanted();
  const int descriptors = NumDescriptors(daemon_->pid());
  std::vector<std::unique_ptr<Load>> loads;
  for (int i = 0; i < kTenants; ++i) {
    loads.push_back(std::make_unique<Load>(*daemon_, LoadOptions{.seed = static_cast<uint32_t>(i),
                                                                 .tenant = "t" + std::to_string(i),
                                                                 .token = tokens_[i]}));
    loads.back()->Start();
  }
  for (int kills = 0; kills < wanted && !HasFailure();) {
    std::this_thread::sleep_for(milliseconds(random_() % LongestPause().count()));
    kills += KillOne();
  }
  for (auto& load : loads) load->Stop();
  for (auto& load : loads) load->Check();
  std::printf("measured: %s: %d kills under the load of %d tenants, %d of them of the daemon\n",
              DeviceKind().c_str(), wanted, kTenants, num_daemons_);
  Client client = Must(Client::Connect({.address = daemon_->address(), .token = tokens_[0]}));
  ExpectNoArraysLeft(client);
  // The holder has the journal, the socket, and the arenas and completion values of each tenant on
  // each device.
  EXPECT_TRUE(Eventually([&] { return NumDescriptors(daemon_->pid()) < descriptors + 40; }))
      << NumDescriptors(daemon_->pid()) << " descriptors, at first " << descriptors;
}

}  // namespace
}  // namespace stride::testing
