// Tenants at a real daemon: TLS, certificates, tokens, quotas, and isolation between tenants.

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/identity/token.h"
#include "stride/client.h"
#include "stride/v1/array_service.pb.h"
#include "stride/v1/compute_service.pb.h"
#include "stride/v1/device_service.pb.h"
#include "stride/v1/function_service.pb.h"
#include "stride/v1/job_service.pb.h"
#include "stride/v1/kernel_service.pb.h"
#include "stride/v1/local_service.pb.h"
#include "stride/v1/program_service.pb.h"
#include "stride/v1/region_service.pb.h"
#include "stride/v1/session_service.pb.h"
#include "stride/v1/tenant_service.pb.h"
#include "tests/support/daemon/daemon.h"
#include "tests/support/daemon/expect.h"
#include "tests/support/daemon/rpc.h"
#include "tests/support/temporary_folder.h"

namespace stride::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenants-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { stride::test_support::RemoveFolder(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string Put(const std::string& name, const std::string& text) const {
    std::ofstream(*this / (name + ".new")) << text;
    std::filesystem::rename(*this / (name + ".new"), *this / name);
    return *this / name;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(*this / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

std::string HashLine(const std::string& token, const std::string& more = "") {
  return "token = " + identity::ToText(identity::HashToken(token)) + " " + more + "\n";
}

std::vector<int32_t> Numbers(int64_t count) { return std::vector<int32_t>(count, 7); }

// The output of a daemon that must not start.
std::string StartAndFail(const std::string& flags) {
  const auto strided = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "strided";
  FILE* pipe = popen(("timeout 60 " + strided.string() + " " + flags + " 2>&1").c_str(), "r");
  std::string text;
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, got);
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 1) << text;
  return text;
}

// The port after `listening=tcp:127.0.0.1:`, as reported by the daemon.
std::string TcpAddress(const Daemon& daemon) {
  const std::string log = daemon.Log(), mark = "listening=tcp:127.0.0.1:";
  const size_t at = log.find(mark);
  if (at == log.npos) throw std::runtime_error("no TCP address in the log: " + log);
  const size_t begin = at + mark.size();
  return "127.0.0.1:" + log.substr(begin, log.find_first_not_of("0123456789", begin) - begin);
}

// --- tokens, over a Unix socket ---

class TokenTest : public ::testing::Test {
 protected:
  Result<Client> Connect(const std::string& token) {
    return Client::Connect({.address = daemon_->address(), .token = token});
  }
  // Returns the tenant of the token, or the error.
  Result<std::string> TenantOf(const std::string& token) {
    auto client = Connect(token);
    if (!client) return client.error();
    auto usage = client->GetUsage();
    if (!usage) return usage.error();
    return usage->tenant;
  }
  void Start(const std::string& tenants, std::vector<std::string> flags = {}) {
    flags.push_back("--tenants=" + folder_.Put("tenants.conf", tenants));
    flags.push_back("--audit-log=" + folder_ / "audit.jsonl");
    daemon_.emplace(flags);
  }

  Folder folder_;
  std::optional<Daemon> daemon_;
  const std::string a_ = identity::NewToken(), b_ = identity::NewToken(),
                    old_ = identity::NewToken();
};

TEST_F(TokenTest, TokenIdentifiesTheTenant) {
  Start("[tenant a]\n" + HashLine(a_) + "[tenant b]\n" + HashLine(b_, "name=robot"));
  EXPECT_EQ(Must(TenantOf(a_)), "tenants/a");
  EXPECT_EQ(Must(TenantOf(b_)), "tenants/b");
}

TEST_F(TokenTest, FailuresAreIndistinguishableAndCounted) {
  Start("[tenant a]\n" + HashLine(a_) + HashLine(old_, "expires=2020-01-01"));
  std::set<std::string> words;
  for (const std::string& token : {std::string(), identity::NewToken(), old_, std::string("x")}) {
    const Error error = MustFail(TenantOf(token));
    EXPECT_TRUE(IsError(error, Code::kUnauthenticated, "UNAUTHENTICATED"));
    words.insert(error.ToString());
  }
  EXPECT_EQ(words.size(), 1u) << *words.begin();
  // Too many failures from one address must wait; valid credentials are still accepted.
  auto client = Must(Connect(identity::NewToken()));
  Error last;
  for (int i = 0; i < 40; ++i) last = MustFail(client.GetUsage());
  EXPECT_TRUE(IsError(last, Code::kResourceExhausted, "UNAUTHENTICATED"));
  EXPECT_EQ(Must(TenantOf(a_)), "tenants/a");
  // Neither log contains a token.
  EXPECT_TRUE(Eventually([&] { return !folder_.Read("audit.jsonl").empty(); }));
  for (const std::string& log : {daemon_->Log(), folder_.Read("audit.jsonl")}) {
    EXPECT_THAT(log, Not(HasSubstr(a_)));
    EXPECT_THAT(log, Not(HasSubstr(old_)));
    EXPECT_THAT(log, Not(HasSubstr("Bearer")));
  }
  EXPECT_THAT(folder_.Read("audit.jsonl"), HasSubstr("\"outcome\":\"UNAUTHENTICATED\""));
}

// Every service's every method, without credentials.
TEST_F(TokenTest, EveryMethodNeedsCredentials) {
  Start("[tenant a]\n" + HashLine(a_));
  for (const google::protobuf::FileDescriptor* file :
       {v1::PutArrayRequest::descriptor()->file(), v1::RunRequest::descriptor()->file(),
        v1::GetDeviceRequest::descriptor()->file(), v1::GetFunctionRequest::descriptor()->file(),
        v1::GetJobRequest::descriptor()->file(), v1::GetProgramRequest::descriptor()->file(),
        v1::ConnectRequest::descriptor()->file(), v1::CreateRegionRequest::descriptor()->file(),
        v1::GetModuleRequest::descriptor()->file(), v1::GetSessionRequest::descriptor()->file(),
        v1::GetUsageRequest::descriptor()->file()}) {
    const auto* service = file->service(0);
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string method = service->name() + "/" + service->method(i)->name();
      // A separate connection each; only the code matters, whichever of the two.
      const Outcome outcome = Rpc(daemon_->address()).Call(method, {std::string()});
      EXPECT_TRUE(outcome.code == 16 || outcome.code == 8) << method << ": " << outcome.ToString();
      EXPECT_EQ(outcome.reason, "UNAUTHENTICATED") << method;
      EXPECT_TRUE(outcome.replies.empty()) << method;
    }
  }
  EXPECT_TRUE(Rpc(daemon_->address()).Call("grpc.health.v1.Health/Check", {std::string()}).ok());
}

TEST_F(TokenTest, ValidEditAppliesWithoutRestart) {
  Start("[tenant a]\n" + HashLine(a_));
  folder_.Put("tenants.conf", "[tenant b]\n" + HashLine(b_) + "sessions = none\n");
  ASSERT_TRUE(daemon_->WaitForLog("line 3", std::chrono::seconds(100)));
  EXPECT_EQ(Must(TenantOf(a_)), "tenants/a");
  folder_.Put("tenants.conf", "[tenant b]\n" + HashLine(b_));
  // Not by polling until it is accepted: an address with many failures gets another error.
  ASSERT_TRUE(daemon_->WaitForLog("tenants read: 1 tenants, 1 tokens", std::chrono::seconds(100)));
  EXPECT_EQ(Must(TenantOf(b_)), "tenants/b");
  EXPECT_TRUE(IsError(MustFail(TenantOf(a_)), Code::kUnauthenticated, "UNAUTHENTICATED"));
}

TEST_F(TokenTest, SighupReloadsTenantsAndReopensAuditLog) {
  Start("[tenant a]\n" + HashLine(a_));
  auto client = Must(Connect(a_));
  Must(client.Run(Operation::Expression(
      "x + 1", {{"x", Operand::Inline(std::span<const int32_t>(Numbers(4)), {4})}})));
  ASSERT_TRUE(Eventually(
      [&] { return folder_.Read("audit.jsonl").find("ComputeService/Run") != std::string::npos; }));
  std::filesystem::rename(folder_ / "audit.jsonl", folder_ / "audit.jsonl.1");
  daemon_->Signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(folder_ / "audit.jsonl"); }));
  EXPECT_TRUE(daemon_->WaitForLog("tenants read: 1 tenants, 1 tokens", std::chrono::seconds(100)));
}

