// The few Python literals that a .npy header is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stride::npy {

// Reads a text from its beginning to its end, one token at a time; every reader leaves the place
// unchanged when it gives nothing.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  size_t position() const { return at_; }
  bool AtEnd();
  // Skips spaces, then takes `c` if it is next.
  bool Take(char c);
  bool Next(char c);
  // A quoted string without escapes.
  std::optional<std::string> String();
  std::optional<bool> Bool();
  // A tuple of non-negative integers: `()`, `(3,)`, `(3, 4)`.
  std::optional<std::vector<int64_t>> Shape();

 private:
  std::optional<int64_t> Extent();
  void SkipSpace();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace stride::npy
