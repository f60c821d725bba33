#include "absl/strings/str_cat.h"
#include "server/ops/block_loops.h"
#include "server/worker/codegen/block_launch.h"
#include "server/worker/codegen/device_headers.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/program_text.h"

namespace stride::codegen {
namespace {

// The same body as in a fused loop (program_text.cc), so that both have equal results.
std::string BodyText(const ops::BlockLoop& loop) {
  if (loop.row == nullptr) return absl::StrCat("st_cast<", TypeName(loop.result), ">(a)");
  return ops::BodyOf(*loop.row);
}

std::string FunctionText(const ops::BlockLoop& loop) {
  std::string parameters;
  for (size_t i = 0; i < loop.arguments.size(); ++i) {
    absl::StrAppend(&parameters, i == 0 ? "" : ", ", TypeName(loop.arguments[i]), " ",
                    std::string(1, "abc"[i]));
  }
  return absl::StrCat("ST_FN ", TypeName(loop.result), " ", ops::NameOf(loop), "_of(", parameters,
                      ") {\n  return ", BodyText(loop), ";\n}\n");
}

// The text of one loop over contiguous elements.
std::string LoopText(const ops::BlockLoop& loop) {
  const std::string name = ops::NameOf(loop), result = TypeName(loop.result);
  std::string loads;
  for (size_t i = 0; i < loop.arguments.size(); ++i) {
    const std::string type = TypeName(loop.arguments[i]), letter(1, "abc"[i]);
    absl::StrAppend(&loads, i == 0 ? "" : ", ", "st_load<", type, ">((const st_stored<", type,
                    ">::type*)", letter, " + i)");
  }
  return absl::StrCat(
      FunctionText(loop), "ST_ENTRY void ", name,
      "(const void* a, const void* b, const void* c, void* out, st_i64 n) {\n  ST_IVDEP\n"
      "  for (st_i64 i = 0; i < n; ++i) st_store<",
      result, ">((st_stored<", result, ">::type*)out + i, ", name, "_of(", loads, "));\n}\n");
}

// A thread's elements. `strides` has one byte each for the arguments and the result: bytes between
// elements.
constexpr char kLoops[] = R"(
#if ST_CUDA
#define ST_LOOP __device__ __noinline__
#define ST_LOOP_TABLE __constant__
#define ST_EACH for (st_i32 i = threadIdx.x; i < n; i += blockDim.x)
#else
#define ST_LOOP static
#define ST_LOOP_TABLE static
#define ST_EACH for (st_i32 i = 0; i < n; ++i)
#endif
#define ST_LOOP_PARAMETERS const char *a, const char *b, const char *c, char *out, st_u32 strides, st_i32 n
)";

std::string InterpretedLoopText(const ops::BlockLoop& loop) {
  const std::string name = ops::NameOf(loop), result = TypeName(loop.result);
  std::string loads;
  for (size_t i = 0; i < loop.arguments.size(); ++i) {
    absl::StrAppend(&loads, i == 0 ? "" : ", ", "st_load<", TypeName(loop.arguments[i]), ">(",
                    std::string(1, "abc"[i]), " + i * (st_i64)(strides >> ", 8 * i, " & 255u))");
  }
  return absl::StrCat(FunctionText(loop), "ST_LOOP void ", name,
                      "(ST_LOOP_PARAMETERS) {\n#pragma unroll 1\n  ST_EACH st_store<", result,
                      ">(out + i * (st_i64)(strides >> 24), ", name, "_of(", loads, "));\n}\n");
}

}  // namespace

std::string EmitBlockLoopsCpu() {
  std::string text = absl::StrCat(Preamble(Target::kCpu, {DType::kComplex128}), kRandomHeader);
  for (const ops::BlockLoop& loop : ops::BlockLoops()) text += LoopText(loop);
  return text;
}

std::string EmitInterpreter(Target target) {
  std::string text = absl::StrCat(Preamble(target, {DType::kComplex128}), kRandomHeader, kLoops);
  std::string names;
  for (const ops::BlockLoop& loop : ops::BlockLoops()) {
    text += InterpretedLoopText(loop);
    absl::StrAppend(&names, "  ", ops::NameOf(loop), ",\n");
  }
  absl::StrAppend(&text, "ST_LOOP_TABLE void (*const st_block_loops[])(ST_LOOP_PARAMETERS) = {\n",
                  names, "};\n", kInterpretHeader);
  if (target == Target::kCpu) return text;
  return absl::StrCat(text, "ST_BLOCKS_KERNEL(", ops::kBlocksEntry, ", ", kBlocksBytes, ")\n");
}

std::string EmitBlockLoopsCuda() { return EmitInterpreter(Target::kCuda); }

}  // namespace stride::codegen