TEST_F(TokenTest, LocalCallersAreTrustedIfConfigured) {
  Start("[tenant a]\n" + HashLine(a_), {"--trust-local"});
  EXPECT_EQ(Must(TenantOf("")), "tenants/default");
  EXPECT_EQ(Must(TenantOf(a_)), "tenants/a");
  // Invalid credentials are worse than none.
  EXPECT_FALSE(TenantOf(b_).ok());
}

TEST_F(TokenTest, InvalidTenantsFilePreventsStart) {
  const std::string file = folder_.Put("tenants.conf", "[tenant a]\nsessions = none\n");
  EXPECT_THAT(StartAndFail("--listen=unix:" + (folder_ / "s") + " --tenants=" + file),
              HasSubstr("line 2"));
}

// --- the audit log and usage ---

TEST_F(TokenTest, WorkIsMeteredAndAudited) {
  Start("[tenant a]\n" + HashLine(a_, "name=laptop") + "[tenant b]\n" + HashLine(b_));
  {
    auto client = Must(Connect(a_));
    Array x = Must(client.Put(Numbers(100000), {100000}));
    Array y = client.Ufunc("add", {x, x});
    EXPECT_EQ(Get<int32_t>(client, y)[5], 14);
    const Usage usage = Must(client.GetUsage());
    EXPECT_EQ(usage.tenant, "tenants/a");
    EXPECT_EQ(usage.upload_bytes, 400000);
    EXPECT_EQ(usage.download_bytes, 400000);
    EXPECT_EQ(usage.operations, 1);
    EXPECT_GT(usage.device_seconds, 0);
    EXPECT_GT(usage.array_byte_seconds, 0);
    ASSERT_EQ(usage.devices.size(), 1u);
    EXPECT_EQ(usage.devices[0].device, DeviceName(0));
    JobSpec job;
    job.operations.push_back(
        Operation::Expression("x + x",
                              {{"x", Operand::Inline(std::span<const int32_t>(Numbers(4)), {4})}})
            .ToName("tenants/a/arrays/z"));
    const Job made = Must(client.CreateJob(job));
    Must(client.WatchJob(made.name, [](const Job&) { return true; }));
    EXPECT_EQ(Must(client.GetUsage()).jobs, 1);
  }
  auto other = Must(Connect(b_));
  const Usage usage = Must(other.GetUsage());
  EXPECT_EQ(usage.upload_bytes + usage.download_bytes + usage.operations + usage.jobs, 0);
  auto has = [&](const std::string& text) {
    return folder_.Read("audit.jsonl").find(text) != std::string::npos;
  };
  EXPECT_TRUE(Eventually([&] { return has("\"event\":\"job\""); }));
  EXPECT_TRUE(Eventually([&] { return has("\"event\":\"ComputeService/Execute\""); }));
  const std::string log = folder_.Read("audit.jsonl");
  EXPECT_THAT(log, HasSubstr("\"identity\":\"token:laptop\""));
  EXPECT_THAT(log, HasSubstr("\"event\":\"ArrayService/PutArray\""));
  EXPECT_THAT(log, HasSubstr("\"bytes_up\":"));
  EXPECT_THAT(log, HasSubstr("\"device_seconds\":"));
  EXPECT_THAT(log, HasSubstr("\"resource\":\"tenants/a/jobs/"));
}

