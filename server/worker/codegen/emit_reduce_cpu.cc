#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/worker/codegen/device_headers.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/reduce_constants.h"
#include "server/worker/codegen/reduce_text.h"

namespace stride::codegen {
namespace {

// A run without a fixed order fits the first-level cache.
constexpr size_t kLongRunBytes = 16384;

constexpr char kCascade[] = R"(
// Results of neighbouring runs, combined like the carries of a binary counter: the error of a sum grows with the
// logarithm of its length.
struct Cascade {
  Acc level[48];
  st_u64 count;
};
ST_FN void cascade_add(Cascade& cascade, Acc acc) {
  int depth = 0;
  for (st_u64 bit = cascade.count++; bit & 1; bit >>= 1) acc = st_combine(cascade.level[depth++], acc);
  cascade.level[depth] = acc;
}
ST_FN Acc cascade_result(const Cascade& cascade) {
  Acc acc = st_identity();
  bool some = false;
  for (int depth = 0; cascade.count >> depth; ++depth) {
    if (!(cascade.count >> depth & 1)) continue;
    acc = some ? st_combine(cascade.level[depth], acc) : cascade.level[depth];
    some = true;
  }
  return acc;
}
)";

// Rows: results whose elements are contiguous. A run has at most kRun elements, or kLongRunBytes
// where the order does not matter. It is combined in kLanes independent chains; runs are combined
// pairwise. All sizes are fixed, so that the order of combination depends only on the shape.
constexpr char kRows[] = R"(
ST_ENTRY void stride_reduce(const Launch* launch_pointer, st_i64 begin, st_i64 end) {
  const Launch& launch = *launch_pointer;
  const mapScalars scalars = $map_scalars;
  const st_i64 row = $row_extent;
  for (st_i64 item = begin; item < end; ++item) {
    // Divisions cost as much as a short row.
    const st_i64 kept = launch.splits == 1 ? item : item / launch.splits, split = item - kept * launch.splits;
    const st_i64 from = split * launch.chunk;
    const st_i64 to = from + launch.chunk < launch.reduced_count ? from + launch.chunk : launch.reduced_count;
$bases$begin_result
    for (st_i64 i = from; i < to;) {
      // To the end of the innermost reduced axis, of the part, or of the run, whichever comes first.
      st_i64 n = $left_in_row;
      if (n > to - i) n = to - i;
      if (n > $longest_run) n = $longest_run;
      $take_run
      i += n;
    }
    const Acc acc = $end_result;
    if (launch.splits == 1) {
      store_result(launch, $finish_scalars, kept, acc);
    } else {
      ((Partial*)launch.scratch)[item].acc = acc;
    }
  }
}
)";

// For any accumulator: elements [0, n) of one run; `first` is the index of its first element among
// the reduced ones.
constexpr char kAnyRun[] = R"(
enum { kLanes = 32, kRun = 512 };

ST_FN Acc combine_run(const mapScalars& scalars, $pointer_parameters, st_i64 first, st_i64 n) {
$compute  Acc lanes[kLanes];
  for (int k = 0; k < kLanes; ++k) lanes[k] = st_identity();
  st_i64 i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) lanes[k] = st_combine(lanes[k], $run_element_k);
  }
  for (; i < n; ++i) lanes[0] = st_combine(lanes[0], $run_element);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) lanes[k] = st_combine(lanes[k], lanes[k + half]);
  }
  return lanes[0];
}
)";

// Moments of complex numbers, or of selected elements: the selected ones are copied to contiguous
// memory.
constexpr char kRunSizes[] = R"(
enum { kRun = 512 };
)";
constexpr char kMomentsRun[] = R"(
ST_FN Acc combine_run(const mapScalars& scalars, $pointer_parameters, st_i64 first, st_i64 n) {
$compute  $value values[kRun];
  st_i64 count = 0;
  for (st_i64 i = 0; i < n; ++i) {
    const Acc one = $run_element;
    values[count] = one.pivot;
    count += one.count;
  }
  return st_moments_of_run<8>(values, count);
}
)";

