#include "cpucuda/compiler/own_names.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace stride::cpucuda {
namespace {

constexpr absl::string_view kPrefix = "__stride_own_";

// Names that the prelude has beyond those of NVRTC 13.0 (`namespace p { using ::NAME; }` does not
// compile there).
const std::set<absl::string_view>& Names() {
  static const auto& names = *new std::set<absl::string_view>{"int8_t",
                                                              "int16_t",
                                                              "int32_t",
                                                              "int64_t",
                                                              "uint8_t",
                                                              "uint16_t",
                                                              "uint32_t",
                                                              "uint64_t",
                                                              "intmax_t",
                                                              "uintmax_t",
                                                              "intptr_t",
                                                              "uintptr_t",
                                                              "ssize_t",
                                                              "uchar",
                                                              "ushort",
                                                              "uint",
                                                              "ulong",
                                                              "half",
                                                              "half2",
                                                              "nv_bfloat16",
                                                              "__half",
                                                              "__half2",
                                                              "__nv_bfloat16",
                                                              "__nv_bfloat162",
                                                              "__bfloat162float",
                                                              "__double2half",
                                                              "__float2bfloat16",
                                                              "__float2bfloat16_rn",
                                                              "__float2half",
                                                              "__float2half2_rn",
                                                              "__float2half_rn",
                                                              "__floats2half2_rn",
                                                              "__habs",
                                                              "__hadd2",
                                                              "__half2float",
                                                              "__half_as_ushort",
                                                              "__halves2half2",
                                                              "__hdiv",
                                                              "__heq",
                                                              "__hfma",
                                                              "__hfma2",
                                                              "__hge",
                                                              "__hgt",
                                                              "__high2float",
                                                              "__high2half",
                                                              "__hisnan",
                                                              "__hle",
                                                              "__hlt",
                                                              "__hmax",
                                                              "__hmin",
                                                              "__hmul",
                                                              "__hmul2",
                                                              "__hne",
                                                              "__hneg",
                                                              "__hsub",
                                                              "__low2float",
                                                              "__low2half",
                                                              "__ushort_as_half",
                                                              "hcos",
                                                              "hexp",
                                                              "hlog",
                                                              "hsin",
                                                              "hsqrt",
                                                              "__shfl",
                                                              "__shfl_down",
                                                              "__shfl_up",
                                                              "__shfl_xor",
                                                              "__globaltimer",
                                                              "calloc",
                                                              "memmove",
                                                              "cudaConfigureCall",
                                                              "make_cudaExtent",
                                                              "make_cudaPitchedPtr",
                                                              "make_cudaPos",
                                                              "stride"};
  return names;
}

const std::set<absl::string_view>& Macros() {
  static const auto& macros = *new std::set<absl::string_view>{
      "CHAR_BIT",    "CUDART_INF",  "CUDART_INF_F", "CUDART_NAN",   "CUDART_NAN_F", "CUDART_PI",
      "CUDART_PI_F", "DBL_DIG",     "DBL_EPSILON",  "DBL_MANT_DIG", "DBL_MAX",      "DBL_MIN",
      "FLT_DIG",     "FLT_EPSILON", "FLT_MANT_DIG", "FLT_MAX",      "FLT_MIN",      "HUGE_VAL",
      "HUGE_VALF",   "INFINITY",    "INT16_C",      "INT16_MAX",    "INT16_MIN",    "INT32_C",
      "INT32_MAX",   "INT32_MIN",   "INT64_C",      "INT64_MAX",    "INT64_MIN",    "INT8_C",
      "INT8_MAX",    "INT8_MIN",    "INTMAX_C",     "INT_MAX",      "INT_MIN",      "LLONG_MAX",
      "LLONG_MIN",   "LONG_MAX",    "LONG_MIN",     "M_1_PI",       "M_2_PI",       "M_2_SQRTPI",
      "M_E",         "M_LN10",      "M_LN2",        "M_LOG10E",     "M_LOG2E",      "M_PI",
      "M_PI_2",      "M_PI_4",      "M_SQRT1_2",    "M_SQRT2",      "NAN",          "SCHAR_MAX",
      "SHRT_MAX",    "SHRT_MIN",    "SIZE_MAX",     "UCHAR_MAX",    "UINT16_C",     "UINT16_MAX",
      "UINT32_C",    "UINT32_MAX",  "UINT64_C",     "UINT64_MAX",   "UINT8_C",      "UINT8_MAX",
      "UINTMAX_C",   "UINT_MAX",    "ULLONG_MAX",   "ULONG_MAX",    "USHRT_MAX"};
  return macros;
}

// `f` of "error: redefinition of 'f'", which the compiler reports for two functions with the same
// parameters, or two types.
absl::string_view Redefined(absl::string_view message) {
  constexpr absl::string_view kWords = "error: redefinition of '";
  const size_t begin = message.find(kWords);
  if (begin == absl::string_view::npos || !absl::EndsWith(message, "'")) return {};
  message.remove_prefix(begin + kWords.size());
  message.remove_suffix(1);
  const bool plain = std::all_of(message.begin(), message.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_';
  });
  return plain ? message : absl::string_view();
}