// --- quotas ---

TEST_F(TokenTest, QuotasHoldAndChangeAtOnce) {
  auto tenants = [&](const std::string& quotas) {
    return "[tenant a]\n" + HashLine(a_) + quotas + "[tenant b]\n" + HashLine(b_);
  };
  Start(tenants("array-bytes = 1MiB\n"));
  auto client = Must(Connect(a_));
  auto other = Must(Connect(b_));
  const auto big = Numbers(500000);
  const Error error = MustFail(client.Put(big, {500000}));
  EXPECT_TRUE(IsError(error, Code::kResourceExhausted, "QUOTA"));
  EXPECT_EQ(error.metadata.at("quota"), "array-bytes");
  EXPECT_EQ(error.metadata.at("limit"), "1048576");
  EXPECT_THAT(error.message, HasSubstr("limit 1048576, used 0, asked for 2000000"));
  Must(other.Put(big, {500000}));
  // The declared size of a result counts, also if it is terabytes.
  Array huge = client.Zeros({DataType::kFloat64, {1 << 20, 1 << 20}});
  EXPECT_TRUE(IsError(MustFail(huge.Wait()), Code::kResourceExhausted, "QUOTA"));
  folder_.Put("tenants.conf", tenants("array-bytes = 4MiB\n"));
  EXPECT_TRUE(Eventually([&] { return client.Put(big, {500000}).ok(); }));
}

TEST_F(TokenTest, UploadsKeepTheirTenantsRate) {
  Start("[tenant a]\n" + HashLine(a_) + "upload-bytes-per-second = 4MiB\n" + "[tenant b]\n" +
        HashLine(b_));
  auto client = Must(Connect(a_));
  auto other = Must(Connect(b_));
  const auto data = Numbers(3 << 20);  // 12 MiB, 4 of them free
  const auto start = std::chrono::steady_clock::now();
  Array array = Must(client.Put(data, {3 << 20}));
  const auto slow = std::chrono::steady_clock::now() - start;
  EXPECT_GE(slow, std::chrono::milliseconds(1900));
  EXPECT_EQ(Must(client.Fetch<int32_t>(array)), data);
  const auto again = std::chrono::steady_clock::now();
  Must(other.Put(data, {3 << 20}));
  EXPECT_LT(std::chrono::steady_clock::now() - again, slow);
}

// --- TLS ---

bool HaveOpenssl() { return std::system("openssl version >/dev/null 2>&1") == 0; }

// A certificate authority and its certificates, created by the openssl program.
class Authority {
 public:
  Authority(const Folder& folder, std::string name) : folder_(folder), name_(std::move(name)) {
    Run("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" + name_ +
        " -keyout " + key() + " -out " + certificate());
  }
  std::string certificate() const { return folder_ / (name_ + ".pem"); }
  std::string key() const { return folder_ / (name_ + ".key"); }
  // Creates `{file}.pem` and `{file}.key`.
  void Sign(const std::string& file, const std::string& name, const std::string& alternatives) {
    const std::string request = folder_ / (file + ".csr"), extensions = folder_ / (file + ".ext");
    std::ofstream(extensions) << "subjectAltName=" << alternatives << "\n";
    Run("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name + " -keyout " +
        (folder_ / (file + ".key")) + " -out " + request);
    Run("x509 -req -in " + request + " -CA " + certificate() + " -CAkey " + key() +
        " -CAcreateserial -days 2 -extfile " + extensions + " -out " + (folder_ / (file + ".pem")));
  }

