#include "server/identity/tenants_file.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stride::identity {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const absl::Time kNow = absl::FromUnixSeconds(1800000000);  // 15 January 2027

std::string Line(const std::string& token) { return "token = " + ToText(HashToken(token)); }

std::string MessageOf(const std::string& text) {
  auto table = ParseTenantsFile(text);
  return table.ok() ? "accepted" : std::string(table.status().message());
}

TEST(TenantsFileTest, ReadsEverything) {
  std::string laptop = NewToken(), robot = NewToken();
  auto table = ParseTenantsFile(absl::StrCat("# comment\n\n[defaults]\nsessions = 7\n",
                                             "[tenant physics]\n"
                                             "array-bytes = 64GiB\ninline-bytes=1000\n"
                                             "control-bytes = 256MiB\n"
                                             "operations = 10\njobs = 3\n"
                                             "upload-bytes-per-second = 2 MiB\nweight = 2.5\n",
                                             Line(laptop), " name=laptop\n",  //
                                             "certificate = uri:spiffe://lab/physics\n",
                                             "certificate = cn:physics\n",
                                             "[tenant biology]\nsessions = 9\n",  //
                                             Line(robot), " expires=2027-06-30\n"));
  ASSERT_TRUE(table.ok()) << table.status();
  Quota physics = (*table)->quotas().at({"physics"});
  EXPECT_EQ(physics, (Quota{.array_bytes = int64_t{64} << 30,
                            .inline_bytes = 1000,
                            .control_bytes = 256 << 20,
                            .operations = 10,
                            .jobs = 3,
                            .sessions = 7,
                            .upload_bytes_per_second = 2 << 20,
                            .weight = 2.5}));
  EXPECT_EQ((*table)->quotas().at({"biology"}), (Quota{.sessions = 9}));
  EXPECT_EQ((*table)->default_quota, (Quota{.sessions = 7}));
  auto who = (*table)->FindToken(laptop, kNow);
  ASSERT_TRUE(who.has_value());
  EXPECT_EQ(who->tenant.value, "physics");
  EXPECT_EQ(who->name, "token:laptop");
  EXPECT_EQ((*table)->FindToken(robot, kNow)->tenant.value, "biology");
  EXPECT_EQ((*table)->FindCertificate({"dns:other", "cn:physics"})->tenant.value, "physics");
  EXPECT_FALSE((*table)->FindCertificate({"uri:physics", "dns:physics"}).has_value());
}

TEST(TenantsFileTest, TokensExpire) {
  std::string token = NewToken();
  auto table = ParseTenantsFile("[tenant a]\n" + Line(token) + " expires=2027-01-16T12:00:00Z\n");
  ASSERT_TRUE(table.ok()) << table.status();
  absl::Time end = absl::FromCivil(absl::CivilSecond(2027, 1, 16, 12), absl::UTCTimeZone());
  EXPECT_TRUE((*table)->FindToken(token, kNow).has_value());
  EXPECT_TRUE((*table)->FindToken(token, end - absl::Seconds(1)).has_value());
  EXPECT_FALSE((*table)->FindToken(token, end).has_value());
}

TEST(TenantsFileTest, InvalidTokenMatchesNoTenant) {
  // A user has entered the hash of a short password.
  std::string token = NewToken();
  auto table = ParseTenantsFile("[tenant a]\n" + Line("secret") + "\n" + Line("") + "\n" +
                                Line(token) + "\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE((*table)->FindToken(token, kNow).has_value());
  EXPECT_FALSE((*table)->FindToken("secret", kNow).has_value());
  EXPECT_FALSE((*table)->FindToken("", kNow).has_value());
  EXPECT_FALSE((*table)->FindToken(NewToken(), kNow).has_value());
  EXPECT_FALSE((*table)->FindToken(token + " ", kNow).has_value());
  EXPECT_FALSE((*table)->FindToken(ToText(HashToken(token)), kNow).has_value());
  EXPECT_FALSE((*table)->FindToken(std::string(100000, 'x'), kNow).has_value());
}

TEST(TenantsFileTest, ErrorNamesTheLine) {
  const std::pair<std::string, std::string> kBad[] = {
      {"sessions = 3", "line 1: stands before"},
      {"[tenant A]", "line 1: a tenant's name"},
      {"[tenant ]", "line 1: "},
      {"[tenant a", "line 1: a section is"},
      {"[group a]", "line 1: a section is"},
      {"[tenant a]\n[tenant a]", "line 2: this tenant has a section"},
      {"[tenant a]\n[defaults]", "line 2: [defaults] stands once"},
      {"[defaults]\n[defaults]", "line 2: [defaults] stands once"},
      {"[defaults]\n" + Line("x"), "line 2: a token belongs"},
      {"[tenant a]\nsessions", "line 2: not of the form"},
      {"[tenant a]\nsesions = 3", "line 2: unknown key"},
      {"[tenant a]\nsessions = many", "line 2: sessions must be"},
      {"[tenant a]\nsessions = -1", "line 2: sessions must be"},
      {"[tenant a]\narray-bytes = 3 GB", "line 2: array-bytes must be"},
      {"[tenant a]\narray-bytes = 99999999TiB", "line 2: array-bytes must be"},
      {"[tenant a]\nupload-bytes-per-second = 0", "line 2: upload-bytes-per-second is not 0"},
      {"[tenant a]\nweight = 0", "line 2: weight"},
      {"[tenant a]\nweight = nan", "line 2: weight"},
      {"[tenant a]\ncertificate = physics", "line 2: a certificate is named"},
      {"[tenant a]\ncertificate = cn:", "line 2: a certificate is named"},
      {"[tenant a]\ncertificate = cn:x\n[tenant b]\ncertificate = cn:x", "line 4: this certif"},
      {"[tenant a]\n" + Line("x") + "\n\n[tenant b]\n" + Line("x"), "line 5: this token stands"},
      {"[tenant a]\n" + Line("x") + " expires=soon", "line 2: expires must be"},
      {"[tenant a]\n" + Line("x") + " nme=x", "line 2: only name=NAME and expires=TIME may follow"},
      {"[tenant a]\n" + Line("x") + " name=a\"b", "line 2: a token's name"},
      {"[tenant a]\ntoken =", "line 2: a token needs"},
  };
  for (const auto& [text, words] : kBad) EXPECT_THAT(MessageOf(text), HasSubstr(words)) << text;
}

TEST(TenantsFileTest, ErrorDoesNotRepeatAToken) {
  std::string token = NewToken();
  std::string message = MessageOf("[tenant a]\ntoken = " + token);
  EXPECT_THAT(message, HasSubstr("line 2"));
  EXPECT_THAT(message, Not(HasSubstr(token)));
}

}  // namespace
}  // namespace stride::identity
