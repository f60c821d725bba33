// Running results along an axis. Operands: input and output, whose own axis it is. Programs:
// input's type to the accumulator's, combination of two, accumulator's to the output's. Option 0:
// the output begins with scalar 0, the identity. Passes: 0 alone, for each row by one thread; or 3
// alone, by one block; or 1, 2, 3 with the row cut into pass[0] elements each, pass[1] of them.
constexpr bool kInitial = kOption0 != 0;
typedef Program0 Acc;
constexpr int kRun = 8;  // elements of a thread

// A result of some elements, or of none.
struct Part {
  Acc value;
  bool some;
};
ST_FN Part join(Part a, Part b) {
  if (!a.some) return b;
  if (!b.some) return a;
  return Part{run1(a.value, b.value), true};
}

struct Row {
  const char* in;
  char* out;
  st_i64 n, in_step, out_step;
};
ST_FN Row row_of(const Launch& launch, st_i64 item) {
  const Place place = st_place(launch, item);
  Row row;
  row.in = st_at(launch.operand0, place);
  row.out = st_at(launch.operand1, place);
  row.n = launch.operand0.own_extents[0];
  row.in_step = launch.operand0.own_strides[0];
  row.out_step = launch.operand1.own_strides[0];
  if (kInitial) row.out += row.out_step;
  return row;
}
ST_FN Acc element(const Row& row, st_i64 i) { return run0(st_load<T0>(row.in + i * row.in_step)); }
ST_FN void store(const Row& row, st_i64 i, Acc acc) {
  st_store<T1>(row.out + i * row.out_step, run2(acc));
}
ST_FN void store_initial(const Launch& launch, const Row& row) {
#if ST_SCALARS
  if (kInitial) store(row, -1, st_load<Acc>(launch.scalars[0]));
#endif
}

// Results up to each thread's, its own among them; threads in order.
ST_FN Part scan_threads(Part part) {
#if ST_CUDA
  __shared__ Part parts[2][ST_THREADS];
  int from = 0;
  parts[0][ST_THREAD] = part;
  __syncthreads();
  for (int step = 1; step < ST_THREADS; step *= 2, from = 1 - from) {
    Part sum = parts[from][ST_THREAD];
    if (ST_THREAD >= step) sum = join(parts[from][ST_THREAD - step], sum);
    parts[1 - from][ST_THREAD] = sum;
    __syncthreads();
  }
  part = parts[from][ST_THREAD];
#endif
  return part;
}
// What the thread before has, and what the last one has.
ST_FN void neighbours(Part part, Part* before, Part* last) {
#if ST_CUDA
  __shared__ Part parts[ST_THREADS];
  __syncthreads();
  parts[ST_THREAD] = part;
  __syncthreads();
  *before = ST_THREAD > 0 ? parts[ST_THREAD - 1] : Part{part.value, false};
  *last = parts[ST_THREADS - 1];
  __syncthreads();
#else
  *before = Part{part.value, false};
  *last = part;
#endif
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  const Row row = row_of(launch, item);
  store_initial(launch, row);
  if (row.n == 0) return;
  Acc acc = element(row, 0);
  store(row, 0, acc);
  for (st_i64 i = 1; i < row.n; ++i) {
    acc = run1(acc, element(row, i));
    store(row, i, acc);
  }
}

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
  for (st_i64 start = chunk.begin; start < chunk.end; start += ST_THREADS * kRun) {
    Part part = {total.value, false};
    for (int k = 0; k < kRun; ++k) {
      const st_i64 i = start + ST_THREAD * kRun + k;
      if (i < chunk.end) part = join(part, Part{element(row, i), true});
    }
    Part before, last;
    neighbours(scan_threads(part), &before, &last);
    total = join(total, last);
  }
  if (ST_THREAD == 0) ((Part*)launch.scratch)[item] = total;
}

// From totals to what comes before each chunk.
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
  if (ST_THREAD == 0 && chunk.begin == 0) store_initial(launch, row);
  if (chunk.begin >= chunk.end) return;
  Part carry = {element(row, chunk.begin), false};
  if (launch.pass[1] > 1) carry = ((const Part*)launch.scratch)[item];
  for (st_i64 start = chunk.begin; start < chunk.end; start += ST_THREADS * kRun) {
    const st_i64 first = start + ST_THREAD * kRun;
    Acc values[kRun];
    Part part = {carry.value, false};
#pragma unroll
    for (int k = 0; k < kRun; ++k) {
      if (first + k < chunk.end) part = join(part, Part{element(row, first + k), true});
      values[k] = part.value;
    }
    Part before, last;
    neighbours(scan_threads(part), &before, &last);
    before = join(carry, before);
#pragma unroll
    for (int k = 0; k < kRun; ++k) {
      if (first + k < chunk.end) store(row, first + k, join(before, Part{values[k], true}).value);
    }
    carry = join(carry, last);
  }
}
