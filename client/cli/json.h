// A minimal JSON writer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stride::cli {

// A rendered value.
class Json {
 public:
  static Json String(std::string_view text);
  static Json Number(double value);  // null when it is not finite
  static Json Integer(int64_t value) { return Json(std::to_string(value)); }
  static Json Bool(bool value) { return Json(value ? "true" : "false"); }
  static Json Null() { return Json("null"); }
  static Json Raw(std::string text) { return Json(std::move(text)); }
  static Json Array(const std::vector<Json>& items);
  // Keeps the order of `members`.
  static Json Object(const std::vector<std::pair<std::string, Json>>& members);

  const std::string& text() const { return text_; }

 private:
  explicit Json(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace stride::cli
