#include "server/broker/module_files.h"

#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "server/broker/content_key.h"
#include "tests/support/temporary_folder.h"

namespace stride::broker {
namespace {

namespace fs = std::filesystem;

class ModuleFilesTest : public ::testing::Test {
 protected:
  ModuleFilesTest() {
    std::string pattern = (fs::temp_directory_path() / "modules-XXXXXX").string();
    base_ = mkdtemp(pattern.data());
    folder_ = base_ + "/cache";
    fs::create_directory(base_ + "/elsewhere");
    std::ofstream(base_ + "/elsewhere/precious.module") << "precious";
  }
  ~ModuleFilesTest() override { stride::test_support::RemoveFolder(base_); }
  bool PreciousIsThere() const { return fs::file_size(base_ + "/elsewhere/precious.module") == 8; }

  std::string base_, folder_;
};

TEST_F(ModuleFilesTest, LinkInPlaceOfFolderIsNotFollowed) {
  fs::create_directory_symlink(base_ + "/elsewhere", folder_);
  ModuleFiles files(folder_, 1);
  EXPECT_TRUE(files.Write("key", {}, "object").ok()) << "nothing is kept";
  EXPECT_FALSE(files.Read("key").has_value());
  EXPECT_FALSE(files.Read("precious").has_value());
  EXPECT_TRUE(PreciousIsThere());
  EXPECT_FALSE(fs::exists(base_ + "/elsewhere/key.module"));
}

TEST_F(ModuleFilesTest, LinkInPlaceOfFileIsNotFollowed) {
  ModuleFiles files(folder_, 1 << 20);
  fs::create_symlink(base_ + "/elsewhere/precious.module", folder_ + "/key.module");
  EXPECT_FALSE(files.Read("key").has_value());
  ASSERT_TRUE(files.Write("key", {}, "object").ok());
  EXPECT_EQ(files.Read("key")->object, "object");
  EXPECT_TRUE(PreciousIsThere());
}

TEST_F(ModuleFilesTest, AnyReaderReadsCompressedObjects) {
  const std::string object(100000, 'o'), large(1 << 20, 'l');
  wire::CompileReply reply;
  {
    ModuleFiles writer(folder_, 4 << 20, /*compress=*/true);
    reply.set_size(object.size());
    ASSERT_TRUE(writer.Write("object", reply, object).ok());
    reply.set_size(large.size());
    ASSERT_TRUE(writer.Write("large", reply, large).ok());
  }
  EXPECT_LT(fs::file_size(folder_ + "/object.module"), 2000u);
  EXPECT_GT(fs::file_size(folder_ + "/large.module"), large.size()) << "read at every start";
  ModuleFiles files(folder_, 4 << 20);
  EXPECT_EQ(files.Read("object")->object, object);
  EXPECT_EQ(files.Read("large")->object, large);
}

TEST_F(ModuleFilesTest, CompressedObjectOfWrongSizeIsDamaged) {
  // Sealed like a writer does, with a size that differs from its content.
  for (const uint64_t size : {uint64_t{99}, uint64_t{101}, uint64_t{1} << 60}) {
    wire::CompileReply reply;
    reply.set_size(size);
    const std::string stored = reply.SerializeAsString();
    uLongf compressed_size = compressBound(100);
    std::string compressed(compressed_size, '\0');
    const std::string object(100, 'o');
    ASSERT_EQ(compress(reinterpret_cast<Bytef*>(compressed.data()), &compressed_size,
                       reinterpret_cast<const Bytef*>(object.data()), object.size()),
              Z_OK);
    const std::string body = stored + compressed.substr(0, compressed_size);
    const uint64_t sizes[] = {stored.size(), compressed_size};
    std::string file = "strmodz\n";
    file.append(reinterpret_cast<const char*>(sizes), sizeof(sizes));
    file += Sha256(body) + body;
    ModuleFiles files(folder_, 1 << 20);
    std::ofstream(folder_ + "/key.module", std::ios::binary) << file;
    EXPECT_FALSE(files.Read("key").has_value()) << size;
    EXPECT_FALSE(fs::exists(folder_ + "/key.module"));
  }
}

TEST_F(ModuleFilesTest, OnlyOwnFilesAreEvicted) {
  ModuleFiles files(folder_, 1000);
  std::ofstream(folder_ + "/notes.txt") << std::string(5000, 'x');
  std::ofstream(folder_ + "/old.module.abcdef") << std::string(5000, 'x');  // an unfinished write
  fs::create_symlink(base_ + "/elsewhere/precious.module", folder_ + "/link.module");
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(files.Write("key" + std::to_string(i), {}, std::string(600, 'o')).ok());
  EXPECT_TRUE(fs::exists(folder_ + "/notes.txt"));
  EXPECT_FALSE(fs::exists(folder_ + "/old.module.abcdef"));
  EXPECT_FALSE(files.Read("key0").has_value());
  EXPECT_TRUE(PreciousIsThere());
}

}  // namespace
}  // namespace stride::broker