// Moments of real numbers, in two passes over the run.
constexpr char kMomentsNumberRun[] = R"(
template <class Source>
ST_FN $value sum_of_few(const Source& source, st_i64 n) {
  $value chain[4] = {};
  st_i64 i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int k = 0; k < 4; ++k) chain[k] += source.value(i + k);
  }
  for (; i < n; ++i) chain[0] += source.value(i);
  return (chain[0] + chain[2]) + (chain[1] + chain[3]);
}
ST_FN Acc combine_run(const mapScalars& scalars, $pointer_parameters, st_i64 first, st_i64 n) {
$compute$source  const st_distances<$value> distances{source, source.value(0)};
  const $value share = 1 / ($value)n;
  if (n < kLanes) {  // a few operations: four chains
    const $value offset = sum_of_few(distances, n) * share;
    return Acc{distances.pivot, offset, sum_of_few(st_squared_distances<$value>{distances, offset}, n), n};
  }
  const $value offset = st_combine_values<st_adding, $value>(distances, n, $value()) * share;
  const st_squared_distances<$value> squared{distances, offset};
  return Acc{distances.pivot, offset, st_combine_values<st_adding, $value>(squared, n, $value()), n};
}
)";

// For plain numbers. Runs shorter than the lanes need few operations: no copy, four chains.
constexpr char kNumberRun[] = R"(
ST_FN Acc combine_run(const mapScalars& scalars, $pointer_parameters, st_i64 first, st_i64 n) {
$compute  if (n < kLanes) {
    $value chain[4];
    for (int k = 0; k < 4; ++k) chain[k] = st_identity().value;
    st_i64 i = 0;
    for (; i + 4 <= n; i += 4) {
      for (int k = 0; k < 4; ++k) chain[k] = $combination::values<$value>(chain[k], $run_element_k.value);
    }
    for (; i < n; ++i) chain[0] = $combination::values<$value>(chain[0], $run_element.value);
    for (int k = 0; k < 2; ++k) chain[k] = $combination::values<$value>(chain[k], chain[k + 2]);
    return Acc{$combination::values<$value>(chain[0], chain[1])};
  }
$source  return Acc{st_combine_values<$combination, $value>(source, n, st_identity().value)};
}
)";

// For the index of an extreme: searched only in runs whose extreme is better than the best so far.
constexpr char kPlaceRun[] = R"(
ST_FN void improve(Acc& found, const mapScalars& scalars, $pointer_parameters, st_i64 first, st_i64 n) {
$compute$source  const $value best = st_combine_values<$combination, $value>(source, n, st_identity().value);
  if (st_combine(found, Acc{best, first}).index == first)
    found = Acc{best, first + st_find_value<$value>(source, n, best)};
}
)";

// Contiguous elements, products of two such arrays, or squares. Other elements are first copied to
// contiguous memory.
constexpr char kInPlace[] =
    R"(  const st_in_place<$value> source{(const typename st_lanes<$value>::lane*)p0};
)";
constexpr char kProducts[] =
    R"(  const st_products<$value> source{(const $value*)p0, (const $value*)p1};
)";
constexpr char kSquares[] =
    R"(  const st_products<$value> source{(const $value*)p0, (const $value*)p0};
)";
constexpr char kCopied[] = R"(  typename st_lanes<$value>::lane values[kRun];
  ST_IVDEP
  for (st_i64 i = 0; i < n; ++i) values[i] = $run_element.$part;
  const st_in_place<$value> source{values};
)";

// Elements of a run that is longer than a row of the inputs: they are computed row by row into
// contiguous memory.
constexpr char kComputedRun[] = R"(
ST_FN void compute_run(const Launch& launch, const mapScalars& scalars$base_parameters, st_i64 first, st_i64 n,
                       Acc* elements) {
  const st_i64 inner = launch.extents[$last_reduced];
  for (st_i64 done = 0; done < n;) {
    const st_i64 from = first + done, left = inner - from % inner, count = left < n - done ? left : n - done;
$row_pointers    Acc* const row = elements + done;
    ST_IVDEP
    for (st_i64 i = 0; i < count; ++i) row[i] = $row_element;
    done += count;
  }
}
)";

// Columns side by side: several rows at a time are combined with the accumulators, which are then
// loaded and stored once for all of them. Blocks of rows are combined with the total.
constexpr char kColumns[] = R"(
enum { kGroup = $group, kBlockRows = 128, kTogether = 4 };

