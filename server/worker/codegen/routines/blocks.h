// A row's keys on a CPU, a block at a time. Follows numbers.h.
constexpr int kKeyBlock = 256;
ST_CALL void read_keys(const char* from, st_i64 step, st_i64 count, RadixKey* to) {
  if (step == (st_i64)sizeof(T0)) {
#pragma clang loop vectorize(enable)
    for (st_i64 i = 0; i < count; ++i) to[i] = plain_key(st_load<T0>(from + i * sizeof(T0)));
  } else {
#pragma clang loop vectorize(enable)
    for (st_i64 i = 0; i < count; ++i) to[i] = plain_key(st_load<T0>(from + i * step));
  }
}
