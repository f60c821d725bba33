#include "stride/data_type.h"

#include <array>

namespace stride {
namespace {

struct Row {
  std::string_view name;
  int64_t size;
};

// In the order of the enum.
constexpr std::array<Row, 16> kRows = {{{"unspecified", 0},
                                        {"bool", 1},
                                        {"int8", 1},
                                        {"int16", 2},
                                        {"int32", 4},
                                        {"int64", 8},
                                        {"uint8", 1},
                                        {"uint16", 2},
                                        {"uint32", 4},
                                        {"uint64", 8},
                                        {"float16", 2},
                                        {"bfloat16", 2},
                                        {"float32", 4},
                                        {"float64", 8},
                                        {"complex64", 8},
                                        {"complex128", 16}}};

// A newer daemon may know types that this client does not.
const Row& Find(DataType type) {
  const auto index = static_cast<size_t>(type);
  return index < kRows.size() ? kRows[index] : kRows[0];
}

}  // namespace

int64_t ItemSize(DataType type) { return Find(type).size; }

std::string_view Name(DataType type) { return Find(type).name; }

std::optional<DataType> ParseDataType(std::string_view name) {
  for (size_t i = 1; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

}  // namespace stride