struct Row {
  const char* at[$num_inputs];
};
ST_FN Row row_of(const Launch& launch, const Row& base, st_i64 i) {
  Row row;
  for (int input = 0; input < $num_inputs; ++input) row.at[input] = base.at[input] + reduced_offset(launch, input, i);
  return row;
}
template <bool unit_steps>
ST_FN Acc element(const Launch& launch, const mapScalars& scalars, const Row& row, st_i64 i, st_i64 j) {
  if constexpr (unit_steps) {
    return $unit_element;
  } else {
    return $column_element;
  }
}
$combine_block
ST_ENTRY void stride_reduce(const Launch* launch_pointer, st_i64 begin, st_i64 end) {
  const Launch& launch = *launch_pointer;
  const mapScalars scalars = $map_scalars;
  const st_i64 width = launch.extents[$last_kept];
  const st_i64 groups = (width + kGroup - 1) / kGroup;
  for (st_i64 item = begin; item < end; ++item) {
    const st_i64 group = item / launch.splits, split = item % launch.splits;
    const st_i64 kept = group / groups * width + group % groups * kGroup;
    const st_i64 left = width - group % groups * kGroup;
    const st_i64 n = left < kGroup ? left : kGroup;
    const st_i64 from = split * launch.chunk;
    const st_i64 to = from + launch.chunk < launch.reduced_count ? from + launch.chunk : launch.reduced_count;
    Row base;
    for (int input = 0; input < $num_inputs; ++input)
      base.at[input] = launch.inputs[input].data + kept_offset(launch, input, kept);
    Acc total[kGroup];
    for (st_i64 j = 0; j < n; ++j) total[j] = st_identity();
    for (st_i64 start = from; start < to; start += kBlockRows) {
      const st_i64 stop = start + kBlockRows < to ? start + kBlockRows : to;
$combine_rows    }
    if (launch.splits == 1) {
      const finishScalars finishing = $finish_scalars;
      for (st_i64 j = 0; j < n; ++j) store_result(launch, finishing, kept + j, total[j]);
    } else {
      for (st_i64 j = 0; j < n; ++j) ((Partial*)launch.scratch)[(kept + j) * launch.splits + split].acc = total[j];
    }
  }
}
)";

constexpr char kEitherSteps[] = R"(      if ($unit_steps) {
        combine_block<true>(launch, scalars, base, start, stop, n, total);
      } else {
        combine_block<false>(launch, scalars, base, start, stop, n, total);
      }
)";
// The steps of inputs of computed elements are known separately.
constexpr char kKnownSteps[] =
    R"(      combine_block<true>(launch, scalars, base, start, stop, n, total);
)";

constexpr char kAnyBlock[] = R"(
template <bool unit_steps>
ST_FN void combine_block(const Launch& launch, const mapScalars& scalars, const Row& base, st_i64 start, st_i64 stop,
                         st_i64 n, Acc* total) {
  alignas(64) Acc block[kGroup];
  for (st_i64 j = 0; j < n; ++j) block[j] = st_identity();
  st_i64 i = start;
  for (; i + kTogether <= stop; i += kTogether) {
    Row rows[kTogether];
    for (int k = 0; k < kTogether; ++k) rows[k] = row_of(launch, base, i + k);
$vectors    ST_IVDEP
    for (st_i64 j = 0; j < n; ++j) {
      Acc acc = $combine_both(block[j], element<unit_steps>(launch, scalars, rows[0], i, j));
      acc = $combine_both(acc, element<unit_steps>(launch, scalars, rows[1], i + 1, j));
      acc = $combine_both(acc, element<unit_steps>(launch, scalars, rows[2], i + 2, j));
      block[j] = $combine_both(acc, element<unit_steps>(launch, scalars, rows[3], i + 3, j));
    }
  }
  for (; i < stop; ++i) {
    const Row row = row_of(launch, base, i);
    ST_IVDEP
    for (st_i64 j = 0; j < n; ++j) block[j] = $combine_both(block[j], element<unit_steps>(launch, scalars, row, i, j));
  }
  for (st_i64 j = 0; j < n; ++j) total[j] = st_combine(total[j], block[j]);
}
)";

// For plain numbers in memory.
constexpr char kVectors[] = R"(    if constexpr (unit_steps) {
      st_combine_rows<$combination, $extremes>(
          &block[0].value, (const $value*)rows[0].at[0], (const $value*)rows[1].at[0], (const $value*)rows[2].at[0],
          (const $value*)rows[3].at[0], n);
      continue;
    }
)";

