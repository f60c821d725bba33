#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "server/worker/codegen/client_text.h"
#include "server/worker/codegen/device_headers.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/codegen/program_text.h"

namespace stride::codegen {
namespace {

using Code = wire::RoutineCode;

absl::Status Broken(const char* what) {
  return absl::InternalError(absl::StrCat("the plan's routine is broken: ", what));
}

// Functions of the texts as phases, from `first` on. Without `has` they are empty. `where` is the
// beginning of a statement that tests the text's condition.
std::string NamedPhases(int first, std::initializer_list<const char*> names, bool has,
                        const char* where = "") {
  std::string text;
  for (const char* name : names) {
    absl::StrAppend(&text, "ST_FN void phase", first++, "(const Launch& launch, st_i64 item) {",
                    has ? absl::StrCat(" ", where, name, "(launch, item); ") : "", "}\n");
  }
  return text;
}

// A GPU sorts long rows of numbers by digits. Complex numbers and several keys are merged.
std::string RadixSortText(const Code& code) {
  const bool has = !IsComplex(static_cast<DType>(code.operands(0).dtype())) &&
                   code.options_size() > 3 && code.options(3) == 0;
  const bool kept = code.routine() == Code::ROUTINE_SELECT;
  const bool seeks = kept || code.routine() == Code::ROUTINE_PARTITION;
  return absl::StrCat(has ? absl::StrCat("constexpr bool kRadixKept = ", kept, ";\n",
                                         seeks ? "" : kNumbersRoutine, kKeysRoutine, kRadixRoutine)
                          : "",
                      NamedPhases(FirstRadixPhase(code.routine()),
                                  {"radix_clear", "radix_count", "radix_plan", "radix_pass"}, has));
}

// Whether a CPU sorts rows of numbers by keys instead of merges.
bool IsKeyed(const Code& code, Target target) {
  if (target == Target::kCuda || code.options_size() < 4) return false;
  if (code.routine() != Code::ROUTINE_SORT && code.routine() != Code::ROUTINE_TOP_K &&
      code.routine() != Code::ROUTINE_PARTITION)
    return false;
  return code.options(3) == 0 && !IsComplex(static_cast<DType>(code.operands(0).dtype()));
}

std::string KeyedSortText(const Code& code) {
  const bool has = IsKeyed(code, Target::kCpu), top = has && code.options(2) != 0;
  const bool seeks = code.routine() == Code::ROUTINE_PARTITION;
  const bool rare = has && code.options(1) == 0;
  const int first = FirstRadixPhase(code.routine());
  return absl::StrCat(
      has ? absl::StrCat(seeks ? "" : kNumbersRoutine, seeks ? "" : kVectorsRoutine, kItemsRoutine,
                         kDigitsRoutine, kKeyedRoutine, top ? kFirstsRoutine : "")
          : "",
      NamedPhases(first, {"key_tiles", "key_merges"}, has),
      NamedPhases(first + 2, {"key_rare", "key_restore"}, rare),
      NamedPhases(first + 4, {"key_firsts"}, top),
      NamedPhases(first + 5, {"key_ranges", "key_places"}, has && !rare),
      NamedPhases(first + 7, {"key_columns"}, has && !top));
}

std::string TallyText(const Code& code) {
  if (CountsGroups(code.routine(), code.options())) return kTallyRoutine;
  return NamedPhases(4, {"", "", ""}, false);
}

// A GPU counts, or sorts by group.
std::string GroupText(const Code& code) {
  const bool sorts = SortsGroups(code.routine(), code.options());
  const int radix = FirstRadixPhase(code.routine());
  return absl::StrCat(TallyText(code),
                      sorts ? absl::StrCat(kGroupingRoutine, kEntriesRoutine, kRadixRoutine,
                                           kRunsRoutine, kSegmentsRoutine)
                            : "",
                      NamedPhases(radix,
                                  {"radix_clear", "radix_count", "radix_plan", "radix_pass",
                                   "short_runs", "long_runs", "fill", "segments", "joins"},
                                  sorts));
}

// A GPU sorts by target, or adds exactly.
std::string ApplyAtText(const Code& code) {
  const bool sums = code.options_size() > 3 && code.options(3) != 0;
  const int radix = FirstRadixPhase(code.routine());
  return absl::StrCat(
      kTargetsRoutine, kEntriesRoutine, kRadixRoutine, kRunsRoutine, sums ? kSumsRoutine : "",
      NamedPhases(
          radix,
          {"radix_clear", "radix_count", "radix_plan", "radix_pass", "short_runs", "long_runs"},
          true, sums ? "if (!sums_fit(launch)) " : ""),
      NamedPhases(radix + 6, {"sums_clear", "sums_range", "sums_add", "sums_join", "sums_write"},
                  sums));
}

// A GPU searches for the last of the first elements.
std::string TopText(const Code& code) {
  const bool has = !IsComplex(static_cast<DType>(code.operands(0).dtype()));
  return absl::StrCat(
      RadixSortText(code), has ? absl::StrCat(kSeekRoutine, kNarrowRoutine, kTopRoutine) : "",
      NamedPhases(FirstRadixPhase(code.routine()) + 4,
                  {"seek_begin", "seek_count", "seek_choose", "top_ties", "top_gather"}, has));
}

// Parts of one device kind alone.
std::string DeviceText(const Code& code, Target target) {
  const bool is_cuda = target == Target::kCuda;
  switch (code.routine()) {
    case Code::ROUTINE_ACCUMULATE:
      return is_cuda ? absl::StrCat(kTilesRoutine, kColumnsRoutine) : kChunksRoutine;
    case Code::ROUTINE_COMPRESS:
      return is_cuda ? kMarksRoutine : kCountsRoutine;
    case Code::ROUTINE_TOP_K:
      return is_cuda ? TopText(code) : KeyedSortText(code);
    case Code::ROUTINE_SORT:
    case Code::ROUTINE_PARTITION:
      return is_cuda ? RadixSortText(code) : KeyedSortText(code);
    case Code::ROUTINE_SELECT:
      return is_cuda ? RadixSortText(code) : "";
    case Code::ROUTINE_GROUP_REDUCE:
    case Code::ROUTINE_HISTOGRAM:
      return is_cuda ? GroupText(code) : TallyText(code);
    case Code::ROUTINE_APPLY_AT:
      return is_cuda ? ApplyAtText(code) : "";
    default:
      return "";
  }
}

// Sorts rows by merges.
std::string MergeText(bool keyed) {
  if (keyed) return absl::StrCat(kOrderRoutine, kSortRoutine, NamedPhases(0, {"", "", ""}, false));
  return absl::StrCat(kOrderRoutine, kSortRoutine, kMergeRoutine, kRankingRoutine);
}

// Elements by rank; complex numbers are sorted.
std::string SeekText(Target target) {
  if (target == Target::kCuda) {
    return absl::StrCat(
        kNumbersRoutine, kSeekRoutine, kNarrowRoutine,
        NamedPhases(3, {"seek_row", "seek_begin", "seek_count", "seek_choose"}, true));
  }
  return absl::StrCat(kNumbersRoutine, kVectorsRoutine, kBlocksRoutine, kSeekRoutine, kBinsRoutine);
}

std::string BodyText(const Code& code, Target target) {
  switch (code.routine()) {
    case Code::ROUTINE_ACCUMULATE:
      return kAccumulateRoutine;
    case Code::ROUTINE_GATHER:
      return absl::StrCat(kIndicesRoutine, kGatherRoutine);
    case Code::ROUTINE_SCATTER:
      return absl::StrCat(kIndicesRoutine, kScatterRoutine);
    case Code::ROUTINE_COMPRESS:
      return kCompressRoutine;
    case Code::ROUTINE_SORT:
    case Code::ROUTINE_TOP_K:
      return MergeText(IsKeyed(code, target));
    case Code::ROUTINE_SELECT:
      return absl::StrCat(MergeText(false), SeekText(target), kSelectRoutine);
    case Code::ROUTINE_PARTITION:
      return absl::StrCat(MergeText(IsKeyed(code, target)), SeekText(target), kPartitionRoutine);
    case Code::ROUTINE_INTERPOLATE:
      return kInterpolateRoutine;
    case Code::ROUTINE_CORRELATE:
      return kCorrelateRoutine;
    case Code::ROUTINE_GROUP_REDUCE:
      return absl::StrCat(kMembersRoutine, kGroupRoutine);
    case Code::ROUTINE_HISTOGRAM:
      return absl::StrCat(kHistogramRoutine, kGroupRoutine);
    case Code::ROUTINE_SEARCH:
      return absl::StrCat(kOrderRoutine, kSearchRoutine);
    case Code::ROUTINE_FOLD:
      return kFoldRoutine;
    case Code::ROUTINE_APPLY_AT:
      return absl::StrCat(kIndicesRoutine, kAtRoutine);
    case Code::ROUTINE_GUFUNC:
      return kGufuncRoutine;
    default:
      return "";
  }
}

// Types, constants, struct Launch: the declarations listed in routines/common.h.
std::string DeclarationsText(const Code& code) {
  std::string text, fields, middle, outputs_backwards;
  const int count = code.operands_size();
  for (int i = 0; i < count; ++i) {
    const auto& operand = code.operands(i);
    const uint32_t slots = std::max(operand.own_rank(), 1u);
    absl::StrAppend(&text, "typedef ", TypeName(static_cast<DType>(operand.dtype())), " T", i,
                    ";\nstruct Operand", i,
                    " {\n  static constexpr int kOwn = ", operand.own_rank(),
                    ";\n  char* data;\n  st_i64 strides[", code.rank(), "], own_extents[", slots,
                    "], own_strides[", slots, "];\n};\n");
    absl::StrAppend(&fields, "  Operand", i, " operand", i, ";\n");
    if (i > 0 && i < count - 1) absl::StrAppend(&middle, " F(", i, ")");
    if (i > 0) outputs_backwards = absl::StrCat(" F(", i, ")", outputs_backwards);
  }
  const bool all_outputs =
      code.routine() == Code::ROUTINE_COMPRESS && code.options_size() > 0 && code.options(0) != 0;
  absl::StrAppend(&text, "typedef T", count - 1, " TLast;\n#define ST_LAST operand", count - 1,
                  "\n#define ST_MIDDLE(F)", middle, "\n#define ST_OUTPUTS_BACKWARDS(F)",
                  all_outputs ? outputs_backwards : "", "\n#define ST_SCALARS ", code.num_scalars(),
                  "\ntypedef ", code.index_32bit() ? "st_u32" : "st_i64",
                  " Index;\nenum { kRank = ", code.rank(), " };\n");
  for (int i = 0; i < code.options_size(); ++i)
    absl::StrAppend(&text, "constexpr st_i64 kOption", i, " = ", code.options(i), ";\n");
  absl::StrAppend(&text, "struct Launch {\n  st_i64 items, count, pass[4];\n  char* scratch;\n",
                  "  st_i64* fault;\n  st_i64 extents[", code.rank(), "];\n", fields,
                  code.num_scalars() == 0
                      ? ""
                      : absl::StrCat("  alignas(16) char scalars[", code.num_scalars(), "][16];\n"),
                  "};\n");
  return text;
}

// The programs as functions of values.
absl::StatusOr<std::string> ProgramsText(const Code& code) {
  std::string text;
  for (int i = 0; i < code.programs_size(); ++i) {
    const auto& program = code.programs(i);
    std::vector<DType> inputs;
    std::string parameters, arguments;
    for (int j = 0; j < program.input_dtypes_size(); ++j) {
      inputs.push_back(static_cast<DType>(program.input_dtypes(j)));
      absl::StrAppend(&parameters, j == 0 ? "" : ", ", TypeName(inputs.back()), " in", j);
      absl::StrAppend(&arguments, ", in", j);
    }
    auto body = EmitProgram(absl::StrCat("program", i), program.program(), inputs);
    if (!body.ok()) return body.status();
    if (body->num_scalars != 0) return Broken("a program with constants");
    const std::string type = TypeName(static_cast<DType>(program.output_dtype()));
    if (inputs.empty()) return Broken("a program of nothing");
    absl::StrAppend(&text, body->definitions, "typedef ", TypeName(inputs[0]), " Argument", i,
                    ";\ntypedef ", type, " Program", i, ";\nST_FN ", type, " run", i, "(",
                    parameters, ") {\n  ", type, " out;\n  program", i, "(program", i, "_scalars()",
                    arguments, ", 0, out);\n  return out;\n}\n");
  }
  return text;
}

// The name of a type in a gufunc's text.
std::string ViewedTypeName(DType dtype) {
  if (dtype == DType::kFloat16) return "stride_float16";
  if (dtype == DType::kBFloat16) return "stride_bfloat16";
  return ClientTypeName(dtype);
}

// Option 0 of a gufunc: the number of arguments that are inputs. Each of these has one more option:
// 0 for an operand; else a number's type and its view's rank (GufuncNumberOption), with a scalar.
absl::StatusOr<std::string> CallText(const Code& code) {
  if (code.routine() != Code::ROUTINE_GUFUNC) return std::string();
  if (code.options_size() < 1 || code.options(0) != code.options_size() - 1)
    return Broken("a gufunc's options");
  auto text = ClientText(code.function());
  if (!text.ok()) return text.status();
  std::string arguments;
  auto add = [&](bool is_input, DType dtype, const std::string& view) {
    absl::StrAppend(&arguments, arguments.empty() ? "" : ", ", view, "<", is_input ? "const " : "",
                    ViewedTypeName(dtype));
  };
  int operand = 0, scalar = 0;
  auto add_operand = [&](bool is_input) {
    add(is_input, static_cast<DType>(code.operands(operand).dtype()), "st_view");
    absl::StrAppend(&arguments, ">(launch.operand", operand++, ", place)");
  };
  for (int i = 1; i < code.options_size(); ++i) {
    if (code.options(i) == 0) {
      if (operand >= code.operands_size()) return Broken("a gufunc's operands");
      add_operand(true);
      continue;
    }
    auto dtype = DTypeFromNumber(static_cast<int>(code.options(i) / 64));
    if (!dtype || scalar >= static_cast<int>(code.num_scalars()))
      return Broken("a gufunc's number");
    add(true, *dtype, "st_number");
    absl::StrAppend(&arguments, ", ", code.options(i) % 64, ">(launch.scalars[", scalar++, "])");
  }
  while (operand < code.operands_size()) add_operand(false);
  return absl::StrCat(*text,
                      "ST_FN void phase0(const Launch& launch, st_i64 item) {\n"
                      "  const Place place = st_place(launch, item);\n  ",
                      ClientName(code.function()), "(", arguments, ");\n}\n");
}

// Blocks per multiprocessor, for which the compiler limits registers: phases that wait for other
// blocks need enough of them resident.
int LeastBlocks(const Code& code, int phase) {
  const Code::Routine routine = code.routine();
  if (routine == Code::ROUTINE_ACCUMULATE) {
    // Wider results need more registers.
    const auto& result = code.operands(code.operands_size() - 1);
    return ItemSize(static_cast<DType>(result.dtype())) <= 4 ? 6 : 5;
  }
  if (routine == Code::ROUTINE_COMPRESS) return 5;
  // Passes that read a long row whole: other blocks' loads are in flight while one block counts.
  if (routine == Code::ROUTINE_TOP_K && phase > FirstRadixPhase(routine) + 3) return 4;
  return FirstRadixPhase(routine) >= 0 && phase == FirstRadixPhase(routine) + 3 ? 4 : 1;
}

std::string EntriesText(const Code& code, Target target) {
  std::string text;
  int phase = 0;
  for (PhaseKind kind : RoutinePhases(code.routine(), {target == Target::kCuda ? 1 : 0})) {
    if (target == Target::kCpu) {
      absl::StrAppend(&text, "ST_ENTRY void ", PhaseEntry(phase),
                      "(const Launch* launch, st_i64 begin, st_i64 end) {\n  for (st_i64 item = "
                      "begin; item < end; ++item) phase",
                      phase, "(*launch, item);\n}\n");
    } else if (kind == PhaseKind::kThread) {
      absl::StrAppend(&text, "extern \"C\" __global__ void __launch_bounds__(", kRoutineThreads,
                      ") ", PhaseEntry(phase), "(const __grid_constant__ Launch launch) {\n",
                      "  for (st_i64 item = (st_i64)blockIdx.x * blockDim.x + threadIdx.x; item < "
                      "launch.items; item += (st_i64)gridDim.x * blockDim.x) phase",
                      phase, "(launch, item);\n}\n");
    } else {
      const int least = LeastBlocks(code, phase);
      absl::StrAppend(
          &text, "extern \"C\" __global__ void __launch_bounds__(", kRoutineThreads,
          least > 1 ? absl::StrCat(", ", least) : "", ") ", PhaseEntry(phase),
          "(const __grid_constant__ Launch launch) {\n",
          "  for (st_i64 item = blockIdx.x; item < launch.items; item += gridDim.x) {\n    phase",
          phase, "(launch, item);\n    __syncthreads();\n  }\n}\n");
    }
    ++phase;
  }
  return text;
}

absl::Status Check(const Code& code) {
  if (RoutinePhases(code.routine(), {}).empty()) return Broken("no such routine");
  if (code.rank() < 1 || code.rank() > kMaxRank) return Broken("rank");
  const int least = code.routine() == Code::ROUTINE_GUFUNC ? 1 : 2;
  if (code.operands_size() < least || code.operands_size() > kMaxOperands)
    return Broken("operands");
  for (const auto& operand : code.operands()) {
    if (!DTypeFromNumber(operand.dtype()) || operand.own_rank() > kMaxRank) return Broken("types");
  }
  for (const auto& program : code.programs()) {
    if (!DTypeFromNumber(program.output_dtype())) return Broken("types");
    for (int dtype : program.input_dtypes()) {
      if (!DTypeFromNumber(dtype)) return Broken("types");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Emit(const Code& code, Target target) {
  if (absl::Status status = Check(code); !status.ok()) return status;
  std::vector<DType> used;
  for (const auto& operand : code.operands()) used.push_back(static_cast<DType>(operand.dtype()));
  for (const auto& program : code.programs()) CollectTypes(program.program(), &used);
  auto programs = ProgramsText(code);
  if (!programs.ok()) return programs.status();
  auto call = CallText(code);
  if (!call.ok()) return call.status();
  return absl::StrCat(Preamble(target, used), DeclarationsText(code), *programs, kCommonRoutine,
                      BodyText(code, target), DeviceText(code, target), *call,
                      EntriesText(code, target));
}

}  // namespace

absl::StatusOr<std::string> EmitRoutineCuda(const Code& code) { return Emit(code, Target::kCuda); }
absl::StatusOr<std::string> EmitRoutineCpu(const Code& code) { return Emit(code, Target::kCpu); }

}  // namespace stride::codegen
