// accumulate.h's rows with strided elements, on a GPU. Neighbouring threads process neighbouring
// rows, each a chunk of pass[0] elements; a row has pass[1] chunks. Phase 3 combines each chunk,
// phase 4 the preceding chunks of each, and phase 5 writes the results. The order of combination
// depends only on the shape.

constexpr int kColumnRun = 8;  // elements that a thread reads before it combines the first

struct ColumnChunk {
  st_i64 row, number, begin, end;
};
ST_FN ColumnChunk column_chunk_of(const Launch& launch, st_i64 item) {
  const st_u32 rows = (st_u32)launch.count, number = (st_u32)item / rows;
  ColumnChunk chunk;
  chunk.number = number;
  chunk.row = (st_u32)item - number * rows;
  chunk.begin = chunk.number * launch.pass[0];
  const st_i64 end = chunk.begin + launch.pass[0], n = launch.operand0.own_extents[0];
  chunk.end = end < n ? end : n;
  return chunk;
}

// Elements of a chunk that are read together.
struct ColumnRun {
  T0 loaded[kColumnRun];
  st_i64 count;
};
ST_FN ColumnRun column_run_of(const Row& row, st_i64 start, st_i64 end) {
  ColumnRun run;
  run.count = end - start;
#pragma unroll
  for (int k = 0; k < kColumnRun; ++k)
    if (k < run.count) run.loaded[k] = st_load<T0>(row.in + (start + k) * row.in_step);
  return run;
}

ST_FN void phase3(const Launch& launch, st_i64 item) {
  const ColumnChunk chunk = column_chunk_of(launch, item);
  const Row row = row_of(launch, chunk.row);
  Part total;
  total.some = false;
  for (st_i64 start = chunk.begin; start < chunk.end; start += kColumnRun) {
    const ColumnRun run = column_run_of(row, start, chunk.end);
#pragma unroll
    for (int k = 0; k < kColumnRun; ++k)
      if (k < run.count) total = join(total, Part{run0(run.loaded[k]), true});
  }
  ((Acc*)launch.scratch)[item] = total.value;
}

ST_FN void phase4(const Launch& launch, st_i64 item) {
  Acc* const totals = (Acc*)launch.scratch + item;
  Part sum;
  sum.some = false;
  for (st_i64 start = 0; start < launch.pass[1]; start += kColumnRun) {
    Acc loaded[kColumnRun];
#pragma unroll
    for (int k = 0; k < kColumnRun; ++k)
      if (start + k < launch.pass[1]) loaded[k] = totals[(start + k) * launch.count];
#pragma unroll
    for (int k = 0; k < kColumnRun; ++k) {
      if (start + k >= launch.pass[1]) continue;
      if (sum.some) totals[(start + k) * launch.count] = sum.value;
      sum = join(sum, Part{loaded[k], true});
    }
  }
}

// Begins with the chunks that phase 3 read last, since the cache still has them.
ST_FN void phase5(const Launch& launch, st_i64 number) {
  const st_i64 item = launch.items - 1 - number;
  const ColumnChunk chunk = column_chunk_of(launch, item);
  const Row row = row_of(launch, chunk.row);
  Part sum;
  sum.some = chunk.number > 0;
  if (sum.some) sum.value = ((const Acc*)launch.scratch)[item];
  if (!sum.some) store_initial(launch, row);
  for (st_i64 start = chunk.begin; start < chunk.end; start += kColumnRun) {
    const ColumnRun run = column_run_of(row, start, chunk.end);
#pragma unroll
    for (int k = 0; k < kColumnRun; ++k) {
      if (k >= run.count) continue;
      sum = join(sum, Part{run0(run.loaded[k]), true});
      store(row, start + k, sum.value);
    }
  }
}
