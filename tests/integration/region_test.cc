// Memory shared with a daemon on the same host: used automatically if possible, with a fallback
// otherwise.

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "stride/mapped_array.h"
#include "stride/v1/array_service.pb.h"
#include "stride/v1/region_service.pb.h"
#include "stride/v1/session_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int kNotFound = 5, kInvalidArgument = 3, kResourceExhausted = 8, kUnimplemented = 12;

std::vector<std::byte> RandomBytes(size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> out(size);
  for (size_t i = 0; i + 8 <= size; i += 8) {
    const uint64_t value = random();
    std::memcpy(out.data() + i, &value, 8);
  }
  return out;
}

// Returns whether this process has mapped a region.
bool HasRegion() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:stride-region") != std::string::npos) return true;
  }
  return false;
}

ArraySpec Bytes(int64_t count) { return {DataType::kUint8, {count}}; }

void ExpectRoundTrip(Client& client, int64_t size, unsigned seed) {
  SCOPED_TRACE(size);
  const auto data = RandomBytes(size, seed);
  Array array = Must(client.PutBytes(data, Bytes(size)));
  std::vector<std::byte> out(size);
  Must(client.FetchBytes(array, out, DataType::kUint8));
  EXPECT_TRUE(out == data);
}

TEST(RegionTest, LargeArraysUseTheRegion) {
  Daemon daemon;
  Client client = daemon.Connect();
  ExpectRoundTrip(client, kMiB - 1, 1);
  EXPECT_FALSE(HasRegion()) << "too small to pay";
  for (int64_t size : {kMiB, kMiB + 1, 5 * kMiB + 3, 16 * kMiB, 37 * kMiB + 11, 150 * kMiB + 77})
    ExpectRoundTrip(client, size, static_cast<unsigned>(size));
  EXPECT_TRUE(HasRegion());
  for (int64_t size : {256 * 1024 - 1, 256 * 1024, 300 * 1024 + 5})
    ExpectRoundTrip(client, size, 3);
  // A view with gaps, and an array that a task wrote.
  const auto numbers = Iota<float>(4 * kMiB);
  Array array = Must(client.Put(numbers, {1024, 4096}));
  Array transposed = client.Transpose(client.Ufunc("negative", {array}));
  const auto got = Must(client.Fetch<float>(transposed));
  for (int64_t i = 0; i < 4096; i += 17) {
    for (int64_t j = 0; j < 1024; j += 3) ASSERT_EQ(got[i * 1024 + j], -numbers[j * 4096 + i]);
  }
}

std::string TcpAddressOf(const Daemon& daemon) {
  const std::string log = daemon.Log();
  const size_t at = log.find("tcp:127.0.0.1:");
  EXPECT_NE(at, std::string::npos) << log;
  return log.substr(at, log.find_first_not_of("0123456789", at + 14) - at);
}

void WriteNegative(Client& client, const Array& array) {
  client.Compute(Operation::Ufunc("negative", {array}).ToExisting(array));
}

TEST(MappedArrayTest, MappedMemoryIsTheArray) {
  Daemon daemon;
  Client client = daemon.Connect();
  const auto numbers = Iota<float>(10 * kMiB);
  Array array = client.Ufunc("negative", {Must(client.Put(numbers, {1024, 10240}))});
  MappedArray mapped = Must(MappedArray::Map(array));
  EXPECT_EQ(mapped.strides(), (std::vector<int64_t>{40960, 4}));
  EXPECT_GE(mapped.memory_bytes(), 40 * kMiB);
  ASSERT_EQ(mapped.device_kind(), DeviceKind());
  if (mapped.device_kind() != "cpu") {
    EXPECT_EQ(mapped.data(), nullptr);
    EXPECT_GE(mapped.descriptor(), 0);
    return;
  }
  const auto elements = mapped.as<float>(numbers.size());
  for (size_t i = 0; i < numbers.size(); i += 101) ASSERT_EQ(elements[i], -numbers[i]);
  // The service reads it, and does not write it.
  const auto got = Must(client.Fetch<float>(client.Ufunc("add", {array, array})));
  EXPECT_EQ(got[77], -2 * numbers[77]);
  WriteNegative(client, array);
  Error refused = MustFail(client.Fetch<float>(array));
  EXPECT_TRUE(IsError(refused, Code::kFailedPrecondition, "WRONG_STATE"));
  EXPECT_EQ(elements[77], -numbers[77]);
  elements[77] = 5;  // belongs to this process
}

