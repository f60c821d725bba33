// accumulate.h's long rows on a CPU, in chunks of pass[0] elements; a row has pass[1] chunks. Pass
// 1 combines each chunk, pass 2 the preceding chunks of each, and pass 3 writes the results.

constexpr int kRun = 8;  // elements that are combined before the preceding result is applied

struct Chunk {
  st_i64 row, begin, end;
};
ST_FN Chunk chunk_of(const Launch& launch, st_i64 item, st_i64 n) {
  const st_i64 size = launch.pass[0], number = launch.pass[1];
  Chunk chunk;
  chunk.row = item / number;
  chunk.begin = item % number * size;
  chunk.end = chunk.begin + size < n ? chunk.begin + size : n;
  return chunk;
}

ST_FN void phase1(const Launch& launch, st_i64 item) {
  const Chunk chunk = chunk_of(launch, item, launch.operand0.own_extents[0]);
  const Row row = row_of(launch, chunk.row);
  Part total = {element(row, chunk.begin), false};
  for (st_i64 start = chunk.begin; start < chunk.end; start += kRun) {
    Part part = {total.value, false};
    for (int k = 0; k < kRun; ++k) {
      if (start + k < chunk.end) part = join(part, Part{element(row, start + k), true});
    }
    total = join(total, part);
  }
  ((Part*)launch.scratch)[item] = total;
}

// Converts totals to the prefix before each chunk.
ST_FN void phase2(const Launch& launch, st_i64 item) {
  Part* const parts = (Part*)launch.scratch + item * launch.pass[1];
  Part sum = {parts[0].value, false};
  for (st_i64 i = 0; i < launch.pass[1]; ++i) {
    const Part part = parts[i];
    parts[i] = sum;
    sum = join(sum, part);
  }
}

ST_FN void phase3(const Launch& launch, st_i64 item) {
  const Chunk chunk = chunk_of(launch, item, launch.operand0.own_extents[0]);
  const Row row = row_of(launch, chunk.row);
  if (chunk.begin == 0) store_initial(launch, row);
  if (chunk.begin >= chunk.end) return;
  Part carry = {element(row, chunk.begin), false};
  if (launch.pass[1] > 1) carry = ((const Part*)launch.scratch)[item];
  for (st_i64 start = chunk.begin; start < chunk.end; start += kRun) {
    Acc values[kRun];
    Part part = {carry.value, false};
#pragma unroll
    for (int k = 0; k < kRun; ++k) {
      if (start + k < chunk.end) part = join(part, Part{element(row, start + k), true});
      values[k] = part.value;
    }
#pragma unroll
    for (int k = 0; k < kRun; ++k) {
      if (start + k < chunk.end) store(row, start + k, join(carry, Part{values[k], true}).value);
    }
    carry = join(carry, part);
  }
}
