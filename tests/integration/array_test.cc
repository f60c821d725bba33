// Arrays through a real daemon: the bytes returned are the bytes sent, for any type, shape, view
// and path.

#include <complex>
#include <cstring>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "stride/v1/array_service.pb.h"
#include "stride/v1/session_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"

namespace stride::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ArrayTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { daemon_ = std::make_unique<Daemon>(); }
  static void TearDownTestSuite() { daemon_.reset(); }

  static inline std::unique_ptr<Daemon> daemon_;
  Client client_ = daemon_->Connect();
};

std::vector<std::byte> RandomBytes(size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> out(size);
  for (auto& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

std::vector<std::byte> Fetched(Client& client, const Array& array) {
  const ArraySpec spec = Must(array.Spec());
  std::vector<std::byte> out(SizeBytes(spec).value());
  Must(client.FetchBytes(array, out, spec.data_type));
  return out;
}

TEST_F(ArrayTest, EveryTypeAndShapeRoundTrips) {
  const std::vector<std::vector<int64_t>> shapes = {{}, {0}, {3, 0, 2}, {1}, {7}, {2, 3, 5}};
  for (int type = 1; type <= 15; ++type) {
    for (const auto& shape : shapes) {
      const ArraySpec spec{static_cast<DataType>(type), shape};
      SCOPED_TRACE(ToString(spec));
      auto data = RandomBytes(SizeBytes(spec).value(), type);
      if (spec.data_type == DataType::kBool) {
        for (auto& byte : data) byte &= std::byte{1};
      }
      Array array = Must(client_.PutBytes(data, spec));
      EXPECT_EQ(Must(array.Spec()), spec);
      EXPECT_EQ(Fetched(client_, array), data);
      const ArrayInfo info = Must(array.Describe());
      EXPECT_EQ(info.state, ArrayInfo::State::kReady);
      EXPECT_EQ(info.spec, spec);
      EXPECT_EQ(info.size_bytes, static_cast<int64_t>(data.size()));
    }
  }
}

TEST_F(ArrayTest, LargeArrayThroughManyStreams) {
  // An odd size, over several of the client's parallel ranges.
  const int64_t count = (int64_t{40} << 20) / 8 + 13;
  const auto data = Iota<int64_t>(count, 7);
  Array array = Must(client_.Put(data, {count}));
  EXPECT_EQ(Get<int64_t>(client_, array), data);
}

TEST_F(ArrayTest, ParallelRangesInAnyOrder) {
  const Rpc rpc(daemon_->address());
  const auto data = RandomBytes(1 << 20, 1);
  const std::string bytes(reinterpret_cast<const char*>(data.data()), data.size());
  constexpr int kRanges = 16;
  const int64_t step = bytes.size() / kRanges;
  std::vector<std::thread> threads;
  std::vector<Outcome> outcomes(kRanges);
  for (int i = kRanges - 1; i >= 0; --i) {
    threads.emplace_back([&, i] {
      v1::PutArrayRequest header, body;
      header.mutable_header()->set_parent("tenants/default");
      header.mutable_header()->set_array_id("ranges");
      header.mutable_header()->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
      header.mutable_header()->mutable_spec()->add_shape(bytes.size());
      header.mutable_header()->mutable_range()->set_begin(i * step);
      header.mutable_header()->mutable_range()->set_end((i + 1) * step);
      body.set_data(bytes.substr(i * step, step));
      outcomes[i] =
          rpc.Call("ArrayService/PutArray", {header.SerializeAsString(), body.SerializeAsString()});
    });
  }
  for (auto& thread : threads) thread.join();
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok()) << outcome.ToString();

  Array array = client_.Open("tenants/default/arrays/ranges");
  EXPECT_EQ(Fetched(client_, array), data);
  // And downloaded in ranges with arbitrary borders.
  std::string whole(bytes.size(), '\0');
  const std::vector<int64_t> borders = {0, 1, 4095, 65537, 300001, 1 << 20};
  threads.clear();
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    threads.emplace_back([&, i] {
      v1::FetchArrayRequest request;
      request.set_name(array.name());
      request.mutable_range()->set_begin(borders[i]);
      request.mutable_range()->set_end(borders[i + 1]);
      request.set_chunk_bytes(10007);
      int64_t at = borders[i];
      for (const std::string& reply : rpc.Call("ArrayService/FetchArray", request).replies) {
        v1::FetchArrayResponse response;
        response.ParseFromString(reply);
        EXPECT_LE(response.data().size(), 10007u);
        std::memcpy(whole.data() + at, response.data().data(), response.data().size());
        at += response.data().size();
      }
      EXPECT_EQ(at, borders[i + 1]);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(whole, bytes);
  Must(client_.DeleteArray(array.name()));
}

v1::PutArrayRequest UploadHeader(const std::string& id, int64_t size, int64_t begin, int64_t end) {
  v1::PutArrayRequest request;
  auto* header = request.mutable_header();
  header->set_parent("tenants/default");
  header->set_array_id(id);
  header->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  header->mutable_spec()->add_shape(size);
  header->mutable_range()->set_begin(begin);
  header->mutable_range()->set_end(end);
  return request;
}

v1::PutArrayRequest UploadBody(std::string data) {
  v1::PutArrayRequest request;
  request.set_data(std::move(data));
  return request;
}

TEST_F(ArrayTest, InterruptedUploadResumes) {
  const Rpc rpc(daemon_->address());
  const std::string bytes(100000, 'a');
  // Ends 40,000 bytes too early: the bytes received are kept.
  auto broken = rpc.Call("ArrayService/PutArray",
                         {UploadHeader("broken", 100000, 0, 100000).SerializeAsString(),
                          UploadBody(bytes.substr(0, 60000)).SerializeAsString()});
  EXPECT_EQ(broken.code, 3) << broken.ToString();
  EXPECT_EQ(broken.reason, "SIZE_MISMATCH");

  v1::GetArrayRequest get;
  get.set_name("tenants/default/arrays/broken");
  auto array = rpc.Get<v1::GetArrayResponse>("ArrayService/GetArray", get).array();
  EXPECT_EQ(array.state(), v1::Array::STATE_PENDING);
  ASSERT_EQ(array.received_size(), 1);
  EXPECT_EQ(array.received(0).begin(), 0);
  EXPECT_EQ(array.received(0).end(), 60000);

  v1::PutArrayResponse done;
  done.ParseFromString(rpc.Call("ArrayService/PutArray",
                                {UploadHeader("broken", 100000, 60000, 100000).SerializeAsString(),
                                 UploadBody(std::string(40000, 'b')).SerializeAsString()})
                           .replies.at(0));
  EXPECT_EQ(done.array().state(), v1::Array::STATE_READY);
  const auto fetched = Fetched(client_, client_.Open(get.name()));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(fetched.data()), fetched.size()),
            std::string(60000, 'a') + std::string(40000, 'b'));
  Must(client_.DeleteArray(get.name()));
}

// An operation on an array whose upload is in flight waits for it.
TEST_F(ArrayTest, OperationWaitsForItsUpload) {
  const Rpc rpc(daemon_->address());
  auto half = [&](int64_t begin, char fill) {
    return rpc.Call("ArrayService/PutArray",
                    {UploadHeader("half", 1000, begin, begin + 500).SerializeAsString(),
                     UploadBody(std::string(500, fill)).SerializeAsString()});
  };
  ASSERT_TRUE(half(0, 1).ok());
  Array sum = client_.Reduce(Reduction::kSum, Operand::Named("tenants/default/arrays/half"));
  EXPECT_EQ(Must(sum.Describe()).state, ArrayInfo::State::kPending);
  ASSERT_TRUE(half(500, 3).ok());
  EXPECT_THAT(Get<uint64_t>(client_, sum), ElementsAre(2000));
  Must(client_.DeleteArray("tenants/default/arrays/half"));
}

TEST_F(ArrayTest, ViewsAreReadInTheirOwnOrder) {
  const auto data = Iota<int32_t>(24);
  Array array = Must(client_.Put(data, {4, 6}));
  Array odd = client_.SliceOf(array, {.axis = 1, .start = 5, .step = -2});
  EXPECT_EQ(Must(odd.Spec()).shape, (std::vector<int64_t>{4, 3}));
  EXPECT_THAT(Get<int32_t>(client_, odd), ElementsAre(5, 3, 1, 11, 9, 7, 17, 15, 13, 23, 21, 19));
  EXPECT_THAT(Must(odd.Describe()).strides, ElementsAre(24, -8));

  Array turned = client_.Transpose(array);
  std::vector<int32_t> want;
  for (int column = 0; column < 6; ++column)
    for (int row = 0; row < 4; ++row) want.push_back(data[row * 6 + column]);
  EXPECT_EQ(Get<int32_t>(client_, turned), want);

  Array reshaped = client_.Reshape(array, {2, -1, 3});
  EXPECT_EQ(Must(reshaped.Spec()).shape, (std::vector<int64_t>{2, 4, 3}));
  EXPECT_EQ(Get<int32_t>(client_, reshaped), data);

  Array row = client_.View(array, ViewSteps().Index(0, -1).Broadcast({2, 6}));
  EXPECT_THAT(Get<int32_t>(client_, row),
              ElementsAre(18, 19, 20, 21, 22, 23, 18, 19, 20, 21, 22, 23));
  EXPECT_THAT(Must(row.Describe()).strides, ElementsAre(0, 4));

  Array none = client_.SliceOf(array, {.axis = 0, .start = 3, .stop = 1});
  EXPECT_EQ(Must(none.Spec()).shape, (std::vector<int64_t>{0, 6}));
  EXPECT_THAT(Get<int32_t>(client_, none), IsEmpty());
}

TEST_F(ArrayTest, ViewOutlivesItsSource) {
  std::optional<Array> array = Must(client_.Put(Iota<int32_t>(1000), {1000}));
  Array last = client_.SliceOf(*array, {.axis = 0, .start = -3});
  array.reset();
  Must(client_.Synchronize());
  EXPECT_THAT(Get<int32_t>(client_, last), ElementsAre(997, 998, 999));
}

TEST_F(ArrayTest, NamedArrayIsSharedBetweenSessions) {
  const std::string name = "tenants/default/arrays/shared";
  Must(client_.Put(Iota<float>(10), {10}, {.name = name}));
  {
    Client other = daemon_->Connect();
    Array twice = other.Ufunc("multiply", {Operand::Named(name), Operand(2)});
    EXPECT_EQ(Get<float>(other, twice)[9], 18);
    Array seen = other.Open(name);
    Must(other.Put(std::vector<float>(10, 1.5f), {10}, {.name = name, .overwrite = true}));
    EXPECT_EQ(Get<float>(other, seen), std::vector<float>(10, 1.5f));
  }
  // The other session has ended; its writes persist.
  EXPECT_EQ(Get<float>(client_, client_.Open(name)), std::vector<float>(10, 1.5f));
  EXPECT_TRUE(IsError(MustFail(client_.Put(Iota<float>(10), {10}, {.name = name})),
                      Code::kAlreadyExists, "ALREADY_EXISTS"));
  EXPECT_TRUE(
      IsError(MustFail(client_.Put(Iota<float>(11), {11}, {.name = name, .overwrite = true})),
              Code::kInvalidArgument, "SHAPE_MISMATCH"));
  Must(client_.DeleteArray(name));
  EXPECT_TRUE(IsError(MustFail(client_.Fetch<float>(client_.Open(name))), Code::kNotFound,
                      "ARRAY_NOT_FOUND"));
}

TEST_F(ArrayTest, HandlesEndWithTheirSession) {
  std::string name;
  {
    Client other = daemon_->Connect();
    Array array = Must(other.Put(Iota<int32_t>(4), {4}));
    name = array.name();
    EXPECT_EQ(Get<int32_t>(client_, client_.Open(name)), Iota<int32_t>(4));
  }
  EXPECT_TRUE(IsError(MustFail(client_.Fetch<int32_t>(client_.Open(name))), Code::kNotFound, ""));
}

TEST_F(ArrayTest, ListReturnsPages) {
  const Rpc rpc(daemon_->address());
  const auto session = rpc.Get<v1::CreateSessionResponse>("SessionService/CreateSession",
                                                          v1::CreateSessionRequest());
  for (int i = 1; i <= 25; ++i) {
    v1::CreateArrayRequest create;
    create.set_parent(session.session().name());
    create.set_array_id(std::to_string(i));
    create.mutable_spec()->set_data_type(v1::DATA_TYPE_FLOAT32);
    create.mutable_spec()->add_shape(i);
    ASSERT_TRUE(rpc.Call("ArrayService/CreateArray", create).ok());
  }
  v1::ListArraysRequest list;
  list.set_parent(session.session().name());
  list.set_page_size(10);
  std::vector<int> sizes;
  std::set<std::string> names;
  do {
    auto page = rpc.Get<v1::ListArraysResponse>("ArrayService/ListArrays", list);
    sizes.push_back(page.arrays_size());
    for (const auto& array : page.arrays()) names.insert(array.name());
    list.set_page_token(page.next_page_token());
  } while (!list.page_token().empty() && sizes.size() < 10);
  EXPECT_THAT(sizes, ElementsAre(10, 10, 5));
  EXPECT_THAT(names, SizeIs(25));
  EXPECT_THAT(Must(client_.ListArrays(session.session().name())), SizeIs(25));
}

TEST_F(ArrayTest, CreatedArrayIsZero) {
  const Rpc rpc(daemon_->address());
  v1::CreateArrayRequest create;
  create.set_parent("tenants/default");
  create.set_array_id("zeros");
  create.mutable_spec()->set_data_type(v1::DATA_TYPE_COMPLEX64);
  create.mutable_spec()->add_shape(1000);
  ASSERT_TRUE(rpc.Call("ArrayService/CreateArray", create).ok());
  EXPECT_EQ(rpc.Call("ArrayService/CreateArray", create).reason, "ALREADY_EXISTS");
  Array array = client_.Open("tenants/default/arrays/zeros");
  EXPECT_EQ(Get<std::complex<float>>(client_, array), std::vector<std::complex<float>>(1000));
  Must(client_.DeleteArray(array.name()));
}

TEST_F(ArrayTest, TtlEndsANamedArray) {
  const std::string name = "tenants/default/arrays/short-lived";
  Must(client_.Put(Iota<int32_t>(4), {4}, {.name = name, .ttl = std::chrono::seconds(1)}));
  EXPECT_EQ(Get<int32_t>(client_, client_.Open(name)), Iota<int32_t>(4));
  EXPECT_TRUE(Eventually([&] {
    auto described = client_.Open(name).Describe();
    return !described && described.error().reason == "ARRAY_NOT_FOUND";
  }));
}

TEST_F(ArrayTest, IdleSessionEnds) {
  const Rpc rpc(daemon_->address());
  v1::CreateSessionRequest create;
  create.mutable_ttl()->set_seconds(3);
  const auto session =
      rpc.Get<v1::CreateSessionResponse>("SessionService/CreateSession", create).session();
  v1::ListArraysRequest list;
  list.set_parent("tenants/default");
  v1::GetSessionRequest get;
  get.set_name(session.name());
  ASSERT_TRUE(rpc.Call("SessionService/GetSession", get).ok());
  // A query renews the session, so query less often than its lifetime.
  bool ended = false;
  for (int i = 0; i < 20 && !ended; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3500));
    ended = rpc.Call("SessionService/GetSession", get).reason == "SESSION_NOT_FOUND";
  }
  EXPECT_TRUE(ended);
}

// Memory is freed: far more is uploaded in turn than the arenas may hold.
TEST_F(ArrayTest, DeletedArraysFreeTheirMemory) {
  Client client = daemon_->Connect();
  const std::vector<std::byte> data(8 << 20);
  int64_t most = 0;
  for (int i = 0; i < 40; ++i) {
    Array array = Must(client.PutBytes(data, {DataType::kUint8, {8 << 20}}));
    array = Array();
    Must(client.Synchronize());
    Must(client.WatchDevices({.max_samples = 1}, [&](const std::vector<DeviceSample>& samples) {
      most = std::max(most, samples.at(0).arena_bytes);
      return true;
    }));
  }
  EXPECT_LE(most, int64_t{256} << 20);
}

}  // namespace
}  // namespace stride::testing