TEST(MappedArrayTest, WriteAfterUnmapSucceeds) {
  Daemon daemon;
  Client client = daemon.Connect();
  Array array = Must(client.Put(Iota<float>(1000), {1000}));
  for (int i = 0; i < 20; ++i) {
    { MappedArray mapped = Must(MappedArray::Map(array)); }
    WriteNegative(client, array);
    Must(array.Wait());
  }
  EXPECT_EQ(Must(client.Fetch<float>(array))[3], 3.0f);
}

TEST(MappedArrayTest, HandedOverMemoryOutlivesItsClient) {
  Daemon daemon;
  std::optional<MappedArray> mapped;
  {
    Client client = daemon.Connect();
    Array array = Must(client.Put(Iota<float>(1000), {1000}));
    mapped.emplace(Must(MappedArray::Map(array, {.hand_over = true})));
    EXPECT_TRUE(IsError(MustFail(client.Fetch<float>(array)), Code::kNotFound, "ARRAY_NOT_FOUND"));
  }
  if (mapped->data() == nullptr) return;
  const auto elements = mapped->as<float>(1000);
  elements[5] = 7;
  EXPECT_EQ(elements[5], 7.0f);
  EXPECT_EQ(elements[999], 999.0f);
}

TEST(MappedArrayTest, ReplacedDaemonExposesNoOtherArray) {
  Daemon daemon({"--supervise"});
  Client client = daemon.Connect();
  const auto numbers = Iota<float>(1000);
  Array array = Must(client.Put(numbers, {1000}));
  MappedArray mapped = Must(MappedArray::Map(array));
  const int times = daemon.TimesReady();
  kill(daemon.ServingPid(), SIGKILL);
  ASSERT_TRUE(daemon.WaitReady(times + 1, std::chrono::seconds(100))) << daemon.Log();
  ASSERT_TRUE(Eventually([&] { return bool(client.Fetch<float>(array)); }));
  EXPECT_EQ(Must(client.Fetch<float>(array)), numbers);
  if (mapped.data() == nullptr) return;
  EXPECT_EQ(mapped.as<float>(1000)[999], 999.0f);
  const std::vector<float> pattern(600, 77.25f);
  std::vector<Array> others;
  for (int i = 0; i < 100; ++i) others.push_back(Must(client.Put(pattern, {600})));
  const auto* memory = reinterpret_cast<const float*>(mapped.data() - mapped.offset());
  EXPECT_EQ(std::count(memory, memory + mapped.memory_bytes() / 4, 77.25f), 0);
  // The new daemon knows no export.
  WriteNegative(client, array);
  EXPECT_EQ(Must(client.Fetch<float>(array))[3], -3.0f);
}

TEST(MappedArrayTest, TcpClientsCannotMap) {
  Daemon daemon({"--listen=tcp:127.0.0.1:0"});
  Client client = Must(Client::Connect({.address = TcpAddressOf(daemon)}));
  Array array = Must(client.Put(Iota<float>(1000), {1000}));
  Error error = MustFail(MappedArray::Map(array));
  EXPECT_TRUE(IsError(error, Code::kFailedPrecondition, "WRONG_STATE"));
  EXPECT_THAT(error.message, ::testing::HasSubstr("Unix socket"));
}

TEST(RegionTest, TcpClientsGetNoRegion) {
  Daemon daemon({"--listen=tcp:127.0.0.1:0"});
  Client client = Must(Client::Connect({.address = TcpAddressOf(daemon)}));
  ExpectRoundTrip(client, 5 * kMiB, 1);
  EXPECT_FALSE(HasRegion());
  EXPECT_TRUE(IsError(MustFail(client.AllocateShared(4096)), Code::kUnimplemented, ""));
}

TEST(RegionTest, DaemonWithoutRegionsIsSupported) {
  Daemon daemon({"--region-bytes=0"});
  Client client = daemon.Connect();
  ExpectRoundTrip(client, 5 * kMiB, 1);
  EXPECT_FALSE(HasRegion());
  EXPECT_TRUE(
      IsError(MustFail(client.AllocateShared(4096)), Code::kUnimplemented, "NOT_IMPLEMENTED"));
}