 private:
  static void Run(const std::string& arguments) {
    if (std::system(("openssl " + arguments + " >/dev/null 2>&1").c_str()) != 0)
      throw std::runtime_error("openssl " + arguments);
  }
  const Folder& folder_;
  const std::string name_;
};

class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HaveOpenssl()) GTEST_SKIP() << "no openssl program to make certificates with";
    authority_.emplace(folder_, "authority");
    authority_->Sign("daemon", "daemon", "IP:127.0.0.1,DNS:localhost");
    authority_->Sign("physics", "physics-laptop", "URI:spiffe://lab/physics");
    authority_->Sign("nobody", "nobody", "DNS:nobody.example.org");
  }
  void Start(std::vector<std::string> flags = {}) {
    folder_.Put("tenants.conf", "[tenant a]\n" + HashLine(token_) +
                                    "[tenant physics]\ncertificate = uri:spiffe://lab/physics\n");
    for (const std::string& flag :
         {std::string("--listen=tcp:127.0.0.1:0"), "--tls-cert=" + folder_ / "daemon.pem",
          "--tls-key=" + folder_ / "daemon.key", "--tenants=" + folder_ / "tenants.conf"})
      flags.push_back(flag);
    daemon_.emplace(flags);
    address_ = TcpAddress(*daemon_);
  }
  ConnectOptions Options(const std::string& certificate = "") {
    ConnectOptions options{.address = address_, .tls_ca = authority_->certificate()};
    options.connect_timeout = std::chrono::seconds(100);
    if (!certificate.empty()) {
      options.tls_cert = folder_ / (certificate + ".pem");
      options.tls_key = folder_ / (certificate + ".key");
    }
    return options;
  }
  static Result<std::string> TenantOf(const ConnectOptions& options) {
    auto client = Client::Connect(options);
    if (!client) return client.error();
    auto usage = client->GetUsage();
    if (!usage) return usage.error();
    return usage->tenant;
  }

  Folder folder_;
  std::optional<Authority> authority_;
  std::optional<Daemon> daemon_;
  std::string address_;
  const std::string token_ = identity::NewToken();
};

TEST_F(TlsTest, TokenOverTlsIsAccepted) {
  Start();
  ConnectOptions options = Options();
  options.token = token_;
  auto client = Must(Client::Connect(options));
  const auto data = Numbers(3 << 20);
  Array x = Must(client.Put(data, {3 << 20}));
  EXPECT_EQ(Get<int32_t>(client, client.Ufunc("add", {x, x}))[12345], 14);
  EXPECT_EQ(Must(client.GetUsage()).tenant, "tenants/a");
  EXPECT_TRUE(IsError(MustFail(TenantOf(Options())), Code::kUnauthenticated, "UNAUTHENTICATED"));
}

TEST_F(TlsTest, PlaintextIsRefused) {
  Start();
  EXPECT_THAT(MustFail(TenantOf({.address = address_,
                                 .connect_timeout = std::chrono::milliseconds(1000),
                                 .default_timeout = std::chrono::seconds(2)}))
                  .message,
              HasSubstr("speaks TLS"));
  // A client does not trust a certificate of another authority either.
  Authority stranger(folder_, "stranger");
  ConnectOptions options = Options();
  options.tls_ca = stranger.certificate();
  options.connect_timeout = std::chrono::milliseconds(1000);
  const Error untrusted = MustFail(TenantOf(options));
  EXPECT_TRUE(IsError(untrusted, Code::kUnavailable, ""));
  EXPECT_THAT(untrusted.message, HasSubstr("not trusted"));
  // A client that expects encryption reports its absence.
  Daemon plain({"--listen=tcp:127.0.0.1:0"});
  options.address = TcpAddress(plain);
  EXPECT_THAT(MustFail(TenantOf(options)).message, HasSubstr("speaks no TLS"));
}

TEST_F(TlsTest, RequiredCertificateIdentifiesTheTenant) {
  Start({"--tls-client-ca=" + authority_->certificate()});
  EXPECT_EQ(Must(TenantOf(Options("physics"))), "tenants/physics");
  EXPECT_TRUE(
      IsError(MustFail(TenantOf(Options("nobody"))), Code::kUnauthenticated, "UNAUTHENTICATED"));
  // Without one the handshake fails, with or without a token. A certificate of an unknown authority
  // fails too.
  ConnectOptions bare = Options();
  bare.token = token_;
  bare.connect_timeout = std::chrono::milliseconds(1500);
  bare.default_timeout = std::chrono::seconds(2);
  EXPECT_TRUE(IsError(MustFail(TenantOf(bare)), Code::kUnavailable, ""));
  Authority stranger(folder_, "stranger");
  stranger.Sign("forged", "physics-laptop", "URI:spiffe://lab/physics");
  ConnectOptions forged = Options("forged");
  forged.connect_timeout = std::chrono::milliseconds(1500);
  forged.default_timeout = std::chrono::seconds(2);
  EXPECT_TRUE(IsError(MustFail(TenantOf(forged)), Code::kUnavailable, ""));
}

