// Damaged files of the cache of compiled code. The first byte chooses: the rest is the whole file,
// or the reply and the object of a file with correct checksums.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "server/broker/content_key.h"
#include "server/broker/module_files.h"
#include "tests/fuzz/driver/require.h"

namespace {

using stride::fuzz::Require;

class Folder {
 public:
  Folder() {
    char path[] = "/tmp/stride-module-files-XXXXXX";
    Require(mkdtemp(path) != nullptr, "no folder");
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string Sealed(std::string_view body, uint8_t split) {
  uint64_t reply = body.size() * split / 255;
  uint64_t sizes[] = {reply, body.size() - reply};
  std::string file = "strmod1\n";
  file.append(reinterpret_cast<const char*>(sizes), sizeof(sizes));
  return file + stride::broker::Sha256(body) + std::string(body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static Folder folder;
  static stride::broker::ModuleFiles files(folder.path(), 1 << 30);
  if (size < 2) return 0;
  std::string_view rest(reinterpret_cast<const char*>(bytes) + 2, size - 2);
  bool sealed = bytes[0] % 2 != 0;
  std::string path = folder.path() + "/key.module";
  std::ofstream(path, std::ios::binary) << (sealed ? Sealed(rest, bytes[1]) : std::string(rest));
  auto entry = files.Read("key");
  Require(entry.has_value() == (access(path.c_str(), F_OK) == 0), "a damaged file that stays");
  if (!entry.has_value()) return 0;
  Require(entry->object.size() <= rest.size(), "an object from nowhere");
  Require(files.Write("key", entry->reply, entry->object).ok(), "it cannot be written");
  auto again = files.Read("key");
  Require(again.has_value() && again->object == entry->object, "another object");
  return 0;
}
