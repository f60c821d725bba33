#pragma once

// Text of the kernels that reduce on a processor, in parts. EmitReduceCpu chooses the parts and
// replaces the words that begin with `$`.
namespace stride::codegen::cpu_kernels {

inline constexpr char kCascade[] = R"(
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
inline constexpr char kRows[] = R"(
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
inline constexpr char kAnyRun[] = R"(
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
inline constexpr char kRunSizes[] = R"(
enum { kRun = 512 };
)";
inline constexpr char kMomentsRun[] = R"(
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
inline constexpr char kMomentsNumberRun[] = R"(
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
inline constexpr char kNumberRun[] = R"(
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
inline constexpr char kPlaceRun[] = R"(
ST_FN void improve(Acc& found, const mapScalars& scalars, $pointer_parameters, st_i64 first, st_i64 n) {
$compute$source  const $value best = st_combine_values<$combination, $value>(source, n, st_identity().value);
  if (st_combine(found, Acc{best, first}).index == first)
    found = Acc{best, first + st_find_value<$value>(source, n, best)};
}
)";

// Contiguous elements, products of two such arrays, or squares. Other elements are first copied to
// contiguous memory.
inline constexpr char kInPlace[] =
    R"(  const st_in_place<$value> source{(const typename st_lanes<$value>::lane*)p0};
)";
inline constexpr char kProducts[] =
    R"(  const st_products<$value> source{(const $value*)p0, (const $value*)p1};
)";
inline constexpr char kSquares[] =
    R"(  const st_products<$value> source{(const $value*)p0, (const $value*)p0};
)";
inline constexpr char kCopied[] = R"(  typename st_lanes<$value>::lane values[kRun];
  ST_IVDEP
  for (st_i64 i = 0; i < n; ++i) values[i] = $run_element.$part;
  const st_in_place<$value> source{values};
)";

// Elements of a run that is longer than a row of the inputs: they are computed row by row into
// contiguous memory.
inline constexpr char kComputedRun[] = R"(
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
inline constexpr char kColumns[] = R"(
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

inline constexpr char kEitherSteps[] = R"(      if ($unit_steps) {
        combine_block<true>(launch, scalars, base, start, stop, n, total);
      } else {
        combine_block<false>(launch, scalars, base, start, stop, n, total);
      }
)";
// The steps of inputs of computed elements are known separately.
inline constexpr char kKnownSteps[] =
    R"(      combine_block<true>(launch, scalars, base, start, stop, n, total);
)";

inline constexpr char kAnyBlock[] = R"(
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
inline constexpr char kVectors[] = R"(    if constexpr (unit_steps) {
      st_combine_rows<$combination, $extremes>(
          &block[0].value, (const $value*)rows[0].at[0], (const $value*)rows[1].at[0], (const $value*)rows[2].at[0],
          (const $value*)rows[3].at[0], n);
      continue;
    }
)";

// Moments of columns: all columns share their rows' indices, so weights are computed once.
inline constexpr char kMomentsBlock[] = R"(
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

inline constexpr char kCombineNumbers[] = R"(
ST_FN Acc combine_numbers(Acc a, Acc b) { return Acc{$combination::values<$value>(a.value, b.value)}; }
)";

// Values and their row indices in separate arrays, which suits vectors. A later row must be
// strictly better.
inline constexpr char kPlaceBlock[] = R"(
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

inline constexpr char kFinish[] = R"(
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

}  // namespace stride::codegen::cpu_kernels
