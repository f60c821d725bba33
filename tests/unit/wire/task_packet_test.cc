#include "server/wire/task_packet.h"

#include "gtest/gtest.h"

namespace stride::wire {
namespace {

Task Fill(uint64_t sequence, uint64_t size) {
  Task task;
  task.set_sequence(sequence);
  task.set_label("fill");
  task.mutable_zero_fill()->set_arena(7);
  task.mutable_zero_fill()->set_size(size);
  return task;
}

TEST(TaskPacketTest, PacketEqualsSubmitOfItsTasks) {
  TaskPacket packet;
  EXPECT_TRUE(packet.empty());
  Submit submit;
  for (uint64_t sequence : {1, 2, 300}) {
    *submit.add_tasks() = Fill(sequence, 1000 * sequence);
    packet.Add(submit.tasks().Get(submit.tasks_size() - 1));
  }
  // A task whose length takes several bytes.
  *submit.add_tasks() = Fill(301, 1);
  submit.mutable_tasks(3)->set_label(std::string(20000, 'x'));
  packet.Add(submit.tasks(3));
  EXPECT_EQ(packet.bytes(), submit.SerializeAsString());
  EXPECT_EQ(packet.Decode().SerializeAsString(), submit.SerializeAsString());
}

TEST(TaskPacketTest, AnyRangeOfTasksIsACommand) {
  TaskPacket packet;
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) packet.Add(Fill(sequence, 64));
  const size_t begin = packet.tasks()[1].begin, end = packet.tasks()[2].end;
  std::string bytes = TaskPacket::CommandHeader(end - begin);
  bytes.append(packet.bytes().substr(begin, end - begin));
  Command command;
  ASSERT_TRUE(command.ParseFromString(bytes));
  ASSERT_EQ(command.submit().tasks_size(), 2);
  EXPECT_EQ(command.submit().tasks(0).sequence(), 2u);
  EXPECT_EQ(command.submit().tasks(1).sequence(), 3u);
}

TEST(TaskPacketTest, IsEmptyAfterClear) {
  TaskPacket packet;
  packet.Add(Fill(1, 64));
  packet.Clear();
  EXPECT_TRUE(packet.empty());
  packet.Add(Fill(2, 64));
  ASSERT_EQ(packet.Decode().tasks_size(), 1);
  EXPECT_EQ(packet.Decode().tasks(0).sequence(), 2u);
}

}  // namespace
}  // namespace stride::wire