TEST_F(TlsTest, CertificateMayBeOptional) {
  Start({"--tls-client-ca=" + authority_->certificate(), "--tls-client-optional"});
  EXPECT_EQ(Must(TenantOf(Options("physics"))), "tenants/physics");
  ConnectOptions bare = Options();
  bare.token = token_;
  EXPECT_EQ(Must(TenantOf(bare)), "tenants/a");
  // A token is explicit: it takes precedence.
  ConnectOptions both = Options("physics");
  both.token = token_;
  EXPECT_EQ(Must(TenantOf(both)), "tenants/a");
  EXPECT_FALSE(TenantOf(Options()).ok());
}

TEST_F(TlsTest, NewCertificatesAreLoadedIfTheyMatch) {
  Start();
  ConnectOptions old = Options();
  old.token = token_;
  EXPECT_EQ(Must(TenantOf(old)), "tenants/a");
  Authority next(folder_, "next");
  next.Sign("renewed", "daemon", "IP:127.0.0.1");
  // The certificate without its key: the old pair stays in use.
  std::filesystem::rename(folder_ / "renewed.pem", folder_ / "daemon.pem");
  EXPECT_EQ(Must(TenantOf(old)), "tenants/a");
  EXPECT_TRUE(daemon_->WaitForLog("TLS files are refused", std::chrono::seconds(100)));
  std::filesystem::rename(folder_ / "renewed.key", folder_ / "daemon.key");
  EXPECT_TRUE(daemon_->WaitForLog("TLS certificates read", std::chrono::seconds(60)));
  ConnectOptions renewed = old;
  renewed.tls_ca = next.certificate();
  EXPECT_EQ(Must(TenantOf(renewed)), "tenants/a");
  old.connect_timeout = std::chrono::milliseconds(1000);
  EXPECT_FALSE(TenantOf(old).ok());
}

TEST_F(TlsTest, InvalidFilesPreventStart) {
  authority_->Sign("other", "other", "DNS:other");
  std::filesystem::rename(folder_ / "other.key", folder_ / "daemon.key");
  EXPECT_THAT(StartAndFail("--listen=unix:" + (folder_ / "s") + " --tls-cert=" +
                           (folder_ / "daemon.pem") + " --tls-key=" + (folder_ / "daemon.key")),
              HasSubstr("is not of the certificate"));
  EXPECT_THAT(
      StartAndFail("--listen=unix:" + (folder_ / "s") + " --tls-cert=" + (folder_ / "daemon.pem")),
      HasSubstr("belong together"));
}

TEST(ReachTest, PublicAddressNeedsEncryptionAndTenants) {
  EXPECT_THAT(StartAndFail("--listen=tcp:0.0.0.0:0"), HasSubstr("--insecure"));
  Folder folder;
  const std::string tenants = folder.Put("tenants.conf", "[tenant a]\n");
  EXPECT_THAT(StartAndFail("--listen=tcp:0.0.0.0:0 --tenants=" + tenants), HasSubstr("--tls-cert"));
}

// --- client-side refusals ---

TEST(ClientTokenTest, TokenIsNotSentUnencryptedToRemoteHost) {
  const std::string token = identity::NewToken();
  for (const char* address : {"203.0.113.7:7433", "example.org:7433", "[2001:db8::1]:7433"}) {
    const Error error = MustFail(Client::Connect({.address = address, .token = token}));
    EXPECT_TRUE(IsError(error, Code::kInvalidArgument, "")) << address;
    EXPECT_THAT(error.message, HasSubstr("unencrypted"));
    EXPECT_THAT(error.message, Not(HasSubstr(token)));
  }
}

// --- two tenants ---

// Calls every method that takes a name as a tenant that is not the owner, and again with a name
// that does not exist. The responses must differ only in the name.
class TwoTenantsTest : public ::testing::Test {
 protected:
  struct Attempt {
    std::string method;
    // The request for a name.
    std::function<std::string(const std::string& name)> request;
    std::string real, absent;
  };

