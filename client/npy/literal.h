// Parses the Python literals of a .npy header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stride::npy {

// Reads a text from beginning to end, one token at a time. A reader that finds no token leaves the
// position unchanged.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  size_t position() const { return at_; }
  bool AtEnd();
  // Skips spaces, then consumes `c` if it is next.
  bool Take(char c);
  bool Next(char c);
  // Reads a quoted string without escapes.
  std::optional<std::string> String();
  std::optional<bool> Bool();
  // Reads a tuple of non-negative integers: `()`, `(3,)`, `(3, 4)`.
  std::optional<std::vector<int64_t>> Shape();

 private:
  std::optional<int64_t> Extent();
  void SkipSpace();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace stride::npy
