#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "client/npy/reader.h"
#include "client/npy/writer.h"
#include "tests/support/temporary_folder.h"

namespace stride::npy {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    std::string name = fs::temp_directory_path() / "npy.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~FilesTest() override { stride::test_support::RemoveFolder(folder_); }

  std::string Path(const std::string& name) { return folder_ / name; }
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(Path(name), std::ios::binary) << content;
  }
  size_t NumFiles() {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

std::string WithOrder(const char* descr, const char* order, const char* shape,
                      const std::string& body) {
  std::string text = std::string("{'descr': '") + descr + "', 'fortran_order': " + order +
                     ", 'shape': " + shape + ", }\n";
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(text.size());
  head += '\0';
  return head + text + body;
}

TEST_F(FilesTest, WriteThenReadReturnsTheArray) {
  const std::vector<int32_t> values = {1, -2, 3, 4, 5, 6};
  auto writer = Writer::Create(Path("a.npy"), {DataType::kInt32, {2, 3}});
  ASSERT_TRUE(writer.ok());
  ASSERT_EQ(writer->data().size(), 24u);
  std::memcpy(writer->data().data(), values.data(), 24);
  ASSERT_TRUE(writer->Commit().ok());
  const auto reader = Reader::Open(Path("a.npy"));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->spec(), (ArraySpec{DataType::kInt32, {2, 3}}));
  EXPECT_EQ(std::memcmp(reader->data().data(), values.data(), 24), 0);
}

TEST_F(FilesTest, AbandonedWriteKeepsTheOldFile) {
  Write("a.npy", "old");
  {
    auto writer = Writer::Create(Path("a.npy"), {DataType::kInt32, {1000}});
    ASSERT_TRUE(writer.ok());
  }
  EXPECT_EQ(fs::file_size(Path("a.npy")), 3u);
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(FilesTest, RawHasNoHeader) {
  auto writer = Writer::Create(Path("a.raw"), {DataType::kBfloat16, {3}}, /*raw=*/true);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(fs::file_size(Path("a.raw")), 6u);
}

TEST_F(FilesTest, FortranOrderIsConverted) {
  // [[0 1 2] [3 4 5]], first axis fastest.
  Write("f.npy", WithOrder("|u1", "True", "(2, 3)", std::string("\0\3\1\4\2\5", 6)));
  const auto reader = Reader::Open(Path("f.npy"));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_TRUE(reader->fortran_order());
  const auto ordered = reader->InCOrder();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(std::to_integer<int>(ordered[static_cast<size_t>(i)]), i);
}

TEST_F(FilesTest, BigEndianIsConverted) {
  Write("b.npy", WithOrder(">u2", "False", "(2,)", std::string("\1\2\3\4", 4)));
  const auto reader = Reader::Open(Path("b.npy"));
  ASSERT_TRUE(reader.ok());
  uint16_t values[2];
  std::memcpy(values, reader->data().data(), 4);
  EXPECT_EQ(values[0], 0x0102);
  EXPECT_EQ(values[1], 0x0304);
}

TEST_F(FilesTest, ErrorsNameTheMistake) {
  Write("short.npy", WithOrder("<u2", "False", "(2,)", "abc"));
  Write("long.npy", WithOrder("<u2", "False", "(2,)", "abcde"));
  Write("empty.npy", "");
  EXPECT_THAT(Reader::Open(Path("short.npy")).error().message,
              HasSubstr("takes 4 bytes, 3 follow"));
  EXPECT_THAT(Reader::Open(Path("long.npy")).error().message, HasSubstr("takes 4 bytes, 5 follow"));
  EXPECT_THAT(Reader::Open(Path("empty.npy")).error().message, HasSubstr("does not begin"));
  EXPECT_EQ(Reader::Open(Path("none.npy")).error().code, Code::kNotFound);
  EXPECT_THAT(Reader::Open(folder_).error().message, HasSubstr("directory"));
  EXPECT_EQ(Writer::Create(Path("no/such/folder.npy"), {DataType::kInt8, {1}}).error().code,
            Code::kNotFound);
}

}  // namespace
}  // namespace stride::npy
