#include "server/ops/signature.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/base/error.h"

namespace stride::ops {
namespace {

constexpr size_t kMaxText = 4096;
constexpr size_t kMaxIdentifier = 63;
constexpr size_t kMaxOperands = 32;
constexpr size_t kMaxDimensions = 32;
constexpr int64_t kMaxFixedSize = int64_t{1} << 31;

absl::Status Wrong(std::string_view field, std::string_view text) {
  return InvalidField(v1::ERROR_REASON_INVALID_FIELD, field, text);
}

std::optional<DType> TypeNamed(absl::string_view name) {
  for (int number = 1; number <= kNumDTypes; ++number) {
    const DType dtype = *DTypeFromNumber(number);
    if (Name(dtype) == std::string_view(name.data(), name.size())) return dtype;
  }
  return std::nullopt;
}

// Parses the layout from beginning to end.
class LayoutParser {
 public:
  LayoutParser(std::string_view text, std::string_view field) : text_(text), field_(field) {}

  absl::StatusOr<CoreLayout> Parse() {
    if (absl::Status status = Operands(); !status.ok()) return status;
    layout_.num_inputs = layout_.operands.size();
    if (!Take("->")) return Unexpected();
    known_from_inputs_ = layout_.dimensions.size();
    if (absl::Status status = Operands(); !status.ok()) return status;
    SkipSpace();
    if (position_ < text_.size()) return Unexpected();
    return Checked();
  }

 private:
  void SkipSpace() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])))
      ++position_;
  }
  bool Take(std::string_view sign) {
    SkipSpace();
    if (text_.substr(position_, sign.size()) != sign) return false;
    position_ += sign.size();
    return true;
  }
  absl::Status Unexpected() const {
    return Wrong(
        field_,
        absl::StrCat("not a layout such as `(m,n),(n)->(m)`; it goes wrong at byte ", position_));
  }

  absl::Status Operands() {
    do {
      if (!Take("(")) return Unexpected();
      std::vector<int>& operand = layout_.operands.emplace_back();
      if (Take(")")) continue;
      do {
        if (absl::Status status = Dimension(&operand); !status.ok()) return status;
      } while (Take(","));
      if (!Take(")")) return Unexpected();
    } while (Take(","));
    return layout_.operands.size() <= kMaxOperands
               ? absl::OkStatus()
               : Wrong(field_, absl::StrCat("at most ", kMaxOperands, " operands"));
  }

  absl::Status Dimension(std::vector<int>* operand) {
    SkipSpace();
    const size_t start = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_'))
      ++position_;
    CoreLayout::Dimension read;
    read.name = std::string(text_.substr(start, position_ - start));
    if (read.name.empty()) return Unexpected();
    if (std::isdigit(static_cast<unsigned char>(read.name[0]))) {
      int64_t size = 0;
      if (!absl::SimpleAtoi(read.name, &size) || size > kMaxFixedSize) {
        position_ = start;
        return Unexpected();
      }
      read.fixed = size;
    } else if (!IsIdentifier(read.name)) {
      position_ = start;
      return Unexpected();
    }
    read.optional = Take("?");
    auto& known = layout_.dimensions;
    auto found = std::find_if(known.begin(), known.end(),
                              [&](const auto& other) { return other.name == read.name; });
    if (found != known.end() && found->optional != read.optional) {
      return Wrong(field_, absl::StrCat("a dimension is optional wherever it stands, or nowhere: ",
                                        read.name));
    }
    operand->push_back(static_cast<int>(found - known.begin()));
    if (found == known.end()) known.push_back(std::move(read));
    if (known.size() > kMaxDimensions || operand->size() > kMaxDimensions)
      return Wrong(field_, absl::StrCat("at most ", kMaxDimensions, " dimensions"));
    return absl::OkStatus();
  }

  absl::StatusOr<CoreLayout> Checked() {
    for (size_t i = known_from_inputs_; i < layout_.dimensions.size(); ++i) {
      if (layout_.dimensions[i].fixed) continue;
      return Wrong(field_,
                   absl::StrCat("a dimension of a result that no input has, so that its size "
                                "is not known: ",
                                layout_.dimensions[i].name));
    }
    return std::move(layout_);
  }

  std::string_view text_, field_;
  size_t position_ = 0, known_from_inputs_ = 0;
  CoreLayout layout_;
};

}  // namespace

absl::StatusOr<TypeGroups> ParseTypes(std::string_view text, std::string_view field) {
  if (text.size() > kMaxText) {
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, field,
                        absl::StrCat("a signature has at most ", kMaxText, " bytes"));
  }
  TypeGroups groups;
  const absl::string_view whole(text.data(), text.size());
  for (absl::string_view part : absl::StrSplit(whole, "->")) {
    std::vector<DType>& group = groups.emplace_back();
    for (absl::string_view name : absl::StrSplit(part, ',')) {
      name = absl::StripAsciiWhitespace(name);
      auto dtype = TypeNamed(name);
      if (!dtype) {
        return Wrong(field, absl::StrCat("not types such as `float32,int64->float64`; no type has "
                                         "this name: `",
                                         name.substr(0, 64), "`"));
      }
      group.push_back(*dtype);
    }
    if (group.size() > kMaxOperands)
      return Wrong(field, absl::StrCat("at most ", kMaxOperands, " types next to each other"));
  }
  return groups;
}

absl::StatusOr<CoreLayout> ParseLayout(std::string_view text, std::string_view field) {
  if (text.size() > kMaxText) {
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, field,
                        absl::StrCat("a layout has at most ", kMaxText, " bytes"));
  }
  return LayoutParser(text, field).Parse();
}

bool IsIdentifier(std::string_view text) {
  if (text.empty() || text.size() > kMaxIdentifier) return false;
  if (std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || c == '_';
  });
}

}  // namespace stride::ops