  TwoTenantsTest() {
    session_ = owner_
                   .Get<v1::CreateSessionResponse>("SessionService/CreateSession",
                                                   v1::CreateSessionRequest())
                   .session()
                   .name();
    v1::CreateArrayRequest array;
    array.set_parent("tenants/owner");
    array.set_array_id("secret");
    array.mutable_spec()->set_data_type(v1::DATA_TYPE_INT32);
    array.mutable_spec()->add_shape(4);
    owner_.Get<v1::CreateArrayResponse>("ArrayService/CreateArray", array);
    array.set_parent(session_);
    array.set_array_id("1");
    owner_.Get<v1::CreateArrayResponse>("ArrayService/CreateArray", array);
    v1::CreateModuleRequest module;
    module.set_module_id("secret");
    module.mutable_module()->set_source("extern \"C\" __global__ void f(int* x) { x[0] = 1; }");
    owner_.Get<v1::CreateModuleResponse>("KernelService/CreateModule", module);
    v1::CreateFunctionRequest function;
    function.set_function_id("secret");
    auto* body = function.mutable_function()->mutable_ufunc()->mutable_body();
    body->mutable_expression()->set_text("x");
    body->mutable_expression()->add_parameters("x");
    owner_.Get<v1::CreateFunctionResponse>("FunctionService/CreateFunction", function);
    v1::CreateProgramRequest program;
    program.set_program_id("secret");
    Fill(program.mutable_program()->add_operations())->set_handle(1);
    program.mutable_program()->add_outputs(1);
    owner_.Get<v1::CreateProgramResponse>("ProgramService/CreateProgram", program);
    v1::CreateJobRequest job;
    job.set_job_id("secret");
    Fill(job.mutable_job()->add_operations())->set_name("tenants/owner/arrays/of-job");
    owner_.Get<v1::CreateJobResponse>("JobService/CreateJob", job);
  }

  static v1::Output* Fill(v1::Operation* operation) {
    auto* spec = operation->mutable_creation()->mutable_fill()->mutable_spec();
    spec->set_data_type(v1::DATA_TYPE_INT32);
    spec->add_shape(4);
    return operation->add_outputs();
  }
  template <typename Request>
  static std::string Named(const std::string& name) {
    Request request;
    request.set_name(name);
    return request.SerializeAsString();
  }
  template <typename Request>
  static std::string Under(const std::string& parent) {
    Request request;
    request.set_parent(parent);
    return request.SerializeAsString();
  }
  static std::string Copy(const std::string& name) {
    v1::RunRequest request;
    request.mutable_operation()->mutable_copy()->mutable_input()->set_name(name);
    request.mutable_operation()->add_outputs()->set_inline_result(true);
    return request.SerializeAsString();
  }
  static std::string CopyHandle(const std::string& session) {
    v1::RunRequest request;
    request.set_session(session);
    request.mutable_operation()->mutable_copy()->mutable_input()->set_handle(1);
    request.mutable_operation()->add_outputs()->set_inline_result(true);
    return request.SerializeAsString();
  }
  static std::string FillInto(const std::string& name, bool existing) {
    v1::RunRequest request;
    v1::Output* output = Fill(request.mutable_operation());
    output->set_name(name);
    output->set_existing(existing);
    return request.SerializeAsString();
  }
  static std::string JobInto(const std::string& name) {
    v1::CreateJobRequest request;
    Fill(request.mutable_job()->add_operations())->set_name(name);
    return request.SerializeAsString();
  }
  static std::string Launch(const std::string& module) {
    v1::RunRequest request;
    auto* launch = request.mutable_operation()->mutable_kernel_launch();
    launch->set_module(module);
    launch->set_entry("f");
    launch->mutable_grid()->set_x(1);
    launch->mutable_block()->set_x(1);
    auto* array = launch->add_arguments()->mutable_array()->mutable_inline_array();
    array->mutable_spec()->set_data_type(v1::DATA_TYPE_INT32);
    array->mutable_spec()->add_shape(1);
    array->set_data(std::string(4, '\0'));
    return request.SerializeAsString();
  }
  static std::string Execute(const std::string& session) {
    v1::ExecuteRequest request;
    request.set_session(session);
    request.add_commands()->mutable_fetch()->set_handle(1);
    return request.SerializeAsString();
  }
  static std::string Create(const std::string& parent) {
    v1::CreateArrayRequest request;
    request.set_parent(parent);
    request.set_array_id("7");
    request.mutable_spec()->set_data_type(v1::DATA_TYPE_INT32);
    request.mutable_spec()->add_shape(4);
    return request.SerializeAsString();
  }
  static std::string Replay(const std::string& program) {
    v1::RunRequest request;
    request.mutable_operation()->mutable_program_call()->set_program(program);
    request.mutable_operation()->add_outputs()->set_inline_result(true);
    return request.SerializeAsString();
  }
  static std::string PutHeader(const std::string& parent, const std::string& id) {
    v1::PutArrayRequest request;
    request.mutable_header()->set_parent(parent);
    request.mutable_header()->set_array_id(id);
    request.mutable_header()->mutable_spec()->set_data_type(v1::DATA_TYPE_INT32);
    request.mutable_header()->mutable_spec()->add_shape(4);
    return request.SerializeAsString();
  }

