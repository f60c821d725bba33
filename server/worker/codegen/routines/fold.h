// Combines elements along an axis from the first to the last. Operands: input (own axis: the one
// that is folded), with option 0 indices, with option 2 a mask (the same own axis), output.
// Programs: input's type to the accumulator's, combination of two, accumulator's to the output's.
// Without indices a whole row gives one element (an empty row: scalar 0, if option 1; option 3:
// scalar 0 begins every row). A mask selects elements. With indices each begins a part that ends
// before the next index; scalars 0 and 1 are the bytes between indices and their number. Pass: 0.

template <class T>
ST_FN st_i64 to_index(T value) {
  if constexpr (st_traits<T>::kind == ST_INT) {
    return !st_traits<T>::is_signed && (st_u64)value > 0x7FFFFFFFFFFFFFFFull ? 0x7FFFFFFFFFFFFFFFll
                                                                             : (st_i64)value;
  } else {
    return 0;
  }
}

template <bool kMasked>
ST_FN bool takes_part(const Launch& launch, const char* mask, st_i64 i) {
  if constexpr (kMasked) {
    return st_load<bool>(mask + i * launch.operand1.own_strides[0]);
  } else {
    return true;
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
  const char* const mask = st_at(launch.operand1, place);
  Program1 acc;
  bool some = false;
#if ST_SCALARS
  if (kOption0 == 0) {
    acc = st_load<Program1>(launch.scalars[0]);
    some = kOption3 != 0;
  }
#endif
  for (st_i64 i = begin; i < end; ++i) {
    if (!takes_part<kOption2 != 0>(launch, mask, i)) continue;
    const Program0 value = run0(st_load<T0>(in + i * step));
    acc = some ? run1(acc, value) : value;
    some = true;
  }
  st_store<TLast>(out, run2(acc));
}
