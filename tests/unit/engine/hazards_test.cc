#include "server/engine/scheduling/hazards.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stride::engine {
namespace {

using ::testing::UnorderedElementsAreArray;

class HazardsTest : public ::testing::Test {
 protected:
  // Unfinished tasks and their buffers reference each other.
  void TearDown() override {
    for (const auto& task : entered_) {
      if (task->state != TaskState::kDone) End(*task);
    }
  }
  std::shared_ptr<store::Buffer> NewBuffer() {
    return std::make_shared<store::Buffer>(TenantId{"t"}, 8, reclaimer_);
  }
  std::shared_ptr<Task> Entered(Uses uses) {
    auto task = std::make_shared<Task>();
    task->order.accepted = ++order_;
    task->uses = std::move(uses);
    RegisterAccesses(task);
    entered_.push_back(task);
    return task;
  }
  std::shared_ptr<Task> Reader(const std::shared_ptr<store::Buffer>& buffer, int times = 1) {
    return Entered(Uses(times, Use{.buffer = buffer, .read = true}));
  }
  std::shared_ptr<Task> Writer(const std::shared_ptr<store::Buffer>& buffer) {
    return Entered({Use{.buffer = buffer, .write = true}});
  }
  static TaskList End(Task& task) {
    task.state = TaskState::kDone;
    TaskList freed = ReleaseAccesses(task);
    task.uses.clear();
    return freed;
  }

  std::shared_ptr<store::Reclaimer> reclaimer_ = std::make_shared<store::Reclaimer>();
  uint64_t order_ = 0;
  std::vector<std::shared_ptr<Task>> entered_;
};

// Thousands may read one array at a time: no task searches for itself in the list.
TEST_F(HazardsTest, ReadersEndInAnyOrder) {
  auto shared = NewBuffer(), own = NewBuffer();
  std::vector<std::shared_ptr<Task>> readers;
  for (int i = 0; i < 200; ++i) {
    if (i % 3 == 0) {
      readers.push_back(
          Entered({Use{.buffer = own, .read = true}, Use{.buffer = shared, .read = true},
                   Use{.buffer = shared, .read = true}}));
    } else {
      readers.push_back(Reader(shared, 1 + i % 2));
    }
  }
  std::mt19937 random(7);
  std::shuffle(readers.begin(), readers.end(), random);
  while (readers.size() > 50) {
    EXPECT_TRUE(End(*readers.back()).empty());
    readers.pop_back();
  }
  auto writer = Writer(shared);
  EXPECT_THAT(std::vector<std::shared_ptr<Task>>(writer->order.pending.begin(),
                                                 writer->order.pending.end()),
              UnorderedElementsAreArray(readers));
  EXPECT_TRUE(shared->readers.empty());
  for (size_t i = 0; i + 1 < readers.size(); ++i) End(*readers[i]);
  EXPECT_EQ(writer->order.pending.size(), 1u);
  EXPECT_EQ(End(*readers.back()).size(), 1u);
  EXPECT_TRUE(writer->order.pending.empty());
  EXPECT_TRUE(own->readers.empty());
}

// A write starts a new list of readers: earlier readers must not appear in it.
TEST_F(HazardsTest, WriteSeparatesEarlierAndLaterReaders) {
  auto buffer = NewBuffer();
  auto before = Reader(buffer);
  auto writer = Writer(buffer);
  auto after = Reader(buffer);
  End(*before);
  ASSERT_EQ(buffer->readers.size(), 1u);
  EXPECT_EQ(buffer->readers[0], after);
  End(*writer);
  End(*after);
  EXPECT_TRUE(buffer->readers.empty());
}

// A writer that ends early passes the readers before it to the next writer, and these end normally.
TEST_F(HazardsTest, ReadersBeforeCancelledWriteBlockTheNextWriter) {
  auto buffer = NewBuffer();
  auto first = Reader(buffer, 2), second = Reader(buffer);
  auto cancelled = Writer(buffer);
  End(*cancelled);
  EXPECT_EQ(buffer->readers.size(), 2u);
  End(*first);
  ASSERT_EQ(buffer->readers.size(), 1u);
  auto next = Writer(buffer);
  ASSERT_EQ(next->order.pending.size(), 1u);
  EXPECT_EQ(next->order.pending[0], second);
  EXPECT_EQ(End(*second).size(), 1u);
}

// A loop reads its input until it ends. A later writer waits for the loop, and the loop's pieces do
// not wait for that writer.
TEST_F(HazardsTest, PiecesOfALoopDoNotOrderItsInputs) {
  auto input = NewBuffer();
  auto loop = Reader(input);
  auto writer = Writer(input);
  auto piece = Entered({Use{.buffer = input, .read = true, .held = true}});
  EXPECT_TRUE(piece->order.pending.empty());
  EXPECT_EQ(writer->order.pending.size(), 1u);
  EXPECT_TRUE(End(*piece).empty());
  EXPECT_EQ(input->writer, writer);
  EXPECT_EQ(writer->order.pending.size(), 1u);
  EXPECT_EQ(End(*loop).size(), 1u);
  EXPECT_TRUE(writer->order.pending.empty());
  // A piece that would write the input is detected, and the input's session loses no write.
  auto writing = Entered({Use{.buffer = input, .write = true, .held = true}});
  EXPECT_TRUE(WritesHeld(*writing));
  EXPECT_FALSE(NeedsOutputOf(*piece, *writing));
  EXPECT_EQ(input->writer, writer);
}

}  // namespace
}  // namespace stride::engine