// Moments of columns: all columns share their rows' indices, so weights are computed once.
constexpr char kMomentsBlock[] = R"(
template <bool unit_steps>
ST_FN void combine_block(const Launch& launch, const mapScalars& scalars, const Row& base, st_i64 start, st_i64 stop,
                         st_i64 n, Acc* total) {
  typedef decltype(total->squares) real;
  alignas(64) $value pivot[kGroup], offset[kGroup];
  alignas(64) real squares[kGroup];
  const Row first = row_of(launch, base, start);
  ST_IVDEP
  for (st_i64 j = 0; j < n; ++j) {
    pivot[j] = element<unit_steps>(launch, scalars, first, start, j).pivot;
    offset[j] = $value();
    squares[j] = 0;
  }
  st_i64 i = start;
  for (; i + kTogether <= stop; i += kTogether) {
    Row rows[kTogether];
    for (int k = 0; k < kTogether; ++k) rows[k] = row_of(launch, base, i + k);
    const real before = (real)(i - start), share = kTogether / (before + kTogether), weight = before * share;
    ST_IVDEP
    for (st_i64 j = 0; j < n; ++j) {
      const $value a = st_subtract(element<unit_steps>(launch, scalars, rows[0], i, j).pivot, pivot[j]);
      const $value b = st_subtract(element<unit_steps>(launch, scalars, rows[1], i + 1, j).pivot, pivot[j]);
      const $value c = st_subtract(element<unit_steps>(launch, scalars, rows[2], i + 2, j).pivot, pivot[j]);
      const $value d = st_subtract(element<unit_steps>(launch, scalars, rows[3], i + 3, j).pivot, pivot[j]);
      const $value mean = st_scaled(st_add(st_add(a, b), st_add(c, d)), (real)0.25);
      const $value distance = st_subtract(mean, offset[j]);
      const real own = (st_squared_size(st_subtract(a, mean)) + st_squared_size(st_subtract(b, mean))) +
                       (st_squared_size(st_subtract(c, mean)) + st_squared_size(st_subtract(d, mean)));
      offset[j] = st_add(offset[j], st_scaled(distance, share));
      squares[j] += own + st_squared_size(distance) * weight;
    }
  }
  for (; i < stop; ++i) {
    const Row row = row_of(launch, base, i);
    const real before = (real)(i - start), share = 1 / (before + 1), weight = before * share;
    ST_IVDEP
    for (st_i64 j = 0; j < n; ++j) {
      const $value value = st_subtract(element<unit_steps>(launch, scalars, row, i, j).pivot, pivot[j]);
      const $value distance = st_subtract(value, offset[j]);
      offset[j] = st_add(offset[j], st_scaled(distance, share));
      squares[j] += st_squared_size(distance) * weight;
    }
  }
  for (st_i64 j = 0; j < n; ++j) total[j] = st_combine(total[j], Acc{pivot[j], offset[j], squares[j], stop - start});
}
)";

constexpr char kCombineNumbers[] = R"(
ST_FN Acc combine_numbers(Acc a, Acc b) { return Acc{$combination::values<$value>(a.value, b.value)}; }
)";

// Values and their row indices in separate arrays, which suits vectors. A later row must be
// strictly better.
constexpr char kPlaceBlock[] = R"(
ST_FN void take_better($value& best, st_i32& where, $value value, st_i32 row) {
  const bool better = !(value $no_better best) & !st_isnan(best);  // a NaN is no worse than any
  best = better ? value : best;
  where = better ? row : where;
}
template <bool unit_steps>
ST_FN void combine_block(const Launch& launch, const mapScalars& scalars, const Row& base, st_i64 start, st_i64 stop,
                         st_i64 n, Acc* total) {
  alignas(64) $value best[kGroup];
  alignas(64) st_i32 where[kGroup];
  const Row first = row_of(launch, base, start);
  for (st_i64 j = 0; j < n; ++j) {
    best[j] = element<unit_steps>(launch, scalars, first, start, j).value;
    where[j] = 0;
  }
  const st_i32 num_rows = (st_i32)(stop - start);
  st_i32 i = 1;
  for (; i + kTogether <= num_rows; i += kTogether) {
    Row rows[kTogether];
    for (int k = 0; k < kTogether; ++k) rows[k] = row_of(launch, base, start + i + k);
    ST_IVDEP
    for (st_i64 j = 0; j < n; ++j) {
      $value value = best[j];
      st_i32 row = where[j];
      take_better(value, row, element<unit_steps>(launch, scalars, rows[0], start + i, j).value, i);
      take_better(value, row, element<unit_steps>(launch, scalars, rows[1], start + i + 1, j).value, i + 1);
      take_better(value, row, element<unit_steps>(launch, scalars, rows[2], start + i + 2, j).value, i + 2);
      take_better(value, row, element<unit_steps>(launch, scalars, rows[3], start + i + 3, j).value, i + 3);
      best[j] = value;
      where[j] = row;
    }
  }
  for (; i < num_rows; ++i) {
    const Row row = row_of(launch, base, start + i);
    ST_IVDEP
    for (st_i64 j = 0; j < n; ++j)
      take_better(best[j], where[j], element<unit_steps>(launch, scalars, row, start + i, j).value, i);
  }
  for (st_i64 j = 0; j < n; ++j) total[j] = st_combine(total[j], Acc{best[j], start + where[j]});
}
)";

