#include "tests/support/cases.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "server/ops/scalar.h"

namespace stride::testing {
namespace {

using Words = std::vector<std::string>;

absl::StatusOr<DType> TypeNamed(const std::string& name) {
  for (int i = 1; i <= kNumDTypes; ++i) {
    if (Name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  return absl::InvalidArgumentError("no such type: " + name);
}

template <typename T>
void Append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendElement(std::string& bytes, DType dtype, const std::string& word) {
  if (IsBool(dtype) || IsInteger(dtype)) {
    uint64_t bits = word[0] == '-' ? static_cast<uint64_t>(std::strtoll(word.c_str(), nullptr, 10))
                                   : std::strtoull(word.c_str(), nullptr, 10);
    bytes.append(reinterpret_cast<const char*>(&bits), ItemSize(dtype));
    return;
  }
  char* end = nullptr;
  double real = std::strtod(word.c_str(), &end);
  double imaginary = *end == ',' ? std::strtod(end + 1, nullptr) : 0;
  switch (dtype) {
    case DType::kFloat16:
      return Append(bytes, ops::ToFloat16(real));
    case DType::kBFloat16:
      return Append(bytes, ops::ToBFloat16(real));
    case DType::kFloat32:
      return Append(bytes, static_cast<float>(real));
    case DType::kFloat64:
      return Append(bytes, real);
    case DType::kComplex64:
      Append(bytes, static_cast<float>(real));
      return Append(bytes, static_cast<float>(imaginary));
    default:
      Append(bytes, real);
      return Append(bytes, imaginary);
  }
}

Column ReadColumn(DType dtype, const Words& words) {
  Column column{dtype, ""};
  for (size_t i = 1; i < words.size(); ++i) AppendElement(column.bytes, dtype, words[i]);
  return column;
}

template <typename T>
T At(const std::string& bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// A 16-bit float's value.
double WideOf(uint16_t bits, int mantissa_bits) {
  int exponent = (bits & 0x7FFF) >> mantissa_bits;
  int mantissa = bits & ((1 << mantissa_bits) - 1);
  int max_exponent = (1 << (15 - mantissa_bits)) - 1;
  double sign = bits >> 15 ? -1 : 1;
  if (exponent == max_exponent) return mantissa ? std::nan("") : sign * INFINITY;
  int bias = max_exponent / 2;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

// Part `i` of an array of floats (two parts per element for complex numbers).
double PartOf(const Column& column, const std::string& bytes, size_t i) {
  switch (column.dtype) {
    case DType::kFloat16:
      return WideOf(At<uint16_t>(bytes, i), 10);
    case DType::kBFloat16:
      return WideOf(At<uint16_t>(bytes, i), 7);
    case DType::kFloat32:
    case DType::kComplex64:
      return At<float>(bytes, i);
    default:
      return At<double>(bytes, i);
  }
}

struct Precision {
  int bits, least_exponent;
};
Precision PrecisionOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {11, -24};
    case DType::kBFloat16:
      return {8, -133};
    case DType::kFloat32:
    case DType::kComplex64:
      return {24, -149};
    default:
      return {53, -1074};
  }
}

// The unit in the last place of a number of this magnitude.
double UlpOf(DType dtype, double size) {
  Precision precision = PrecisionOf(dtype);
  int exponent;
  std::frexp(size, &exponent);
  return std::ldexp(1.0, std::max(exponent - precision.bits, precision.least_exponent));
}

bool IsClose(double actual, double expected, double rest, double ulp, double unit) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isnan(actual)) return false;
  if (ulp == 0) return actual == expected && std::signbit(actual) == std::signbit(expected);
  if (std::isinf(expected) || std::isinf(actual)) return actual == expected;
  return std::abs((actual - expected) / unit - rest) <= ulp;
}

bool ElementIsRight(const OpCase& op_case, const std::string& actual, size_t i) {
  const Column& expected = op_case.expected;
  size_t size = static_cast<size_t>(ItemSize(expected.dtype));
  if (IsBool(expected.dtype) || IsInteger(expected.dtype)) {
    return std::memcmp(actual.data() + i * size, expected.bytes.data() + i * size, size) == 0;
  }
  size_t parts = IsComplex(expected.dtype) ? 2 : 1;
  double largest = 0;
  for (size_t k = 0; k < parts; ++k)
    largest = std::max(largest, std::abs(PartOf(expected, expected.bytes, i * parts + k)));
  double unit = UlpOf(expected.dtype, std::isfinite(largest) ? largest : 1);
  for (size_t k = 0; k < parts; ++k) {
    double want = PartOf(expected, expected.bytes, i * parts + k);
    const double rest = op_case.rest.empty() ? 0 : op_case.rest[i];
    if (!IsClose(PartOf(expected, actual, i * parts + k), want, rest, op_case.ulp, unit))
      return false;
  }
  return true;
}

std::string TextOf(const Column& column, const std::string& bytes, size_t i) {
  switch (column.dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return absl::StrCat(At<uint8_t>(bytes, i));
    case DType::kInt8:
      return absl::StrCat(At<int8_t>(bytes, i));
    case DType::kInt16:
      return absl::StrCat(At<int16_t>(bytes, i));
    case DType::kUInt16:
      return absl::StrCat(At<uint16_t>(bytes, i));
    case DType::kInt32:
      return absl::StrCat(At<int32_t>(bytes, i));
    case DType::kUInt32:
      return absl::StrCat(At<uint32_t>(bytes, i));
    case DType::kInt64:
      return absl::StrCat(At<int64_t>(bytes, i));
    case DType::kUInt64:
      return absl::StrCat(At<uint64_t>(bytes, i));
    default:
      break;
  }
  std::ostringstream text;
  text.precision(17);
  if (!IsComplex(column.dtype)) {
    text << PartOf(column, bytes, i);
  } else {
    text << PartOf(column, bytes, 2 * i) << "," << PartOf(column, bytes, 2 * i + 1);
  }
  return text.str();
}

}  // namespace

absl::StatusOr<std::vector<OpCase>> ReadCases(const std::string& path) {
  std::ifstream file(path);
  if (!file.is_open()) return absl::NotFoundError("cannot read " + path);
  std::vector<OpCase> cases;
  std::vector<DType> types;
  std::string text;
  for (int line = 1; std::getline(file, text); ++line) {
    std::istringstream stream(text);
    Words words{std::istream_iterator<std::string>(stream), {}};
    if (words.empty() || words[0][0] == '#') continue;
    if (words[0] == "case") {
      // case NAME TYPE... -> TYPE ulp N
      if (words.size() < 7)
        return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": too few words"));
      OpCase op_case;
      op_case.op = words[1];
      op_case.line = line;
      op_case.ulp = std::strtod(words.back().c_str(), nullptr);
      types.clear();
      for (size_t i = 2; i + 2 < words.size(); ++i) {
        if (words[i] == "->") continue;
        auto type = TypeNamed(words[i]);
        if (!type.ok()) return type.status();
        types.push_back(*type);
      }
      cases.push_back(op_case);
      continue;
    }
    if (cases.empty())
      return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": no case before this"));
    OpCase& last = cases.back();
    if (words[0] == "in" && last.inputs.size() + 1 < types.size()) {
      last.inputs.push_back(ReadColumn(types[last.inputs.size()], words));
    } else if (words[0] == "out") {
      last.expected = ReadColumn(types.back(), words);
      last.count = static_cast<int64_t>(words.size()) - 1;
    } else if (words[0] == "rest" && static_cast<int64_t>(words.size()) - 1 == last.count) {
      for (size_t i = 1; i < words.size(); ++i)
        last.rest.push_back(std::strtod(words[i].c_str(), nullptr));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": unexpected ", words[0]));
    }
  }
  return cases;
}

std::string Differences(const OpCase& op_case, const std::string& actual) {
  int wrong = 0;
  std::string first;
  for (size_t i = 0; i < static_cast<size_t>(op_case.count); ++i) {
    if (ElementIsRight(op_case, actual, i) || wrong++ > 0) continue;
    first = absl::StrCat(op_case.op, "(");
    for (const Column& input : op_case.inputs) {
      absl::StrAppend(&first, TextOf(input, input.bytes, i), " as ", std::string(Name(input.dtype)),
                      ", ");
    }
    absl::StrAppend(&first, ") is ", TextOf(op_case.expected, actual, i), ", not ",
                    TextOf(op_case.expected, op_case.expected.bytes, i));
  }
  if (wrong == 0) return "";
  return absl::StrCat(first, "; ", wrong, " of ", op_case.count, " wrong, line ", op_case.line);
}

}  // namespace stride::testing
