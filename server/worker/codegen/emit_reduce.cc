#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/ops/reduce_access.h"
#include "server/worker/codegen/device_headers.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/launch_abi.h"
#include "server/worker/codegen/reduce_constants.h"
#include "server/worker/codegen/reduce_text.h"

namespace stride::codegen {
namespace {

using Code = wire::ReduceCode;

absl::Status Broken(const char* what) {
  return absl::InternalError(absl::StrCat("the plan's reduction is broken: ", what));
}

// C++ text over values a and b; `name` is the accumulator's type.
std::string CombineText(Code::Combine combine, const std::string& name) {
  switch (combine) {
    case Code::COMBINE_ADD:
      return "st_add(a.value, b.value)";
    case Code::COMBINE_MULTIPLY:
      return "st_multiply(a.value, b.value)";
    case Code::COMBINE_MINIMUM:
      return "st_minimum(a.value, b.value)";
    case Code::COMBINE_MAXIMUM:
      return "st_maximum(a.value, b.value)";
    case Code::COMBINE_LOGICAL_OR:
      return "a.value || b.value";
    default:
      return "a.value && b.value";
  }
}

// The identity of an extreme: loses against each other value.
std::string ExtremeText(DType dtype, bool lowest) {
  std::string type = TypeName(dtype);
  if (IsBool(dtype) || IsInteger(dtype))
    return absl::StrCat("st_traits<", type, ">::", lowest ? "lowest" : "highest");
  std::string part = dtype == DType::kFloat32 || dtype == DType::kComplex64 ? "0.0f" : "0.0";
  std::string infinity = absl::StrCat(lowest ? "-" : "", "st_infinity_of(", part, ")");
  return IsComplex(dtype) ? absl::StrCat(type, "{", infinity, ", ", infinity, "}") : infinity;
}

std::string IdentityText(Code::Combine combine, DType dtype) {
  std::string type = TypeName(dtype);
  std::string complex_zero = IsComplex(dtype) ? ", 0}" : "}";
  switch (combine) {
    case Code::COMBINE_ADD:
    case Code::COMBINE_LOGICAL_OR:
      return absl::StrCat(type, "{0", complex_zero);
    case Code::COMBINE_MULTIPLY:
    case Code::COMBINE_LOGICAL_AND:
      return absl::StrCat(type, "{1", complex_zero);
    case Code::COMBINE_MINIMUM:
    case Code::COMBINE_ARGMIN:
      return ExtremeText(dtype, false);
    default:
      return ExtremeText(dtype, true);
  }
}

// The map selects elements: only selected elements are counted and combined.
std::string CountingText(const std::string& type, const std::string& identity,
                         const std::string& combined) {
  return absl::StrCat("struct Acc {\n  ", type,
                      " value;\n  st_i64 count;\n};\nST_FN Acc st_identity() { return Acc{",
                      identity, ", 0}; }\nST_FN Acc st_combine(Acc a, Acc b) {\n",
                      "  if (a.count == 0) return b;\n  if (b.count == 0) return a;\n", combined,
                      "  return Acc{value, a.count + b.count};\n}\n");
}

// The combination is a program: `combine_program` and its scalars are declared before. Without an
// identity, an index below zero marks an empty accumulator.
absl::StatusOr<std::string> ProgramAccumulatorText(const Code& code, DType dtype, bool counts) {
  const std::string type = TypeName(dtype);
  const std::string combined = absl::StrCat(
      "  ", type,
      " value;\n  combine_program(combine_program_scalars(), a.value, b.value, 0, value);\n");
  if (counts) {
    std::string identity = absl::StrCat(type, "()");
    if (code.has_identity()) {
      auto literal = LiteralText(dtype, code.identity().value());
      if (!literal.ok()) return literal.status();
      identity = *literal;
    }
    return CountingText(type, identity, combined);
  }
  if (!code.has_identity()) {
    return absl::StrCat("struct Acc {\n  ", type,
                        " value;\n  st_i64 index;\n};\nST_FN Acc st_identity() { return Acc{", type,
                        "(), -1}; }\nST_FN Acc st_combine(Acc a, Acc b) {\n",
                        "  if (a.index < 0) return b;\n  if (b.index < 0) return a;\n", combined,
                        "  return Acc{value, 0};\n}\n");
  }
  auto identity = LiteralText(dtype, code.identity().value());
  if (!identity.ok()) return identity.status();
  return absl::StrCat(
      "struct Acc {\n  ", type, " value;\n};\nST_FN Acc st_identity() { return Acc{", *identity,
      "}; }\nST_FN Acc st_combine(Acc a, Acc b) {\n", combined, "  return Acc{value};\n}\n");
}

std::string MomentsText(const std::string& type) {
  return absl::StrCat(kMomentsHeader, "typedef st_moments<", type,
                      "> Acc;\nST_FN Acc st_identity() { return Acc{", type, "(), ", type,
                      "(), 0, 0}; }\nST_FN Acc st_combine(const Acc& a, const Acc& b) { return "
                      "st_combine_moments(a, b); }\n");
}

std::string AccumulatorText(const Code& code, DType dtype, bool counts) {
  if (code.combine() == Code::COMBINE_MOMENTS) return MomentsText(TypeName(dtype));
  std::string type = TypeName(dtype), identity = IdentityText(code.combine(), dtype);
  // `bool{0}` and similar expressions narrow; casts do not.
  if (!IsComplex(dtype) && identity.find('{') != std::string::npos) {
    identity = absl::StrCat("(", type, ")", identity.substr(type.size() + 1, 1));
  }
  if (counts) {
    return CountingText(type, identity,
                        absl::StrCat("  const ", type, " value = (", type, ")(",
                                     CombineText(code.combine(), type), ");\n"));
  }
  if (!ops::IsArg(code.combine())) {
    return absl::StrCat("struct Acc {\n  ", type,
                        " value;\n};\nST_FN Acc st_identity() { return Acc{", identity, "}; }\n",
                        "ST_FN Acc st_combine(Acc a, Acc b) { return Acc{(", type, ")(",
                        CombineText(code.combine(), type), ")}; }\n");
  }
  const char* better = code.combine() == Code::COMBINE_ARGMIN ? "st_less(b.value, a.value)"
                                                              : "st_less(a.value, b.value)";
  // An index below zero: no element yet. Among equal values, and among NaNs, the first index wins.
  return absl::StrCat(
      "struct Acc {\n  ", type,
      " value;\n  st_i64 index;\n};\nST_FN Acc st_identity() { return Acc{", identity,
      ", -1}; }\nST_FN Acc st_combine(Acc a, Acc b) {\n  if (a.index < 0) return b;\n  if (b.index "
      "< 0) return a;\n",
      "  const bool a_nan = st_isnan(a.value), b_nan = st_isnan(b.value);\n",
      "  const bool first = a.index < b.index;\n  if (a_nan || b_nan) return a_nan && (first || "
      "!b_nan) ? a : b;\n",
      "  if (", better, ") return b;\n  return first || !st_equal(a.value, b.value) ? a : b;\n}\n");
}

std::string ScalarsField(const char* name, int count) {
  return count == 0 ? "" : absl::StrCat("  alignas(16) char ", name, "[", count, "][16];\n");
}

std::string LaunchStruct(const ReduceText& text, int num_map_scalars, int num_finish_scalars) {
  int rank = text.kept_rank + text.reduced_rank;
  std::string input =
      absl::StrCat("struct Input {\n  char* data;\n",
                   rank == 0 ? "" : absl::StrCat("  st_i64 strides[", rank, "];\n"), "};\n");
  return absl::StrCat(
      input,
      "struct Launch {\n  st_i64 kept_count, reduced_count, splits, chunk;\n  char* scratch;\n",
      "  unsigned int* arrivals;\n  st_i64 first_split;\n",
      rank == 0 ? "" : absl::StrCat("  st_i64 extents[", rank, "];\n"), "  Input inputs[",
      text.dtypes.size(), "];\n  char* output;\n",
      text.kept_rank == 0 ? "" : absl::StrCat("  st_i64 output_strides[", text.kept_rank, "];\n"),
      ScalarsField("map_scalars", num_map_scalars),
      ScalarsField("finish_scalars", num_finish_scalars), "};\n");
}

// The value of one element from its inputs, and from pointers to them.
std::string MapText(const ReduceText& text, DType accumulator) {
  if (text.reads_accumulator)
    return "ST_FN Acc load_mapped(const mapScalars&, const void* p0, st_i64) { return *(const "
           "Acc*)p0; }\n";
  std::string values, parameters, passed, arguments;
  for (size_t i = 0; i < text.dtypes.size(); ++i) {
    absl::StrAppend(&values, ", ", TypeName(text.dtypes[i]), " v", i);
    absl::StrAppend(&passed, ", v", i);
    absl::StrAppend(&parameters, ", const void* p", i);
    absl::StrAppend(&arguments, ", st_load<", TypeName(text.dtypes[i]), ">(p", i, ")");
  }
  return absl::StrCat("ST_FN Acc mapped(const mapScalars& scalars", values, ", st_i64 index) {\n  ",
                      TypeName(accumulator), " value;\n",
                      text.selects ? "  bool takes_part;\n" : "", "  map(scalars", passed,
                      ", index, value", text.selects ? ", takes_part" : "", ");\n",
                      text.selects ? "  if (!takes_part) return st_identity();\n" : "", "  return ",
                      text.is_moments  ? "st_moments_of(value)"
                      : text.counts    ? "Acc{value, 1}"
                      : text.has_index ? "Acc{value, index}"
                                       : "Acc{value}",
                      ";\n}\nST_FN Acc load_mapped(const mapScalars& scalars", parameters,
                      ", st_i64 index) {\n  return mapped(scalars", arguments, ", index);\n}\n");
}

// Byte offset of kept or reduced element number `i`, axis by axis from the last.
std::string OffsetText(const std::string& name, int first_axis, int rank,
                       const std::string& strides, const std::string& parameter,
                       const std::string& index) {
  std::string body;
  if (rank == 1) {
    body = absl::StrCat("  return i * ", strides, "[", first_axis, "];\n");
  } else if (rank == 0) {
    body = "  return 0;\n";
  } else {
    absl::StrAppend(&body, "  st_i64 offset = 0;\n  ", index, " rest = (", index, ")i;\n");
    for (int axis = rank - 1; axis >= 1; --axis) {
      absl::StrAppend(&body, "  {\n    const ", index, " extent = (", index, ")launch.extents[",
                      first_axis + axis, "], next = rest / extent;\n",
                      "    offset += (st_i64)(rest - next * extent) * ", strides, "[",
                      first_axis + axis, "];\n    rest = next;\n  }\n");
    }
    absl::StrAppend(&body, "  return offset + (st_i64)rest * ", strides, "[", first_axis, "];\n");
  }
  return absl::StrCat("ST_FN st_i64 ", name, "(const Launch& launch", parameter, ", st_i64 i) {\n",
                      body, "}\n");
}

std::string StoreText(const ReduceText& text, DType output) {
  const char* const begin =
      "ST_FN void store_result(const Launch& launch, const finishScalars& scalars, st_i64 kept, "
      "Acc acc) {\n";
  if (text.stores_accumulator)
    return absl::StrCat(begin,
                        "  *(Acc*)(launch.output + output_offset(launch, kept)) = acc;\n}\n");
  const char* const whole = text.is_moments ? "st_squares_of(acc), acc.count, acc.pivot, acc.offset"
                            : text.finishes_index ? "acc.index"
                            : text.counts         ? "acc.value, acc.count"
                                                  : "acc.value";
  return absl::StrCat(begin, "  ", TypeName(output), " result;\n  finish(scalars, ", whole,
                      ", kept, result);\n  st_store<", TypeName(output),
                      ">(launch.output + output_offset(launch, kept), result);\n}\n");
}

}  // namespace

absl::StatusOr<ReduceText> PrepareReduce(const Code& code, Target target) {
  ReduceText text;
  for (int number : code.input_dtypes()) {
    if (!DTypeFromNumber(number)) return Broken("no such type");
    text.dtypes.push_back(static_cast<DType>(number));
  }
  auto accumulator = DTypeFromNumber(code.accumulator_dtype());
  auto output = DTypeFromNumber(code.output_dtype());
  if (!accumulator || !output || text.dtypes.empty()) return Broken("types");
  if (code.combine() == Code::COMBINE_UNSPECIFIED) return Broken("combine");
  text.kept_rank = static_cast<int>(code.kept_rank());
  text.reduced_rank = static_cast<int>(code.reduced_rank());
  if (text.kept_rank + text.reduced_rank > kMaxRank) return Broken("rank");
  for (int access : code.access()) text.access.push_back(static_cast<wire::Layout::Access>(access));
  if (text.access.size() != text.dtypes.size()) return Broken("access");
  text.inner_access = text.access;
  text.row_rank = text.reduced_rank;
  text.row_axes = std::min(text.reduced_rank, 1);
  if (code.has_computed()) {
    const auto dtype = DTypeFromNumber(code.computed().dtype());
    text.inner_access.clear();
    text.row_rank = static_cast<int>(code.computed().reduced_rank());
    text.row_axes = static_cast<int>(code.computed().row_axes());
    if (!dtype || text.row_rank > text.reduced_rank || text.row_axes > text.reduced_rank ||
        (text.row_axes == 0) != (text.row_rank == 0))
      return Broken("computed elements");
    if (code.computed().inner_access_size() != code.input_dtypes_size()) return Broken("access");
    text.computed = {*dtype, code.computed().access()};
    for (int access : code.computed().inner_access())
      text.inner_access.push_back(static_cast<wire::Layout::Access>(access));
  }
  text.selects = code.map().results_size() == 2;
  if (code.map().results_size() < 1 || code.map().results_size() > 2 ||
      code.finish().results_size() != 1)
    return Broken("results");
  const bool by_program = code.combine() == Code::COMBINE_PROGRAM;
  text.finishes_index = ops::IsArg(code.combine());
  text.is_moments = code.combine() == Code::COMBINE_MOMENTS;
  text.stores_accumulator = code.stores_accumulator();
  text.reads_accumulator = code.reads_accumulator();
  text.counts = text.selects && !text.finishes_index && !text.is_moments;
  text.single = !text.selects && !by_program && !text.reads_accumulator;
  text.has_index = text.finishes_index || (by_program && !code.has_identity());
  text.kept_contiguous = code.kept_contiguous();

  auto map = EmitProgram("map", code.map(), text.dtypes);
  if (!map.ok()) return map.status();
  std::vector<DType> finished = {ops::FinishedType(code.combine(), *accumulator)};
  if (text.counts || text.is_moments) finished.push_back(DType::kInt64);
  if (text.is_moments) finished.insert(finished.end(), 2, *accumulator);
  auto finish = EmitProgram("finish", code.finish(), finished);
  if (!finish.ok()) return finish.status();
  std::string accumulator_text;
  if (by_program) {
    if (code.combine_program().results_size() != 1) return Broken("results");
    auto combine =
        EmitProgram("combine_program", code.combine_program(), {*accumulator, *accumulator});
    if (!combine.ok()) return combine.status();
    if (combine->num_scalars != 0) return Broken("a combination with constants");
    auto made = ProgramAccumulatorText(code, *accumulator, text.counts);
    if (!made.ok()) return made.status();
    accumulator_text = absl::StrCat(combine->definitions, *made);
  } else {
    accumulator_text = AccumulatorText(code, *accumulator, text.counts);
  }
  std::vector<DType> used = text.dtypes;
  used.push_back(*accumulator);
  CollectTypes(code.map(), &used);
  CollectTypes(code.finish(), &used);
  CollectTypes(code.combine_program(), &used);
  std::string index = code.index_32bit() && target == Target::kCuda ? "st_u32" : "st_i64";
  text.definitions = absl::StrCat(
      Preamble(target, used), LaunchStruct(text, map->num_scalars, finish->num_scalars),
      map->definitions, finish->definitions, accumulator_text, MapText(text, *accumulator),
      OffsetText("kept_offset", 0, text.kept_rank, "launch.inputs[input].strides", ", int input",
                 index),
      OffsetText("reduced_offset", text.kept_rank, text.reduced_rank,
                 "launch.inputs[input].strides", ", int input", index),
      OffsetText("output_offset", 0, text.kept_rank, "launch.output_strides", "", index),
      StoreText(text, *output), "struct alignas(16) Partial {\n  Acc acc;\n};\n",
      "static_assert(sizeof(Partial) <= ", kPartialBytes, ", \"kPartialBytes\");\n");
  text.map_scalars_call =
      map->num_scalars == 0 ? "map_scalars()" : "map_scalars(launch.map_scalars)";
  text.finish_scalars_call =
      finish->num_scalars == 0 ? "finish_scalars()" : "finish_scalars(launch.finish_scalars)";
  return text;
}

absl::StatusOr<std::string> EmitCuda(const wire::Code& code) {
  switch (code.kind_case()) {
    case wire::Code::kElementwise:
      return EmitElementwiseCuda(code.elementwise());
    case wire::Code::kReduce:
      return EmitReduceCuda(code.reduce());
    case wire::Code::kMatmul:
      return EmitMatmulCuda(code.matmul());
    case wire::Code::kRoutine:
      return EmitRoutineCuda(code.routine());
    case wire::Code::kBlockLoops:
      return EmitBlockLoopsCuda();
    default:
      return absl::InvalidArgumentError("nothing to emit: the code is a client's source, or empty");
  }
}

absl::StatusOr<std::string> EmitCpu(const wire::Code& code) {
  switch (code.kind_case()) {
    case wire::Code::kElementwise:
      return EmitElementwiseCpu(code.elementwise());
    case wire::Code::kReduce:
      return EmitReduceCpu(code.reduce());
    case wire::Code::kMatmul:
      return EmitMatmulCpu(code.matmul());
    case wire::Code::kRoutine:
      return EmitRoutineCpu(code.routine());
    case wire::Code::kBlockLoops:
      return EmitBlockLoopsCpu();
    default:
      return absl::InvalidArgumentError("nothing to emit: the code is a client's source, or empty");
  }
}

}  // namespace stride::codegen
