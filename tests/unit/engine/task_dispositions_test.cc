#include "server/engine/scheduling/task_dispositions.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stride::engine {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kA = 1, kB = 2, kC = 3;

// A task that computes `to` from `from` and may run again.
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

TEST(Fates, QueuedTaskRunsAgain) {
  EXPECT_THAT(DispositionsOf({Makes(1, kB, kA), Changes(2, kA)}, {.completed = 0, .started = 0}),
              ElementsAre(TaskDisposition::kAgain, TaskDisposition::kAgain));
}

// Only the completion message was lost. While its input is unchanged and its result unused, a
// second run is safe and needs no further state.
TEST(Fates, DoneTaskWithUnusedResultRunsAgain) {
  EXPECT_THAT(DispositionsOf({Makes(1, kB, kA)}, {.completed = 1, .started = 1}),
              ElementsAre(TaskDisposition::kAgain));
  EXPECT_THAT(DispositionsOf({Changes(1, kA)}, {.completed = 1, .started = 1}),
              ElementsAre(TaskDisposition::kDone));
}

TEST(Fates, DoneTaskWithChangedInputStaysDone) {
  EXPECT_THAT(DispositionsOf({Makes(1, kB, kA), Changes(2, kA)}, {.completed = 2, .started = 2}),
              ElementsAre(TaskDisposition::kDone, TaskDisposition::kDone));
  // The change had begun.
  QueuedTask change = Changes(2, kA);
  change.running = true;
  EXPECT_THAT(DispositionsOf({Makes(1, kB, kA), change}, {.completed = 1, .started = 2}),
              ElementsAre(TaskDisposition::kDone, TaskDisposition::kLost));
  // It only waited in the queue after another task.
  EXPECT_THAT(
      DispositionsOf({Makes(1, kB, kA), Makes(2, kC, kA), Changes(3, kA)},
                     {.completed = 1, .started = 3}),
      ElementsAre(TaskDisposition::kAgain, TaskDisposition::kAgain, TaskDisposition::kAgain));
}

TEST(Fates, ProducerForDoneTaskStaysDone) {
  // b = f(a); c += b; and the change of c cannot be repeated.
  QueuedTask adds = Changes(2, kC);
  adds.uses.push_back({.buffer = kB});
  EXPECT_THAT(DispositionsOf({Makes(1, kB, kA), adds}, {.completed = 2, .started = 2}),
              ElementsAre(TaskDisposition::kDone, TaskDisposition::kDone));
  // A task that runs again itself affects no other.
  EXPECT_THAT(DispositionsOf({Makes(1, kB, kA), Makes(2, kC, kB)}, {.completed = 2, .started = 2}),
              ElementsAre(TaskDisposition::kAgain, TaskDisposition::kAgain));
}

TEST(Fates, UnrepeatableRunningTaskIsLost) {
  QueuedTask change = Changes(1, kA);
  change.running = true;
  EXPECT_THAT(DispositionsOf({change}, {.completed = 0, .started = 1}),
              ElementsAre(TaskDisposition::kLost));
  QueuedTask pure = Makes(1, kB, kA);
  pure.running = true;
  EXPECT_THAT(DispositionsOf({pure}, {.completed = 0, .started = 1}),
              ElementsAre(TaskDisposition::kAgain));
  // It is named as running, so it has not ended, whatever its completion value is.
  pure.at_fault = true;
  EXPECT_THAT(DispositionsOf({pure}, {.completed = 1, .started = 1}),
              ElementsAre(TaskDisposition::kLost));
}

// A failed launch leaves its output unchanged; later tasks have read that.
TEST(Fates, TaskOnFailedInputIsLostOrRunsAgain) {
  QueueProgress progress{.completed = 3, .started = 3};
  progress.undone.failed.insert(1);
  EXPECT_THAT(DispositionsOf({Makes(1, kB, kA), Makes(2, kC, kB), Changes(3, kC)}, progress),
              ElementsAre(TaskDisposition::kAgain, TaskDisposition::kLost, TaskDisposition::kLost));
  EXPECT_THAT(
      DispositionsOf({Makes(1, kB, kA), Makes(2, kC, kB), Makes(3, 4, kC)}, progress),
      ElementsAre(TaskDisposition::kAgain, TaskDisposition::kAgain, TaskDisposition::kAgain));
}

TEST(Fates, RecalledTaskNeverRan) {
  QueueProgress progress{.completed = 2, .started = 2};
  progress.undone.taken_out.insert(1);
  EXPECT_THAT(DispositionsOf({Changes(1, kA), Makes(2, kB, kC)}, progress),
              ElementsAre(TaskDisposition::kAgain, TaskDisposition::kAgain));
}

TEST(Fates, TaskCancelledTooLateIsDone) {
  QueuedTask cancelled = Makes(1, kB, kA);
  cancelled.cancelled = true;
  EXPECT_THAT(DispositionsOf({cancelled}, {.completed = 1, .started = 1}),
              ElementsAre(TaskDisposition::kDone));
  EXPECT_THAT(DispositionsOf({cancelled}, {.completed = 0, .started = 0}),
              ElementsAre(TaskDisposition::kAgain));
}

}  // namespace
}  // namespace stride::engine