TEST(RegionTest, TooLittleMemoryIsNoFailure) {
  Daemon daemon({"--region-bytes=1048576"});
  Client client = daemon.Connect();
  ExpectRoundTrip(client, 20 * kMiB, 1);
  EXPECT_FALSE(HasRegion());
  EXPECT_TRUE(IsError(MustFail(client.AllocateShared(kMiB)), Code::kResourceExhausted, "QUOTA"));
  Must(client.AllocateShared(kMiB / 2));
}

TEST(RegionTest, ManyConnectionsShareASmallRegion) {
  Daemon daemon;
  Client client = Must(Client::Connect({.address = daemon.address(), .num_bulk_channels = 40}));
  ExpectRoundTrip(client, 400 * kMiB + 5, 1);
}

TEST(RegionTest, ManyConcurrentTransfers) {
  Daemon daemon;
  Client client = daemon.Connect();
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) ExpectRoundTrip(client, 3 * kMiB + i * 1001, i);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(RegionTest, ClientArraysInSharedMemory) {
  Daemon daemon;
  SharedBuffer kept;
  {
    Client client = daemon.Connect();
    SharedBuffer buffer = Must(client.AllocateShared(24 * kMiB));
    ASSERT_GE(buffer.size(), static_cast<size_t>(24 * kMiB));
    auto numbers = buffer.as<int32_t>(6 * kMiB);
    EXPECT_EQ(numbers[12345], 0);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i * 7);
    // Only the second half, and at an odd offset.
    Array array =
        Must(client.Put(std::span<const int32_t>(numbers).subspan(3 * kMiB + 1), {3 * kMiB - 1}));
    auto first = numbers.subspan(1, 3 * kMiB - 1);
    Must(client.FetchInto(array, first));
    for (size_t i = 0; i < first.size(); ++i)
      ASSERT_EQ(first[i], static_cast<int32_t>((i + 3 * kMiB + 1) * 7));
    EXPECT_EQ(numbers[0], 0);
    { SharedBuffer gone = Must(client.AllocateShared(kMiB)); }
    kept = std::move(buffer);
  }
  // The client has disconnected; its bytes remain.
  EXPECT_EQ(kept.as<int32_t>(2)[1], static_cast<int32_t>((3 * kMiB + 1) * 7));
  kept.as<int32_t>(1)[0] = 5;
}

TEST(RegionTest, ReplacedDaemonCreatesNewRegion) {
  Daemon daemon({"--supervise"});
  Client client = daemon.Connect();
  const auto data = RandomBytes(9 * kMiB, 1);
  Array array = Must(client.PutBytes(data, Bytes(9 * kMiB)));
  SharedBuffer buffer = Must(client.AllocateShared(9 * kMiB));
  for (int round = 0; round < 2; ++round) {
    const int times = daemon.TimesReady();
    kill(daemon.ServingPid(), SIGKILL);
    ASSERT_TRUE(daemon.WaitReady(times + 1, std::chrono::seconds(100))) << daemon.Log();
    // Its region is no longer known: bytes travel in messages, then through another region.
    std::vector<std::byte> out(9 * kMiB);
    ASSERT_TRUE(Eventually([&] { return client.FetchBytes(array, out, DataType::kUint8).ok(); }));
    EXPECT_TRUE(out == data);
    std::span<std::byte> shared(buffer.data(), 9 * kMiB);
    Must(client.FetchBytes(array, shared, DataType::kUint8));
    EXPECT_TRUE(std::equal(shared.begin(), shared.end(), data.begin()));
    ExpectRoundTrip(client, 4 * kMiB, 2);
  }
}

TEST(RegionTest, WorkerDeathsDuringTransfers) {
  Daemon daemon({"--supervise"});
  Client client = daemon.Connect();
  const auto data = RandomBytes(48 * kMiB, 1);
  std::atomic<bool> stop = false;
  std::thread killer([&] {
    for (int i = 0; i < 4; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      const int times = daemon.TimesReady();
      kill(daemon.ServingPid(), SIGKILL);
      daemon.WaitReady(times + 1, std::chrono::seconds(100));
    }
    stop = true;
  });
  int done = 0;
  while (!stop || done == 0) {
    auto array = client.PutBytes(data, Bytes(48 * kMiB));
    if (!array) continue;
    std::vector<std::byte> out(48 * kMiB);
    if (!client.FetchBytes(*array, out, DataType::kUint8)) continue;
    ++done;
    ASSERT_TRUE(out == data);
  }
  killer.join();
}

