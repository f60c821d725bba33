// LocalService and its connections, through a real server.

#include "server/api/local/local_connections.h"

#include <sys/socket.h>

#include <fstream>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/memory_file.h"
#include "server/identity/identity.h"
#include "server/identity/token.h"
#include "stride/v1/array_service.pb.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/local_service.grpc.pb.h"
#include "stride/v1/region_service.grpc.pb.h"
#include "tests/support/local_client.h"
#include "tests/support/test_server.h"

namespace stride::api {
namespace {

using stride::testing::CopyOf;
using stride::testing::DetailsOf;
using stride::testing::LocalClient;
using stride::testing::TestServer;
using ::testing::HasSubstr;

// Stores `bytes` under handle 1 and fetches them.
v1::ExecuteRequest StoreAndFetch(const std::string& session, const std::string& bytes) {
  v1::ExecuteRequest request;
  request.set_session(session);
  v1::Command* store = request.add_commands();
  store->set_id(1);
  store->mutable_operation()->mutable_copy()->mutable_input()->mutable_inline_array()->set_data(
      bytes);
  store->mutable_operation()->add_outputs()->set_handle(1);
  v1::Command* fetch = request.add_commands();
  fetch->set_id(2);
  fetch->mutable_fetch()->set_handle(1);
  return request;
}

v1::PutArrayRequest PutHeader(const std::string& id, int64_t size) {
  v1::PutArrayRequest request;
  request.mutable_header()->set_parent("sessions/s");
  request.mutable_header()->set_array_id(id);
  request.mutable_header()->mutable_spec()->set_data_type(v1::DATA_TYPE_UINT8);
  request.mutable_header()->mutable_spec()->add_shape(size);
  request.mutable_header()->set_overwrite(true);
  return request;
}

v1::PutArrayRequest PutData(const std::string& bytes) {
  v1::PutArrayRequest request;
  request.set_data(bytes);
  return request;
}

v1::FetchArrayRequest FetchOf(const std::string& name) {
  v1::FetchArrayRequest request;
  request.set_name(name);
  request.set_chunk_bytes(1 << 20);
  return request;
}

FrontOptions Options() {
  FrontOptions options;
  options.trust_tenant_header = true;
  options.max_threads = 64;  // 16 local connections, 8 per tenant
  return options;
}

class LocalConnectionTest : public ::testing::Test {
 protected:
  LocalClient Connect(const std::string& tenant = "") {
    LocalClient::Metadata metadata;
    if (!tenant.empty()) metadata.emplace_back("stride-tenant", tenant);
    return LocalClient::Connect(server_.Connect(), metadata);
  }
  grpc::Status IssueToken(v1::ConnectResponse* response, const std::string& tenant = "") {
    grpc::ClientContext context;
    if (!tenant.empty()) context.AddMetadata("stride-tenant", tenant);
    return v1::LocalService::NewStub(server_.Connect())
        ->Connect(&context, v1::ConnectRequest(), response);
  }
  static void ExpectHello(LocalClient& client) {
    client.Send(v1::LOCAL_FRAME_RUN, CopyOf("hello"));
    const auto answer = client.Receive();
    ASSERT_EQ(answer.kind, v1::LOCAL_FRAME_RUN) << answer.status().ShortDebugString();
    const auto response = answer.As<v1::RunResponse>();
    ASSERT_EQ(response.results_size(), 1);
    EXPECT_EQ(response.results(0).inline_array().data(), "hello");
    EXPECT_EQ(response.timeline().device(), "devices/cpu:0");
  }
  // The bytes that StoreAndFetch returns, from any number of messages.
  static std::string FetchedBytes(LocalClient& client) {
    for (;;) {
      const auto answer = client.Receive();
      EXPECT_EQ(answer.kind, v1::LOCAL_FRAME_EXECUTE) << answer.status().ShortDebugString();
      if (answer.kind != v1::LOCAL_FRAME_EXECUTE) return "";
      const auto response = answer.As<v1::ExecuteResponse>();
      for (const auto& result : response.results()) {
        if (result.id() == 2) return result.results(0).inline_array().data();
      }
    }
  }
  template <typename Condition>
  static bool Becomes(Condition condition) {
    const SteadyTime deadline = Now() + absl::Seconds(100);
    bool become = condition();
    for (; !become && Now() < deadline; become = condition()) absl::SleepFor(absl::Milliseconds(1));
    return become;
  }

