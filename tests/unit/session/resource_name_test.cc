#include "server/session/resource_name.h"

#include "gtest/gtest.h"

namespace stride::session {
namespace {

TEST(ResourceName, AcceptsBothForms) {
  auto handle = ParseArrayName("sessions/abc/arrays/7", "name");
  ASSERT_TRUE(handle.ok());
  EXPECT_EQ(handle->session, "abc");
  EXPECT_EQ(handle->handle, 7u);
  EXPECT_EQ(handle->ToString(), "sessions/abc/arrays/7");
  auto named = ParseArrayName("tenants/default/arrays/Weights_1.v2", "name");
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->ToString(), "tenants/default/arrays/Weights_1.v2");
}

TEST(ResourceName, RefusesEverythingElse) {
  for (const char* name :
       {"", "/", "sessions", "sessions//arrays/1", "sessions/a/arrays/", "sessions/a/arrays/0",
        "sessions/a/arrays/-1", "sessions/a/arrays/01", "sessions/a/arrays/1x",
        "sessions/a/arrays/18446744073709551616", "sessions/A/arrays/1", "sessions/a/arrays/1/2",
        "tenants/t/arrays/..", "tenants/t/arrays/../x", "tenants/t/arrays/a b",
        "tenants/../arrays/x", "users/t/arrays/x", "tenants/t/jobs/x"}) {
    EXPECT_EQ(ParseArrayName(name, "name").status().code(), absl::StatusCode::kInvalidArgument)
        << name;
  }
}

}  // namespace
}  // namespace stride::session
