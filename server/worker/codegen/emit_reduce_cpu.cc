#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/worker/codegen/emit.h"
#include "server/worker/codegen/reduce_constants.h"
#include "server/worker/codegen/reduce_text.h"

namespace stride::codegen {
namespace {

constexpr char kCascade[] = R"(
// Results of neighbouring runs, combined like the carries of a binary counter: the error of a sum grows with the logarithm of its length.
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
  for (int depth = 0; depth < 48; ++depth) {
    if (!(cascade.count >> depth & 1)) continue;
    acc = some ? st_combine(cascade.level[depth], acc) : cascade.level[depth];
    some = true;
  }
  return acc;
}
)";

// Runs of at most kRun elements are combined in kLanes independent chains, runs are combined
// pairwise. Both sizes are fixed, so that the order of combination depends on the shape alone.
constexpr char kRows[] = R"(
enum { kLanes = 32, kRun = 512 };

// Elements [0, n) of one run, the first of which has the number `first` among the reduced ones.
ST_FN Acc combine_run(const mapScalars& scalars, $pointer_parameters, st_i64 first, st_i64 n) {
  Acc lanes[kLanes];
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

ST_ENTRY void stride_reduce(const Launch* launch_pointer, st_i64 begin, st_i64 end) {
  const Launch& launch = *launch_pointer;
  const mapScalars scalars = $map_scalars;
  const st_i64 row = $row_extent;
  for (st_i64 item = begin; item < end; ++item) {
    const st_i64 kept = item / launch.splits, split = item % launch.splits;
    const st_i64 from = split * launch.chunk;
    const st_i64 to = from + launch.chunk < launch.reduced_count ? from + launch.chunk : launch.reduced_count;
$bases    Cascade cascade;
    cascade.count = 0;
    for (st_i64 i = from; i < to;) {
      // To the end of the innermost reduced axis, of the part, or of the run, whichever comes first.
      st_i64 n = row - i % row;
      if (n > to - i) n = to - i;
      if (n > kRun) n = kRun;
      cascade_add(cascade, combine_run(scalars, $pointers, i, n));
      i += n;
    }
    const Acc acc = cascade_result(cascade);
    if (launch.splits == 1) {
      store_result(launch, $finish_scalars, kept, acc);
    } else {
      ((Partial*)launch.scratch)[item].acc = acc;
    }
  }
}
)";

// Columns side by side: rows are added to rows, in blocks, and blocks to the total.
constexpr char kColumns[] = R"(
enum { kGroup = $group, kBlockRows = 128 };

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
$bases    Acc total[kGroup], block[kGroup];
    for (st_i64 j = 0; j < n; ++j) total[j] = st_identity();
    for (st_i64 start = from; start < to; start += kBlockRows) {
      const st_i64 stop = start + kBlockRows < to ? start + kBlockRows : to;
      for (st_i64 j = 0; j < n; ++j) block[j] = st_identity();
      for (st_i64 i = start; i < stop; ++i) {
$row_pointers        if ($unit_steps) {
          ST_IVDEP
          for (st_i64 j = 0; j < n; ++j) block[j] = st_combine(block[j], $unit_element);
        } else {
          for (st_i64 j = 0; j < n; ++j) block[j] = st_combine(block[j], $column_element);
        }
      }
      for (st_i64 j = 0; j < n; ++j) total[j] = st_combine(total[j], block[j]);
    }
    for (st_i64 j = 0; j < n; ++j) {
      if (launch.splits == 1) {
        store_result(launch, $finish_scalars, kept + j, total[j]);
      } else {
        ((Partial*)launch.scratch)[(kept + j) * launch.splits + split].acc = total[j];
      }
    }
  }
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

struct Pieces {
  std::string bases, pointers, pointer_parameters, run_element, run_element_k, row_pointers,
      unit_steps, unit_element, column_element;
};

