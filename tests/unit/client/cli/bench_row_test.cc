#include <gtest/gtest.h>

#include "client/cli/bench/row.h"

namespace stride::cli {
namespace {

TEST(SamplesTest, QuantilesAreSamples) {
  Samples samples;
  for (int i = 200; i > 0; --i) samples.Add(i);
  EXPECT_EQ(samples.median(), 100);
  EXPECT_EQ(samples.p99(), 198);
  EXPECT_EQ(samples.min(), 1);
  samples.Add(0.5);  // after sorting
  EXPECT_EQ(samples.min(), 0.5);
  EXPECT_EQ(samples.count(), 201u);
}

TEST(SamplesTest, EmptyAndSingleSamples) {
  EXPECT_EQ(Samples().p99(), 0);
  const Samples one({3.0});
  EXPECT_EQ(one.median(), 3);
  EXPECT_EQ(one.p99(), 3);
}

TEST(JainIndexTest, IndexOfEqualAndUnequalShares) {
  EXPECT_DOUBLE_EQ(JainIndex({2, 2, 2, 2}), 1);
  EXPECT_DOUBLE_EQ(JainIndex({1, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(JainIndex({}), 1);
  EXPECT_NEAR(JainIndex({1, 1.05}), 0.9994, 1e-4);
}

TEST(BenchRowTest, JsonHasTheFieldsOfTheReport) {
  const BenchRow row{.id = "clients/10/cpu:0",
                     .what = "ten \"clients\"",
                     .ours = Samples({0.002, 0.004, 0.003}),
                     .baseline_name = "1 client",
                     .baseline = Samples({0.001}),
                     .bytes = 8,
                     .more = {{"calls_per_second", 500}}};
  EXPECT_EQ(ToJson(row).text(),
            R"({"id":"clients/10/cpu:0","what":"ten \"clients\"",)"
            R"("ours":{"median_s":0.003,"p99_s":0.004,"min_s":0.002,"count":3},"bytes":8,)"
            R"("baseline_name":"1 client",)"
            R"("baseline":{"median_s":0.001,"p99_s":0.001,"min_s":0.001,"count":1},)"
            R"("ratio":3,"calls_per_second":500})");
}

TEST(BenchRowTest, TextHasRatioAndRateIfKnown) {
  BenchRow row{.id = "x", .what = "a copy", .ours = Samples({0.5}), .bytes = 1 << 30};
  EXPECT_NE(ToText(row).find("2.00 GiB/s"), std::string::npos);
  EXPECT_NE(ToText(row).find("500.00 ms"), std::string::npos);
  EXPECT_EQ(ToText(row).find("memcpy"), std::string::npos);
  row.baseline_name = "memcpy";
  row.baseline = Samples({0.25});
  EXPECT_NE(ToText(row).find("2.00  memcpy, 250.00 ms"), std::string::npos);
}

}  // namespace
}  // namespace stride::cli