bool IsConflict(absl::string_view message) {
  return absl::StrContains(message, "redefinition") || absl::StrContains(message, "conflict") ||
         absl::StrContains(message, "cannot be overloaded") ||
         absl::StrContains(message, "redeclar");
}

// The text from `FILE:LINE:COLUMN` on, taken from the line that the log shows next.
absl::string_view TextAt(absl::string_view place, absl::string_view shown) {
  const std::vector<absl::string_view> parts = absl::StrSplit(place, ':');
  size_t column = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[2], &column)) return {};
  const size_t gutter = shown.find(" | ");  // "   25 | typedef ...", of Clang 17 and later
  if (gutter != absl::string_view::npos &&
      shown.substr(0, gutter).find_first_not_of(" 0123456789") == absl::string_view::npos)
    shown.remove_prefix(gutter + 3);
  if (column == 0 || column > shown.size()) return {};
  return shown.substr(column - 1);
}

size_t NameLength(absl::string_view text) {
  const auto end = std::find_if(text.begin(), text.end(), [](unsigned char letter) {
    return std::isalnum(letter) == 0 && letter != '_';
  });
  return static_cast<size_t>(end - text.begin());
}

// The identifier at `/stride/FILE:LINE:COLUMN: note: ...`.
absl::string_view NameAt(absl::string_view note, absl::string_view shown) {
  const absl::string_view text = TextAt(note.substr(0, note.find(": note: ")), shown);
  return text.substr(0, NameLength(text));
}

// Whether the declaration at `FILE:LINE:COLUMN: error: ...` defines a function: parameters follow
// its name.
bool IsFunctionAt(absl::string_view error, absl::string_view shown) {
  absl::string_view text = TextAt(error.substr(0, error.find(": error: ")), shown);
  text.remove_prefix(NameLength(text));
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "(");
}

}  // namespace

bool OwnNames::AddFrom(std::string_view log) {
  const size_t before = size();
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::string_view(log.data(), log.size()), '\n');
  bool conflict = false, unexpected = false;  // the last error
  bool function = false;                      // the same, for a redefined function
  absl::string_view redefined;                // the same
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const absl::string_view line = lines[i];
    const size_t error = line.find(": error: ");
    if (error != absl::string_view::npos) {
      conflict = IsConflict(line.substr(error));
      unexpected = absl::StrContains(line.substr(error), "error: expected ");
      redefined = Redefined(line);
      function = IsFunctionAt(line, lines[i + 1]);
    }
    if (!absl::StartsWith(line, "/stride/") || !absl::StrContains(line, ": note: ")) continue;
    if (conflict) {
      const absl::string_view name = NameAt(line, lines[i + 1]);
      if (Names().contains(name)) {
        names_.emplace(name);
      } else if (Names().contains(redefined)) {
        names_.emplace(redefined);
      } else if (!redefined.empty() && function && absl::StrContains(line, "previous definition")) {
        functions_.emplace(redefined);
      }
    }
    const size_t macro = line.find("expanded from macro '");
    if (unexpected && macro != absl::string_view::npos) {
      const std::vector<absl::string_view> parts = absl::StrSplit(line.substr(macro), '\'');
      if (parts.size() > 1 && Macros().contains(parts[1])) macros_.emplace(parts[1]);
    }
  }
  return size() > before;
}

std::string OwnNames::Header() const {
  std::string text;
  for (const std::string& name : names_)
    absl::StrAppend(&text, "#define ", name, " ", kPrefix, name, "\n");
  for (const std::string& name : functions_) {
    absl::StrAppend(&text, "template <class... A>\nSTRIDE_DEVICE auto ", kPrefix, name,
                    "(A... values) -> decltype(", name, "(values...)) {\n  return ", name,
                    "(values...);\n}\n#define ", name, " ", kPrefix, name, "\n");
  }
  for (const std::string& name : macros_) absl::StrAppend(&text, "#undef ", name, "\n");
  return text;
}

std::string OwnNames::AsSpelled(std::string text) {
  absl::StrReplaceAll({{kPrefix, ""}}, &text);
  return text;
}

}  // namespace stride::cpucuda
