#include "server/worker/codegen/elementwise_text.h"

#include "absl/strings/str_cat.h"
#include "server/worker/codegen/device_headers.h"
#include "server/worker/codegen/launch_abi.h"

namespace stride::codegen {
namespace {

std::string LaunchStruct(int rank, size_t num_operands, int num_scalars) {
  return absl::StrCat(
      "struct Operand {\n  char* data;\n  st_i64 strides[", rank,
      "];\n};\nstruct Launch {\n  st_i64 count, tile_axis;\n", "  st_i64 extents[", rank,
      "];\n  Operand operands[", num_operands, "];\n",
      num_scalars == 0 ? "" : absl::StrCat("  alignas(16) char scalars[", num_scalars, "][16];\n"),
      "};\n");
}

absl::Status Broken(const char* what) {
  return absl::InternalError(absl::StrCat("the plan's elementwise code is broken: ", what));
}

}  // namespace

absl::StatusOr<ElementwiseText> PrepareElementwise(const wire::ElementwiseCode& code,
                                                   Target target) {
  ElementwiseText text;
  std::vector<DType> inputs;
  for (int number : code.input_dtypes()) inputs.push_back(static_cast<DType>(number));
  text.dtypes = inputs;
  for (int number : code.output_dtypes()) text.dtypes.push_back(static_cast<DType>(number));
  for (DType dtype : text.dtypes) {
    if (!DTypeFromNumber(static_cast<int>(dtype))) return Broken("no such type");
  }
  text.rank = static_cast<int>(code.layout().rank());
  text.num_inputs = inputs.size();
  for (int access : code.layout().access())
    text.access.push_back(static_cast<wire::Layout::Access>(access));
  if (text.rank < 1 || text.rank > kMaxRank) return Broken("rank");
  if (text.access.size() != text.dtypes.size() || text.dtypes.size() > kMaxOperands)
    return Broken("operands");
  if (code.output_dtypes_size() != code.program().results_size()) return Broken("outputs");
  text.uses_random = UsesRandom(code.program());
  text.takes_turns = target == Target::kCpu && !text.uses_random && UsesTurns(code.program());
  auto body = EmitProgram("body", code.program(), inputs, text.takes_turns);
  if (!body.ok()) return body.status();
  std::vector<DType> used = text.dtypes;
  CollectTypes(code.program(), &used);
  text.definitions = absl::StrCat(Preamble(target, used), text.uses_random ? kRandomHeader : "",
                                  LaunchStruct(text.rank, text.dtypes.size(), body->num_scalars),
                                  body->definitions);
  text.scalars_call = body->num_scalars == 0    ? "body_scalars()"
                      : target == Target::kCuda ? "body_scalars(launch.scalars)"
                                                : "body_scalars(launch->scalars)";
  text.index_type = code.index_32bit() ? "st_u32" : "st_i64";
  return text;
}

}  // namespace stride::codegen