  std::vector<Attempt> Attempts() const {
    const std::string array = "tenants/owner/arrays/secret", no_array = "tenants/owner/arrays/none";
    const std::string handle = session_ + "/arrays/1", no_handle = "sessions/none/arrays/1";
    const std::string job = "tenants/owner/jobs/secret", no_job = "tenants/owner/jobs/none";
    const std::string module = "tenants/owner/modules/secret",
                      no_module = "tenants/owner/modules/none";
    const std::string function = "tenants/owner/functions/secret",
                      no_function = "tenants/owner/functions/none";
    const std::string program = "tenants/owner/programs/secret",
                      no_program = "tenants/owner/programs/none";
    const std::string tenant = "tenants/owner", no_tenant = "tenants/none";
    const std::string none = "sessions/none";
    auto put = [](const std::string& name) {
      const size_t at = name.find("/arrays/");
      return PutHeader(name.substr(0, at), name.substr(at + 8));
    };
    return {
        {"SessionService/GetSession", Named<v1::GetSessionRequest>, session_, none},
        {"SessionService/RenewSession", Named<v1::RenewSessionRequest>, session_, none},
        {"SessionService/ReadPrinted", Named<v1::ReadPrintedRequest>, session_, none},
        {"SessionService/DeleteSession", Named<v1::DeleteSessionRequest>, session_, none},
        {"ArrayService/CreateArray", Create, tenant, no_tenant},
        {"ArrayService/CreateArray", Create, session_, none},
        {"ArrayService/PutArray", put, array, no_array},
        {"ArrayService/PutArray", put, handle, no_handle},
        {"ArrayService/FetchArray", Named<v1::FetchArrayRequest>, array, no_array},
        {"ArrayService/FetchArray", Named<v1::FetchArrayRequest>, handle, no_handle},
        {"ArrayService/GetArray", Named<v1::GetArrayRequest>, array, no_array},
        {"ArrayService/GetArray", Named<v1::GetArrayRequest>, handle, no_handle},
        {"ArrayService/ListArrays", Under<v1::ListArraysRequest>, tenant, no_tenant},
        {"ArrayService/ListArrays", Under<v1::ListArraysRequest>, session_, none},
        {"ArrayService/DeleteArray", Named<v1::DeleteArrayRequest>, array, no_array},
        {"ArrayService/DeleteArray", Named<v1::DeleteArrayRequest>, handle, no_handle},
        {"ComputeService/Run", Copy, array, no_array},
        {"ComputeService/Run", Copy, handle, no_handle},
        {"ComputeService/Run", CopyHandle, session_, none},
        {"ComputeService/Run", [](const auto& name) { return FillInto(name, false); }, array,
         no_array},
        {"ComputeService/Run", [](const auto& name) { return FillInto(name, true); }, array,
         no_array},
        {"ComputeService/Run", Launch, module, no_module},
        {"ComputeService/Execute", Execute, session_, none},
        {"JobService/CreateJob", Under<v1::CreateJobRequest>, tenant, no_tenant},
        {"JobService/CreateJob", JobInto, array, no_array},
        {"JobService/GetJob", Named<v1::GetJobRequest>, job, no_job},
        {"JobService/ListJobs", Under<v1::ListJobsRequest>, tenant, no_tenant},
        {"JobService/WatchJob", Named<v1::WatchJobRequest>, job, no_job},
        {"JobService/CancelJob", Named<v1::CancelJobRequest>, job, no_job},
        {"JobService/DeleteJob", Named<v1::DeleteJobRequest>, job, no_job},
        {"KernelService/CreateModule", Under<v1::CreateModuleRequest>, tenant, no_tenant},
        {"KernelService/GetModule", Named<v1::GetModuleRequest>, module, no_module},
        {"KernelService/ListModules", Under<v1::ListModulesRequest>, tenant, no_tenant},
        {"KernelService/DeleteModule", Named<v1::DeleteModuleRequest>, module, no_module},
        {"FunctionService/CreateFunction", Under<v1::CreateFunctionRequest>, tenant, no_tenant},
        {"FunctionService/GetFunction", Named<v1::GetFunctionRequest>, function, no_function},
        {"FunctionService/ListFunctions", Under<v1::ListFunctionsRequest>, tenant, no_tenant},
        {"FunctionService/DeleteFunction", Named<v1::DeleteFunctionRequest>, function, no_function},
        {"ComputeService/Run", Replay, program, no_program},
        {"ProgramService/CreateProgram", Under<v1::CreateProgramRequest>, tenant, no_tenant},
        {"ProgramService/GetProgram", Named<v1::GetProgramRequest>, program, no_program},
        {"ProgramService/ListPrograms", Under<v1::ListProgramsRequest>, tenant, no_tenant},
        {"ProgramService/DeleteProgram", Named<v1::DeleteProgramRequest>, program, no_program},
    };
  }

