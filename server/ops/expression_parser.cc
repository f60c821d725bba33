#include "server/ops/expression_parser.h"

#include <cctype>
#include <cstdlib>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::ops {
namespace {

constexpr char kField[] = "expression.text";

struct BinaryOperator {
  std::string_view sign;
  int precedence;  // a greater value binds tighter
  std::string_view op;
};
// Signs that begin with another sign come first. `**` is parsed separately: it is right-associative
// and binds tighter than a sign to its left.
constexpr BinaryOperator kOperators[] = {
    {"<<", 5, "left_shift"},   {">>", 5, "right_shift"},
    {"<=", 1, "less_equal"},   {">=", 1, "greater_equal"},
    {"==", 1, "equal"},        {"!=", 1, "not_equal"},
    {"//", 7, "floor_divide"}, {"<", 1, "less"},
    {">", 1, "greater"},       {"|", 2, "bitwise_or"},
    {"^", 3, "bitwise_xor"},   {"&", 4, "bitwise_and"},
    {"+", 6, "add"},           {"-", 6, "subtract"},
    {"*", 7, "multiply"},      {"/", 7, "divide"},
    {"%", 7, "remainder"},
};
constexpr int kComparison = 1;

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsNameByte(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<ExpressionTree> Parse() {
    auto root = Binary(0);
    if (!root.ok()) return root.status();
    SkipSpace();
    if (position_ < text_.size()) return Unexpected();
    return std::move(tree_);
  }

 private:
  using Node = absl::StatusOr<int>;

  absl::Status Error(size_t position, const std::string& text) const {
    return InvalidField(v1::ERROR_REASON_EXPRESSION_SYNTAX, kField,
                        absl::StrCat(text, " at byte ", position),
                        {{"position", absl::StrCat(position)}});
  }

  absl::Status Unexpected() const {
    if (position_ >= text_.size()) return Error(position_, "the expression ends too soon;");
    std::string_view rest = text_.substr(position_);
    for (std::string_view word : {"and", "or", "not", "if", "in", "is", "lambda"}) {
      if (rest.substr(0, word.size()) != word ||
          (rest.size() > word.size() && IsNameByte(rest[word.size()])))
        continue;
      return Error(position_, absl::StrCat("`", std::string(word),
                                           "` is not supported; use &, |, ~ or where():"));
    }
    char c = rest[0];
    if (!std::isprint(static_cast<unsigned char>(c))) return Error(position_, "unexpected byte");
    return Error(position_, absl::StrCat("unexpected `", std::string(1, c), "`"));
  }

  void SkipSpace() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])))
      ++position_;
  }

  bool StartsWith(std::string_view sign) const {
    return text_.substr(position_, sign.size()) == sign;
  }

  bool Take(std::string_view sign) {
    SkipSpace();
    if (!StartsWith(sign)) return false;
    position_ += sign.size();
    return true;
  }

  Node Add(ExpressionNode node) {
    if (tree_.size() >= kMaxExpressionNodes) {
      return InvalidField(
          v1::ERROR_REASON_SIZE_LIMIT, kField,
          absl::StrCat("the expression has too many terms; at most ", kMaxExpressionNodes));
    }
    tree_.push_back(std::move(node));
    return static_cast<int>(tree_.size() - 1);
  }

  Node AddOperator(std::string_view op, size_t position, std::vector<int> arguments) {
    return Add(
        {ExpressionNode::Kind::kOperator, position, std::string(op), {}, std::move(arguments)});
  }

  // Returns the operator at the cursor if its precedence is at least `least`, else nullptr.
  const BinaryOperator* Peek(int least) {
    SkipSpace();
    if (StartsWith("**")) return nullptr;
    for (const BinaryOperator& candidate : kOperators) {
      if (!StartsWith(candidate.sign)) continue;
      return candidate.precedence >= least ? &candidate : nullptr;
    }
    return nullptr;
  }

  Node Binary(int least) {
    if (++depth_ > kMaxExpressionDepth) return TooDeep();
    Node left = Unary();
    int comparisons = 0;
    while (left.ok()) {
      const BinaryOperator* found = Peek(least);
      if (found == nullptr) break;
      size_t position = position_;
      if (found->precedence == kComparison && ++comparisons > 1) {
        return Error(position, "comparisons cannot be chained; use (a < b) & (b < c):");
      }
      position_ += found->sign.size();
      Node right = Binary(found->precedence + 1);
      if (!right.ok()) return right;
      left = AddOperator(found->op, position, {*left, *right});
    }
    --depth_;
    return left;
  }

  absl::Status TooDeep() const {
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, kField,
                        absl::StrCat("the expression is nested too deeply; at most ",
                                     kMaxExpressionDepth, " levels, at byte ", position_));
  }

  Node Unary() {
    SkipSpace();
    size_t position = position_;
    std::string_view op;
    if (Take("-")) {
      op = "negative";
    } else if (Take("+")) {
      op = "positive";
    } else if (Take("~")) {
      op = "invert";
    } else {
      return Power();
    }
    if (++depth_ > kMaxExpressionDepth) return TooDeep();
    Node operand = Unary();
    --depth_;
    if (!operand.ok()) return operand;
    return AddOperator(op, position, {*operand});
  }

  Node Power() {
    Node base = Atom();
    if (!base.ok()) return base;
    SkipSpace();
    size_t position = position_;
    if (!Take("**")) return base;
    if (++depth_ > kMaxExpressionDepth) return TooDeep();
    Node exponent = Unary();  // right-associative, and `2 ** -x` is valid
    --depth_;
    if (!exponent.ok()) return exponent;
    return AddOperator("power", position, {*base, *exponent});
  }

  Node Atom() {
    SkipSpace();
    if (position_ >= text_.size()) return Unexpected();
    char c = text_[position_];
    if (Take("(")) {
      Node inner = Binary(0);
      if (inner.ok() && !Take(")")) return Unexpected();
      return inner;
    }
    if (IsDigit(c) || (c == '.' && position_ + 1 < text_.size() && IsDigit(text_[position_ + 1])))
      return Number();
    if (IsNameStart(c)) return NameOrCall();
    return Unexpected();
  }

  Node NameOrCall() {
    size_t start = position_;
    while (position_ < text_.size() && IsNameByte(text_[position_])) ++position_;
    std::string name(text_.substr(start, position_ - start));
    for (std::string_view word : {"and", "or", "not", "if", "else", "in", "is", "lambda"}) {
      if (name != word) continue;
      position_ = start;
      return Unexpected();
    }
    if (!Take("(")) return Add({ExpressionNode::Kind::kName, start, std::move(name), {}, {}});
    std::vector<int> arguments;
    if (!Take(")")) {
      do {
        Node argument = Binary(0);
        if (!argument.ok()) return argument;
        arguments.push_back(*argument);
      } while (Take(","));
      if (!Take(")")) return Unexpected();
    }
    return Add({ExpressionNode::Kind::kCall, start, std::move(name), {}, std::move(arguments)});
  }

  void SkipDigits() {
    while (position_ < text_.size() && IsDigit(text_[position_])) ++position_;
  }

  Node Number() {
    size_t start = position_;
    if (StartsWith("0x") || StartsWith("0X")) return Hexadecimal(start);
    SkipDigits();
    bool is_real = position_ < text_.size() && text_[position_] == '.';
    if (is_real) {
      ++position_;
      SkipDigits();
    }
    if (position_ < text_.size() && (text_[position_] == 'e' || text_[position_] == 'E')) {
      size_t before = position_++;
      if (position_ < text_.size() && (text_[position_] == '+' || text_[position_] == '-'))
        ++position_;
      size_t digits = position_;
      SkipDigits();
      if (position_ == digits) {
        position_ = before;
      } else {
        is_real = true;
      }
    }
    std::string digits(text_.substr(start, position_ - start));
    bool imaginary =
        position_ < text_.size() && (text_[position_] == 'j' || text_[position_] == 'J');
    position_ += imaginary;
    if (position_ < text_.size() && IsNameByte(text_[position_])) return Unexpected();
    WeakScalar value;
    if (imaginary) {
      value = std::complex<double>(0, std::strtod(digits.c_str(), nullptr));
    } else if (is_real) {
      value = std::strtod(digits.c_str(), nullptr);
    } else {
      uint64_t integer = 0;
      if (!absl::SimpleAtoi(digits, &integer))
        return Error(start, "an integer has at most 64 bits; write it with a point:");
      value = Integer{integer};
    }
    return Add({ExpressionNode::Kind::kNumber, start, "", value, {}});
  }

  Node Hexadecimal(size_t start) {
    position_ += 2;
    size_t digits = position_;
    uint64_t value = 0;
    while (position_ < text_.size() &&
           std::isxdigit(static_cast<unsigned char>(text_[position_]))) {
      char c = static_cast<char>(std::tolower(static_cast<unsigned char>(text_[position_++])));
      value = value * 16 + static_cast<uint64_t>(IsDigit(c) ? c - '0' : c - 'a' + 10);
    }
    if (position_ == digits) return Unexpected();
    if (position_ - digits > 16) return Error(start, "an integer has at most 64 bits:");
    if (position_ < text_.size() && IsNameByte(text_[position_])) return Unexpected();
    return Add({ExpressionNode::Kind::kNumber, start, "", Integer{value}, {}});
  }

  std::string_view text_;
  size_t position_ = 0;
  int depth_ = 0;
  ExpressionTree tree_;
};

}  // namespace

absl::StatusOr<ExpressionTree> ParseExpression(std::string_view text) {
  if (text.size() > kMaxExpressionBytes) {
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, kField,
                        absl::StrCat("the expression is too long: ", text.size(),
                                     " bytes, at most ", kMaxExpressionBytes));
  }
  return Parser(text).Parse();
}

}  // namespace stride::ops
