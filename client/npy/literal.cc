#include "client/npy/literal.h"

#include <charconv>

namespace stride::npy {

void LiteralReader::SkipSpace() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
}

bool LiteralReader::AtEnd() {
  SkipSpace();
  return at_ == text_.size();
}

bool LiteralReader::Next(char c) {
  SkipSpace();
  return at_ < text_.size() && text_[at_] == c;
}

bool LiteralReader::Take(char c) {
  if (!Next(c)) return false;
  ++at_;
  return true;
}

std::optional<std::string> LiteralReader::String() {
  if (!Next('\'') && !Next('"')) return std::nullopt;
  const size_t end = text_.find(text_[at_], at_ + 1);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
  if (inside.find('\\') != std::string_view::npos) return std::nullopt;
  at_ = end + 1;
  return std::string(inside);
}

std::optional<bool> LiteralReader::Bool() {
  SkipSpace();
  for (bool value : {false, true}) {
    const std::string_view word = value ? "True" : "False";
    if (text_.substr(at_).substr(0, word.size()) != word) continue;
    at_ += word.size();
    return value;
  }
  return std::nullopt;
}

std::optional<int64_t> LiteralReader::Extent() {
  SkipSpace();
  int64_t value = 0;
  // std::from_chars would accept a minus sign.
  if (at_ == text_.size() || text_[at_] < '0' || text_[at_] > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (error != std::errc()) return std::nullopt;
  at_ = static_cast<size_t>(end - text_.data());
  return value;
}

std::optional<std::vector<int64_t>> LiteralReader::Shape() {
  const size_t begin = at_;
  std::vector<int64_t> shape;
  bool comma = true;
  if (Take('(')) {
    while (!Take(')')) {
      const auto extent = comma ? Extent() : std::nullopt;
      if (!extent) {
        at_ = begin;
        return std::nullopt;
      }
      shape.push_back(*extent);
      comma = Take(',');
    }
    // `(3)` is a number in Python, not a tuple.
    if (shape.size() != 1 || comma) return shape;
  }
  at_ = begin;
  return std::nullopt;
}

}  // namespace stride::npy