  Daemon daemon_{{"--trust-tenant-header"}};
  Rpc owner_{daemon_.address(), "owner"};
  Rpc other_{daemon_.address(), "other"};
  std::string session_;
};

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TEST_F(TwoTenantsTest, ResourcesOfOtherTenantsAreNotFound) {
  for (const Attempt& attempt : Attempts()) {
    SCOPED_TRACE(attempt.method + " of " + attempt.real);
    const Outcome real = other_.Call(attempt.method, {attempt.request(attempt.real)});
    const Outcome absent = other_.Call(attempt.method, {attempt.request(attempt.absent)});
    EXPECT_EQ(real.code, 5) << real.ToString();
    // Commands of a stream have separate results; a refused session ends it.
    EXPECT_TRUE(real.replies.empty());
    // The error of a handle names its session.
    auto same = [&](const std::string& text) {
      return Replaced(Replaced(text, attempt.absent, attempt.real), "sessions/none", session_);
    };
    EXPECT_EQ(real.ToString(), same(absent.ToString()));
    EXPECT_EQ(real.resource, same(absent.resource));
  }
}

TEST_F(TwoTenantsTest, ListsContainOnlyOwnResources) {
  EXPECT_EQ(other_.Get<v1::ListArraysResponse>("ArrayService/ListArrays", v1::ListArraysRequest())
                .arrays_size(),
            0);
  EXPECT_EQ(
      other_.Get<v1::ListJobsResponse>("JobService/ListJobs", v1::ListJobsRequest()).jobs_size(),
      0);
  EXPECT_EQ(
      other_.Get<v1::ListModulesResponse>("KernelService/ListModules", v1::ListModulesRequest())
          .modules_size(),
      0);
  EXPECT_GE(owner_.Get<v1::ListArraysResponse>("ArrayService/ListArrays", v1::ListArraysRequest())
                .arrays_size(),
            1);
  const auto usage =
      other_.Get<v1::GetUsageResponse>("TenantService/GetUsage", v1::GetUsageRequest()).usage();
  EXPECT_EQ(usage.tenant(), "tenants/other");
  EXPECT_EQ(usage.operations() + usage.jobs() + usage.devices_size(), 0);
}

TEST_F(TwoTenantsTest, EqualNamesAreDifferentResources) {
  v1::CreateSessionRequest session;
  session.set_session_id(session_.substr(session_.find('/') + 1));
  EXPECT_TRUE(other_.Call("SessionService/CreateSession", session).ok());
  v1::CreateArrayRequest array;
  array.set_parent("tenants/other");
  array.set_array_id("secret");
  array.mutable_spec()->set_data_type(v1::DATA_TYPE_INT8);
  array.mutable_spec()->add_shape(1);
  EXPECT_TRUE(other_.Call("ArrayService/CreateArray", array).ok());
  v1::GetArrayRequest get;
  get.set_name("tenants/owner/arrays/secret");
  EXPECT_EQ(owner_.Get<v1::GetArrayResponse>("ArrayService/GetArray", get).array().data_type(),
            v1::DATA_TYPE_INT32);
  // A request id of another tenant does not replay its job.
  v1::CreateJobRequest job;
  job.set_request_id("11111111-1111-4111-8111-111111111111");
  Fill(job.mutable_job()->add_operations())->set_name("tenants/owner/arrays/by-id");
  const std::string first =
      owner_.Get<v1::CreateJobResponse>("JobService/CreateJob", job).job().name();
  job.mutable_job()->mutable_operations(0)->mutable_outputs(0)->set_name(
      "tenants/other/arrays/by-id");
  const std::string second =
      other_.Get<v1::CreateJobResponse>("JobService/CreateJob", job).job().name();
  EXPECT_THAT(first, HasSubstr("tenants/owner/"));
  EXPECT_THAT(second, HasSubstr("tenants/other/"));
}

// The table above must cover the contract.
TEST_F(TwoTenantsTest, EveryMethodWithANameIsCovered) {
  std::set<std::string> tried;
  for (const Attempt& attempt : Attempts()) tried.insert(attempt.method);
  // Names of shared resources, or of none.
  const std::set<std::string> kCommon = {"SessionService/CreateSession",
                                         "DeviceService/ListDevices", "DeviceService/GetDevice",
                                         "DeviceService/WatchDevices", "TenantService/GetUsage"};
  for (const google::protobuf::FileDescriptor* file :
       {v1::PutArrayRequest::descriptor()->file(), v1::RunRequest::descriptor()->file(),
        v1::GetDeviceRequest::descriptor()->file(), v1::GetJobRequest::descriptor()->file(),
        v1::GetModuleRequest::descriptor()->file(), v1::GetSessionRequest::descriptor()->file(),
        v1::GetUsageRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service(0)->method_count(); ++i) {
      const std::string method =
          file->service(0)->name() + "/" + file->service(0)->method(i)->name();
      EXPECT_TRUE(tried.count(method) > 0 || kCommon.count(method) > 0) << method;
    }
  }
}

}  // namespace
}  // namespace stride::testing
