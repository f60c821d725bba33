#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/worker/codegen/device_headers.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/reduce_constants.h"
#include "server/worker/codegen/reduce_kernels_cpu.h"
#include "server/worker/codegen/reduce_text.h"

namespace stride::codegen {
namespace {

// A run without a fixed order fits the first-level cache.
constexpr size_t kLongRunBytes = 16384;

using Code = wire::ReduceCode;

struct Pieces {
  std::string bases, pointers, pointer_parameters, run_element, run_element_k, unit_steps,
      unit_element, column_element;
  std::string compute, compute_run;
};

// Whether a run of elements may be longer than a row of the inputs that they are computed from.
bool RunsCrossRows(const ReduceText& text) { return text.row_axes > 1; }

// Step of input `i` in the innermost loop, a constant where possible.
std::string InnerStep(const ReduceText& text, size_t i, const std::string& known,
                      const std::string& other) {
  switch (text.inner_access[i]) {
    case wire::Layout::ACCESS_CONTIGUOUS:
      return known;
    case wire::Layout::ACCESS_BROADCAST:
      return "0";
    default:
      return other;
  }
}

// Elements of whole runs, for inputs whose rows are shorter.
void ComputeRuns(const ReduceText& text, Pieces* pieces) {
  std::string parameters, arguments, rows, element;
  const std::string last = absl::StrCat(text.kept_rank + text.reduced_rank - 1);
  for (size_t i = 0; i < text.dtypes.size(); ++i) {
    absl::StrAppend(&parameters, ", const char* base", i);
    absl::StrAppend(&arguments, ", base", i);
    absl::StrAppend(&rows, "    const char* const p", i, " = base", i, " + reduced_offset(launch, ",
                    i, ", from);\n");
    absl::StrAppend(&element, ", p", i, " + i * ",
                    InnerStep(text, i, absl::StrCat(ItemSize(text.dtypes[i])),
                              absl::StrCat("launch.inputs[", i, "].strides[", last, "]")));
  }
  pieces->compute_run = absl::StrReplaceAll(
      cpu_kernels::kComputedRun,
      {{"$base_parameters", parameters},
       {"$last_reduced", last},
       {"$row_pointers", rows},
       {"$row_element", absl::StrCat("load_mapped(scalars", element, ", from + i)")}});
  pieces->compute = absl::StrCat("  Acc elements[kRun];\n  compute_run(launch, scalars", arguments,
                                 ", first, n, elements);\n");
  pieces->pointers = absl::StrCat("launch", arguments);
  pieces->pointer_parameters = absl::StrCat("const Launch& launch", parameters);
  pieces->run_element = "elements[i]";
  pieces->run_element_k = "elements[i + k]";
}

Pieces MakePieces(const ReduceText& text) {
  Pieces pieces;
  pieces.run_element = pieces.run_element_k = pieces.unit_element = pieces.column_element =
      "load_mapped(scalars";
  for (size_t i = 0; i < text.dtypes.size(); ++i) {
    const char* comma = i == 0 ? "" : ", ";
    const std::string size = absl::StrCat(ItemSize(text.dtypes[i]));
    absl::StrAppend(&pieces.bases, "    const char* const base", i, " = launch.inputs[", i,
                    "].data + kept_offset(launch, ", i, ", kept);\n");
    absl::StrAppend(&pieces.pointers, comma, "base", i, " + reduced_offset(launch, ", i, ", i), ");
    const std::string last = absl::StrCat("launch.inputs[", i, "].strides[",
                                          text.kept_rank + text.reduced_rank - 1, "]");
    absl::StrAppend(&pieces.pointers,
                    text.reduced_rank == 0 ? "0" : InnerStep(text, i, size, last));
    absl::StrAppend(&pieces.pointer_parameters, comma, "const char* p", i, ", st_i64 given", i);
    const std::string step = InnerStep(text, i, size, absl::StrCat("given", i));
    absl::StrAppend(&pieces.run_element, ", p", i, " + i * ", step);
    absl::StrAppend(&pieces.run_element_k, ", p", i, " + (i + k) * ", step);
    const std::string column =
        absl::StrCat("launch.inputs[", i, "].strides[", text.kept_rank - 1, "]");
    absl::StrAppend(&pieces.unit_steps, i == 0 ? "" : " && ", column, " == ", size);
    absl::StrAppend(&pieces.unit_element, ", row.at[", i, "] + j * ",
                    text.computed ? InnerStep(text, i, size, column) : size);
    absl::StrAppend(&pieces.column_element, ", row.at[", i, "] + j * ", column);
  }
  absl::StrAppend(&pieces.run_element, ", first + i)");
  absl::StrAppend(&pieces.run_element_k, ", first + i + k)");
  absl::StrAppend(&pieces.unit_element, ", i)");
  absl::StrAppend(&pieces.column_element, ", i)");
  if (RunsCrossRows(text)) ComputeRuns(text, &pieces);
  return pieces;
}

bool IsExtreme(Code::Combine combine) {
  return combine == Code::COMBINE_MINIMUM || combine == Code::COMBINE_MAXIMUM;
}

// How lanes of numbers are combined (device/lanes.h); empty: the accumulator is not one number.
std::string CombinationOf(const Code& code, const ReduceText& text, DType accumulator) {
  if (!text.single || !IsNumber(accumulator)) return "";
  switch (code.combine()) {
    case Code::COMBINE_ADD:
      return "st_adding";
    case Code::COMBINE_MULTIPLY:
      return "st_multiplying";
    case Code::COMBINE_MINIMUM:
    case Code::COMBINE_ARGMIN:
      return "st_taking_minimum";
    case Code::COMBINE_MAXIMUM:
    case Code::COMBINE_ARGMAX:
      return "st_taking_maximum";
    case Code::COMBINE_LOGICAL_OR:
      return IsBool(accumulator) ? "st_adding" : "";
    case Code::COMBINE_LOGICAL_AND:
      return IsBool(accumulator) ? "st_multiplying" : "";
    default:
      return "";
  }
}

// Whether instruction `number` is the plain input `index`.
bool IsPlainInput(const Code& code, const ReduceText& text, uint32_t number, uint32_t index,
                  DType dtype) {
  const wire::Instruction& value = code.map().instructions(static_cast<int>(number));
  return value.kind() == wire::Instruction::KIND_INPUT && value.index() == index &&
         text.dtypes[index] == dtype;
}

bool InSequence(const ReduceText& text) {
  return !RunsCrossRows(text) && std::all_of(text.inner_access.begin(), text.inner_access.end(),
                                             [](wire::Layout::Access access) {
                                               return access == wire::Layout::ACCESS_CONTIGUOUS;
                                             });
}

const char* SourceText(const Code& code, const ReduceText& text, DType dtype) {
  if (!InSequence(text)) return cpu_kernels::kCopied;
  const uint32_t result = code.map().results(0);
  const wire::Instruction& value = code.map().instructions(static_cast<int>(result));
  if (IsPlainInput(code, text, result, 0, dtype)) return cpu_kernels::kInPlace;
  if (text.finishes_index || text.is_moments || IsBool(dtype) || value.op() != "multiply" ||
      value.arguments_size() != 2 || text.dtypes.size() > 2 ||
      !IsPlainInput(code, text, value.arguments(0), 0, dtype))
    return cpu_kernels::kCopied;
  const uint32_t last = static_cast<uint32_t>(text.dtypes.size()) - 1;
  if (!IsPlainInput(code, text, value.arguments(1), last, dtype)) return cpu_kernels::kCopied;
  return last == 0 ? cpu_kernels::kSquares : cpu_kernels::kProducts;
}

std::string RowsText(const Code& code, const ReduceText& text, const Pieces& pieces,
                     DType accumulator, const std::string& combination) {
  const std::string& compute = pieces.compute_run;
  if (text.is_moments && text.single && IsNumber(accumulator)) {
    const std::string run = absl::StrReplaceAll(cpu_kernels::kMomentsNumberRun,
                                                {{"$source", SourceText(code, text, accumulator)}});
    return absl::StrCat(kLanesHeader, cpu_kernels::kCascade, compute, run, cpu_kernels::kRows);
  }
  if (text.is_moments && !text.reads_accumulator)
    return absl::StrCat(cpu_kernels::kCascade, cpu_kernels::kRunSizes, compute,
                        cpu_kernels::kMomentsRun, cpu_kernels::kRows);
  if (combination.empty())
    return absl::StrCat(cpu_kernels::kCascade, compute, cpu_kernels::kAnyRun, cpu_kernels::kRows);
  const std::string run =
      absl::StrReplaceAll(text.finishes_index ? cpu_kernels::kPlaceRun : cpu_kernels::kNumberRun,
                          {{"$source", SourceText(code, text, accumulator)}});
  return absl::StrCat(kLanesHeader, cpu_kernels::kCascade, compute, run, cpu_kernels::kRows);
}

std::string ColumnsText(const Code& code, const ReduceText& text, DType accumulator,
                        const std::string& combination) {
  const bool number = !combination.empty();
  const bool as_it_lies = number && !IsBool(accumulator) && text.dtypes.size() == 1 &&
                          (!text.computed || InSequence(text)) &&
                          IsPlainInput(code, text, code.map().results(0), 0, accumulator);
  const char* const blocks = number && text.finishes_index    ? cpu_kernels::kPlaceBlock
                             : text.is_moments && text.single ? cpu_kernels::kMomentsBlock
                                                              : cpu_kernels::kAnyBlock;
  const std::string block =
      absl::StrReplaceAll(blocks, {{"$vectors", as_it_lies ? cpu_kernels::kVectors : ""}});
  return absl::StrCat(
      number ? kLanesHeader : "", cpu_kernels::kCascade,
      number && !text.finishes_index ? cpu_kernels::kCombineNumbers : "",
      absl::StrReplaceAll(cpu_kernels::kColumns,
                          {{"$combine_block", block},
                           {"$combine_rows", text.computed ? cpu_kernels::kKnownSteps
                                                           : cpu_kernels::kEitherSteps}}));
}

}  // namespace

absl::StatusOr<std::string> EmitReduceCpu(const Code& code) {
  auto text = PrepareReduce(code, Target::kCpu);
  if (!text.ok()) return text.status();
  Pieces pieces = MakePieces(*text);
  const auto accumulator = static_cast<DType>(code.accumulator_dtype());
  const std::string combination = CombinationOf(code, *text, accumulator);
  const bool by_place = text->finishes_index && !combination.empty();
  // The last reduced axis of the array that decides the order.
  std::string row_extent = text->row_axes == 0 ? "1" : "";
  for (int axis = text->reduced_rank - text->row_axes; axis < text->reduced_rank; ++axis) {
    absl::StrAppend(&row_extent, row_extent.empty() ? "" : " * ", "launch.extents[",
                    text->kept_rank + axis, "]");
  }
  const bool long_runs = absl::StrContains(combination, "taking") &&
                         SourceText(code, *text, accumulator) == cpu_kernels::kInPlace;
  std::string kernels =
      absl::StrCat(text->kept_contiguous ? ColumnsText(code, *text, accumulator, combination)
                                         : RowsText(code, *text, pieces, accumulator, combination),
                   cpu_kernels::kFinish);
  return text->definitions +
         absl::StrReplaceAll(
             kernels,
             {{"$map_scalars", text->map_scalars_call},
              {"$finish_scalars", text->finish_scalars_call},
              {"$row_extent", row_extent},
              {"$left_in_row", text->row_rank > 1 ? "row - i % row" : "row - i"},
              {"$begin_result", by_place ? "    Acc found = st_identity();"
                                         : "    Cascade cascade;\n    cascade.count = 0;"},
              {"$take_run", absl::StrCat(by_place ? "improve(found, scalars, "
                                                  : "cascade_add(cascade, combine_run(scalars, ",
                                         pieces.pointers, by_place ? ", i, n);" : ", i, n));")},
              {"$longest_run",
               long_runs ? absl::StrCat(kLongRunBytes / ItemSize(accumulator)) : "kRun"},
              {"$end_result", by_place ? "found" : "cascade_result(cascade)"},
              {"$combination", combination},
              {"$extremes", IsExtreme(code.combine()) ? "true" : "false"},
              {"$combine_both", combination.empty() ? "st_combine" : "combine_numbers"},
              {"$value", TypeName(accumulator)},
              {"$part", text->is_moments ? "pivot" : "value"},
              {"$no_better", code.combine() == Code::COMBINE_ARGMIN ? ">=" : "<="},
              {"$bases", pieces.bases},
              {"$compute", pieces.compute},
              {"$pointer_parameters", pieces.pointer_parameters},
              {"$run_element_k", pieces.run_element_k},
              {"$run_element", pieces.run_element},
              {"$num_inputs", absl::StrCat(text->dtypes.size())},
              {"$group", absl::StrCat(kColumnGroup)},
              {"$last_kept", absl::StrCat(text->kept_rank - 1)},
              {"$unit_steps", pieces.unit_steps},
              {"$unit_element", pieces.unit_element},
              {"$column_element", pieces.column_element}});
}

}  // namespace stride::codegen