constexpr char kFinish[] = R"(
ST_ENTRY void stride_reduce_finish(const Launch* launch_pointer, st_i64 begin, st_i64 end) {
  const Launch& launch = *launch_pointer;
  const finishScalars scalars = $finish_scalars;
  for (st_i64 kept = begin; kept < end; ++kept) {
    const Partial* const partials = (const Partial*)launch.scratch + kept * launch.splits;
    Cascade cascade;
    cascade.count = 0;
    for (st_i64 i = 0; i < launch.splits; ++i) cascade_add(cascade, partials[i].acc);
    store_result(launch, scalars, kept, cascade_result(cascade));
  }
}
)";

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
      kComputedRun,
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
  if (!InSequence(text)) return kCopied;
  const uint32_t result = code.map().results(0);
  const wire::Instruction& value = code.map().instructions(static_cast<int>(result));
  if (IsPlainInput(code, text, result, 0, dtype)) return kInPlace;
  if (text.finishes_index || text.is_moments || IsBool(dtype) || value.op() != "multiply" ||
      value.arguments_size() != 2 || text.dtypes.size() > 2 ||
      !IsPlainInput(code, text, value.arguments(0), 0, dtype))
    return kCopied;
  const uint32_t last = static_cast<uint32_t>(text.dtypes.size()) - 1;
  if (!IsPlainInput(code, text, value.arguments(1), last, dtype)) return kCopied;
  return last == 0 ? kSquares : kProducts;
}

std::string RowsText(const Code& code, const ReduceText& text, const Pieces& pieces,
                     DType accumulator, const std::string& combination) {
  const std::string& compute = pieces.compute_run;
  if (text.is_moments && text.single && IsNumber(accumulator)) {
    const std::string run =
        absl::StrReplaceAll(kMomentsNumberRun, {{"$source", SourceText(code, text, accumulator)}});
    return absl::StrCat(kLanesHeader, kCascade, compute, run, kRows);
  }
  if (text.is_moments && !text.reads_accumulator)
    return absl::StrCat(kCascade, kRunSizes, compute, kMomentsRun, kRows);
  if (combination.empty()) return absl::StrCat(kCascade, compute, kAnyRun, kRows);
  const std::string run = absl::StrReplaceAll(text.finishes_index ? kPlaceRun : kNumberRun,
                                              {{"$source", SourceText(code, text, accumulator)}});
  return absl::StrCat(kLanesHeader, kCascade, compute, run, kRows);
}

std::string ColumnsText(const Code& code, const ReduceText& text, DType accumulator,
                        const std::string& combination) {
  const bool number = !combination.empty();
  const bool as_it_lies = number && !IsBool(accumulator) && text.dtypes.size() == 1 &&
                          (!text.computed || InSequence(text)) &&
                          IsPlainInput(code, text, code.map().results(0), 0, accumulator);
  const char* const blocks = number && text.finishes_index    ? kPlaceBlock
                             : text.is_moments && text.single ? kMomentsBlock
                                                              : kAnyBlock;
  const std::string block = absl::StrReplaceAll(blocks, {{"$vectors", as_it_lies ? kVectors : ""}});
  return absl::StrCat(
      number ? kLanesHeader : "", kCascade, number && !text.finishes_index ? kCombineNumbers : "",
      absl::StrReplaceAll(kColumns,
                          {{"$combine_block", block},
                           {"$combine_rows", text.computed ? kKnownSteps : kEitherSteps}}));
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
  const bool long_runs =
      absl::StrContains(combination, "taking") && SourceText(code, *text, accumulator) == kInPlace;
  std::string kernels =
      absl::StrCat(text->kept_contiguous ? ColumnsText(code, *text, accumulator, combination)
                                         : RowsText(code, *text, pieces, accumulator, combination),
                   kFinish);
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
