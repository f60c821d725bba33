#include "absl/strings/str_cat.h"
#include "server/ops/block_loops.h"
#include "server/worker/codegen/device_headers.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/program_text.h"

namespace stride::codegen {
namespace {

// The same body that a fused loop has (program_text.cc), so that both tiers' results are equal.
std::string BodyText(const ops::BlockLoop& loop) {
  if (loop.row == nullptr) return absl::StrCat("st_cast<", TypeName(loop.result), ">(a)");
  return ops::BodyOf(*loop.row);
}

std::string LoopText(const ops::BlockLoop& loop) {
  const std::string name = ops::NameOf(loop), result = TypeName(loop.result);
  std::string parameters, loads;
  for (size_t i = 0; i < loop.arguments.size(); ++i) {
    const std::string type = TypeName(loop.arguments[i]), letter(1, "abc"[i]);
    absl::StrAppend(&parameters, i == 0 ? "" : ", ", type, " ", letter);
    absl::StrAppend(&loads, i == 0 ? "" : ", ", "st_load<", type, ">((const st_stored<", type,
                    ">::type*)", letter, " + i)");
  }
  return absl::StrCat(
      "ST_FN ", result, " ", name, "_of(", parameters, ") {\n  return ", BodyText(loop),
      ";\n}\nST_ENTRY void ", name,
      "(const void* a, const void* b, const void* c, void* out, st_i64 n) {\n  ST_IVDEP\n"
      "  for (st_i64 i = 0; i < n; ++i) st_store<",
      result, ">((st_stored<", result, ">::type*)out + i, ", name, "_of(", loads, "));\n}\n");
}

}  // namespace

std::string EmitBlockLoopsCpu() {
  std::string text = absl::StrCat(Preamble(Target::kCpu, {DType::kComplex128}), kRandomHeader);
  for (const ops::BlockLoop& loop : ops::BlockLoops()) text += LoopText(loop);
  return text;
}

}  // namespace stride::codegen
