// Names of arrays, sessions, jobs and modules: one name has one spelling, and none escapes its
// parent.

#include <cstdint>
#include <string>
#include <string_view>

#include "server/session/resource_name.h"
#include "tests/fuzz/driver/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using stride::fuzz::Require;
  namespace session = stride::session;
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  auto array = session::ParseArrayName(text, "name");
  if (array.ok()) {
    Require(array->ToString() == text, "a second spelling");
    Require(array->session.empty() != array->tenant.empty(), "of both a session and a tenant");
    Require(text.find("..") == std::string_view::npos || array->session.empty(), "dots");
    Require(text.find('\0') == std::string_view::npos, "a zero byte");
  }
  auto id = session::ParseSessionName(text, "name");
  if (id.ok()) Require("sessions/" + *id == text && session::IsSessionId(*id), "a session's name");
  for (const char* collection : {"jobs", "modules"}) {
    auto name = session::ParseTenantResource(text, collection, "name");
    if (!name.ok()) continue;
    Require("tenants/" + name->tenant + "/" + collection + "/" + name->id == text,
            "a tenant's resource");
    Require(name->id.find('/') == std::string::npos, "a slash in an id");
  }
  auto parent = session::ParseParent(text, {"caller"}, "parent");
  if (parent.ok()) Require(text.empty() || "tenants/" + *parent == text, "a parent");
  size_t cut = text.find('\n');
  if (cut == std::string_view::npos) return 0;
  auto made = session::MakeArrayName(text.substr(0, cut), text.substr(cut + 1), "parent", "id");
  if (made.ok())
    Require(session::ParseArrayName(made->ToString(), "name").ok(), "a name made but not read");
  return 0;
}
