// An array of more bytes and more elements than 32 bits can count.

#include <fstream>

#include "gmock/gmock.h"
#include "stride/v1/array_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kGib = int64_t{1} << 30;
constexpr int64_t kSize = 4 * kGib + (16 << 20) + 5;
constexpr char kName[] = "tenants/default/arrays/large";

int64_t AvailableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  for (std::string unit; file >> key >> kib; std::getline(file, unit))
    if (key == "MemAvailable:") return kib << 10;
  return 0;
}

std::string Fetched(const Rpc& rpc, int64_t begin, int64_t end) {
  v1::FetchArrayRequest request;
  request.set_name(kName);
  request.mutable_range()->set_begin(begin);
  request.mutable_range()->set_end(end);
  const Outcome outcome = rpc.Call("ArrayService/FetchArray", request);
  EXPECT_TRUE(outcome.ok()) << outcome.ToString();
  std::string out;
  for (const std::string& reply : outcome.replies) {
    v1::FetchArrayResponse response;
    response.ParseFromString(reply);
    out += response.data();
  }
  return out;
}

TEST(LargeTest, OffsetsHave64Bits) {
  Daemon daemon({}, {.count = 1, .cpu_threads = 0});
  Client client = daemon.Connect();
  const int64_t available =
      OnCpu() ? AvailableBytes() : Must(client.ListDevices()).at(0).memory_total_bytes;
  if (available < 12 * kGib) GTEST_SKIP() << "needs 12 GiB of memory, has " << available / kGib;
  const Rpc rpc(daemon.address());
  const Operand large = Operand::Named(kName);
  client.Compute(Operation::Full({DataType::kUint8, {kSize}}, 3).ToName(kName));
  Must(client.Synchronize());
  Array array = client.Open(kName);
  EXPECT_EQ(Must(array.Spec()).shape, (std::vector<int64_t>{kSize}));

  // In place, over all of it.
  client.Compute(Operation::Ufunc("add", {large, Operand(2)}).ToExisting(array));
  Must(client.Synchronize());  // other connections do not wait for this one's commands
  EXPECT_EQ(Fetched(rpc, 4 * kGib - 2, 4 * kGib + 3), std::string(5, 5));
  EXPECT_EQ(Fetched(rpc, kSize - 3, kSize), std::string(3, 5));
  EXPECT_THAT(Get<uint64_t>(client, client.Reduce(Reduction::kSum, large)),
              ElementsAre(uint64_t{kSize} * 5));

  // A range by PutArray.
  v1::PutArrayRequest header, body;
  header.mutable_header()->set_parent("tenants/default");
  header.mutable_header()->set_array_id("large");
  header.mutable_header()->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  header.mutable_header()->mutable_spec()->add_shape(kSize);
  header.mutable_header()->set_overwrite(true);
  header.mutable_header()->mutable_range()->set_begin(4 * kGib + 100);
  header.mutable_header()->mutable_range()->set_end(4 * kGib + 103);
  body.set_data("abc");
  const Outcome put =
      rpc.Call("ArrayService/PutArray", {header.SerializeAsString(), body.SerializeAsString()});
  ASSERT_TRUE(put.ok()) << put.ToString();
  EXPECT_EQ(Fetched(rpc, 4 * kGib + 99, 4 * kGib + 104), "\5abc\5");
  EXPECT_EQ(Fetched(rpc, 100, 103), std::string(3, 5)) << "32 bits of the offset were lost";

  // A kernel, a view and a reduction that returns an index.
  KernelOptions poke;
  poke.code =
      R"(extern "C" __global__ void poke(unsigned char* x, long long n) { x[n - 1] = 77; x[1ll << 32] = 55; })";
  poke.entry = "poke";
  poke.arguments = {large, kSize};
  client.Kernel(poke);
  Must(client.Synchronize());
  EXPECT_EQ(Fetched(rpc, 4 * kGib, 4 * kGib + 1), "\x37");
  EXPECT_EQ(Fetched(rpc, kSize - 2, kSize), "\5M");
  EXPECT_EQ(Fetched(rpc, 0, 1), "\5");
  Array last = client.SliceOf(
      array,
      {.axis = 0, .start = kSize - 1, .stop = 4 * kGib - 1, .step = -(kSize - 1 - 4 * kGib)});
  EXPECT_THAT(Get<uint8_t>(client, last), ElementsAre(77, 55));
  EXPECT_THAT(Get<int64_t>(client, client.Reduce(Reduction::kArgmax, large)),
              ElementsAre(4 * kGib + 102));
}

}  // namespace
}  // namespace stride::testing
