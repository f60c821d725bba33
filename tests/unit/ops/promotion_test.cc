#include "server/ops/promotion.h"

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace stride::ops {
namespace {

std::optional<DType> ByName(const std::string& name) {
  for (int i = 1; i <= kNumDTypes; ++i) {
    if (Name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

ArgumentType ArgumentNamed(const std::string& name) {
  if (auto dtype = ByName(name)) return *dtype;
  if (name == "int") return WeakScalar(Integer{1});
  if (name == "float") return WeakScalar(1.0);
  return WeakScalar(std::complex<double>(0, 1));
}

// Every pair of types of every ufunc, compared with NumPy.
TEST(Promotion, MatchesNumPy) {
  std::ifstream file(STRIDE_CASES "/promotion.txt");
  ASSERT_TRUE(file.is_open());
  std::string line;
  int checked = 0, different = 0;
  while (std::getline(file, line)) {
    if (line[0] == '#') continue;
    std::istringstream words(line);
    std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
    const OpRow* row = FindOp(word[0]);
    ASSERT_NE(row, nullptr) << word[0];
    std::vector<ArgumentType> arguments;
    for (size_t i = 1; i + 1 < word.size(); ++i) arguments.push_back(ArgumentNamed(word[i]));
    auto loop = ResolveLoop(*row, arguments, std::nullopt, "x");
    std::string actual = loop.ok() ? std::string(Name(loop->result)) : "error";
    ++checked;
    if (actual != word.back() && ++different <= 40) ADD_FAILURE() << line << ", but got " << actual;
  }
  EXPECT_GT(checked, 10000);
  EXPECT_EQ(different, 0);
}

TEST(Promotion, BFloat16PromotesLikeFloat16) {
  EXPECT_EQ(PromoteTypes(DType::kBFloat16, DType::kFloat16), DType::kFloat32);
  EXPECT_EQ(PromoteTypes(DType::kBFloat16, DType::kInt8), DType::kBFloat16);
  EXPECT_EQ(PromoteTypes(DType::kUInt16, DType::kBFloat16), DType::kFloat32);
  EXPECT_EQ(PromoteTypes(DType::kBFloat16, DType::kInt32), DType::kFloat64);
  EXPECT_EQ(PromoteTypes(DType::kBFloat16, DType::kComplex64), DType::kComplex64);
  auto loop = ResolveLoop(*FindOp("sin"), {ArgumentType(DType::kBFloat16)}, std::nullopt, "x");
  ASSERT_TRUE(loop.ok());
  EXPECT_EQ(loop->result, DType::kBFloat16);
}

TEST(Promotion, ExplicitTypeCastsWithinTheKind) {
  auto resolve = [](const char* op, DType a, DType as) {
    return ResolveLoop(*FindOp(op), {a, a}, as, "x");
  };
  EXPECT_EQ(resolve("add", DType::kInt32, DType::kFloat32)->result, DType::kFloat32);
  EXPECT_EQ(resolve("add", DType::kFloat64, DType::kFloat32)->result, DType::kFloat32);
  EXPECT_FALSE(resolve("add", DType::kFloat64, DType::kInt32).ok());
  EXPECT_FALSE(resolve("less", DType::kFloat64, DType::kFloat32).ok());
  EXPECT_TRUE(resolve("less", DType::kFloat64, DType::kBool).ok());
}

TEST(OpTable, EveryNameIsUniqueAndDocumented) {
  for (const OpRow& row : OpTable()) {
    EXPECT_EQ(FindOp(row.name), &row);
    EXPECT_FALSE(row.doc.empty()) << row.name;
    EXPECT_TRUE(row.arity >= 1 && row.arity <= 3) << row.name;
  }
  EXPECT_EQ(FindOp("acos"), FindOp("arccos"));
  EXPECT_EQ(FindOp("divmod"), nullptr);
  EXPECT_EQ(FindTwoOutputUfunc("divmod")->second, "remainder");
  EXPECT_EQ(FindTwoOutputUfunc("add"), nullptr);
  EXPECT_EQ(SuggestOp("cosin"), "cos");
  EXPECT_EQ(SuggestOp("arctn2"), "arctan2");
  EXPECT_EQ(SuggestOp("frobnicate"), "");
}

}  // namespace
}  // namespace stride::ops
