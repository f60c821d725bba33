// Elements along an axis combined from the first to the last. Operands: input (own axis: the one
// that is folded), with option 0 indices, output. Programs: input's type to the accumulator's,
// combination of two, accumulator's to the output's. Without indices a whole row makes one element
// (of none: scalar 0, the identity, which option 1 says is there). With them each index begins a
// part that ends before the next index; scalars 0 and 1 are the bytes between indices and how many
// there are. Pass: 0.

template <class T>
ST_FN st_i64 to_index(T value) {
  if constexpr (st_traits<T>::kind == ST_INT) {
    return !st_traits<T>::is_signed && (st_u64)value > 0x7FFFFFFFFFFFFFFFull ? 0x7FFFFFFFFFFFFFFFll
                                                                             : (st_i64)value;
  } else {
    return 0;
  }
}

ST_FN void phase0(const Launch& launch, st_i64 item) {
  const Place place = st_place(launch, item);
  const char* const in = st_at(launch.operand0, place);
  const st_i64 n = launch.operand0.own_extents[0], step = launch.operand0.own_strides[0];
  char* const out = st_at(launch.ST_LAST, place);
  st_i64 begin = 0, end = n;
#if ST_SCALARS
  if (kOption0 != 0) {
    const char* const at = st_at(launch.operand1, place);
    const st_i64 between = st_load<st_i64>(launch.scalars[0]);
    const st_i64 count = st_load<st_i64>(launch.scalars[ST_SCALARS - 1]);
    begin = to_index(st_load<T1>(at));
    if (begin < 0 || begin >= n) {
      st_note_fault(launch, kIndexOutOfRange, begin, n);
      return;
    }
    if ((at - launch.operand1.data) / between + 1 < count) {
      end = to_index(st_load<T1>(at + between));
      if (end < 0 || end >= n) {
        st_note_fault(launch, kIndexOutOfRange, end, n);
        return;
      }
    }
    if (end <= begin) end = begin + 1;
  } else if (n == 0) {
    st_store<TLast>(out, run2(st_load<Program1>(launch.scalars[0])));
    return;
  }
#endif
  if (begin >= end) return;
  Program1 acc = run0(st_load<T0>(in + begin * step));
  for (st_i64 i = begin + 1; i < end; ++i) acc = run1(acc, run0(st_load<T0>(in + i * step)));
  st_store<TLast>(out, run2(acc));
}