TEST(RegionTest, CancelledTransferCorruptsNoOther) {
  Daemon daemon;
  Client client = daemon.Connect();
  const auto zeros = std::vector<std::byte>(64 * kMiB);
  Array array = Must(client.PutBytes(zeros, Bytes(64 * kMiB)));
  std::vector<std::byte> out(64 * kMiB);
  for (int round = 0; round < 10; ++round) {
    TransferOptions options;
    options.cancellation.emplace();
    auto token = *options.cancellation;
    options.progress = [token](int64_t) mutable { token.Cancel(); };
    EXPECT_FALSE(client.FetchBytes(array, out, DataType::kUint8, options).ok());
    // The daemon's late writes of it must not reach this array.
    ExpectRoundTrip(client, 8 * kMiB, round);
  }
}

// --- the wire itself ---

class RegionCallTest : public ::testing::Test {
 protected:
  RegionCallTest() : daemon_({"--trust-tenant-header", "--region-bytes=8388608"}) {}

  std::string NewSession(const Rpc& rpc) {
    v1::CreateSessionRequest request;
    return rpc.Get<v1::CreateSessionResponse>("SessionService/CreateSession", request)
        .session()
        .name();
  }
  static v1::CreateRegionRequest RegionRequest(const std::string& session, int64_t size) {
    v1::CreateRegionRequest request;
    request.set_parent(session);
    request.set_size_bytes(size);
    return request;
  }
  v1::CreateRegionResponse NewRegion(const Rpc& rpc, const std::string& session, int64_t size) {
    return rpc.Get<v1::CreateRegionResponse>("RegionService/CreateRegion",
                                             RegionRequest(session, size));
  }
  static v1::PutArrayRequest Header(const std::string& session, const std::string& region,
                                    int64_t bytes) {
    v1::PutArrayRequest request;
    auto* header = request.mutable_header();
    header->set_parent(session);
    header->set_array_id("1");
    header->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
    header->mutable_spec()->add_shape(bytes);
    header->set_region(region);
    return request;
  }
  static v1::PutArrayRequest Chunk(int64_t offset, int64_t size) {
    v1::PutArrayRequest request;
    request.mutable_chunk()->set_offset(offset);
    request.mutable_chunk()->set_size(size);
    return request;
  }
  static Outcome Put(const Rpc& rpc, const std::vector<v1::PutArrayRequest>& messages) {
    std::vector<std::string> bytes;
    for (const auto& message : messages) bytes.push_back(message.SerializeAsString());
    return rpc.Call("ArrayService/PutArray", bytes);
  }
  int Connect(const std::string& path) {
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strncpy(name.sun_path, path.c_str(), sizeof(name.sun_path) - 1);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    return fd;
  }

  Daemon daemon_;
};

