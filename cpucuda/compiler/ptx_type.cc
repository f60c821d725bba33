#include "cpucuda/compiler/ptx_type.h"

#include "absl/strings/numbers.h"

namespace stride::cpucuda {

std::optional<PtxType> TypeOf(absl::string_view name) {
  if (name == "pred") return PtxType{'p', 1};
  PtxType type;
  int bits = 0;
  if (name.size() < 2 || !absl::SimpleAtoi(name.substr(1), &bits)) return std::nullopt;
  type.kind = name[0];
  type.bits = static_cast<unsigned>(bits);
  bool integer = type.kind == 'u' || type.kind == 's' || type.kind == 'b';
  if (integer && (bits == 8 || bits == 16 || bits == 32 || bits == 64)) return type;
  if (type.kind == 'f' && (bits == 32 || bits == 64)) return type;
  return std::nullopt;
}

}  // namespace stride::cpucuda
