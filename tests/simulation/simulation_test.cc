// A fixed list of seeds; STRIDE_SEEDS=first:count runs others, and --seed=N one, with its trace.
#include "tests/simulation/simulation.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gtest/gtest.h"

namespace stride::simulation {
namespace {

constexpr int kActions = 800;
constexpr uint64_t kFixedSeeds = 100;

struct Flags {
  uint64_t seed = 0;
  int actions = kActions;
  bool verbose = false;
} flags;

Simulation::Result RunSeed(uint64_t seed, bool verbose = false) {
  Simulation simulation(seed, flags.actions, verbose);
  return simulation.Run();
}

void ExpectRight(uint64_t seed, const Simulation::Result& result) {
  EXPECT_EQ(result.failure, "") << "seed " << seed << "; replay: --seed=" << seed
                                << " --actions=" << flags.actions << "\n"
                                << result.trace << "seed " << seed << ": " << result.failure;
}

void RunSeeds(uint64_t first, uint64_t count) {
  uint64_t steps = 0, operations = 0, contents = 0, deaths = 0, restarts = 0, spilled = 0;
  for (uint64_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed) {
    Simulation::Result result = RunSeed(seed);
    ExpectRight(seed, result);
    steps += result.steps;
    operations += result.operations;
    contents += result.contents;
    deaths += result.deaths;
    restarts += result.restarts;
    spilled += result.spilled_bytes;
  }
  std::printf(
      "%lu seeds, %lu events, %lu operations, %lu contents compared, %lu workers and %lu "
      "daemons killed, %lu bytes spilled\n",
      count, steps, operations, contents, deaths, restarts, spilled);
}

TEST(SimulationTest, FixedSeedsPass) {
  if (flags.seed != 0) GTEST_SKIP();
  RunSeeds(1, kFixedSeeds);
}

TEST(SimulationTest, EqualSeedsGiveEqualTraces) {
  if (flags.seed != 0) GTEST_SKIP();
  Simulation::Result first = RunSeed(7), second = RunSeed(7);
  EXPECT_EQ(first.hash, second.hash);
  EXPECT_EQ(first.steps, second.steps);
}

TEST(SimulationTest, RequestedSeedsPass) {
  if (flags.seed != 0) {
    Simulation::Result result = RunSeed(flags.seed, flags.verbose);
    ExpectRight(flags.seed, result);
    return;
  }
  const char* seeds = std::getenv("STRIDE_SEEDS");
  if (seeds == nullptr) GTEST_SKIP() << "STRIDE_SEEDS is not set";
  char* rest = nullptr;
  uint64_t first = std::strtoull(seeds, &rest, 10);
  RunSeeds(first, *rest == ':' ? std::strtoull(rest + 1, nullptr, 10) : 1);
}

}  // namespace
}  // namespace stride::simulation

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto& flags = stride::simulation::flags;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--seed=", 7) == 0)
      flags.seed = std::strtoull(argv[i] + 7, nullptr, 10);
    if (std::strncmp(argv[i], "--actions=", 10) == 0) flags.actions = std::atoi(argv[i] + 10);
    if (std::strcmp(argv[i], "--verbose") == 0) flags.verbose = true;
  }
  return RUN_ALL_TESTS();
}