TEST_F(RegionCallTest, InvalidMessagesAndRangesNameTheirField) {
  const Rpc rpc(daemon_.address(), "a");
  const std::string session = NewSession(rpc);
  const auto made = NewRegion(rpc, session, 8192);
  const std::string region = made.region().name();
  EXPECT_EQ(made.region().size_bytes(), 8192);
  EXPECT_EQ(made.socket_path(), daemon_.address().substr(5) + ".regions");
  v1::PutArrayRequest data;
  data.set_data("abc");
  const std::pair<std::vector<v1::PutArrayRequest>, std::string> wrong[] = {
      {{Header(session, region, 100), data}, "data"},
      {{Header(session, "", 100), Chunk(0, 100)}, "chunk"},
      {{Header(session, region, 100), Chunk(8192, 1)}, "chunk"},
      {{Header(session, region, 100), Chunk(-1, 5)}, "chunk"},
      {{Header(session, region, 100), Chunk(0, 101)}, "chunk"},
      {{Header(session, region, 100), Chunk(0, 99)}, "chunk"},
      {{Header(session, "nonsense", 100), Chunk(0, 100)}, "header.region"}};
  for (const auto& [messages, field] : wrong) {
    Outcome outcome = Put(rpc, messages);
    EXPECT_EQ(outcome.code, kInvalidArgument) << outcome.ToString();
    ASSERT_EQ(outcome.violations.size(), 1u) << outcome.ToString();
    EXPECT_EQ(outcome.violations[0].field, field) << outcome.ToString();
  }
  EXPECT_TRUE(Put(rpc, {Header(session, region, 100), Chunk(7, 60), Chunk(8000, 40)}).ok());
  v1::FetchArrayRequest fetch;
  fetch.set_name(session + "/arrays/1");
  fetch.set_region(region);
  fetch.set_region_offset(8093);
  Outcome outside = rpc.Call("ArrayService/FetchArray", fetch);
  EXPECT_EQ(outside.code, kInvalidArgument);
  EXPECT_EQ(outside.violations.at(0).field, "region_offset");
  fetch.set_region_offset(0);
  fetch.set_chunk_bytes((64 << 20) + 1);
  EXPECT_EQ(rpc.Call("ArrayService/FetchArray", fetch).violations.at(0).field, "chunk_bytes");
  fetch.set_chunk_bytes(33);
  Outcome fetched = rpc.Call("ArrayService/FetchArray", fetch);
  ASSERT_TRUE(fetched.ok()) << fetched.ToString();
  ASSERT_EQ(fetched.replies.size(), 5u);  // the array, then chunks
  v1::FetchArrayResponse last;
  last.ParseFromString(fetched.replies.back());
  EXPECT_EQ(last.chunk().offset(), 99);
  EXPECT_EQ(last.chunk().size(), 1);
}

TEST_F(RegionCallTest, RegionsOfOthersAreNotFound) {
  const Rpc a(daemon_.address(), "a"), b(daemon_.address(), "b");
  const std::string mine = NewSession(a), second = NewSession(a), theirs = NewSession(b);
  const std::string region = NewRegion(a, mine, 4096).region().name();
  EXPECT_EQ(Put(a, {Header(second, region, 100), Chunk(0, 100)}).code, kNotFound);
  Outcome foreign = Put(b, {Header(theirs, region, 100), Chunk(0, 100)});
  EXPECT_EQ(foreign.code, kNotFound) << foreign.ToString();
  EXPECT_EQ(foreign.resource, region);
  v1::DeleteRegionRequest remove;
  remove.set_name(region);
  EXPECT_EQ(b.Call("RegionService/DeleteRegion", remove).code, kNotFound);
  EXPECT_EQ(b.Call("RegionService/CreateRegion", RegionRequest(mine, 4096)).code, kNotFound);
  EXPECT_TRUE(a.Call("RegionService/DeleteRegion", remove).ok());
  EXPECT_EQ(a.Call("RegionService/DeleteRegion", remove).code, kNotFound);
}

TEST_F(RegionCallTest, QuotasRefuseBeforeMemoryIsTaken) {
  const Rpc a(daemon_.address(), "a");
  const std::string session = NewSession(a);
  Outcome over = a.Call("RegionService/CreateRegion", RegionRequest(session, 4 * kMiB + 1));
  EXPECT_EQ(over.code, kResourceExhausted) << over.ToString();
  EXPECT_EQ(over.reason, "QUOTA");
  EXPECT_EQ(over.metadata["quota"], "region-bytes");
  EXPECT_TRUE(over.has_retry_delay);
  EXPECT_EQ(a.Call("RegionService/CreateRegion", RegionRequest(session, 0)).code, kInvalidArgument);
  EXPECT_TRUE(a.Call("RegionService/CreateRegion", RegionRequest(session, 4 * kMiB)).ok());
}

TEST_F(RegionCallTest, SocketFloodBlocksNoOtherClient) {
  const Rpc a(daemon_.address(), "a");
  const std::string path = NewRegion(a, NewSession(a), 4096).socket_path();
  std::vector<int> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(Connect(path));
    if (i % 3 == 0) (void)!send(silent.back(), "nonsense", 8, MSG_NOSIGNAL);
  }
  Client client = daemon_.Connect();
  Must(client.AllocateShared(kMiB));
  ExpectRoundTrip(client, 3 * kMiB, 1);
  for (int fd : silent) close(fd);
}

}  // namespace
}  // namespace stride::testing
