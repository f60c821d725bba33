#include "client/npy/header.h"

#include <gmock/gmock.h>

#include <random>

namespace stride::npy {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// A file of this version with this header text.
std::string File(const std::string& text, int major = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  file += static_cast<char>(text.size() & 255);
  file += static_cast<char>(text.size() >> 8);
  if (major > 1) file += std::string(2, '\0');
  return file + text;
}

std::string Dictionary(const std::string& descr, const std::string& order,
                       const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

TEST(HeaderTest, ReadsWhatNumPyWrites) {
  struct Row {
    std::string descr, shape;
    DataType type;
    std::vector<int64_t> extents;
  };
  const Row rows[] = {{"'|b1'", "()", DataType::kBool, {}},
                      {"'|i1'", "(3,)", DataType::kInt8, {3}},
                      {"'<i2'", "(3, 4)", DataType::kInt16, {3, 4}},
                      {"'<i4'", "(0,)", DataType::kInt32, {0}},
                      {"'<i8'", "(1, 2, 3)", DataType::kInt64, {1, 2, 3}},
                      {"'|u1'", "(7,)", DataType::kUint8, {7}},
                      {"'<u2'", "(7,)", DataType::kUint16, {7}},
                      {"'<u4'", "(7,)", DataType::kUint32, {7}},
                      {"'<u8'", "(7,)", DataType::kUint64, {7}},
                      {"'<f2'", "(7,)", DataType::kFloat16, {7}},
                      {"'<f4'", "(7,)", DataType::kFloat32, {7}},
                      {"'<f8'", "(5000000000,)", DataType::kFloat64, {5000000000}},
                      {"'<c8'", "(7,)", DataType::kComplex64, {7}},
                      {"\"<c16\"", "(7,)", DataType::kComplex128, {7}}};
  for (int major : {1, 2, 3}) {
    for (const auto& row : rows) {
      const std::string file = File(Dictionary(row.descr, "False", row.shape), major);
      const auto header = ParseHeader(Bytes(file));
      ASSERT_TRUE(header.ok()) << row.descr << header.error().message;
      EXPECT_EQ(header->spec, (ArraySpec{row.type, row.extents}));
      EXPECT_FALSE(header->fortran_order);
      EXPECT_EQ(header->data_offset, file.size());
    }
  }
}

TEST(HeaderTest, KeepsOrderOfAxesAndBytes) {
  const auto header = ParseHeader(Bytes(File(Dictionary("'>f8'", "True", "(2, 3)"))));
  ASSERT_TRUE(header.ok());
  EXPECT_TRUE(header->fortran_order);
  EXPECT_TRUE(header->big_endian);
}

TEST(HeaderTest, RefusesHostileHeaders) {
  const std::string good = Dictionary("'<f4'", "False", "(3,)");
  struct Row {
    std::string file, message;
    Code code;
  };
  const Row rows[] = {
      {"", "does not begin", Code::kInvalidArgument},
      {"hello, world", "does not begin", Code::kInvalidArgument},
      {"\x93NUMPY", "ends within the version", Code::kInvalidArgument},
      {"\x93NUMPY\x01", "ends within the version", Code::kInvalidArgument},
      {std::string("\x93NUMPY\x01\x00\x10", 9), "ends within the header's length",
       Code::kInvalidArgument},
      {File(good, 4), "version 4.0", Code::kInvalidArgument},
      {std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), "claims 4294967295",
       Code::kInvalidArgument},
      {File(good).substr(0, 40), "ends within the header", Code::kInvalidArgument},
      {File(""), "not a dictionary", Code::kInvalidArgument},
      {File("{"), "malformed", Code::kInvalidArgument},
      {File("{}"), "needs 'descr'", Code::kInvalidArgument},
      {File(good + " x"), "something follows", Code::kInvalidArgument},
      {File("{'descr': '<f4', 'descr': '<f4', }"), "comes twice", Code::kInvalidArgument},
      {File("{'descr': '<f4', 'evil': 1, }"), "unknown key", Code::kInvalidArgument},
      {File("{'descr': __import__('os'), }"), "not a string", Code::kInvalidArgument},
      {File(Dictionary("'<f4'", "Maybe", "(3,)")), "neither True nor False",
       Code::kInvalidArgument},
      {File(Dictionary("'<f4'", "False", "(3)")), "not a tuple", Code::kInvalidArgument},
      {File(Dictionary("'<f4'", "False", "(-3,)")), "not a tuple", Code::kInvalidArgument},
      {File(Dictionary("'<f4'", "False", "(3, , 4)")), "not a tuple", Code::kInvalidArgument},
      {File(Dictionary("'<f4'", "False", "(3 4)")), "not a tuple", Code::kInvalidArgument},
      {File(Dictionary("'<f4'", "False", "(99999999999999999999,)")), "not a tuple",
       Code::kInvalidArgument},
      {File(Dictionary("'<f8'", "False", "(4611686018427387904, 4)")), "more elements",
       Code::kInvalidArgument},
      {File(Dictionary(
           "'<f4'", "False",
           "(" +
               [] {
                 std::string s;
                 for (int i = 0; i < 33; ++i) s += "1,";
                 return s;
               }() +
               ")")),
       "33 axes", Code::kInvalidArgument},
      {File(Dictionary("'=f4'", "False", "(3,)")), "'descr' is", Code::kInvalidArgument},
      {File(Dictionary("'|f4'", "False", "(3,)")), "'descr' is", Code::kInvalidArgument},
      {File(Dictionary("'|O8'", "False", "(3,)")), "pickled", Code::kUnimplemented},
      {File(Dictionary("'<U8'", "False", "(3,)")), "no equal", Code::kUnimplemented},
      {File(Dictionary("'<V2'", "False", "(3,)")), "no equal", Code::kUnimplemented},
      {File(Dictionary("'<M8[ns]'", "False", "(3,)")), "no equal", Code::kUnimplemented},
      {File(Dictionary("[('a', '<f4')]", "False", "(3,)")), "Records", Code::kUnimplemented},
      {"PK\x03\x04rest", ".npz", Code::kUnimplemented}};
  for (const auto& row : rows) {
    const auto header = ParseHeader(Bytes(row.file));
    ASSERT_FALSE(header.ok()) << row.file;
    EXPECT_EQ(header.error().code, row.code) << row.file << ": " << header.error().message;
    EXPECT_THAT(header.error().message, HasSubstr(row.message)) << row.file;
  }
}

TEST(HeaderTest, WriteThenReadRoundTrips) {
  for (const ArraySpec& spec :
       {ArraySpec{DataType::kFloat32, {}}, ArraySpec{DataType::kBool, {5}},
        ArraySpec{DataType::kComplex128, {2, 3}}, ArraySpec{DataType::kInt64, {0, 1, 7}}}) {
    const auto text = FormatHeader(spec);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(text->size() % 64, 0u);
    const auto header = ParseHeader(Bytes(*text));
    ASSERT_TRUE(header.ok()) << header.error().message;
    EXPECT_EQ(header->spec, spec);
    EXPECT_EQ(header->data_offset, text->size());
  }
  EXPECT_EQ(FormatHeader({DataType::kBfloat16, {2}}).error().code, Code::kUnimplemented);
}

// Mutated and truncated headers give a result or an error. The sanitizer builds check that no byte
// outside is read.
TEST(HeaderTest, SurvivesMutations) {
  std::mt19937 random(7);
  const std::string good = File(Dictionary("'<f4'", "False", "(3, 4)"));
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good.substr(0, random() % (good.size() + 1));
    for (int i = 0; i < 3 && !bad.empty(); ++i)
      bad[random() % bad.size()] = static_cast<char>(random());
    const auto header = ParseHeader(Bytes(bad));
    if (header) {
      EXPECT_LE(header->data_offset, bad.size());
      EXPECT_TRUE(SizeBytes(header->spec).has_value());
    }
  }
}

}  // namespace
}  // namespace stride::npy
