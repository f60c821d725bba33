#include "server/scheduler/fates.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stride::scheduler {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kA = 1, kB = 2, kC = 3;

// What makes `to` from `from`; may run again.
QueuedTask Makes(uint64_t sequence, uint64_t to, uint64_t from) {
  return {.first_sequence = sequence,
          .last_sequence = sequence,
          .repeatable = true,
          .uses = {{.buffer = from}, {.buffer = to, .write = true, .fresh = true}}};
}
QueuedTask Changes(uint64_t sequence, uint64_t buffer) {
  return {.first_sequence = sequence,
          .last_sequence = sequence,
          .uses = {{.buffer = buffer, .write = true}}};
}

TEST(Fates, WhatHadNotBegunRunsAgain) {
  EXPECT_THAT(FatesOf({Makes(1, kB, kA), Changes(2, kA)}, {.completed = 0, .started = 0}),
              ElementsAre(Fate::kAgain, Fate::kAgain));
}

// Only the message of its end was lost; but as long as nobody has changed its input nor used its
// result it is as well to run it again, and nothing need be known of it.
TEST(Fates, WhatHasRunRunsAgainWhereNothingHangsOnIt) {
  EXPECT_THAT(FatesOf({Makes(1, kB, kA)}, {.completed = 1, .started = 1}),
              ElementsAre(Fate::kAgain));
  EXPECT_THAT(FatesOf({Changes(1, kA)}, {.completed = 1, .started = 1}), ElementsAre(Fate::kDone));
}

TEST(Fates, WhatReadSomethingThatWasChangedSinceIsDone) {
  EXPECT_THAT(FatesOf({Makes(1, kB, kA), Changes(2, kA)}, {.completed = 2, .started = 2}),
              ElementsAre(Fate::kDone, Fate::kDone));
  // The change had begun.
  QueuedTask change = Changes(2, kA);
  change.running = true;
  EXPECT_THAT(FatesOf({Makes(1, kB, kA), change}, {.completed = 1, .started = 2}),
              ElementsAre(Fate::kDone, Fate::kLost));
  // It only waited its turn, behind another.
  EXPECT_THAT(
      FatesOf({Makes(1, kB, kA), Makes(2, kC, kA), Changes(3, kA)}, {.completed = 1, .started = 3}),
      ElementsAre(Fate::kAgain, Fate::kAgain, Fate::kAgain));
}

TEST(Fates, WhatWasUsedByOneThatIsDoneIsDone) {
  // b = f(a); c += b; and c's change cannot be made twice.
  QueuedTask adds = Changes(2, kC);
  adds.uses.push_back({.buffer = kB});
  EXPECT_THAT(FatesOf({Makes(1, kB, kA), adds}, {.completed = 2, .started = 2}),
              ElementsAre(Fate::kDone, Fate::kDone));
  // One that runs again itself takes nothing with it.
  EXPECT_THAT(FatesOf({Makes(1, kB, kA), Makes(2, kC, kB)}, {.completed = 2, .started = 2}),
              ElementsAre(Fate::kAgain, Fate::kAgain));
}

TEST(Fates, WhatWasRunningIsLostWhereItCannotBeRepeated) {
  QueuedTask change = Changes(1, kA);
  change.running = true;
  EXPECT_THAT(FatesOf({change}, {.completed = 0, .started = 1}), ElementsAre(Fate::kLost));
  QueuedTask pure = Makes(1, kB, kA);
  pure.running = true;
  EXPECT_THAT(FatesOf({pure}, {.completed = 0, .started = 1}), ElementsAre(Fate::kAgain));
  // It is named, so it has not ended whatever its mark says.
  pure.at_fault = true;
  EXPECT_THAT(FatesOf({pure}, {.completed = 1, .started = 1}), ElementsAre(Fate::kLost));
}

// A launch that failed leaves what it was to write as it was; who came after it has read that.
TEST(Fates, WhatRanOnGarbageIsLostOrRunsAgain) {
  QueueProgress progress{.completed = 3, .started = 3};
  progress.undone.failed.insert(1);
  EXPECT_THAT(FatesOf({Makes(1, kB, kA), Makes(2, kC, kB), Changes(3, kC)}, progress),
              ElementsAre(Fate::kAgain, Fate::kLost, Fate::kLost));
  EXPECT_THAT(FatesOf({Makes(1, kB, kA), Makes(2, kC, kB), Makes(3, 4, kC)}, progress),
              ElementsAre(Fate::kAgain, Fate::kAgain, Fate::kAgain));
}

TEST(Fates, WhatWasTakenOutNeverRan) {
  QueueProgress progress{.completed = 2, .started = 2};
  progress.undone.taken_out.insert(1);
  EXPECT_THAT(FatesOf({Changes(1, kA), Makes(2, kB, kC)}, progress),
              ElementsAre(Fate::kAgain, Fate::kAgain));
}

TEST(Fates, WhatWasCancelledTooLateIsDone) {
  QueuedTask cancelled = Makes(1, kB, kA);
  cancelled.cancelled = true;
  EXPECT_THAT(FatesOf({cancelled}, {.completed = 1, .started = 1}), ElementsAre(Fate::kDone));
  EXPECT_THAT(FatesOf({cancelled}, {.completed = 0, .started = 0}), ElementsAre(Fate::kAgain));
}

}  // namespace
}  // namespace stride::scheduler
