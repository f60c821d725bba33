// Running results along an axis. Operands: input and output, with that axis as their own. Programs:
// input's type to the accumulator's, combination of two, accumulator's to the output's. Option 0:
// the output begins with scalar 0, the identity. Without cuts pass 0 processes each row by one
// thread. For associative functions rows are cut: by chunks.h on a CPU, by tiles.h on a GPU.
constexpr bool kInitial = kOption0 != 0;
typedef Program0 Acc;

// The combination of some elements, or of none.
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
