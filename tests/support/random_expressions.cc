#include "tests/support/random_expressions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tests/support/plan_helpers.h"

namespace stride::testing {
namespace {

using Random = std::mt19937;

double AnyNumber(Random& random) {
  switch (random() % 12) {
    case 0:
      return 0.0;
    case 1:
      return -0.0;
    case 2:
      return INFINITY;
    case 3:
      return NAN;
    case 4:
      return 1e300;
    case 5:
      return 3e-310;
    default:
      return std::ldexp(static_cast<double>(random()) / 4294967296.0 - 0.5,
                        static_cast<int>(random() % 12));
  }
}

void FillElement(DType dtype, Random& random, char* element) {
  if (dtype == DType::kFloat64 || dtype == DType::kComplex128) {
    for (int64_t i = 0; i < ItemSize(dtype); i += 8) {
      const double value = AnyNumber(random);
      std::memcpy(element + i, &value, 8);
    }
  } else if (dtype == DType::kFloat32 || dtype == DType::kComplex64) {
    for (int64_t i = 0; i < ItemSize(dtype); i += 4) {
      const auto value = static_cast<float>(AnyNumber(random));
      std::memcpy(element + i, &value, 4);
    }
  } else {
    // Any bits, also in the byte of a bool. Small integers are as likely as large ones.
    for (int64_t i = 0; i < ItemSize(dtype); ++i) element[i] = static_cast<char>(random());
    if (IsInteger(dtype) && random() % 2 == 0) std::memset(element + 1, 0, ItemSize(dtype) - 1);
  }
}

RandomArray RandomView(DType dtype, const std::vector<int64_t>& shape, Random& random) {
  RandomArray array;
  array.info.dtype = dtype;
  array.info.shape = shape;
  array.info.strides.resize(shape.size());
  std::vector<size_t> order(shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const bool plain = random() % 2 == 0;
  if (!plain) std::shuffle(order.begin(), order.end(), random);
  const int64_t item = ItemSize(dtype);
  int64_t stride = item * (plain || random() % 3 != 0 ? 1 : 2), lowest = 0;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t axis = order[i];
    const int kind = plain ? 2 : static_cast<int>(random() % 6);
    array.info.strides[axis] = kind == 0 ? -stride : kind == 1 ? 0 : stride;
    if (kind == 0) lowest -= stride * (std::max<int64_t>(shape[axis], 1) - 1);
    if (kind != 1) stride *= std::max<int64_t>(shape[axis], 1);
  }
  array.info.offset = -lowest;
  array.buffer.resize(static_cast<size_t>(stride - lowest + item * 2));
  for (size_t at = 0; at + static_cast<size_t>(item) <= array.buffer.size();
       at += static_cast<size_t>(item))
    FillElement(dtype, random, array.buffer.data() + at);
  return array;
}

// Operations that accept any number, combined at random, over a, b, c and constants.
std::string RandomText(Random& random, int depth) {
  static constexpr const char* kLeaves[] = {"a", "b", "c", "a", "b", "c", "2", "0.5", "3"};
  static constexpr const char* kUnary[] = {"-%",        "abs(%)",   "exp(%)",         "sin(%)",
                                           "cos(%)",    "sqrt(%)",  "log1p(%)",       "tanh(%)",
                                           "square(%)", "isnan(%)", "logical_not(%)", "sign(%)"};
  static constexpr const char* kBinary[] = {
      "(% + %)",       "(% - %)",     "(% * %)",    "(% / %)",    "maximum(%, %)",
      "minimum(%, %)", "(% < %)",     "(% == %)",   "(% >= %)",   "where(%, %, %)",
      "(% ** 3)",      "power(%, %)", "fmax(%, %)", "(% * % + %)"};
  if (depth == 0) return kLeaves[random() % std::size(kLeaves)];
  const bool unary = random() % 3 == 0;
  const std::string form =
      unary ? kUnary[random() % std::size(kUnary)] : kBinary[random() % std::size(kBinary)];
  std::string text;
  for (char letter : form) {
    if (letter == '%') {
      absl::StrAppend(&text, RandomText(random, static_cast<int>(random() % depth)));
    } else {
      text += letter;
    }
  }
  return text;
}

bool SameNumber(DType dtype, const char* one, const char* other) {
  const auto part_same = [&](auto number, int64_t at) {
    decltype(number) x, y;
    std::memcpy(&x, one + at, sizeof(x));
    std::memcpy(&y, other + at, sizeof(y));
    // The processor determines which NaN results from two.
    return (std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, sizeof(x)) == 0;
  };
  switch (dtype) {
    case DType::kFloat32:
      return part_same(0.0F, 0);
    case DType::kComplex64:
      return part_same(0.0F, 0) && part_same(0.0F, 4);
    case DType::kFloat64:
      return part_same(0.0, 0);
    case DType::kComplex128:
      return part_same(0.0, 0) && part_same(0.0, 8);
    default:
      return std::memcmp(one, other, static_cast<size_t>(ItemSize(dtype))) == 0;
  }
}

constexpr DType kTypes[] = {DType::kFloat64, DType::kFloat32, DType::kInt64,     DType::kInt32,
                            DType::kBool,    DType::kUInt8,   DType::kComplex64, DType::kFloat32,
                            DType::kFloat64, DType::kInt16,   DType::kFloat64,   DType::kUInt64};

RandomExpression Any(Random& random) {
  RandomExpression expression;
  std::vector<int64_t> shape(1 + random() % 3);
  for (auto& extent : shape) extent = 1 + static_cast<int64_t>(random() % 40);
  if (random() % 4 == 0) shape = {3000};  // more than a block
  expression.text = RandomText(random, 3);
  std::vector<std::string> names;
  for (const char* name : {"a", "b", "c"}) {
    std::vector<int64_t> narrow = shape;
    for (auto& extent : narrow) extent = random() % 5 != 0 ? extent : 1;
    if (narrow.size() > 1 && random() % 4 == 0) narrow.erase(narrow.begin());
    RandomArray array = RandomView(kTypes[random() % std::size(kTypes)], narrow, random);
    if (expression.text.find(name) == std::string::npos) continue;
    expression.arrays.push_back(std::move(array));
    names.push_back(name);
  }
  expression.operation = ops::testing::ExpressionOf(expression.text, names);
  return expression;
}

}  // namespace

std::vector<ops::Input> RandomExpression::Inputs() const {
  std::vector<ops::Input> inputs;
  for (const RandomArray& array : arrays) inputs.emplace_back(array.info);
  return inputs;
}

RandomExpression RandomExpressions::Next() {
  for (;;) {
    RandomExpression expression = Any(random_);
    auto plan = ops::PlanOperation(expression.operation, expression.Inputs(), {});
    if (plan.ok() && plan->code.has_value()) return expression;  // else no loop has these types
  }
}

int64_t FirstDifference(DType dtype, const std::string& one, const std::string& other) {
  const auto item = static_cast<size_t>(ItemSize(dtype));
  for (size_t at = 0; at + item <= std::min(one.size(), other.size()); at += item) {
    if (!SameNumber(dtype, one.data() + at, other.data() + at))
      return static_cast<int64_t>(at / item);
  }
  return one.size() == other.size()
             ? -1
             : static_cast<int64_t>(std::min(one.size(), other.size()) / item);
}

}  // namespace stride::testing
