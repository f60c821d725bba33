#include "server/broker/compile_queue.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stride::broker {
namespace {

using ::testing::ElementsAre;

void Add(CompileQueue& queue, const std::string& tenant, int count) {
  for (int i = 0; i < count; ++i)
    queue.Add({.tenant = {tenant}, .key = absl::StrCat(tenant, i), .target = {}, .code = {}});
}

// Starts as many jobs as allowed.
std::vector<std::string> BeginAll(CompileQueue& queue) {
  std::vector<std::string> keys;
  while (queue.CanBegin()) keys.push_back(queue.Begin().key);
  return keys;
}

TEST(CompileQueueTest, SingleTenantUsesAllSlots) {
  CompileQueue queue(2, 3);
  EXPECT_FALSE(queue.CanBegin());
  Add(queue, "a", 5);
  EXPECT_THAT(BeginAll(queue), ElementsAre("a0", "a1"));
  EXPECT_EQ(queue.num_running(), 2);
  EXPECT_EQ(queue.num_waiting(), 3u);
  queue.End({"a"});
  EXPECT_THAT(BeginAll(queue), ElementsAre("a2"));
}

TEST(CompileQueueTest, TenantWithoutSlotStartsAtOnce) {
  CompileQueue queue(2, 2);
  Add(queue, "a", 100);
  EXPECT_THAT(BeginAll(queue), ElementsAre("a0", "a1"));
  Add(queue, "b", 2);
  EXPECT_THAT(BeginAll(queue), ElementsAre("b0"));
  Add(queue, "c", 2);
  Add(queue, "d", 2);
  EXPECT_THAT(BeginAll(queue), ElementsAre("c0")) << "so many more, and no more than that";
  queue.End({"b"});
  EXPECT_THAT(BeginAll(queue), ElementsAre("d0")) << "whose turn never was";
}

TEST(CompileQueueTest, TenantsAlternate) {
  CompileQueue queue(1, 0);
  Add(queue, "a", 3);
  Add(queue, "b", 2);
  Add(queue, "c", 1);
  std::vector<std::string> keys;
  while (queue.CanBegin()) {
    const CompileQueue::Job job = queue.Begin();
    EXPECT_FALSE(queue.CanBegin());
    keys.push_back(job.key);
    queue.End(job.tenant);
  }
  EXPECT_THAT(keys, ElementsAre("a0", "b0", "c0", "a1", "b1", "a2"));
  EXPECT_EQ(queue.num_running(), 0);
  EXPECT_EQ(queue.num_waiting(), 0u);
}

void AddLater(CompileQueue& queue, const std::string& tenant, int count) {
  for (int i = 0; i < count; ++i) {
    queue.Add({.tenant = {tenant},
               .key = absl::StrCat(tenant, "-later", i),
               .target = {},
               .code = {},
               .later = true});
  }
}

TEST(CompileQueueTest, BackgroundJobsRunLastAndOneAtATime) {
  CompileQueue queue(2, 2);
  AddLater(queue, "a", 3);
  AddLater(queue, "b", 1);
  EXPECT_EQ(queue.num_later({"a"}), 3u);
  Add(queue, "a", 3);
  EXPECT_THAT(BeginAll(queue), ElementsAre("a0", "a1")) << "all places are taken";
  queue.End({"a"});
  EXPECT_THAT(BeginAll(queue), ElementsAre("a2"));
  queue.End({"a"});
  EXPECT_THAT(BeginAll(queue), ElementsAre("b-later0")) << "whose turn never was";
  EXPECT_EQ(queue.num_running(), 2);
  queue.End({"b"}, /*later=*/true);
  EXPECT_THAT(BeginAll(queue), ElementsAre("a-later0"));
  EXPECT_EQ(queue.num_later({"a"}), 2u);
  Add(queue, "a", 1);
  EXPECT_THAT(BeginAll(queue), ElementsAre("a0")) << "it takes no place of those waited for";
}

TEST(CompileQueueTest, BackgroundJobsUseHalfOfManySlots) {
  CompileQueue queue(6, 2);
  AddLater(queue, "a", 5);
  EXPECT_THAT(BeginAll(queue), ElementsAre("a-later0", "a-later1", "a-later2"));
  queue.End({"a"}, /*later=*/true);
  EXPECT_THAT(BeginAll(queue), ElementsAre("a-later3"));
}

}  // namespace
}  // namespace stride::broker