  TestServer server_{Options()};
};

TEST_F(LocalConnectionTest, ConnectionServesConsecutiveRuns) {
  LocalClient client = Connect();
  for (int i = 0; i < 3; ++i) ExpectHello(client);
  server_.engine().operations().SetReadsAtOnce(false);
  ExpectHello(client);
  const auto counters = server_.front().counters().Snapshot();
  EXPECT_EQ(counters.at("ComputeService/Run").started, 4);
  EXPECT_EQ(counters.at("ComputeService/Run").handled[0], 4);
}

TEST_F(LocalConnectionTest, ErrorIsAStatusAndConnectionStays) {
  LocalClient client = Connect();
  client.Send(v1::LOCAL_FRAME_RUN, v1::RunRequest());
  EXPECT_EQ(DetailsOf(client.Receive().status()).field(), "operation.kind");
  client.SendBytes(LocalClient::FrameOf(v1::LOCAL_FRAME_RUN, "\xff\xff"));
  EXPECT_THAT(client.Receive().status().message(), HasSubstr("malformed"));
  server_.engine().operations().FailNextWork(MakeError(
      absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_KERNEL_FAULT, "illegal address"));
  client.Send(v1::LOCAL_FRAME_RUN, CopyOf("x"));
  EXPECT_EQ(DetailsOf(client.Receive().status()).info.reason(), "KERNEL_FAULT");
  // A deadline of the work itself is not taken for the end of a wait.
  server_.engine().operations().FailNextWork(
      MakeError(absl::StatusCode::kDeadlineExceeded, v1::ERROR_REASON_DEADLINE, "too slow"));
  client.Send(v1::LOCAL_FRAME_RUN, CopyOf("x"));
  EXPECT_EQ(client.Receive().status().message(), "too slow");
  ExpectHello(client);
}

TEST_F(LocalConnectionTest, DeadlineCancelsTheWork) {
  server_.engine().operations().Hold();
  LocalClient client = Connect();
  client.Send(v1::LOCAL_FRAME_RUN, CopyOf("x"), 50'000'000);
  EXPECT_EQ(client.Receive().status().code(), 4);
  EXPECT_TRUE(Becomes([&] { return server_.engine().operations().num_cancelled() == 1; }));
}

TEST_F(LocalConnectionTest, DisconnectCancelsTheRun) {
  server_.engine().operations().Hold();
  LocalClient client = Connect();
  client.Send(v1::LOCAL_FRAME_RUN, CopyOf("x"));
  EXPECT_TRUE(Becomes([&] { return server_.engine().operations().num_submitted() == 1; }));
  client.Close();
  EXPECT_TRUE(Becomes([&] { return server_.engine().operations().num_cancelled() == 1; }));
}

TEST_F(LocalConnectionTest, ExecuteStreamEndsWithAStatus) {
  LocalClient client = Connect();
  for (int i = 0; i < 2; ++i) {
    client.Send(v1::LOCAL_FRAME_EXECUTE, StoreAndFetch("sessions/s", "some bytes"));
    EXPECT_EQ(FetchedBytes(client), "some bytes");
    client.Send(v1::LOCAL_FRAME_EXECUTE, StoreAndFetch("", "others"));
    EXPECT_EQ(FetchedBytes(client), "others");
    client.SendBytes(LocalClient::FrameOf(v1::LOCAL_FRAME_EXECUTE_END, ""));
    EXPECT_EQ(client.Receive().status().code(), 0);
  }
  ExpectHello(client);
}

TEST_F(LocalConnectionTest, FailedExecuteIsReadToItsEnd) {
  LocalClient client = Connect();
  client.Send(v1::LOCAL_FRAME_EXECUTE, StoreAndFetch("no name", "x"));
  client.Send(v1::LOCAL_FRAME_EXECUTE, StoreAndFetch("", "x"));
  EXPECT_EQ(DetailsOf(client.Receive().status()).field(), "session");
  client.SendBytes(LocalClient::FrameOf(v1::LOCAL_FRAME_EXECUTE_END, ""));
  ExpectHello(client);
}

TEST_F(LocalConnectionTest, PutThenFetchReturnsTheBytes) {
  LocalClient client = Connect();
  std::string bytes(5 << 20, 'x');
  for (size_t i = 0; i < bytes.size(); i += 1009) bytes[i] = static_cast<char>(i);
  for (int round = 0; round < 2; ++round) {
    client.Send(v1::LOCAL_FRAME_PUT, PutHeader("7", static_cast<int64_t>(bytes.size())));
    for (size_t at = 0; at < bytes.size(); at += 2 << 20)
      client.Send(v1::LOCAL_FRAME_PUT, PutData(bytes.substr(at, 2 << 20)));
    client.SendBytes(LocalClient::FrameOf(v1::LOCAL_FRAME_PUT_END, ""));
    const auto answer = client.Receive();
    ASSERT_EQ(answer.kind, v1::LOCAL_FRAME_PUT) << answer.status().ShortDebugString();
    EXPECT_EQ(answer.As<v1::PutArrayResponse>().array().name(), "sessions/s/arrays/7");

    client.Send(v1::LOCAL_FRAME_FETCH, FetchOf("sessions/s/arrays/7"));
    std::string fetched;
    LocalClient::Answer message = client.Receive();
    for (; message.kind == v1::LOCAL_FRAME_FETCH; message = client.Receive())
      fetched += message.As<v1::FetchArrayResponse>().data();
    EXPECT_EQ(message.status().code(), 0);
    EXPECT_TRUE(fetched == bytes);
  }
  ExpectHello(client);
  EXPECT_EQ(server_.front().counters().Snapshot().at("ArrayService/PutArray").handled[0], 2);
}

TEST_F(LocalConnectionTest, RefusedUploadIsReadToItsEnd) {
  LocalClient client = Connect();
  client.Send(v1::LOCAL_FRAME_PUT, PutData("no header"));
  client.Send(v1::LOCAL_FRAME_PUT, PutData("more"));
  client.SendBytes(LocalClient::FrameOf(v1::LOCAL_FRAME_PUT_END, ""));
  EXPECT_EQ(client.Receive().status().code(), 3);
  client.Send(v1::LOCAL_FRAME_FETCH, FetchOf("sessions/s/arrays/none"));
  EXPECT_EQ(client.Receive().status().code(), 5);
  client.SendBytes(LocalClient::FrameOf(v1::LOCAL_FRAME_FETCH, "\xff\xff"));
  EXPECT_THAT(client.Receive().status().message(), HasSubstr("malformed"));
  ExpectHello(client);
}

TEST_F(LocalConnectionTest, BrokenUploadCompletesNoArray) {
  for (const bool half_closed : {false, true}) {
    LocalClient client = Connect();
    client.Send(v1::LOCAL_FRAME_PUT, PutHeader("8", 3));
    client.Send(v1::LOCAL_FRAME_PUT, PutData("abc"));
    EXPECT_TRUE(Becomes([&] { return server_.engine().arrays().num_open_uploads() == 1; }));
    if (half_closed) {
      shutdown(client.fd(), SHUT_WR);
    } else {
      client.Close();
    }
    EXPECT_TRUE(Becomes([&] { return server_.engine().arrays().num_open_uploads() == 0; }));
    LocalClient other = Connect();
    other.Send(v1::LOCAL_FRAME_FETCH, FetchOf("sessions/s/arrays/8"));
    EXPECT_EQ(other.Receive().status().code(), 5);
  }
}

TEST_F(LocalConnectionTest, InvalidFrameEndsTheConnectionWithAReason) {
  const std::string hello =
      LocalClient::FrameOf(v1::LOCAL_FRAME_RUN, CopyOf("x").SerializeAsString());
  struct {
    std::string bytes, field;
  } const cases[] = {
      {LocalClient::FrameOf(0, ""), "kind"},
      {LocalClient::FrameOf(99, "x"), "kind"},
      {LocalClient::FrameOf(v1::LOCAL_FRAME_STATUS, ""), "kind"},
      {std::string(16, '\xff'), "size"},
  };
  for (const auto& one : cases) {
    LocalClient client = Connect();
    client.SendBytes(one.bytes + hello);
    EXPECT_EQ(DetailsOf(client.Receive().status()).field(), one.field);
    EXPECT_EQ(client.Receive().kind, v1::LOCAL_FRAME_UNSPECIFIED) << "not the end";
  }
  // Also within an Execute call.
  LocalClient client = Connect();
  client.Send(v1::LOCAL_FRAME_EXECUTE, StoreAndFetch("sessions/s", "x"));
  EXPECT_EQ(FetchedBytes(client), "x");
  client.SendBytes(hello);
  EXPECT_EQ(DetailsOf(client.Receive().status()).field(), "kind");
  EXPECT_EQ(client.Receive().kind, v1::LOCAL_FRAME_UNSPECIFIED);
}

TEST_F(LocalConnectionTest, CallsHaveTheIdentityOfTheConnection) {
  LocalClient client = Connect("lab");
  ExpectHello(client);
  EXPECT_THAT(server_.engine().operations().tenants_seen(), ::testing::ElementsAre("lab"));
}

TEST(LocalIdentityTest, RevokedTokenIsRefusedFromTheNextCall) {
  stride::testing::TemporaryFolder folder;
  const std::string path = folder.Path("tenants"), token = identity::NewToken();
  auto write = [&](const std::string& known) {
    std::ofstream(path) << "[tenant lab]\ntoken = " << identity::ToText(identity::HashToken(known))
                        << "\n";
  };
  write(token);
  auto identity = identity::Identity::Open(path, {});
  ASSERT_TRUE(identity.ok()) << identity.status();
  FrontOptions options;
  options.identity = identity->get();
  TestServer server(options);
  LocalClient client =
      LocalClient::Connect(server.Connect(), {{"authorization", "Bearer " + token}});
  client.Send(v1::LOCAL_FRAME_RUN, CopyOf("hello"));
  EXPECT_EQ(client.Receive().kind, v1::LOCAL_FRAME_RUN);
  EXPECT_THAT(server.engine().operations().tenants_seen(), ::testing::ElementsAre("lab"));

  write(identity::NewToken());
  ASSERT_TRUE((*identity)->Reload().ok());
  client.Send(v1::LOCAL_FRAME_RUN, CopyOf("hello"));
  EXPECT_EQ(client.Receive().status().code(), 16);
  client.Send(v1::LOCAL_FRAME_EXECUTE, StoreAndFetch("sessions/s", "x"));
  EXPECT_EQ(client.Receive().status().code(), 16);
  client.SendBytes(LocalClient::FrameOf(v1::LOCAL_FRAME_EXECUTE_END, ""));
  client.Send(v1::LOCAL_FRAME_PUT, PutHeader("1", 1));
  client.SendBytes(LocalClient::FrameOf(v1::LOCAL_FRAME_PUT_END, ""));
  EXPECT_EQ(client.Receive().status().code(), 16);
  client.Send(v1::LOCAL_FRAME_FETCH, FetchOf("sessions/s/arrays/1"));
  EXPECT_EQ(client.Receive().status().code(), 16);
  EXPECT_EQ(server.engine().operations().num_submitted(), 1);
  EXPECT_EQ(server.front().counters().auth_failures(), 4);
}

TEST_F(LocalConnectionTest, TicketIsValidOnce) {
  v1::ConnectResponse response;
  ASSERT_TRUE(IssueToken(&response).ok());
  EXPECT_GT(response.expire_time().seconds(), absl::ToUnixSeconds(absl::Now()));
  EXPECT_TRUE(LocalClient::Open(response.socket_path(), response.ticket()).open());
  EXPECT_FALSE(LocalClient::Open(response.socket_path(), response.ticket()).open());
  EXPECT_FALSE(LocalClient::Open(response.socket_path(), std::string(32, '0')).open());
}

TEST_F(LocalConnectionTest, RegionAndItsPinComeWithTheAnswer) {
  LocalClient client = Connect();
  v1::CreateRegionRequest request;
  request.set_parent("sessions/s");
  request.set_size_bytes(8192);
  client.Send(v1::LOCAL_FRAME_CREATE_REGION, request);
  auto answer = client.Receive();
  ASSERT_EQ(answer.kind, v1::LOCAL_FRAME_CREATE_REGION) << answer.status().ShortDebugString();
  EXPECT_EQ(answer.As<v1::CreateRegionResponse>().region().size_bytes(), 8192);
  ASSERT_EQ(answer.descriptors.size(), 2u);
  EXPECT_TRUE(CheckMemoryFile(answer.descriptors[0].get(), 8192).ok());
  // The connection serves other calls, and its end leaves the region pinned.
  ExpectHello(client);
  client.Close();
  EXPECT_EQ(server_.engine().regions().num_pinned(), 1u);
  answer.descriptors.clear();
  EXPECT_TRUE(Becomes([&] { return server_.engine().regions().num_pinned() == 0; }));
}

TEST_F(LocalConnectionTest, MappedArrayIsReleasedByShutdownOfItsPin) {
  LocalClient client = Connect();
  v1::MapArrayRequest request;
  request.set_name("sessions/s/arrays/1");
  client.Send(v1::LOCAL_FRAME_MAP_ARRAY, request);
  auto answer = client.Receive();
  ASSERT_EQ(answer.kind, v1::LOCAL_FRAME_MAP_ARRAY) << answer.status().ShortDebugString();
  EXPECT_EQ(answer.As<v1::MapArrayResponse>().memory_bytes(), 4096);
  ASSERT_EQ(answer.descriptors.size(), 2u);
  const int pin = answer.descriptors[1].get();
  char byte = 0;
  ASSERT_EQ(shutdown(pin, SHUT_WR), 0);
  EXPECT_EQ(recv(pin, &byte, 1, 0), 0);  // the daemon closes its end after the release
  EXPECT_EQ(server_.engine().regions().num_pinned(), 0u);
}

TEST_F(LocalConnectionTest, MemoryOfClientThatIsGoneIsReleased) {
  v1::CreateRegionRequest request;
  request.set_parent("sessions/s");
  request.set_size_bytes(4096);
  for (int i = 0; i < 5; ++i) {
    LocalClient client = Connect();
    client.Send(v1::LOCAL_FRAME_CREATE_REGION, request);
  }
  EXPECT_TRUE(Becomes([&] {
    return server_.front().counters().Snapshot()["RegionService/CreateRegion"].handled[0] == 5 &&
           server_.engine().regions().num_pinned() == 0;
  }));
}

TEST_F(LocalConnectionTest, PinOfDeletedRegionIsClosed) {
  LocalClient client = Connect();
  v1::CreateRegionRequest request;
  request.set_parent("sessions/s");
  request.set_size_bytes(4096);
  client.Send(v1::LOCAL_FRAME_CREATE_REGION, request);
  auto answer = client.Receive();
  ASSERT_EQ(answer.descriptors.size(), 2u);
  v1::DeleteRegionRequest deleted;
  deleted.set_name(answer.As<v1::CreateRegionResponse>().region().name());
  grpc::ClientContext context;
  v1::DeleteRegionResponse response;
  const auto stub = v1::RegionService::NewStub(server_.Connect());
  ASSERT_TRUE(stub->DeleteRegion(&context, deleted, &response).ok());
  char byte = 0;
  EXPECT_EQ(recv(answer.descriptors[1].get(), &byte, 1, 0), 0);
}

TEST_F(LocalConnectionTest, MemoryIsSharedOverLocalConnectionsOnly) {
  const auto stub = v1::RegionService::NewStub(server_.Connect());
  grpc::ClientContext first, second;
  v1::CreateRegionResponse region;
  const grpc::Status created = stub->CreateRegion(&first, v1::CreateRegionRequest(), &region);
  EXPECT_EQ(created.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(created.error_message(), HasSubstr("local connection"));
  v1::MapArrayResponse mapped;
  const grpc::Status lent = stub->MapArray(&second, v1::MapArrayRequest(), &mapped);
  EXPECT_EQ(lent.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(server_.engine().regions().num_pinned(), 0u);
}

TEST_F(LocalConnectionTest, ConnectionsPerTenantAreBounded) {
  std::vector<LocalClient> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(Connect("a"));
  v1::ConnectResponse response;
  EXPECT_EQ(IssueToken(&response, "a").error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  LocalClient other = Connect("b");
  ExpectHello(other);
  clients.pop_back();
  EXPECT_TRUE(Becomes([&] { return IssueToken(&response, "a").ok(); }));
  // A ticket occupies a connection until it is used.
  EXPECT_EQ(IssueToken(&response, "a").error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(LocalConnectionTest, ShutdownClosesIdleAndWaitsForBusyConnections) {
  LocalClient idle = Connect(), busy = Connect();
  ExpectHello(idle);
  server_.engine().operations().Hold();
  busy.Send(v1::LOCAL_FRAME_RUN, CopyOf("x"));
  EXPECT_TRUE(Becomes([&] { return server_.engine().operations().num_submitted() == 2; }));
  std::thread stop([&] { server_.front().Stop(Now() + absl::Seconds(60)); });
  EXPECT_EQ(idle.Receive().kind, v1::LOCAL_FRAME_UNSPECIFIED);
  server_.engine().operations().LetGo();
  EXPECT_EQ(busy.Receive().kind, v1::LOCAL_FRAME_RUN);
  EXPECT_EQ(busy.Receive().kind, v1::LOCAL_FRAME_UNSPECIFIED);
  stop.join();
}

TEST_F(LocalConnectionTest, ShutdownDeadlineEndsRemainingCalls) {
  LocalClient client = Connect(), silent = Connect();
  server_.engine().operations().Hold();
  client.Send(v1::LOCAL_FRAME_RUN, CopyOf("x"));
  silent.Send(v1::LOCAL_FRAME_EXECUTE, StoreAndFetch("sessions/s", "x"));
  EXPECT_TRUE(Becomes([&] { return server_.engine().operations().num_submitted() == 2; }));
  server_.front().Stop(Now() + absl::Milliseconds(50));
  EXPECT_NE(client.Receive().kind, v1::LOCAL_FRAME_RUN);
  server_.engine().operations().LetGo();
}

}  // namespace
}  // namespace stride::api