Pieces MakePieces(const ReduceText& text) {
  Pieces pieces;
  pieces.run_element = pieces.run_element_k = pieces.unit_element = pieces.column_element =
      "load_mapped(scalars";
  for (size_t i = 0; i < text.dtypes.size(); ++i) {
    const char* comma = i == 0 ? "" : ", ";
    int64_t size = ItemSize(text.dtypes[i]);
    absl::StrAppend(&pieces.bases, "    const char* const base", i, " = launch.inputs[", i,
                    "].data + kept_offset(launch, ", i, ", kept);\n");
    absl::StrAppend(&pieces.pointers, comma, "base", i, " + reduced_offset(launch, ", i, ", i), ");
    // The step along the innermost reduced axis, a constant where it can be.
    bool unit = text.access[i] == wire::Layout::ACCESS_CONTIGUOUS;
    bool none = text.access[i] == wire::Layout::ACCESS_BROADCAST || text.reduced_rank == 0;
    std::string step = unit   ? absl::StrCat(size)
                       : none ? "0"
                              : absl::StrCat("launch.inputs[", i, "].strides[",
                                             text.kept_rank + text.reduced_rank - 1, "]");
    absl::StrAppend(&pieces.pointers, step);
    absl::StrAppend(&pieces.pointer_parameters, comma, "const char* p", i, ", st_i64 given", i);
    std::string step_in_run = unit ? absl::StrCat(size) : none ? "0" : absl::StrCat("given", i);
    absl::StrAppend(&pieces.run_element, ", p", i, " + i * ", step_in_run);
    absl::StrAppend(&pieces.run_element_k, ", p", i, " + (i + k) * ", step_in_run);
    std::string column = absl::StrCat("launch.inputs[", i, "].strides[", text.kept_rank - 1, "]");
    absl::StrAppend(&pieces.row_pointers, "        const char* const row", i, " = base", i,
                    " + reduced_offset(launch, ", i, ", i);\n");
    absl::StrAppend(&pieces.unit_steps, i == 0 ? "" : " && ", column, " == ", size);
    absl::StrAppend(&pieces.unit_element, ", row", i, " + j * ", size);
    absl::StrAppend(&pieces.column_element, ", row", i, " + j * ", column);
  }
  absl::StrAppend(&pieces.run_element, ", first + i)");
  absl::StrAppend(&pieces.run_element_k, ", first + i + k)");
  absl::StrAppend(&pieces.unit_element, ", i)");
  absl::StrAppend(&pieces.column_element, ", i)");
  return pieces;
}

}  // namespace

absl::StatusOr<std::string> EmitReduceCpu(const wire::ReduceCode& code) {
  auto text = PrepareReduce(code, Target::kCpu);
  if (!text.ok()) return text.status();
  Pieces pieces = MakePieces(*text);
  std::string row_extent =
      text->reduced_rank == 0
          ? "1"
          : absl::StrCat("launch.extents[", text->kept_rank + text->reduced_rank - 1, "]");
  std::string kernels = absl::StrCat(kCascade, text->kept_contiguous ? kColumns : kRows, kFinish);
  return text->definitions +
         absl::StrReplaceAll(kernels, {{"$map_scalars", text->map_scalars_call},
                                       {"$finish_scalars", text->finish_scalars_call},
                                       {"$row_extent", row_extent},
                                       {"$bases", pieces.bases},
                                       {"$pointers", pieces.pointers},
                                       {"$pointer_parameters", pieces.pointer_parameters},
                                       {"$run_element_k", pieces.run_element_k},
                                       {"$run_element", pieces.run_element},
                                       {"$group", absl::StrCat(kColumnGroup)},
                                       {"$last_kept", absl::StrCat(text->kept_rank - 1)},
                                       {"$row_pointers", pieces.row_pointers},
                                       {"$unit_steps", pieces.unit_steps},
                                       {"$unit_element", pieces.unit_element},
                                       {"$column_element", pieces.column_element}});
}

}  // namespace stride::codegen
