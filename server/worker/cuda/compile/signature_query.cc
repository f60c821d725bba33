#include "server/worker/cuda/compile/signature_query.h"

#include "absl/strings/str_cat.h"

namespace stride::cuda {
namespace {

// Each number is the size of a parameter, doubled, plus 1 for an enumeration.
constexpr char kQuery[] = R"(
template <unsigned...> struct stride_numbers;
template <typename F> struct stride_numbers_of;
template <typename... P> struct stride_numbers_of<void (*)(P...)> {
  typedef stride_numbers<(unsigned(sizeof(P)) * 2u + unsigned(__is_enum(P)))...> type;
};
template <typename F, typename N> __device__ char stride_signature;
template <typename T> __device__ char stride_variable;
)";

}  // namespace

std::string AppendSignatureQuery(const std::string& source) {
  // The line break ends a final line comment.
  return absl::StrCat(source, "\n", kQuery);
}

std::string SignatureExpression(const std::string& entry) {
  return absl::StrCat("&stride_signature<decltype(&", entry,
                      "), typename stride_numbers_of<decltype(&", entry, ")>::type>");
}

std::string VariableExpression(const std::string& name) { return "&" + name; }

std::string VariableTypeExpression(const std::string& name) {
  return absl::StrCat("&stride_variable<decltype(", name, ")>");
}

}  // namespace stride::cuda
